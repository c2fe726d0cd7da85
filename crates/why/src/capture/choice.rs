//! The connections of a capture, numbered: MPTCP first, then plain TCP.

use super::answer::OtherConnection;
use super::log::Log;
use anabranch_inspect::{Place, Watched};
use std::collections::BTreeMap;

/// A connection that can be judged.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub number: usize,
    pub multipath: bool,
    /// Flows, and whether side 0 of each is side 1 of the connection.
    pub members: Vec<(usize, bool)>,
    pub bytes: [u64; 2],
    pub sides: [&'static str; 2],
}

/// All connections of a capture.
pub(crate) fn candidates(log: &Log, watched: &Watched) -> Vec<Candidate> {
    let mut of_mptcp: BTreeMap<usize, Vec<(usize, bool)>> = BTreeMap::new();
    let mut plain: BTreeMap<usize, Vec<(usize, bool)>> = BTreeMap::new();
    for (flow, place) in watched.findings.places.iter().enumerate() {
        match *place {
            Place::Subflow { connection, swapped, .. } => {
                of_mptcp.entry(connection).or_default().push((flow, swapped));
            }
            Place::Plain { index, swapped } => plain.entry(index).or_default().push((flow, swapped)),
            Place::LostRace => {}
        }
    }
    let report = &watched.findings.report;
    let mut candidates = Vec::new();
    for (connection, members) in of_mptcp {
        let sides = report.connections.iter().find(|it| it.number == connection).map_or(["A", "B"], |it| it.sides);
        candidates.push(Candidate { number: connection, multipath: true, bytes: bytes(log, &members), members, sides });
    }
    let shift = report.connections.len() + 1;
    for (index, members) in plain {
        let known = report.plain_tcp.get(index).is_some_and(|it| it.opener_known);
        let sides = if known { ["client", "server"] } else { ["A", "B"] };
        let bytes = bytes(log, &members);
        candidates.push(Candidate { number: shift + index, multipath: false, bytes, members, sides });
    }
    candidates
}

/// Payload bytes by side. A flow that was seen at several places counts once.
fn bytes(log: &Log, members: &[(usize, bool)]) -> [u64; 2] {
    let mut bytes = [0; 2];
    for (flow, swapped) in members {
        let Some(flow) = log.flows.get(*flow).and_then(Option::as_ref) else { continue };
        let places = flow.places.len().max(1) as u64;
        for (side, sum) in bytes.iter_mut().enumerate() {
            *sum += flow.sides[side ^ usize::from(*swapped)].bytes / places;
        }
    }
    bytes
}

impl Candidate {
    /// Address and port of the two sides on the first subflow.
    pub(crate) fn endpoints(&self, log: &Log) -> [String; 2] {
        let first = self.members.first().and_then(|(flow, swapped)| Some((log.flows.get(*flow)?.as_ref()?, *swapped)));
        let Some((flow, swapped)) = first else { return Default::default() };
        let ends = [flow.key.source().to_string(), flow.key.destination().to_string()];
        [0, 1].map(|side| ends[side ^ usize::from(swapped)].clone())
    }

    pub(crate) fn about(&self, log: &Log) -> OtherConnection {
        let Candidate { number, multipath, bytes, .. } = *self;
        OtherConnection { number, multipath, endpoints: self.endpoints(log), bytes }
    }
}
