//! The course of one direction of a connection, packet by packet, for drawings: which packet carried what, what was
//! acknowledged, where the receiver's window ended, and what was in flight.

use super::picture::{FlowPicture, NEVER, Packet, UNKNOWN};
use super::stream::Arrived;
use anabranch_lab::timeline::Copied;
use anabranch_wire::Flags;

/// Course of one direction of a connection. Times are nanoseconds since 1970, and data is counted from its first byte.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Trace {
    /// Index of the side that sends.
    pub from: usize,
    /// Names of the captures.
    pub files: Vec<String>,
    /// Names of the paths.
    pub paths: Vec<String>,
    /// Subflows.
    pub subflows: Vec<TracedFlow>,
    /// Packets with data, and those with SYN, FIN or RST, in the order in which they left.
    pub sent: Vec<Sent>,
    /// Acknowledgments, in the order in which they reached the sender.
    pub heard: Vec<Heard>,
    /// Bytes in flight, after each change; empty if nothing can be told of the direction.
    pub flight: Vec<Flight>,
    /// True if packets of one burst were taken together, so that a number stands for several.
    pub joined: bool,
}

/// Subflow of a connection.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TracedFlow {
    /// Index of its path.
    pub path: usize,
    /// Address and port of the side that sends, and of the other.
    pub ends: [String; 2],
    /// Indices of the captures that stand for the end of the side that sends, and for the other.
    pub files: [Option<usize>; 2],
}

/// Packet of the side that sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sent {
    /// Time at which it left.
    pub at: u64,
    /// Time at which it arrived; absent if it was lost, or on its way when the capture ended.
    pub arrived: Option<u64>,
    /// True if it was lost.
    pub lost: bool,
    /// Index of its subflow.
    pub subflow: usize,
    /// Position of its first byte on the subflow; the SYN has 0.
    pub seq: u64,
    /// Payload \[B\].
    pub length: u64,
    /// Position of its first byte in the data; absent if no mapping tells.
    pub from: Option<u64>,
    /// Earlier sending of the same bytes.
    pub copy: Copied,
    /// Flags of TCP.
    pub flags: Flags,
    /// Numbers in the captures that saw it leave and arrive, from 1; 0 where none did.
    pub numbers: [u32; 2],
}

/// Acknowledgment that reached the side that sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Heard {
    /// Time at which it arrived.
    pub at: u64,
    /// Index of its subflow.
    pub subflow: usize,
    /// Acknowledges all below, on the subflow.
    pub ack: u64,
    /// Window \[B\]; absent if the capture misses its scale.
    pub window: Option<u64>,
    /// Newest block of SACK.
    pub sack: Option<(u64, u64)>,
    /// Acknowledges all below, in the data.
    pub data_ack: Option<u64>,
}

/// Bytes in flight on a subflow from a time on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flight {
    /// Time.
    pub at: u64,
    /// Index of the subflow.
    pub subflow: usize,
    /// Bytes in flight.
    pub in_flight: u64,
    /// Estimate of the congestion window.
    pub window: u64,
}

/// Puts the course of what `side` sends together, without names and bytes in flight. `None` if it sends no data.
pub(crate) fn trace(flows: &[FlowPicture], side: usize) -> Option<Trace> {
    let mut order: Vec<(usize, &Packet)> = Vec::new();
    for (number, flow) in flows.iter().enumerate() {
        let told = flow.packets[side].iter().filter(|it| it.length > 0 || is_mark(it));
        order.extend(told.map(|it| (number, it)));
    }
    order.iter().any(|(_, it)| it.length > 0).then_some(())?;
    order.sort_by_key(|(_, it)| it.sent);
    let with_data = order.iter().filter(|(_, it)| it.length > 0 && it.dsn != UNKNOWN);
    let begin = with_data.map(|(_, it)| it.dsn).min().unwrap_or(0);
    let mut known = Arrived::from(begin);
    let mut edges = vec![i64::MIN; flows.len()];
    // What left after the last that arrived was on its way when the capture ended.
    let arrived =
        |flow: &FlowPicture| flow.packets[side].iter().filter(|it| it.arrived != NEVER).map(|it| it.sent).max();
    let latest: Vec<u64> = flows.iter().map(|flow| arrived(flow).unwrap_or(0)).collect();
    let mut trace = Trace { from: side, ..Trace::default() };
    for (number, it) in order {
        let is_new = it.dsn == UNKNOWN || it.length == 0 || known.insert(it.dsn, it.dsn + it.length);
        let copy = match () {
            () if it.length > 0 && it.end() <= edges[number] => Copied::Retransmitted,
            () if !is_new => Copied::Reinjected,
            () => Copied::New,
        };
        edges[number] = edges[number].max(it.end());
        trace.sent.push(Sent {
            at: it.sent,
            arrived: Some(it.arrived).filter(|at| *at != NEVER),
            lost: it.arrived == NEVER && it.sent < latest[number],
            subflow: number,
            seq: position(it.seq, 0),
            length: position(it.length, 0),
            from: (it.dsn != UNKNOWN && it.length > 0).then(|| position(it.dsn, begin)),
            copy,
            flags: Flags(it.flags),
            numbers: it.numbers,
        });
    }
    trace.heard = heard(flows, side, begin);
    Some(trace)
}

/// Acknowledgments of the other side as they arrive.
fn heard(flows: &[FlowPicture], side: usize, begin: i64) -> Vec<Heard> {
    let mut heard = Vec::new();
    for (number, flow) in flows.iter().enumerate() {
        let came = flow.packets[1 - side].iter().filter(|it| it.arrived != NEVER && it.ack != UNKNOWN);
        heard.extend(came.filter(|it| !it.is(Flags::RST)).map(|it| Heard {
            at: it.arrived,
            subflow: number,
            ack: position(it.ack, 0),
            // That of a SYN is not scaled, and says nothing of the window that follows.
            window: (flow.scaled && !it.is(Flags::SYN)).then(|| position(it.window, 0)),
            sack: it.sack.map(|(from, to)| (position(from, 0), position(to, 0))),
            data_ack: (it.data_ack != UNKNOWN).then(|| position(it.data_ack, begin)),
        }));
    }
    heard.sort_by_key(|it| it.at);
    heard
}

fn is_mark(it: &Packet) -> bool {
    it.is(Flags::SYN) || it.is(Flags::FIN) || it.is(Flags::RST)
}

fn position(number: i64, begin: i64) -> u64 {
    number.saturating_sub(begin).max(0).unsigned_abs()
}
