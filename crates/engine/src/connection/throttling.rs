//! Subflows held back although their windows have room: by pacing, by a limit of bursts, and by TCP Small Queues
//! (A-TSQ).
//!
//! A subflow whose data were held up at the data level, by the peer's window, a full send buffer or another subflow's
//! segment, has a window's worth of room when that ends, and no acknowledgments that would space what it sends. All of
//! it at once is more than a short queue holds, and a loss that plain TCP would not have had. So after slow start a
//! burst is limited (`max-burst`), and what is behind it follows at one and a half windows per round-trip time.

use super::sender::Sender;
use super::slots::{Places, Slot};
use super::subflows::{Reader, Subflows};
use crate::Profile;
use crate::recovery::Phase;
use crate::subflow::Subflow;
use anabranch_policy::SubflowView;
use anabranch_units::{Bytes, Instant, Rate};

/// Windows per round-trip time at which a subflow catches up behind a burst: more than acknowledgments let it send.
const CATCH_UP: f64 = 1.5;

impl Sender {
    /// Holds back the subflows whose next segment has to wait.
    pub(super) fn throttle(&self, now: Instant, subflows: &mut Subflows, profile: &Profile) {
        let changed = subflows.take_changed(Reader::Throttle);
        // Pacing and limits of bursts let go with time.
        let due = match (self.congestion.is_model_based(), profile.max_burst) {
            (true, _) => Places::ALL,
            (false, Some(_)) => changed.union(subflows.filter(Places::ALL, |subflow| subflow.tx.throttled)),
            (false, None) => changed,
        };
        let turns = |subflow: &Subflow| self.is_held_back(now, subflow, profile) != subflow.tx.throttled;
        let mut turning = subflows.filter(due, turns);
        while let Some(slot) = subflows.take_first(&mut turning) {
            subflows[slot].tx.throttled ^= true;
        }
    }

    /// Holds back a subflow, or lets it go.
    #[inline]
    pub(super) fn throttle_one(&self, now: Instant, subflows: &mut Subflows, slot: Slot, profile: &Profile) {
        let throttled = self.is_held_back(now, &subflows[slot], profile);
        if throttled != subflows[slot].tx.throttled {
            subflows[slot].tx.throttled = throttled;
        }
    }

    /// Tells whether the next segment of a subflow is not due yet by its pacing, or its first hop holds enough.
    #[inline]
    fn is_held_back(&self, now: Instant, subflow: &Subflow, profile: &Profile) -> bool {
        let free = profile.tsq.is_none() && profile.max_burst.is_none() && !self.congestion.is_model_based();
        !free && self.is_paced_or_crowded(now, subflow, profile)
    }

    /// TCP Small Queues admit the larger of some segments and what the pacing rate sends in a millisecond. A full
    /// segment with its headers is larger than its payload, so that this many of them are enough.
    fn is_paced_or_crowded(&self, now: Instant, subflow: &Subflow, profile: &Profile) -> bool {
        let congestion = &self.congestion;
        let model = congestion.model(subflow.id, subflow.tx.rtt.srtt());
        let early = model.is_some() && !subflow.tx.pacer.is_open(now);
        let spent = subflow.tx.burst_limit.is_spent(now) && self.catch_up(subflow, profile).is_some();
        let least = u64::from(profile.tsq_segments) * u64::from(profile.mss).max(u64::from(subflow.tx.mss));
        let tsq = profile.tsq.zip(subflow.tx.rtt.srtt()).filter(|_| subflow.tx.first_hop > least);
        let crowded = tsq.is_some_and(|(span, srtt)| {
            let cwnd = congestion.cwnd(subflow.id);
            // What does not pace is taken to.
            let unpaced = || SubflowView::linux_pace(cwnd, congestion.ssthresh(subflow.id), srtt);
            let pace = model.map_or_else(unpaced, |model| model.pacing);
            subflow.tx.first_hop > pace.bytes_in(span).get()
        });
        early || spent || crowded
    }

