//! LATE, loss-aware throughput estimation: the slowest subflow starts behind the data that the others will have
//! delivered by then.
//!
//! W. Yang, P. Dong, L. Cai, W. Tang. *Loss-Aware Throughput Estimation Scheduler for Multi-Path TCP in Heterogeneous
//! Wireless Networks.*
//!
//! The slowest usable subflow is the master, the others are its slaves. About once per RTT of the master the unsent
//! bytes are dealt out in blocks: first, in order of SRTT, each slave's, as much as it is expected to deliver while a
//! segment travels on the master ([`forecast::Late`], with horizon `RTT_master / 2`); behind them the master's, as much
//! as its window has room for. Each subflow sends from the head of its own block. At the end of the data the slaves'
//! blocks cover everything, and the master stays silent.
//!
//! A block is a number of bytes, not a list of segments: it begins where the blocks before it end, and shrinks as its
//! bytes leave, on any subflow.
//!
//! Where we differ: see [`forecast::Late`] for the estimate (Eqs. 1 to 23); the loop over rounds of Algorithm 1 is
//! dropped, since the estimate holds all rounds. The master's block is its free window, not its whole one. The paper's
//! horizon is half the time between two dealings, so blocks run out: a subflow without a block takes the first bytes
//! behind all blocks (`strict`: it idles). A subflow in RTO recovery has no block, or the first bytes would wait for
//! it. The largest window W of Fig. 5 is the largest at any loss so far or, if larger, the present one, and never more
//! than the peer's. Forecasts begin with a fresh full window at the dealing (`phase_aware`: in the round under way).
//! When nothing is in flight on the subflow that holds the first unsent byte, its ACK would not end the wait, so the
//! fastest subflow with room sends that byte.
//!
//! Of the readings A-LATE-1 to 15 (`docs/interpretations.md`) those that change decisions are parameters. The others: 2
//! and 4 only read an index; 6 (half of a small window, Eqs. 12, 13, 21) changes nothing, since a window of one grows
//! to two whether its threshold is none, one or two; 9 has no other source; the loop of 11, taken literally, does not
//! end (the remaining time becomes the duration of a round, which is never below half of one); 14 is `late-nested`.

use super::prospects::Prospects;
use super::skip::whole_segments;
use super::{Entry, Scheduler, wait_for};
use crate::forecast::{self, Conditions, Forecaster, Later, Switches};
use crate::registry::{Flag, Params, flag};
use crate::{Decision, Event, SubflowView, View};
use anabranch_units::{Bytes, Instant, SubflowId};

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "late",
    "the slowest subflow starts behind the data that the others should deliver by then, losses included",
    include_str!("late.rs"),
    |p| Box::new(Late::new(p)),
)
.paper("Yang et al., LATE")
.parameters(&[
    OVERSHOOT.parameter(),
    RTO_ROUND_END.parameter(),
    TLP.parameter(),
    STRICT.parameter(),
    UNWEIGHTED.parameter(),
    OWN_BRANCH.parameter(),
    FROM_ZERO.parameter(),
    UNBOUNDED.parameter(),
    RTT.parameter(),
    MASTER_CWND.parameter(),
    EVERY_ACK.parameter(),
    PHASE_AWARE.parameter(),
]);

/// Loss-aware throughput estimation.
pub struct Late {
    prospects: Prospects<Forecaster<forecast::Late>>,
    /// Subflows whose block is empty idle.
    strict: bool,
    /// The horizon is the master's whole RTT.
    rtt: bool,
    /// The master's block is its whole window.
    master_cwnd: bool,
    /// Any ACK of the master ends its round.
    every_ack: bool,
    /// Blocks by ascending SRTT; the last is the master's. Together they are the first `assigned` unsent bytes.
    blocks: Vec<Block>,
    assigned: Bytes,
    dealt: Dealt,
    /// Something happened that calls for another dealing.
    stale: bool,
}

/// Block of unsent data for one subflow.
struct Block {
    subflow: SubflowId,
    /// Its place in the view.
    at: usize,
    /// Value of [`SubflowView::open`] when the blocks were dealt out: it has no block while it may not send.
    open: bool,
    left: Bytes,
}

/// Time of the last dealing of blocks, and the master's counters then.
#[derive(Default)]
struct Dealt {
    at: Instant,
    sent: u64,
    acked: u64,
}

