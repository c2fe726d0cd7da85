//! Mechanisms of hosts and paths that packets betray, whatever limit the time is given to: small segments that are held
//! back (Nagle), acknowledgments that come late, packets that overtake each other.

use super::answer::{Fault, FaultKind};
use super::ordering::overtaken;
use super::picture::{FlowPicture, NEVER, Packet, UNKNOWN};
use super::verdict::reaction;
use anabranch_wire::Flags;

/// Times that something has to happen before it is no accident.
pub(crate) const MANY: u64 = 3;
/// Share of the time that it has to cost.
const WORTH: f64 = 0.1;
/// No delay of an acknowledgment is shorter \[ns\]; Linux has 40 ms.
const LEAST_DELAY: u64 = 25_000_000;

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
    faults.extend(slow_first_path(flows, whole, names));
    faults
}

/// A connection that began on a path whose round trip is much longer than that of another, and lasted few of them.
fn slow_first_path(flows: &[FlowPicture], whole: u64, names: &[String]) -> Option<Fault> {
    let first = flows.first()?;
    let others = flows.iter().filter(|it| it.path != first.path && it.rtt > 0);
    let best = others.min_by_key(|it| it.rtt)?;
    // The handshake takes one round trip, and so does the first request with its answer.
    let cost = 2 * first.rtt.saturating_sub(best.rtt);
    (first.rtt >= 2 * best.rtt && cost as f64 >= COSTLY * whole as f64).then(|| Fault {
        kind: FaultKind::SlowFirstPath,
        path: Some(names[first.path].clone()),
        text: format!(
            "The connection began on {}, whose round trip takes {:.0} ms, and not on {}, where it takes {:.0} ms",
            names[first.path],
            first.rtt as f64 / 1e6,
            names[best.path],
            best.rtt as f64 / 1e6
        ),
        remedy: Some(format!("Prefer {} for new connections, by the metric of its default route.", names[best.path])),
    })
}

/// Share of the time that a choice of the first path has to cost.
const COSTLY: f64 = 0.3;

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

/// Places up to which the receiver's windows let the sender go. Data beyond them waits for the application there, which
/// is neither side's delay.
#[derive(Clone, Copy, Default)]
struct Room {
    subflow: i64,
    data: i64,
}

impl Room {
    fn open(&mut self, answer: &Packet) {
        if answer.ack != UNKNOWN {
            self.subflow = self.subflow.max(answer.ack + answer.window);
        }
        if answer.data_ack != UNKNOWN {
            self.data = self.data.max(answer.data_ack + answer.window);
        }
    }

    /// True if there was room for it, or nothing is known of it.
    fn holds(&self, it: &Packet) -> bool {
        // The window counts from the DATA_ACK where there is one (RFC 8684 §3.3.1).
        match self.data {
            0 => self.subflow == 0 || it.end() <= self.subflow,
            edge => it.dsn == UNKNOWN || it.dsn + it.length <= edge,
        }
    }
}

impl Held {
    fn look(&mut self, flow: &FlowPicture, side: usize, reaction: u64) {
        let seen = if side == 0 { flow.seen.own } else { flow.seen.other };
        if flow.rtt == 0 || !seen {
            return self.look_from_receiver(flow, side, reaction);
        }
        let largest = flow.packets[side].iter().map(|it| it.length).max().unwrap_or(0);
        let mut answers: Vec<&Packet> = flow.packets[1 - side].iter().filter(|it| it.arrived != NEVER).collect();
        answers.sort_by_key(|it| it.arrived);
        let mut next = 0;
        // The newest acknowledgment that told something new, and the last packet of the peer with data.
        let (mut acked, mut acked_at, mut asked_at) = (0, 0, 0);
        // The windows before that acknowledgment, and with it.
        let (mut room, mut room_now) = (Room::default(), Room::default());
        let mut before: Option<&Packet> = None;
        for it in flow.packets[side].iter().filter(|it| it.length > 0) {
            while let Some(answer) = answers.get(next).filter(|answer| answer.arrived <= it.sent) {
                if answer.ack != UNKNOWN && answer.ack > acked {
                    (acked, acked_at) = (answer.ack, answer.arrived);
                    room = room_now;
                }
                room_now.open(answer);
                asked_at = if answer.length > 0 { answer.arrived } else { asked_at };
                next += 1;
            }
            let Some(last) = before.replace(it).filter(|last| it.seq >= last.end()) else { continue };
            let set_off = acked >= last.end() && it.sent - acked_at.min(it.sent) <= reaction && acked_at > last.sent;
            let is_small = it.length < largest;
            // More was queued behind it: a timer let that out before the acknowledgment came, if it came at all.
            let alone = !last.is(Flags::PSH) && last.length == largest && acked >= last.seq && last.arrived != NEVER;
            let waited = it.sent - last.sent;
            if is_small && alone && acked < last.end() && waited >= flow.rtt + LEAST_DELAY {
                self.late += 1;
                self.late_by += waited - flow.rtt;
                continue;
            }
            self.hasty += u64::from(is_small && acked < last.end());
            if !set_off || it.sent - asked_at.min(it.sent) <= reaction || !room.holds(it) {
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

    /// Counts what was held back where the receiver was captured alone: the rest of what was written arrives a round
    /// trip after the acknowledgment of a segment behind which, without a push, more was queued.
    fn look_from_receiver(&mut self, flow: &FlowPicture, side: usize, reaction: u64) {
        let data = || flow.packets[side].iter().filter(|it| it.length > 0 && it.arrived != NEVER);
        let largest = data().map(|it| it.length).max().unwrap_or(0);
        let mut in_order: Vec<&Packet> = data().collect();
        in_order.sort_by_key(|it| it.arrived);
        let answers = || flow.packets[1 - side].iter().filter(|it| it.ack != UNKNOWN);
        let mut next = answers().peekable();
        let mut room = Room::default();
        for pair in in_order.windows(2) {
            let [last, it] = [pair[0], pair[1]];
            while let Some(answer) = next.next_if(|answer| answer.ack < last.end() || answer.sent < last.arrived) {
                room.open(answer);
            }
            // Copies of what another subflow carries lie between others by chance.
            let follows = it.seq == last.end() && (it.dsn == UNKNOWN || it.dsn == last.dsn + last.length);
            let is_rest = follows && it.length < largest && room.holds(it);
            if !is_rest || last.is(Flags::PSH) || last.length < largest {
                continue;
            }
            let apart = it.arrived - last.arrived;
            // An answer that acknowledges it as well came after it.
            let before = |answer: &&&Packet| answer.sent <= it.arrived && answer.ack < it.end();
            let answered = next.peek().filter(before).map(|answer| answer.sent);
            let waited = answered.map(|at| it.arrived - at);
            let of_one = |waited: u64| waited + reaction >= flow.rtt && waited <= flow.rtt + flow.rtt / 2 + reaction;
            self.hasty += u64::from(apart < flow.rtt / 2);
            if waited.is_some_and(of_one) {
                self.small += 1;
                self.time += apart;
            }
            // Its acknowledgment was held back, until a timer of either end.
            if apart >= flow.rtt + LEAST_DELAY && waited.is_none_or(of_one) {
                self.late += 1;
                self.late_by += apart - flow.rtt;
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
