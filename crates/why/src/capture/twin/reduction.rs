//! The congestion control, from what is left of the window after losses, and from what sets packets off.
//!
//! A window that falls to half is Reno's (RFC 5681) or that of a coupled one (RFC 6356), to seven tenths CUBIC's
//! (RFC 9438). Packets that leave between acknowledgments, rather than with them, have a clock of their own: a control
//! that models the path, such as BBR, paces them. The window is what was in flight: before the repair began, and when
//! it is over.

use super::super::picture::{FlowPicture, NEVER, Packet};
use super::super::sender::{Phase, Sender, Timeline};
use crate::Confidence;

/// Congestion control of a sender.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Control {
    /// Name of the policy.
    pub name: &'static str,
    pub confidence: Confidence,
    pub seen: String,
}

/// Windows after losses.
#[derive(Clone, PartialEq, Debug, Default)]
struct Windows {
    /// Parts of the window that were left after each repair without a timeout.
    left: Vec<f64>,
    /// Growth between repairs \[segments\], and the round trips that it took.
    grown: f64,
    rounds: f64,
}

/// Least window that is looked at, in segments: of a smaller one the rest is rounded too much.
const LEAST: i64 = 8;
/// Place of a departure between two acknowledgments, from 0 to 1, from which on packets have a clock of their own.
const PACED: f64 = 0.2;
/// Departures that tell.
const ENOUGH: usize = 20;
/// Shares of the window that are left by a fall: less after a repair of many losses, in which little may be sent, and
/// more where the window was not the limit.
const REPAIRED: f64 = 0.3;
const KEPT: f64 = 0.95;
/// Share of the window that is left, between Reno's and CUBIC's.
const CUBIC: f64 = 0.6;
/// Growth in segments for each round trip, between that of Reno and that of a coupled control on two paths.
const ALONE: f64 = 0.6;

/// Returns the congestion control of `side`. `may_couple` says that subflows may be coupled: several carried data, and
/// the stack has such controls.
pub(super) fn control(flows: &[FlowPicture], side: usize, timelines: &[Timeline], may_couple: bool) -> Control {
    let mut windows = Windows::default();
    for (flow, timeline) in flows.iter().zip(timelines) {
        windows.look(flow, side, timeline);
    }
    let seen_here = flows.iter().all(|flow| if side == 0 { flow.seen.own } else { flow.seen.other });
    let paced = if seen_here { between(flows, side) } else { None };
    tell(windows, paced, may_couple)
}

fn tell(mut windows: Windows, paced: Option<f64>, may_couple: bool) -> Control {
    if let Some(place) = paced.filter(|place| *place >= PACED) {
        let seen = format!("packets left {:.0} % of the way between acknowledgments (median): paced", 100.0 * place);
        return Control { name: "bbr", confidence: Confidence::Medium, seen };
    }
    windows.left.sort_by(f64::total_cmp);
    let Some(median) = windows.left.get(windows.left.len() / 2).copied() else {
        let seen = "not told: no window fell after a loss; the default of Linux".to_owned();
        return Control { name: "cubic", confidence: Confidence::Low, seen };
    };
    let growth = windows.grown / windows.rounds.max(1.0);
    let name = match median {
        median if median >= CUBIC => "cubic",
        _ if may_couple && growth < ALONE => "lia",
        _ => "reno",
    };
    let confidence = if windows.left.len() >= 5 { Confidence::Medium } else { Confidence::Low };
    let times = match windows.left.len() {
        1 => "one loss".to_owned(),
        many => format!("{many} losses (median)"),
    };
    let also = match name {
        "cubic" => String::new(),
        _ => format!(", and it grew by {growth:.2} segments in a round trip"),
    };
    let seen = format!("{:.0} % of the window was left after {times}{also}", 100.0 * median);
    Control { name, confidence, seen }
}

/// The median place of departures of data between the packets of the peer before and after, from 0 to 1.
fn between(flows: &[FlowPicture], side: usize) -> Option<f64> {
    let came = flows.iter().flat_map(|flow| &flow.packets[1 - side]).map(|it| it.arrived).filter(|at| *at != NEVER);
    let mut came: Vec<u64> = came.collect();
    came.sort_unstable();
    let longest = flows.iter().map(|flow| flow.rtt).max().unwrap_or(0);
    let mut places: Vec<f64> = Vec::new();
    for it in flows.iter().flat_map(|flow| &flow.packets[side]).filter(|it| it.length > 0) {
        let next = came.partition_point(|at| *at <= it.sent);
        let (Some(before), Some(after)) = (next.checked_sub(1).map(|before| came[before]), came.get(next)) else {
            continue;
        };
        // In a longer silence no acknowledgment is due.
        if after - before <= longest {
            places.push((it.sent - before) as f64 / (after - before) as f64);
        }
    }
    places.sort_by(f64::total_cmp);
    (places.len() >= ENOUGH).then(|| places[places.len() / 2])
}

