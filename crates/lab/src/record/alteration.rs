//! Alterations of a segment by middleboxes: the difference between the segment as sent and as received.

use anabranch_units::SubflowSeq;
use anabranch_wire::{MpOption, Segment};

/// Describes each difference in a phrase; empty if the segment arrived as it was sent.
pub(super) fn alterations(before: &Segment, after: &Segment) -> Vec<String> {
    if before == after {
        return Vec::new();
    }
    let mut changes = Vec::new();
    if before.flow != after.flow {
        changes.push(format!("addresses {} to {}", before.flow, after.flow));
    }
    shift(&mut changes, "sequence number", before.seq, after.seq);
    shift(&mut changes, "acknowledgment number", before.ack, after.ack);
    if before.flags != after.flags {
        changes.push(format!("flags {} to {}", before.flags, after.flags));
    }
    if before.window != after.window {
        changes.push(format!("window {} to {}", before.window, after.window));
    }
    match (before.payload.len(), after.payload.len()) {
        (had, has) if had != has => changes.push(format!("payload of {had} bytes to {has}")),
        _ if before.payload != after.payload => changes.push("payload rewritten".to_owned()),
        _ => {}
    }
    let (had, has) = (names(before), names(after));
    let gone: Vec<&str> = had.iter().filter(|name| !has.contains(name)).copied().collect();
    let new: Vec<&str> = has.iter().filter(|name| !had.contains(name)).copied().collect();
    if !gone.is_empty() {
        changes.push(format!("{} removed", gone.join(" and ")));
    }
    if !new.is_empty() {
        changes.push(format!("{} added", new.join(" and ")));
    }
    if had == has && before.options != after.options {
        changes.push("option values".to_owned());
    }
    if changes.is_empty() {
        changes.push("header fields".to_owned());
    }
    changes
}

fn shift(changes: &mut Vec<String>, what: &str, before: SubflowSeq, after: SubflowSeq) {
    if before != after {
        changes.push(format!("{what} by {:+}", after.get().wrapping_sub(before.get()) as i32));
    }
}

/// Returns the names of a segment's options.
fn names(segment: &Segment) -> Vec<&'static str> {
    let options = &segment.options;
    let mut names = Vec::new();
    let handshake = options.handshake();
    names.extend(handshake.mss.map(|_| "MSS"));
    names.extend(handshake.window_scale.map(|_| "window scale"));
    names.extend(handshake.sack_permitted.then_some("SACK-permitted"));
    names.extend(options.timestamps().is_some().then_some("timestamps"));
    names.extend(options.has_sack().then_some("SACK"));
    names.extend(options.has_dss().then_some("DSS"));
    names.extend(options.mptcp().iter().map(|option| match option {
        MpOption::Capable(_) => "MP_CAPABLE",
        MpOption::JoinSyn(_) | MpOption::JoinSynAck(_) | MpOption::JoinAck(_) => "MP_JOIN",
        MpOption::AddAddr(_) => "ADD_ADDR",
        MpOption::RemoveAddr(_) => "REMOVE_ADDR",
        MpOption::Prio { .. } => "MP_PRIO",
        MpOption::Fail { .. } => "MP_FAIL",
        MpOption::FastClose { .. } => "MP_FASTCLOSE",
        MpOption::TcpReset { .. } => "MP_TCPRST",
    }));
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_wire::{Dss, Flags, FlowKey, Handshake, JoinAck};

    #[test]
    fn each_difference_has_its_words() {
        let flow = FlowKey::new(([10, 0, 0, 1], 1).into(), ([10, 1, 0, 1], 2).into());
        let mut sent = Segment::new(flow, Flags::ACK, SubflowSeq::new(5), SubflowSeq::new(7));
        sent.options.set_dss(Some(Dss::default()));
        sent.options.push_mptcp(MpOption::JoinAck(JoinAck { hmac: [0; 20] }));
        sent.payload = bytes::Bytes::from_static(b"abc").into();
        assert!(alterations(&sent, &sent.clone()).is_empty());
        let changed = |change: fn(&mut Segment)| {
            let mut after = sent.clone();
            change(&mut after);
            alterations(&sent, &after).join(", ")
        };
        for (change, expected) in [
            ((|s| s.options.strip_mptcp()) as fn(&mut Segment), "DSS and MP_JOIN removed"),
            (|s| *s.options.handshake_mut() = Handshake { mss: Some(1400), ..Handshake::default() }, "MSS added"),
            (|s| s.seq = SubflowSeq::new(2), "sequence number by -3"),
            (|s| s.ack = SubflowSeq::new(9), "acknowledgment number by +2"),
            (|s| s.payload = bytes::Bytes::from_static(b"ab").into(), "payload of 3 bytes to 2"),
            (|s| s.payload = bytes::Bytes::from_static(b"xyz").into(), "payload rewritten"),
            (|s| s.flow.src_port = 9, "addresses 10.0.0.1:1 > 10.1.0.1:2 to 10.0.0.1:9 > 10.1.0.1:2"),
            (|s| s.window = 1, "window 0 to 1"),
            (|s| s.flags = Flags::RST, "flags . to R"),
            (|s| s.options.set_dss(Some(Dss { data_fin: true, ..Dss::default() })), "option values"),
            (|s| s.ip.ttl = 3, "header fields"),
        ] {
            assert_eq!(changed(change), expected);
        }
    }
}
