//! The sending half of the data level: the stream, the policies that decide about it, and what they are shown.

use super::burst::Burst;
use super::indices::Indices;
use super::output::Waiting;
use super::watchdog::Watchdog;
use crate::buffer::SendBuffer;
use crate::ranges::RangeSet;
use crate::reinject::Reinjections;
use crate::sent_log::{SentLog, bit};
use crate::subflow::Subflow;
use crate::{Config, Reason};
use anabranch_policy::SubflowView;
use anabranch_policy::congestion::{Controller, InitialWindow, Rules};
use anabranch_policy::receive_window::{ReceiveWindow, Usage};
use anabranch_policy::registry::Built;
use anabranch_policy::reinjection::{Reinjection, SubflowState};
use anabranch_policy::scheduler::Scheduler;
use anabranch_units::{Bytes, Instant, Key, Seed};

/// Everything that decides what leaves, on which subflow, and when.
pub(super) struct Sender {
    pub(super) outgoing: Outgoing,
    pub(super) scheduler: Built<dyn Scheduler>,
    pub(super) receive_window: Built<dyn ReceiveWindow>,
    pub(super) reinjection: Built<dyn Reinjection>,
    pub(super) congestion: Controller,
    pub(super) waiting: Waiting,
    pub(super) watchdog: Watchdog,
    /// Segments just sent that may share their mapping with those that follow.
    pub(super) burst: Option<Burst>,
    /// The subflows that policies are shown, as they were at the latest round of decisions and what it has sent.
    pub(super) views: Vec<SubflowView>,
    /// Indices of those.
    pub(super) shown: Indices,
    pub(super) usage: Vec<Usage>,
    pub(super) shares: Vec<Bytes>,
    /// Scratch: the open subflows, if the reinjection policy asks for copies.
    pub(super) states: Vec<SubflowState>,
    /// It does, and may.
    pub(super) copies: bool,
    /// The usable subflows that the scheduler knows of, a bit for each identifier.
    pub(super) usable: u32,
}

/// The stream as its sender knows it. Offset 0 is the first byte; its DSN is IDSN + 1.
pub(super) struct Outgoing {
    pub(super) buffer: SendBuffer,
    /// Written, never sent.
    pub(super) unsent: RangeSet,
    /// To be sent again on another subflow.
    pub(super) reinject: Reinjections,
    pub(super) log: SentLog,
    /// First offset not DATA_ACKed.
    pub(super) una: u64,
    /// After the highest offset ever sent.
    pub(super) nxt: u64,
    /// After the last offset the peer admits.
    pub(super) edge: u64,
    /// The largest window it ever advertised.
    pub(super) largest_window: u64,
    /// Offset of our DATA_FIN, once the application has closed.
    pub(super) fin: Option<u64>,
    pub(super) fin_sent: bool,
    pub(super) fin_acked: bool,
    /// The application met a full buffer.
    pub(super) writer_waits: bool,
    /// All data so far went in order over the initial subflow alone, so that plain TCP could take over.
    pub(super) in_order: bool,
}

impl Sender {
    pub(super) fn new(now: Instant, local_key: Key, config: &Config) -> Self {
        let policies = &config.policies;
        let mut scheduler = (policies.scheduler)();
        scheduler.seed(Seed(local_key.get()));
        Sender {
            outgoing: Outgoing::new(),
            scheduler,
            receive_window: (policies.receive_window)(),
            reinjection: (policies.reinjection)(),
            congestion: Controller::new((policies.congestion)(), rules(config)),
            waiting: Waiting::new(now),
            watchdog: Watchdog::default(),
            burst: None,
            views: Vec::new(),
            shown: Indices::NONE,
            usage: Vec::new(),
            shares: Vec::new(),
            states: Vec::new(),
            copies: false,
            usable: 0,
        }
    }
}

impl Outgoing {
    fn new() -> Self {
        Outgoing {
            buffer: SendBuffer::default(),
            unsent: RangeSet::new(),
            reinject: Reinjections::default(),
            log: SentLog::default(),
            una: 0,
            nxt: 0,
            edge: 0,
            largest_window: 0,
            fin: None,
            fin_sent: false,
            fin_acked: false,
            writer_waits: false,
            in_order: true,
        }
    }

    /// Takes no more data: the stream ends where it has come to.
    pub(super) fn close(&mut self) {
        self.fin.get_or_insert(self.buffer.end());
    }

    /// Data or a DATA_FIN waits for its DATA_ACK.
    pub(super) fn awaits_data_ack(&self) -> bool {
        self.una < self.nxt || (self.fin_sent && !self.fin_acked)
    }

    /// Has what the subflow in `slot` alone has carried repeated on another. Once per segment and subflow: what another
    /// has carried as well is on its way already.
    pub(super) fn send_elsewhere(&mut self, slot: u8, reason: Reason) {
        let una = self.una;
        let carried: Vec<_> = self.log.carried_by(slot).collect();
        for (start, end) in carried {
            if end > una && self.log.carriers(start.max(una)) == bit(slot) {
                self.reinject.insert(start.max(una), end, reason);
            }
        }
    }

    /// The oldest data without a DATA_ACK, if this subflow has carried it and acknowledged it.
    pub(super) fn acknowledged_in_vain(&self, subflow: &Subflow) -> Option<(u64, u64)> {
        let (_, end) = self.log.range_at(self.una)?;
        let carried = self.log.carriers(self.una) & bit(subflow.slot) != 0;
        (carried && !subflow.is_repairing(self.una)).then_some((self.una, end))
    }
}

/// The rules of congestion control that a profile sets.
fn rules(config: &Config) -> Rules {
    let profile = &config.profile;
    Rules {
        initial_window: InitialWindow::Segments(profile.initial_window),
        idle_restart: profile.idle_restart,
        cwnd_limited_check: profile.cwnd_limited_check,
        byte_counting_limit_segments: u32::MAX,
        max_cwnd: None,
        initial_ssthresh_segments: profile.initial_ssthresh,
        hystart: profile.hystart,
        prr: profile.prr,
        loss_response: profile.loss_response,
    }
}