    /// A segment of a subflow leaves: the next one is put off if its congestion control paces; `burst` is what may
    /// leave at once.
    #[inline]
    pub(super) fn pace(&self, now: Instant, subflow: &mut Subflow, payload: u32, burst: Option<Bytes>) {
        if let Some(model) = self.congestion.model(subflow.id, subflow.tx.rtt.srtt()) {
            subflow.tx.pacer.on_sent(now, Bytes::new(u64::from(payload)), model.pacing, burst);
        }
    }

    /// A segment of a subflow leaves that repairs nothing: it counts in the burst.
    #[inline]
    pub(super) fn limit_burst(&self, now: Instant, subflow: &mut Subflow, payload: u32, profile: &Profile) {
        if let Some((rate, burst)) = self.catch_up(subflow, profile) {
            subflow.tx.burst_limit.on_sent(now, Bytes::new(u64::from(payload)), rate, burst);
        }
    }

    /// The rate behind a burst, and the burst, if those of the subflow are limited now: after slow start, and not in a
    /// recovery, where each acknowledgment says what may leave.
    fn catch_up(&self, subflow: &Subflow, profile: &Profile) -> Option<(Rate, Bytes)> {
        let segments = profile.max_burst?;
        let repairs = matches!(subflow.tx.recovery.phase(), Phase::Recovery | Phase::Loss);
        if self.congestion.is_model_based() || repairs {
            return None;
        }
        let (srtt, cwnd) = (subflow.tx.rtt.srtt()?, self.congestion.cwnd(subflow.id));
        self.congestion.ssthresh(subflow.id).filter(|ssthresh| cwnd >= *ssthresh)?;
        let rate = Rate::from_bps((CATCH_UP * 8.0 * cwnd.as_f64() / srtt.as_secs_f64()) as u64);
        Some((rate, Bytes::new(u64::from(subflow.tx.mss)).times(u64::from(segments))))
    }

    /// Ends a round of sending. Sets the alarm of subflows that pacing holds back. Marks those with room as
    /// application-limited, so that their delivery rate is not taken for the path's capacity.
    pub(super) fn settle_pacing(&self, now: Instant, subflows: &mut Subflows, profile: &Profile) {
        let paced = self.congestion.is_model_based();
        let limited = profile.max_burst.is_some();
        let changed = subflows.take_changed(Reader::Pacing);
        let due = if paced { Places::ALL } else { changed };
        if paced {
            subflows.touch_each(due);
        } else if limited {
            let waiting = |subflow: &Subflow| subflow.tx.pacer.wake.is_some() || subflow.tx.throttled;
            subflows.touch_each(subflows.filter(due, waiting));
        }
        subflows.each_unnoticed(due, |subflow| {
            let full = Bytes::new(u64::from(subflow.tx.mss));
            let room = subflow.tx.in_flight() + full <= self.congestion.cwnd(subflow.id);
            let repairs = subflow.tx.recovery.next_retransmission().is_some();
            if paced {
                subflow.tx.pacer.arm(now, room || repairs);
            } else if limited {
                let waits = room && subflow.tx.throttled && subflow.tx.burst_limit.is_spent(now);
                subflow.tx.pacer.wake = waits.then(|| subflow.tx.burst_limit.opens());
            }
            if room && !repairs && !subflow.tx.throttled {
                subflow.tx.recovery.mark_app_limited();
            }
        });
    }

    /// The same where nothing is under way, waits to be repeated or is paced.
    pub(super) fn settle_idle(&self, subflows: &mut Subflows) {
        let due = subflows.take_changed(Reader::Pacing);
        subflows.each_unnoticed(due, |subflow| {
            if Bytes::new(u64::from(subflow.tx.mss)) <= self.congestion.cwnd(subflow.id) {
                subflow.tx.recovery.mark_app_limited();
            }
        });
    }
}
