//! Facts that a capture does not show, in sentences.

use crate::connection::Connection;
use crate::flow::{By, Flow, Member, Side};
use crate::inspector::Totals;
use crate::offer::Offer;
use crate::summary::{TWO_POINTS, article};

/// Notes about the capture as a whole.
pub(crate) fn of_capture(totals: &Totals) -> Vec<String> {
    let mut notes = Vec::new();
    let mut note = |count: u64, text: &str| {
        if count > 0 {
            notes.push(counted(text, count));
        }
    };
    note(totals.copies, "{n} packets were captured more than once; each is counted once");
    note(totals.options_cut, "{n} packets were cut within their options: MPTCP in them, if any, is not seen");
    note(totals.timeless, "{n} packets have no time and are taken for simultaneous with the one before");
    note(totals.backwards, "{n} packets are older than the one before them by more than could be put in order");
    note(totals.bad_checksums, "{n} packets have a wrong checksum: usual where the sender's network card computes it");
    note(totals.ignored_packets, "{n} packets belong to TCP connections beyond the limit and were not analysed");
    note(totals.ignored_connections, "{n} MPTCP connections are beyond the limit and were not analysed");
    notes
}

/// Notes about one connection.
pub(crate) fn of_connection(
    connection: &Connection,
    flows: &[(&Flow, Member)],
    fell_back: bool,
    captured: Option<&str>,
    sides: [&str; 2],
) -> Vec<String> {
    let mut notes = Vec::new();
    let name = |side: usize| article(sides[side]);
    match connection.keys {
        [None, None] if !flows.iter().any(|(_, member)| member.by == By::Capable) => {
            let is_in = flows.iter().any(|(flow, _)| matches!(flow.shake.syn, Offer::Capable(_) | Offer::Cut));
            let what = if is_in {
                "The keys are not in the capture"
            } else {
                "The MP_CAPABLE handshake is not in the capture"
            };
            notes.push(format!(
                "{what}: authenticators cannot be verified, and bytes count from the first one captured."
            ));
        }
        [Some(_), Some(_)] => {}
        keys => {
            for side in [0, 1].into_iter().filter(|&side| keys[side].is_none()) {
                notes.push(format!(
                    "The key of {} is not in the capture: authenticators cannot be verified, and what it sent counts \
                     from the first byte captured.",
                    name(side)
                ));
            }
        }
    }
    if !connection.opener_known {
        notes.push("Who opened the connection is not known: A is the side that was seen first.".to_owned());
    }
    if captured == Some(TWO_POINTS) {
        let text = "Order, gaps and losses are those of the first copy of each packet; a capture of the receiver alone \
                    shows what arrived.";
        notes.push(text.to_owned());
    }
    for (flow, member) in flows {
        of_subflow(flow, *member, &mut notes);
    }
    for (side, stream) in connection.streams.iter().enumerate() {
        let unmapped: u64 = flows.iter().map(|(flow, member)| flow.sides[member.side(side)].mappings.unmapped).sum();
        if !fell_back && unmapped > 0 {
            notes.push(format!("{unmapped} bytes from {} have no mapping in the capture.", name(side)));
        }
        // Unmapped bytes are missing at the data level as well, and have just been counted.
        let missing = stream.coverage.missing.saturating_sub(unmapped);
        if !fell_back && missing > 0 {
            notes.push(format!("{missing} bytes from {} were acknowledged and are not in the capture.", name(side)));
        }
        if stream.strange > 0 {
            notes.push(format!(
                "{} data sequence numbers of {} are far from all others and were ignored.",
                stream.strange,
                name(side)
            ));
        }
        if stream.dsn(0).is_some_and(|(_, upper)| !upper) {
            notes.push(format!("Only the lower half of {}'s data sequence numbers is in the capture.", name(side)));
        }
    }
    if connection.key_conflicts > 0 {
        notes.push(format!("{} MP_CAPABLE options carry another key than the first.", connection.key_conflicts));
    }
    notes
}

fn of_subflow(flow: &Flow, member: Member, notes: &mut Vec<String>) {
    let number = member.subflow;
    let mut note = |text: String| notes.push(format!("Subflow {number}: {text}"));
    match member.by {
        By::Numbers => note("assigned to this connection because its data sequence numbers fit (inferred).".to_owned()),
        By::Token if flow.shake.syn_ack == Offer::Unseen && flow.sides.iter().all(|side| side.packets > 0) => {
            note("its SYN/ACK is not in the capture.".to_owned());
        }
        _ => {}
    }
    if matches!(member.by, By::Numbers | By::Alone) && flow.shake.syn_at.is_none() && flow.shake.syn_ack_at.is_none() {
        note("its handshake is not in the capture, nor is what was sent before.".to_owned());
    }
    let sum = |of: fn(&Side) -> u64| flow.sides.iter().map(of).sum::<u64>();
    let mut many = |count: u64, text: &str| {
        if count > 0 {
            note(counted(text, count));
        }
    };
    many(sum(|side| side.options_cut), "{n} packets were cut within their options.");
    many(sum(|side| side.payload_cut), "{n} packets were cut within their data.");
    many(sum(|side| side.broken_options), "{n} packets have options that break off.");
    many(sum(|side| side.sequence.missing()), "{n} bytes were acknowledged by TCP and are not in the capture.");
    many(sum(|side| side.sequence.strange), "{n} sequence or acknowledgment numbers are far from all others.");
    many(sum(|side| side.mappings.conflicts), "{n} mappings contradict earlier ones and were ignored.");
    many(flow.more_signals, "{n} further signals are not listed.");
    if flow.copies_undecided() {
        note("most packets are there twice and nothing tells copies from repeats; taken for copies.".to_owned());
    }
    for (side, other) in [(0, 1), (1, 0)] {
        if flow.sides[side].packets == 0 && flow.sides[other].packets > 1 {
            let [from, to] = if side == 0 {
                [flow.key.source(), flow.key.destination()]
            } else {
                [flow.key.destination(), flow.key.source()]
            };
            note(format!("no packet from {from} to {to} is in the capture."));
        }
    }
}

/// Puts a number in place of `{n}`, and takes the plural back for one.
fn counted(text: &str, count: u64) -> String {
    let text = text.replace("{n}", &count.to_string());
    if count != 1 {
        return text;
    }
    let singular =
        [("1 packets were", "1 packet was"), ("1 packets have", "1 packet has"), ("1 packets are", "1 packet is")];
    let singular = singular.iter().find(|(plural, _)| text.starts_with(plural));
    singular.map_or(text.clone(), |(plural, one)| text.replacen(plural, one, 1))
}