impl Windows {
    /// Plays the sender of a subflow, and takes down its windows around repairs.
    fn look(&mut self, flow: &FlowPicture, side: usize, timeline: &Timeline) {
        let sent = timeline.sendings.iter().enumerate().map(|(index, sending)| (sending.at, true, index));
        let heard = flow.packets[1 - side].iter().enumerate().filter(|(_, it)| it.arrived != NEVER);
        let mut events: Vec<(u64, bool, usize)> = sent.collect();
        events.extend(heard.map(|(index, it)| (it.arrived, false, index)));
        events.sort_unstable();
        let mut sender = Sender::new();
        let mut recent = Recent::default();
        // The window before the repair under way; and that after the last one, with the round trips since.
        let (mut repair, mut after): (Option<i64>, Option<(i64, u32)>) = (None, None);
        let mut round = 0;
        for (at, leaves, index) in events {
            let was = sender.phase;
            recent.turn(at, flow.rtt);
            if leaves {
                let sending = &timeline.sendings[index];
                let it: &Packet = &flow.packets[side][sending.index];
                let window = recent.most().max(sender.flight());
                sender.send(it, sending, flow.rtt);
                match (was, sender.phase) {
                    (Phase::Open, Phase::Recovery(_)) => {
                        repair = Some(window);
                        if let Some((from, rounds)) = after.take() {
                            self.grown += (window - from) as f64 / sender.mss.max(1) as f64;
                            self.rounds += f64::from(rounds);
                        }
                    }
                    (_, Phase::Loss(_)) => (repair, after) = (None, None),
                    _ => {}
                }
            } else {
                let flight = sender.flight();
                sender.hear(&flow.packets[1 - side][index]);
                if let (Phase::Recovery(_), Phase::Open) = (was, sender.phase)
                    && let Some(window) = repair.take().filter(|window| *window >= LEAST * sender.mss.max(1))
                {
                    let left = flight as f64 / window as f64;
                    if (REPAIRED..=KEPT).contains(&left) {
                        self.left.push(left);
                    }
                    after = Some((flight, 0));
                }
            }
            if sender.una >= round {
                round = sender.nxt;
                after = after.map(|(from, rounds)| (from, rounds + 1));
            }
            recent.note(sender.flight());
        }
    }
}

/// The most that was in flight in this round trip, and in the one before.
#[derive(Default)]
struct Recent {
    now: i64,
    before: i64,
    since: u64,
}

impl Recent {
    fn turn(&mut self, at: u64, rtt: u64) {
        if at.saturating_sub(self.since) >= rtt {
            (self.before, self.now, self.since) = (self.now, 0, at);
        }
    }

    fn note(&mut self, flight: i64) {
        self.now = self.now.max(flight);
    }

    fn most(&self) -> i64 {
        self.now.max(self.before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(left: &[f64], growth: f64, paced: Option<f64>, may_couple: bool) -> &'static str {
        let windows = Windows { left: left.to_vec(), grown: 10.0 * growth, rounds: 10.0 };
        tell(windows, paced, may_couple).name
    }

    #[test]
    fn what_is_left_of_the_window_names_the_control() {
        assert_eq!(told(&[0.7, 0.68, 0.74], 1.0, Some(0.02), true), "cubic");
        assert_eq!(told(&[0.5, 0.51, 0.7], 1.0, Some(0.02), true), "reno");
        assert_eq!(told(&[0.5, 0.51, 0.7], 0.3, Some(0.02), true), "lia");
        assert_eq!(told(&[0.5, 0.51, 0.7], 0.3, None, false), "reno");
        assert_eq!(told(&[0.7], 1.0, Some(0.45), true), "bbr");
    }

    /// Without a loss nothing is told, and the answer says so.
    #[test]
    fn without_losses_it_is_not_told() {
        let control = tell(Windows::default(), Some(0.0), true);
        assert_eq!((control.name, control.confidence), ("cubic", Confidence::Low));
        assert!(control.seen.contains("not told"), "{}", control.seen);
    }
}
