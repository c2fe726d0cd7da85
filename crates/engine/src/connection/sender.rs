//! The sending half of the data level: the stream, the policies that decide about it, and what they are shown.

use super::burst::Burst;
use super::output::Waiting;
use super::slots::Places;
use super::subflows::Subflows;
use super::watchdog::Watchdog;
use crate::buffer::SendBuffer;
use crate::ranges::RangeSet;
use crate::recovery::Sent;
use crate::reinject::Reinjections;
use crate::sent_log::{SentLog, bit};
use crate::subflow::{Subflow, Tx};
use crate::{Choice, Config, Detector, Reason};
use anabranch_policy::congestion::{Controller, InitialWindow, Rules};
use anabranch_policy::receive_window::{ReceiveWindow, Usage};
use anabranch_policy::registry::Built;
use anabranch_policy::reinjection::{Reinjection, SubflowState};
use anabranch_policy::scheduler::Scheduler;
use anabranch_policy::{Event as PolicyEvent, SubflowView};
use anabranch_units::{Bytes, Instant, Key, Seed, SubflowId};
use bytes::Bytes as Data;

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
    /// Places of those.
    pub(super) shown: Places,
    pub(super) usage: Vec<Usage>,
    pub(super) shares: Vec<Bytes>,
    /// Scratch: the open subflows, if the reinjection policy wants to see them.
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
    /// Data to be sent again on another subflow.
    pub(super) reinject: Reinjections,
    pub(super) log: SentLog,
    /// First offset not DATA_ACKed.
    pub(super) una: u64,
    /// End of the highest data ever sent.
    pub(super) nxt: u64,
    /// End of the data that the peer admits.
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
            outgoing: Outgoing::default(),
            scheduler,
            receive_window: (policies.receive_window)(),
            reinjection: (policies.reinjection)(),
            congestion: Controller::new((policies.congestion)(), rules(config)),
            waiting: Waiting::new(now),
            watchdog: Watchdog::default(),
            burst: None,
            views: Vec::new(),
            shown: Places::NONE,
            usage: Vec::new(),
            shares: Vec::new(),
            states: Vec::new(),
            copies: false,
            usable: 0,
        }
    }

    /// Tells the policies that the set of usable subflows may have changed.
    pub(super) fn on_subflows_changed(&mut self, now: Instant, subflows: &Subflows) {
        // A backup beside a regular subflow carries nothing, and its window says nothing (A-COUPLED).
        let regular = subflows.iter().any(|subflow| subflow.is_usable() && !subflow.backup());
        for subflow in subflows.iter() {
            let counted = subflow.is_usable() && subflow.backup() != regular;
            self.congestion.set_counted(subflow.id, counted);
        }
        self.scheduler.observe(now, &PolicyEvent::SubflowsChanged);
    }
}

impl Default for Outgoing {
    fn default() -> Self {
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
}

impl Outgoing {
    /// Bytes in the send buffer.
    pub(super) fn held(&self) -> u64 {
        self.buffer.end() - self.buffer.start()
    }

    /// Appends the first `taken` bytes of `data` to the stream.
    pub(super) fn append(&mut self, data: &Data, taken: usize) {
        let start = self.buffer.end();
        self.buffer.push(data, taken);
        self.unsent.insert(start, start + taken as u64);
    }

    /// The offset before which a DATA_ACK of `offset` acknowledges data, and whether it acknowledges the DATA_FIN too.
    /// `None` if it acknowledges what was never sent, which is a lie (optimistic ACK).
    pub(super) fn acknowledged_by(&self, offset: u64) -> Option<(u64, bool)> {
        let fin = self.fin.is_some_and(|fin| self.fin_sent && offset == fin + 1);
        let data = offset - u64::from(fin);
        let lie = data > self.nxt || self.unsent.first().is_some_and(|(start, _)| data > start);
        (!lie).then_some((data, fin))
    }

