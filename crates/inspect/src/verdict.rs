//! Verdicts on offers: fallbacks, joins, authenticators.

use crate::connection::Connection;
use crate::flow::{Flow, Member};
use crate::offer::Offer;
use crate::report::FallbackReport;
use crate::signal::What;
use crate::summary::article;
use anabranch_units::same_mac;
use anabranch_wire::ResetReason;

/// Compares a value with the expected one; `unknown` if that cannot be computed.
pub(crate) fn compared(expected: Option<&[u8]>, found: &[u8]) -> &'static str {
    match expected {
        None => "unknown",
        Some(expected) if same_mac(expected, found) => "good",
        Some(_) => "bad",
    }
}

/// Verdict on an authenticator in a segment that the capture does not hold.
const NOT_CAPTURED: &str = "not captured";

/// Authenticators in MP_JOIN, by side of the flow.
pub(crate) fn join_hmacs(flow: &Flow, member: Member, connection: &Connection) -> [Option<&'static str>; 2] {
    let mut verdicts = [None; 2];
    let Some(opener) = flow.opener else { return verdicts };
    let nonces = match (flow.shake.syn, flow.shake.syn_ack) {
        (Offer::JoinSyn(syn), Offer::JoinSynAck(syn_ack)) => Some((syn.nonce, syn_ack.nonce)),
        _ => None,
    };
    let key = |side: usize| connection.keys[member.side(side)];
    let expected = |own: usize| {
        let (opening, opened) = nonces?;
        let (own_nonce, peer_nonce) = if own == opener { (opening, opened) } else { (opened, opening) };
        Some(connection.hashing().join_hmac(key(own)?, key(1 - own)?, own_nonce, peer_nonce))
    };
    let shake = &flow.shake;
    let is_join = [shake.syn, shake.syn_ack, shake.ack]
        .iter()
        .any(|offer| matches!(offer, Offer::JoinSyn(_) | Offer::JoinSynAck(_) | Offer::JoinAck(_)));
    // No DSS is sent there before the handshake is complete.
    let went_on = flow.sides.iter().any(|side| side.dss > 0);
    let missed =
        |offer: Offer| (is_join && went_on && matches!(offer, Offer::Unseen | Offer::Cut)).then_some(NOT_CAPTURED);
    verdicts[1 - opener] = match shake.syn_ack {
        Offer::JoinSynAck(syn_ack) => Some(compared(expected(1 - opener).as_ref().map(|mac| &mac[..8]), &syn_ack.hmac)),
        other => missed(other),
    };
    verdicts[opener] = match shake.ack {
        Offer::JoinAck(ack) => Some(compared(expected(opener).as_ref().map(<[u8; 20]>::as_slice), &ack.hmac)),
        other => missed(other),
    };
    verdicts
}

/// Result of a subflow's handshake; `sides` names the sides of the flow.
pub(crate) fn outcome(flow: &Flow, sides: [&str; 2]) -> String {
    let shake = &flow.shake;
    let Some(opener) = flow.opener else { return "in use when the capture began".to_owned() };
    let [own, peer] = [opener, 1 - opener].map(|side| &flow.sides[side]);
    let reset = |side: &crate::flow::Side| {
        side.reset.map(|reset| reset.reason.map_or(String::new(), |(reason, _)| format!(": {}", reason_text(reason))))
    };
    let is_join = matches!(shake.syn, Offer::JoinSyn(_))
        || matches!(shake.syn_ack, Offer::JoinSynAck(_))
        || matches!(shake.ack, Offer::JoinAck(_));
    if shake.syn_ack_at.is_none() && shake.ack_at.is_none() {
        return match reset(peer) {
            Some(reason) => format!("refused with RST{reason}"),
            None if peer.packets == 0 && reset(own).is_some() => "given up, no answer seen".to_owned(),
            None if peer.packets == 0 => "no answer seen".to_owned(),
            None => "in use; its handshake was captured in part".to_owned(),
        };
    }
    if is_join && shake.syn_ack == Offer::Nothing {
        return "the SYN/ACK has no MP_JOIN: no subflow".to_owned();
    }
    let is_used = own.mappings.count + peer.mappings.count > 0 || peer.dss > 0;
    if is_join && !is_used {
        for (side, who) in [(peer, sides[1 - opener]), (own, sides[opener])] {
            if let Some(reason) = reset(side) {
                return format!("reset by {}{reason}", article(who));
            }
        }
        if shake.ack_at.is_none() {
            return "not completed in the capture: no third ACK".to_owned();
        }
        if matches!(shake.ack, Offer::Nothing) {
            return "the third ACK has no MP_JOIN: no subflow".to_owned();
        }
        return "handshake complete, not used".to_owned();
    }
    "established".to_owned()
}

