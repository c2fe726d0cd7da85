//! Mechanisms of hosts and paths that packets betray, whatever limit the time is given to: small segments that are held
//! back (Nagle), acknowledgments that come late, packets that overtake each other.

use super::answer::{Fault, FaultKind};
use super::picture::{FlowPicture, NEVER, Packet, UNKNOWN};
use super::verdict::reaction;

/// Times that something has to happen before it is no accident.
const MANY: u64 = 3;
/// Share of the time that it has to cost.
const WORTH: f64 = 0.1;
/// No delay of an acknowledgment is shorter \[ns\]; Linux has 40 ms.
const LEAST_DELAY: u64 = 25_000_000;
/// Share of packets that others overtake, from which on senders take them for lost.
const OVERTAKEN: f64 = 0.005;

/// Faults of the direction in which `side` sends, which took `whole` \[ns\]; by path, with their names.
pub(crate) fn mechanisms(flows: &[FlowPicture], side: usize, whole: u64, names: &[String]) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (path, name) in names.iter().enumerate() {
        let mine = || flows.iter().filter(move |flow| flow.path == path);
        let mut held = Held::default();
        mine().for_each(|flow| held.look(flow, side, reaction(flows)));
        faults.extend(held.fault(name, whole));
        faults.extend(overtaken(mine(), side, name));
    }
    faults
}

/// Data that left as soon as everything before it was acknowledged.
#[derive(Default)]
struct Held {
    /// Segments smaller than the largest that were sent so, and that left while older data was on its way.
    small: u64,
    hasty: u64,
    /// Time for which the small ones may have been held back \[ns\].
    time: u64,
    /// Data that waited for an acknowledgment which came late, and by how much in all \[ns\].
    late: u64,
    late_by: u64,
}

impl Held {
    fn look(&mut self, flow: &FlowPicture, side: usize, reaction: u64) {
        // Only at the sender do times tell what set off what.
        let seen = if side == 0 { flow.seen.own } else { flow.seen.other };
        if !seen || flow.rtt == 0 {
            return;
        }
        let largest = flow.packets[side].iter().map(|it| it.length).max().unwrap_or(0);
        let mut answers: Vec<&Packet> = flow.packets[1 - side].iter().filter(|it| it.arrived != NEVER).collect();
        answers.sort_by_key(|it| it.arrived);
        let mut next = 0;
        // The newest acknowledgment that told something new, and the last packet of the peer with data.
        let (mut acked, mut acked_at, mut asked_at) = (0, 0, 0);
        let mut before: Option<&Packet> = None;
        for it in flow.packets[side].iter().filter(|it| it.length > 0) {
            while let Some(answer) = answers.get(next).filter(|answer| answer.arrived <= it.sent) {
                if answer.ack != UNKNOWN && answer.ack > acked {
                    (acked, acked_at) = (answer.ack, answer.arrived);
                }
                asked_at = if answer.length > 0 { answer.arrived } else { asked_at };
                next += 1;
            }
            let Some(last) = before.replace(it).filter(|last| it.seq >= last.end()) else { continue };
            let set_off = acked >= last.end() && it.sent - acked_at.min(it.sent) <= reaction && acked_at > last.sent;
            let is_small = it.length < largest;
            self.hasty += u64::from(is_small && acked < last.end());
            if !set_off || it.sent - asked_at.min(it.sent) <= reaction {
                continue;
            }
            let took = acked_at - last.sent;
            if is_small {
                self.small += 1;
                self.time += it.sent - last.sent;
            }
            if took >= flow.rtt + LEAST_DELAY {
                self.late += 1;
                self.late_by += took - flow.rtt;
            }
        }
    }

    fn fault(&self, name: &str, whole: u64) -> Option<Fault> {
        let costs = |time: u64| time as f64 >= WORTH * whole as f64;
        let path = Some(name.to_owned());
        let each = self.late_by as f64 / self.late.max(1) as f64 / 1e6;
        if self.late >= MANY && costs(self.late_by) {
            return Some(Fault {
                kind: FaultKind::DelayedAck,
                path,
                text: format!(
                    "the sender waited {} times for an acknowledgment that the receiver delayed, by {each:.0} ms in \
                     the mean, before it sent more",
                    self.late
                ),
                remedy: Some("Set TCP_NODELAY on the sender, or acknowledge sooner (TCP_QUICKACK).".to_owned()),
            });
        }
        (self.small >= MANY && self.small > 2 * self.hasty && costs(self.time)).then(|| Fault {
            kind: FaultKind::Nagle,
            path,
            text: format!(
                "the sender held {} small segments back until all before them was acknowledged (Nagle)",
                self.small
            ),
            remedy: Some("Set TCP_NODELAY on the sender, or write larger pieces.".to_owned()),
        })
    }
}

/// Packets that arrived after others which left later, and were not sent a second time in between.
fn overtaken<'a>(flows: impl Iterator<Item = &'a FlowPicture>, side: usize, name: &str) -> Option<Fault> {
    let (mut late, mut all) = (0, 0);
    // Both ends have to be seen: elsewhere arrivals are estimates.
    for flow in flows.filter(|flow| flow.seen.own && flow.seen.other) {
        let mut latest = 0;
        for it in flow.packets[side].iter().filter(|it| it.length > 0 && it.arrived != NEVER) {
            all += 1;
            late += u64::from(it.arrived < latest);
            latest = latest.max(it.arrived);
        }
    }
    // A packet that is late is overtaken by many, each of which counts: what counts is how often the order breaks.
    (late >= MANY && late as f64 >= OVERTAKEN * all as f64).then(|| Fault {
        kind: FaultKind::Reordering,
        path: Some(name.to_owned()),
        text: format!("packets overtook each other ({late} of {all}), which senders take for losses"),
        remedy: Some(
            "Look for a link that spreads packets over several ways; RACK or a larger tcp_reordering bear more."
                .to_owned(),
        ),
    })
}