    /// The peer has all data before `una`. Subflows that may have to repeat some of it keep that.
    pub(super) fn release(&mut self, una: u64, subflows: &mut Subflows) {
        self.una = una;
        let covered = self.buffer.covered(una);
        if covered > 0 {
            subflows.iter_unnoticed().for_each(|subflow| subflow.tx.keep(&self.buffer, covered));
        }
        self.buffer.release(una);
        self.log.release(una);
        self.reinject.remove_below(una);
    }

    /// The handshake says what the peer admits of the stream.
    pub(super) fn set_window(&mut self, window: u64) {
        (self.edge, self.largest_window) = (window, window);
    }

    /// A DATA_ACK of `offset` admits `window` bytes from there on; older ones say nothing new.
    pub(super) fn open_window(&mut self, offset: u64, window: u64) {
        if offset >= self.una {
            self.edge = self.edge.max(offset + window);
            self.largest_window = self.largest_window.max(window);
        }
    }

    /// Takes no more data: the stream ends where it has come to.
    pub(super) fn close(&mut self) {
        self.fin.get_or_insert(self.buffer.end());
    }

    /// Tells whether the stream has nothing unsent or under way and is not closed.
    pub(super) fn is_at_rest(&self) -> bool {
        self.una == self.nxt && self.fin.is_none() && self.unsent.is_empty()
    }

    /// Tells whether there is unsent data, none of which the peer admits.
    pub(super) fn is_blocked(&self) -> bool {
        !self.unsent.is_empty() && self.unsent.below(self.edge) == 0
    }

    /// Tells whether `end` is after the last byte written so far.
    pub(super) fn ends_at(&self, end: u64) -> bool {
        end == self.buffer.end()
    }

    /// Enters new data that leaves on a subflow: `length` bytes from offset `start` on. Tells whether the DATA_FIN goes
    /// along, as it does at the end of a closed stream if it may.
    pub(super) fn record(
        &mut self,
        now: Instant,
        (start, length): (u64, u64),
        subflow: &Subflow,
        may_close: bool,
    ) -> bool {
        self.unsent.remove(start, start + length);
        self.log.push(now, start, length as u32, subflow.mark);
        self.in_order &= start == self.nxt && !subflow.is_join();
        self.nxt = self.nxt.max(start + length);
        let closes = self.ends_at(start + length) && self.fin.is_some() && self.unsent.is_empty();
        self.fin_sent |= closes && may_close;
        closes && may_close
    }

    /// Data or a DATA_FIN waits for its DATA_ACK.
    pub(super) fn awaits_data_ack(&self) -> bool {
        self.una < self.nxt || (self.fin_sent && !self.fin_acked)
    }

    /// Has what the subflow in `mark` alone has carried repeated on another. Once per segment and subflow: what another
    /// has carried as well is on its way already.
    pub(super) fn send_elsewhere(&mut self, mark: u8, reason: Reason) {
        let una = self.una;
        let carried: Vec<_> = self.log.carried_by(mark).collect();
        for (start, end) in carried {
            if end > una && self.log.carriers(start.max(una)) == bit(mark) {
                self.reinject.insert(start.max(una), end, reason);
            }
        }
    }

    /// The oldest data without a DATA_ACK, if this subflow has carried it and acknowledged it.
    pub(super) fn acknowledged_in_vain(&self, subflow: &Subflow) -> Option<(u64, u64)> {
        let (_, end) = self.log.range_at(self.una)?;
        let carried = self.log.carriers(self.una) & bit(subflow.mark) != 0;
        (carried && !subflow.is_repairing(self.una)).then_some((self.una, end))
    }
}

impl Sender {
    /// The next of its lost segments that a subflow may repeat now: as far as its congestion window admits, the first
    /// of a recovery at once.
    pub(super) fn next_repair(&self, now: Instant, tx: &mut Tx, id: SubflowId) -> Option<(Sent, Detector)> {
        let Some(sent) = tx.recovery.next_retransmission() else {
            tx.retransmit_now = false;
            return None;
        };
        if self.congestion.is_model_based() && !tx.pacer.is_open(now) {
            return None;
        }
        let fits = tx.in_flight() + Bytes::new(u64::from(sent.len)) <= self.congestion.cwnd(id);
        if !fits && !tx.retransmit_now && tx.recovery.in_flight() > 0 {
            return None;
        }
        tx.retransmit_now = false;
        Some((sent, tx.recovery.detector()))
    }