impl Late {
    /// Reads the switches from `parameters`.
    pub fn new(parameters: &Params) -> Self {
        let later = match (UNWEIGHTED.of(parameters), OWN_BRANCH.of(parameters)) {
            (_, true) => Later::OwnBranch,
            (true, false) => Later::Unweighted,
            (false, false) => Later::Weighted,
        };
        let switches = Switches {
            overshoot: OVERSHOOT.of(parameters),
            rto_round_end: RTO_ROUND_END.of(parameters),
            tlp: TLP.of(parameters),
            later,
            from_zero: FROM_ZERO.of(parameters),
        };
        Late {
            prospects: Prospects::new(
                Forecaster::new(forecast::Late::new(switches)),
                PHASE_AWARE.of(parameters),
                if UNBOUNDED.of(parameters) {
                    |slave, view| Conditions::of(slave).bounded(slave, view.window, false)
                } else {
                    |slave, view| Conditions::of(slave).bounded(slave, view.window, true)
                },
            ),
            strict: STRICT.of(parameters),
            rtt: RTT.of(parameters),
            master_cwnd: MASTER_CWND.of(parameters),
            every_ack: EVERY_ACK.of(parameters),
            blocks: Vec::new(),
            assigned: Bytes::ZERO,
            dealt: Dealt::default(),
            stale: true,
        }
    }

    /// Returns true if the blocks must be dealt out again: after certain events, when all assigned data has left, when
    /// the subflows, their permission to send or their order by SRTT changed, or after about one RTT of the master.
    fn is_stale(&self, now: Instant, view: &View<'_>) -> bool {
        if self.stale || self.assigned.is_zero() || self.blocks.len() != view.subflows.len() {
            return true;
        }
        let mut fastest_first: Option<&SubflowView> = None;
        for block in &self.blocks {
            let alike = |subflow: &&SubflowView| subflow.id == block.subflow && subflow.open == block.open;
            let Some(subflow) = view.subflows.get(block.at).filter(alike) else {
                return true;
            };
            if fastest_first.is_some_and(|faster| (faster.srtt, faster.id) > (subflow.srtt, subflow.id)) {
                return true;
            }
            fastest_first = Some(subflow);
        }
        fastest_first.is_none_or(|master| self.dealt.is_over(now, master, self.every_ack))
    }

    /// Deals out the unsent bytes.
    fn deal(&mut self, now: Instant, view: &View<'_>) {
        self.blocks.clear();
        self.blocks.extend(view.subflows.iter().enumerate().map(|(at, subflow)| Block {
            subflow: subflow.id,
            at,
            open: subflow.open,
            left: Bytes::ZERO,
        }));
        self.blocks.sort_unstable_by_key(|block| (view.subflows[block.at].srtt, block.subflow));
        let Some((master_block, slaves)) = self.blocks.split_last_mut() else { return };
        let master = &view.subflows[master_block.at];

        let mut rest = view.unsent;
        for block in slaves.iter_mut().filter(|block| block.open) {
            let slave = &view.subflows[block.at];
            let horizon = if self.rtt { master.srtt } else { master.srtt / 2 };
            let conditions = self.prospects.conditions(slave, view);
            let mss = Bytes::new(slave.mss.get().max(1));
            // Its first window arrives in any case, since it is faster than the master. Often that is all there is to
            // send, and a forecast could only say more.
            let first_window = whole_segments(f64::from(conditions.cwnd) * (1.0 - slave.loss), mss);
            let enough = first_window >= rest && !self.prospects.is_phase_aware();
            block.left = if enough {
                rest
            } else {
                let segments = self.prospects.delivered_by(now, slave, master.id, horizon, &conditions);
                whole_segments(segments, mss).min(rest)
            };
            rest -= block.left;
        }
        if master_block.open {
            let room = if self.master_cwnd { master.cwnd } else { master.room() }.get();
            master_block.left = Bytes::new(room - room % master.mss.get().max(1)).min(rest);
            rest -= master_block.left;
        }
        self.assigned = view.unsent - rest;
        self.dealt = Dealt { at: now, sent: master.sent, acked: master.acked };
        self.stale = false;
    }

    /// Returns the next send of the fastest subflow that has both room and data.
    fn next(&self, view: &View<'_>) -> Option<Decision> {
        let conserve = !self.strict || self.assigned.is_zero();
        let mut head = Bytes::ZERO;
        for block in &self.blocks {
            let subflow = &view.subflows[block.at];
            if subflow.has_room() {
                let own = !block.left.is_zero();
                let skip = if own { head } else { self.assigned };
                if (own || conserve) && view.admits(skip, subflow.mss) {
                    return Some(Decision::Send { on: subflow.id, skip });
                }
            }
            head += block.left;
        }
        None
    }

