//! SYNs that asked for a connection on several paths at once (RFC 8305 §5, for MPTCP): one began the connection, the
//! others lost.
//!
//! The packets do not tie them together. Taken for one race is only a SYN with MP_CAPABLE that the client never
//! confirmed, on a path that a connection has joined whose own SYN left within [`AT_ONCE`] of it.

use crate::connection::Connection;
use crate::flow::Flow;
use crate::inspector::Inspector;
use crate::offer::Offer;
use anabranch_units::{Duration, Instant};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// SYNs further apart are attempts of their own.
const AT_ONCE: Duration = Duration::from_secs(1);

/// The SYNs that lost, by the connection that won: indices of flows, in order, by the index of the connection.
pub(crate) type Lost = BTreeMap<usize, Vec<usize>>;

/// All races of a capture.
pub(crate) fn lost(inspector: &Inspector) -> Lost {
    let mut opened = Opened::new();
    for (index, connection) in inspector.connections.iter().enumerate() {
        add(&mut opened, inspector, index, connection);
    }
    let mut lost = Lost::new();
    for (index, flow) in inspector.flows.iter().enumerate() {
        if let Some(winner) = attempt(flow).and_then(|attempt| nearest(&opened, attempt)) {
            lost.entry(winner).or_default().push(index);
        }
    }
    lost
}

/// Connections by the paths of all their subflows but the first, and by the time of the SYN that opened them.
type Opened = BTreeMap<Asked, usize>;

/// Address and port of the server, address of the client, time of the SYN with MP_CAPABLE.
type Asked = (SocketAddr, IpAddr, Instant);

fn add(opened: &mut Opened, inspector: &Inspector, index: usize, connection: &Connection) {
    let Some((first, others)) = connection.flows.split_first() else { return };
    let first = &inspector.flows[*first];
    let Some((opener, member)) = first.opener.zip(first.member).filter(|_| first.shake.ack_at.is_some()) else {
        return;
    };
    let Some(at) = first.shake.syn_at else { return };
    let client_side = member.side(opener);
    for flow in others {
        let flow = &inspector.flows[*flow];
        if let Some(member) = flow.member {
            let [client, server] = ends(flow, member.side(client_side));
            opened.entry((server, client.ip(), at)).or_insert(index);
        }
    }
}

/// A SYN with MP_CAPABLE that led to nothing.
fn attempt(flow: &Flow) -> Option<Asked> {
    let shake = &flow.shake;
    let opener = flow.opener?;
    let offered = matches!(shake.syn, Offer::Capable(_));
    let confirmed = shake.ack_at.is_some() || shake.ack != Offer::Unseen;
    let silent = flow.sides.iter().all(|side| side.sequence.unique() == 0);
    // A reply without a reset may yet be confirmed: the capture has ended, or misses packets.
    let given_up = shake.syn_ack_at.is_none() || flow.sides[opener].reset.is_some();
    let [client, server] = ends(flow, opener);
    (offered && !confirmed && silent && given_up).then_some((server, client.ip(), shake.syn_at?))
}

/// The connection whose SYN left nearest to that of an attempt.
fn nearest(opened: &Opened, (server, client, at): Asked) -> Option<usize> {
    let earliest = Instant::from_nanos(at.as_nanos().saturating_sub(AT_ONCE.as_nanos()));
    let before = opened.range((server, client, earliest)..=(server, client, at)).next_back();
    let after = opened.range((server, client, at)..=(server, client, at + AT_ONCE)).next();
    let apart = |(asked, _): &(&Asked, &usize)| asked.2.since(at).max(at.since(asked.2));
    before.into_iter().chain(after).min_by_key(apart).map(|(_, connection)| *connection)
}

/// Addresses and ports of a flow, that of `side` first.
fn ends(flow: &Flow, side: usize) -> [SocketAddr; 2] {
    let ends = [flow.key.source(), flow.key.destination()];
    [ends[side], ends[1 - side]]
}