    /// RFC 2861: a window not used for longer than a timeout says nothing about the path any more. Congestion control
    /// is told of shorter pauses too.
    pub(super) fn restart_after_idle(&mut self, now: Instant, subflow: &Subflow) {
        if let Some(idle) = subflow.tx.idle(now) {
            self.congestion.on_idle(now, subflow.id, idle, subflow.tx.rtt.rto());
        }
    }

    /// Tells why new data leaves on a subflow.
    pub(super) fn choice(&self, tx: &Tx) -> Choice {
        match (tx.probe_now, self.views.len(), self.waiting.overruled) {
            (true, ..) => Choice::TailLossProbe,
            (_, 1, _) => Choice::OnlySubflow,
            (_, _, true) => Choice::Overruled,
            _ => Choice::Scheduler,
        }
    }

    /// Tells whether a subflow would send if only the peer's window admitted it: a closed one leaves room on none, and
    /// yet no congestion window is to blame.
    pub(super) fn is_shut_out(&self, subflows: &Subflows) -> bool {
        let shut = |view: &&SubflowView| subflows.slot(view.id).is_some_and(|slot| subflows[slot].tx.is_window_shut());
        self.views.iter().filter(shut).any(SubflowView::has_room_in_cwnd)
    }

    /// The next data that waits to be repeated elsewhere, where, and why: on the subflow with the lowest SRTT that has
    /// room and has not carried it (A-COPIES).
    pub(super) fn next_reinjection(&mut self, subflows: &Subflows) -> Option<(SubflowId, (u64, u64), Reason)> {
        let Sender { outgoing: Outgoing { reinject, log, .. }, views, waiting, .. } = self;
        loop {
            let (from, range_end) = reinject.first()?;
            let Some((start, carried_until)) = log.range_at(from).map(|(_, end)| (from, end)) else {
                // Acknowledged meanwhile.
                reinject.remove(from, range_end.min(from + 1));
                continue;
            };
            let carriers = log.carriers(start);
            let has = |view: &SubflowView| subflows.mark_of(view.id).map(|mark| carriers & bit(mark) != 0);
            let anywhere = views.iter().all(|view| has(view) == Some(true)) || waiting.repeat_anywhere;
            let fresh = |view: &&SubflowView| has(view).is_some_and(|has| anywhere || !has);
            let candidates = views.iter().filter(|view| view.has_room_to_repeat()).filter(fresh);
            let on = candidates.min_by_key(|view| (view.srtt, view.id))?.id;
            let reason = reinject.reason(start).unwrap_or(Reason::DataTimeout);
            return Some((on, (start, range_end.min(carried_until)), reason));
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Profile;
    use anabranch_units::Duration;

    const NOW: Instant = Instant::ZERO;

    /// Returns a stream of `length` bytes, none of them sent.
    fn written(length: usize) -> Outgoing {
        let mut out = Outgoing::default();
        out.append(&Data::from(vec![7; length]), length);
        out
    }

    fn subflow(number: u8) -> Subflow {
        Subflow::sample(number, Duration::from_millis(20))
    }

    /// Acknowledgments of data never sent are lies, also those beyond a hole that a scheduler has left.
    #[test]
    fn acknowledgments_of_what_was_never_sent_are_lies() {
        let mut out = written(3000);
        out.record(NOW, (0, 1000), &subflow(0), true);
        assert_eq!([1000, 1001].map(|offset| out.acknowledged_by(offset)), [Some((1000, false)), None]);
        out.record(NOW, (2000, 1000), &subflow(1), true);
        assert_eq!(out.acknowledged_by(3000), None);
        out.record(NOW, (1000, 1000), &subflow(0), true);
        out.close();
        assert_eq!([3000, 3001].map(|offset| out.acknowledged_by(offset)), [Some((3000, false)), None]);
        out.fin_sent = true;
        assert_eq!(out.acknowledged_by(3001), Some((3000, true)));
    }

    #[test]
    fn the_data_fin_goes_with_the_last_byte_if_nothing_before_it_is_unsent() {
        for (order, may_close, expected) in
            [([0, 1000], true, [false, true]), ([1000, 0], true, [false, false]), ([0, 1000], false, [false, false])]
        {
            let mut out = written(2000);
            out.close();
            let fins = order.map(|start| out.record(NOW, (start, 1000), &subflow(0), may_close));
            assert_eq!((fins, out.fin_sent), (expected, expected[1]), "{order:?}");
        }
    }

    #[test]
    fn what_another_has_carried_too_does_not_go_elsewhere() {
        let mut out = written(3000);
        for start in [0, 1000, 2000] {
            out.record(NOW, (start, 1000), &subflow(0), true);
        }
        out.log.note_copy(1000, 2000, 1);
        out.release(500, &mut Subflows::default());
        out.send_elsewhere(0, Reason::DataTimeout);
        assert_eq!(out.reinject.first(), Some((500, 1000)));
        out.reinject.remove(500, 1000);
        assert_eq!(out.reinject.first(), Some((2000, 3000)));
    }

    #[test]
    fn an_old_data_ack_does_not_take_the_window_back() {
        let mut out = written(5000);
        out.open_window(0, 4000);
        out.record(NOW, (0, 2000), &subflow(0), true);
        out.release(2000, &mut Subflows::default());
        out.open_window(2000, 1000);
        assert_eq!((out.edge, out.largest_window), (4000, 4000));
        out.open_window(1000, 9000);
        assert_eq!(out.edge, 4000, "it is older than what has arrived since");
    }

    /// Reinjections go to the fastest subflow with room that has not carried the data.
    #[test]
    fn a_reinjection_takes_the_fastest_that_has_not_carried_the_data() {
        let mut subflows = Subflows::default();
        [20, 10, 30].into_iter().zip(0..).for_each(|(ms, number)| {
            subflows.push(Subflow::sample(number, Duration::from_millis(ms)));
        });
        let mut sender = Sender::new(NOW, Key::new(1), &Config::new(Profile::tcp(), Vec::new()));
        subflows.iter().for_each(|subflow| sender.congestion.add(subflow.id, Bytes::new(1000)));
        sender.outgoing.append(&Data::from(vec![7; 2000]), 2000);
        let second = subflows.slot(SubflowId(1)).expect("it is there");
        sender.outgoing.record(NOW, (0, 1000), &subflows[second], true);
        sender.views = subflows.iter().filter_map(|subflow| subflow.view(&sender.congestion, Bytes::MAX)).collect();
        assert_eq!(sender.next_reinjection(&subflows), None);
        sender.outgoing.send_elsewhere(1, Reason::DataTimeout);
        let on = |id: u16| Some((SubflowId(id), (0, 1000), Reason::DataTimeout));
        assert_eq!(sender.next_reinjection(&subflows), on(0));
        sender.outgoing.log.note_copy(0, 1000, 0);
        assert_eq!(sender.next_reinjection(&subflows), on(2));
        sender.outgoing.log.note_copy(0, 1000, 2);
        assert_eq!(sender.next_reinjection(&subflows), on(1), "all have carried it");
        sender.outgoing.release(1000, &mut Subflows::default());
        assert_eq!(sender.next_reinjection(&subflows), None);
    }
}