/// Returns the step at which MPTCP was given up and the reason, as far as they show; `None` if it was not.
pub(crate) fn fallback(flow: &Flow) -> Option<FallbackReport> {
    let shake = &flow.shake;
    let found = |step, reason: &str| Some(FallbackReport { step, reason: reason.to_owned() });
    let opener = flow.opener.unwrap_or(0);
    let [own, peer] = [opener, 1 - opener].map(|side| &flow.sides[side]);
    let offered = matches!(shake.syn, Offer::Capable(_));
    let answered = matches!(shake.syn_ack, Offer::Capable(_));
    if offered && !answered && flow.member.is_none() {
        let Offer::Capable(syn) = shake.syn else { return None };
        if shake.bare_syns > 0 {
            return found("SYN", "SYNs with MP_CAPABLE had no answer; the client then tried one without");
        }
        // The first cause that shows decides. Missing packets come last: a capture with gaps can look like any of the
        // others.
        return match shake.syn_ack {
            Offer::Nothing if syn.version == 0 => found(
                "SYN/ACK",
                "version 0 (RFC 6824) was offered and the SYN/ACK has no MP_CAPABLE: the server does not speak MPTCP \
                 or not this version, or the option was removed on the way",
            ),
            Offer::Nothing => found(
                "SYN/ACK",
                "the SYN/ACK has no MP_CAPABLE: the server does not speak MPTCP, or the option was removed on the way",
            ),
            Offer::Cut => found("SYN/ACK", "unknown: the options of the SYN/ACK were cut by the capture"),
            _ if peer.reset.is_some() => found("SYN/ACK", "the connection was refused"),
            _ if peer.packets == 0 => found("SYN/ACK", "unknown: no answer was captured"),
            _ => found("SYN/ACK", "unknown: the SYN/ACK was not captured, and what follows has no MPTCP"),
        };
    }
    flow.member?;
    let signal = |wanted: fn(&What) -> bool| flow.signals.iter().find(|signal| wanted(&signal.what));
    if signal(|what| matches!(what, What::InfiniteMapping)).is_some() {
        let failed = signal(|what| matches!(what, What::Fail(_))).is_some();
        let reason = if failed {
            "MP_FAIL: a DSS checksum was wrong; then an infinite mapping, plain TCP from there on"
        } else {
            "an infinite mapping: plain TCP from there on"
        };
        return found("data", reason);
    }
    if answered && shake.ack == Offer::Nothing && own.mptcp == 0 {
        return found("third ACK", "neither the third ACK nor anything after it from the client has an MPTCP option");
    }
    for (side, who) in [(own, "client"), (peer, "server")] {
        if side.dss == 0 && side.bare_data > 0 && side.options_cut == 0 && side.mappings.count == 0 {
            let reason = format!("the {who}'s data has no DSS");
            return Some(FallbackReport { step: "first data", reason });
        }
        if side.bare_data >= MANY && side.mappings.unmapped > 0 && side.mptcp > 0 {
            let reason = format!("the last {} data packets of the {who} have no MPTCP option", side.bare_data);
            return Some(FallbackReport { step: "data", reason });
        }
    }
    None
}

/// RFC 8684 §3.6, table 1, in words.
pub(crate) fn reason_text(reason: ResetReason) -> String {
    let text = match reason {
        ResetReason::Unspecified => "unspecified error",
        ResetReason::MptcpError => "MPTCP-specific error",
        ResetReason::LackOfResources => "lack of resources",
        ResetReason::Prohibited => "administratively prohibited",
        ResetReason::TooMuchOutstanding => "too much outstanding data",
        ResetReason::UnacceptablePerformance => "unacceptable performance",
        ResetReason::Middlebox => "middlebox interference",
        ResetReason::Other(code) => return format!("reason {code}, which RFC 8684 does not define"),
    };
    format!("{text} ({})", reason.code())
}

/// Data packets without any option that are no accident.
const MANY: u64 = 3;