    /// Waits for the subflow that holds the first unsent byte, if its ACK can come.
    fn wait(&self, now: Instant, view: &View<'_>) -> Decision {
        let holder = self.blocks.iter().find(|block| !block.left.is_zero());
        let answer = wait_for(holder.map(|block| &view.subflows[block.at]), view);
        if answer != Decision::WAIT {
            return answer;
        }
        let master = self.blocks.last().map(|block| &view.subflows[block.at]);
        let over = master.map(|master| self.dealt.at + master.srtt);
        Decision::Wait { until: over.filter(|&over| over > now) }
    }
}

impl Scheduler for Late {
    fn decide(&mut self, now: Instant, view: &View<'_>) -> Decision {
        if let [only] = view.subflows
            && only.has_room()
            && !view.sendable.is_zero()
        {
            return Decision::send(only.id);
        }
        if view.subflows.len() < 2 {
            return Decision::WAIT;
        }
        self.prospects.look(now, view);
        if self.is_stale(now, view) {
            self.deal(now, view);
        }
        self.next(view).unwrap_or_else(|| self.wait(now, view))
    }

    fn observe(&mut self, _now: Instant, event: &Event) {
        match *event {
            Event::Sent { skip, length, .. } => {
                let (mut head, end) = (Bytes::ZERO, skip + length);
                for block in &mut self.blocks {
                    let tail = head + block.left;
                    let left_now = end.min(tail).saturating_sub(skip.max(head));
                    block.left -= left_now;
                    self.assigned -= left_now;
                    head = tail;
                    if head >= end {
                        break;
                    }
                }
            }
            Event::FastRetransmit { .. } | Event::Rto { .. } | Event::SubflowsChanged | Event::DataWritten => {
                self.stale = true;
            }
            Event::Repeated { .. } | Event::WindowBlocked { .. } | Event::Reinjected { .. } => {}
        }
    }
}

impl Dealt {
    /// Returns true if the ACK of the master's first segment since then has arrived, or any ACK if it sent none; or if
    /// its RTT passed without any.
    fn is_over(&self, now: Instant, master: &SubflowView, every_ack: bool) -> bool {
        if master.acked == self.acked {
            return now.since(self.at) >= master.srtt;
        }
        every_ack || master.acked > self.sent || master.sent == self.sent
    }
}

pub(super) const OVERSHOOT: Flag =
    flag("overshoot", "the last doubling of slow start may exceed ssthresh (Eq. 7 as printed; A-LATE-5)", false);
pub(super) const RTO_ROUND_END: Flag = flag(
    "rto_round_end",
    "the round after a timeout begins after RTO + RTT, not RTO + RTT/2 (Eq. 19; A-LATE-8)",
    false,
);
pub(super) const TLP: Flag = flag("tlp", "tail-loss probes: only the loss of a whole window needs a timeout", false);
const STRICT: Flag =
    flag("strict", "a subflow that has sent its block idles until blocks are dealt out again (A-LATE-13)", false);
const UNWEIGHTED: Flag =
    flag("unweighted", "Eqs. 9, 14, 22 as printed: all later rounds, without their probability (A-LATE-1)", false);
const OWN_BRANCH: Flag = flag("own_branch", "the same, but later rounds of the same branch only (A-LATE-1)", false);
const FROM_ZERO: Flag =
    flag("from_zero", "Eq. 15 as printed: from w - 2 lost segments even if that is none (A-LATE-3)", false);
const UNBOUNDED: Flag =
    flag("unbounded", "the largest window W is the peer's, not that of the losses so far (A-LATE-7)", false);
const RTT: Flag = flag("rtt", "the horizon is the master's whole SRTT instead of half of it (A-LATE-10)", false);
const MASTER_CWND: Flag =
    flag("master_cwnd", "the master's block is its whole window, as printed, not the free part (A-LATE-12)", false);
const EVERY_ACK: Flag = flag("every_ack", "blocks are dealt out again at every ACK of the master (A-LATE-15)", false);
const PHASE_AWARE: Flag =
    flag("phase_aware", "forecasts begin in the round under way instead of with a fresh window (A-PHASE)", false);

#[cfg(test)]
mod tests;
