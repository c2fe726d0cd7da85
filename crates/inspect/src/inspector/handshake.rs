//! SYN, SYN/ACK and third ACK.

use super::{Inspector, Packet};
use crate::offer::Offer;
use anabranch_wire::Flags;

impl Inspector {
    /// SYN, SYN/ACK and third ACK: who opened, where the sequence numbers begin, what was offered.
    pub(super) fn handshake(&mut self, packet: &Packet<'_>, cut: bool) {
        let Packet { at, segment, from, .. } = *packet;
        let flow = &mut self.flows[packet.flow];
        let offer = Offer::of(segment, cut);
        let shake = &mut flow.shake;
        let is_syn = segment.flags.has(Flags::SYN);
        let is_ack = segment.flags.has(Flags::ACK);
        if segment.flags.has(Flags::RST) {
            return;
        }
        if is_syn && !is_ack {
            flow.opener.get_or_insert(from);
            shake.syns += 1;
            shake.syn_at.get_or_insert(at);
            shake.syn_seq = Some(segment.seq);
            match (shake.syn, offer) {
                (Offer::Unseen | Offer::Cut, offer) => shake.syn = offer,
                (Offer::Capable(_) | Offer::JoinSyn(_), Offer::Nothing) => shake.bare_syns += 1,
                _ => {}
            }
            flow.sides[from].sequence.begin(segment.seq);
        } else if is_syn {
            flow.opener.get_or_insert(1 - from);
            shake.syn_acks += 1;
            shake.syn_ack_at.get_or_insert(at);
            shake.syn_seq.get_or_insert(segment.ack + MINUS_ONE);
            shake.syn_ack_seq = Some(segment.seq);
            shake.syn_ack.complete(offer);
            flow.sides[from].sequence.begin(segment.seq);
            flow.sides[1 - from].sequence.begin(segment.ack + MINUS_ONE);
        } else if is_ack && shake.ack_at.is_none() {
            // By its options the third ACK is one even where nothing before it was captured.
            let by_option = match offer {
                Offer::JoinAck(_) => packet.length == 0,
                Offer::Capable(capable) => {
                    capable.receiver_key.is_some() && capable.data.is_none() && packet.length == 0
                }
                _ => false,
            };
            // Without such options it is the one that acknowledges nothing but the SYN/ACK; a later one says nothing
            // about a third ACK that the capture missed.
            let by_place = flow.opener == Some(from)
                && packet.length == 0
                && segment.options.dss().is_none()
                && shake.syn_seq.is_some_and(|seq| segment.seq == seq + 1)
                && shake.syn_ack_seq.is_some_and(|seq| segment.ack == seq + 1);
            if !by_option && !by_place && matches!(offer, Offer::Capable(_)) && shake.ack == Offer::Unseen {
                // The first data completes the handshake as well (RFC 8684 §3.1).
                shake.ack = offer;
            }
            if by_option || by_place {
                flow.opener.get_or_insert(from);
                shake.ack = offer;
                shake.ack_at = Some(at);
                shake.ack_number = Some(segment.ack);
            }
            if by_option {
                flow.sides[from].sequence.begin(segment.seq + MINUS_ONE);
                flow.sides[1 - from].sequence.begin(segment.ack + MINUS_ONE);
            }
        } else if is_ack && matches!(offer, Offer::Capable(_) | Offer::JoinAck(_)) && shake.ack == Offer::Nothing {
            // The first ACK was bare, but the handshake goes on (RFC 8684 §3.1 allows the first data to complete it).
            shake.ack = offer;
        }
    }
}

/// Added to a sequence number, takes one away.
const MINUS_ONE: u64 = u64::MAX;
