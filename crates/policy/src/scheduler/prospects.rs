//! Deliveries of the faster subflows, for the schedulers that forecast them round by round.

use super::skip::faster;
use crate::forecast::{Conditions, Forecast, Kept, grow};
use crate::{SubflowView, View};
use anabranch_units::{Duration, Instant, SubflowId};
use std::collections::VecDeque;

/// Forecasts of one kind for all pairs of subflows.
pub(super) struct Prospects<F> {
    forecasts: Kept<F>,
    /// Input of a forecast from a faster subflow.
    conditions: fn(&SubflowView, &View<'_>) -> Conditions,
    /// Data in flight, if forecasts are to begin in the round under way (A-PHASE).
    flights: Option<Vec<Flight>>,
}

/// Data in flight of one subflow.
struct Flight {
    id: SubflowId,
    /// Value of [`SubflowView::sent`] when last seen.
    sent: u64,
    /// Time of sending, and the offset behind the burst.
    bursts: VecDeque<(Instant, u64)>,
}

/// More bursts than this count with the latest one.
const BURSTS: usize = 1024;

impl<F: Forecast> Prospects<F> {
    /// Forecasts that begin with a full window at the decision or, if `phase_aware`, with what is free of it now, and
    /// with whole windows when the oldest segment in flight is due.
    pub(super) fn new(forecast: F, phase_aware: bool, conditions: fn(&SubflowView, &View<'_>) -> Conditions) -> Self {
        Prospects { forecasts: Kept::new(forecast), conditions, flights: phase_aware.then(Vec::new) }
    }

    /// Takes the view; to be called before each decision.
    pub(super) fn look(&mut self, now: Instant, view: &View<'_>) {
        let Some(flights) = &mut self.flights else { return };
        flights.retain(|flight| view.subflow(flight.id).is_some());
        for subflow in view.subflows {
            let known = flights.iter().position(|flight| flight.id == subflow.id).unwrap_or_else(|| {
                flights.push(Flight { id: subflow.id, sent: subflow.acked, bursts: VecDeque::new() });
                flights.len() - 1
            });
            flights[known].follow(subflow.last_sent.unwrap_or(now), subflow);
        }
    }

    /// Number of segments, of `slow`'s size, that the faster subflows are expected to deliver within `horizon`.
    pub(super) fn delivered(&mut self, now: Instant, slow: &SubflowView, view: &View<'_>, horizon: Duration) -> f64 {
        let mut bytes = 0.0;
        for fast in faster(view, slow) {
            let conditions = self.conditions(fast, view);
            bytes += self.delivered_by(now, fast, slow.id, horizon, &conditions) * fast.mss.as_f64();
        }
        bytes / slow.mss.get().max(1) as f64
    }

    /// Number of its segments that `fast`, in these conditions, is expected to deliver within `horizon`, for a decision
    /// on `slow`.
    pub(super) fn delivered_by(
        &mut self,
        now: Instant,
        fast: &SubflowView,
        slow: SubflowId,
        horizon: Duration,
        conditions: &Conditions,
    ) -> f64 {
        let due = self.flights.as_ref().and_then(|flights| {
            let flight = flights.iter().find(|flight| flight.id == fast.id)?;
            let (oldest, _) = flight.bursts.front()?;
            Some((*oldest + fast.srtt).since(now))
        });
        match due {
            None => self.forecasts.expected(slow, fast.id, horizon, conditions),
            Some(due) => self.mid_round(fast, due, horizon, conditions),
        }
    }

    /// Input of a forecast from `fast`.
    pub(super) fn conditions(&self, fast: &SubflowView, view: &View<'_>) -> Conditions {
        (self.conditions)(fast, view)
    }

    /// Returns true if forecasts begin in the round under way.
    pub(super) fn is_phase_aware(&self) -> bool {
        self.flights.is_some()
    }

    /// The free part of `fast`'s window leaves now, and the next whole window when the oldest segment in flight is
    /// `due`.
    fn mid_round(&mut self, fast: &SubflowView, due: Duration, horizon: Duration, conditions: &Conditions) -> f64 {
        let now = match fast.room_segments().min(conditions.cwnd) {
            0 => 0.0,
            // One round of it: what follows is the next window's.
            cwnd => self.forecasts.once(horizon.min(fast.srtt), &Conditions { cwnd, ..*conditions }),
        };
        if due > horizon {
            return now;
        }
        let grown = grow(conditions.cwnd, conditions.ssthresh);
        let next = Conditions { cwnd: conditions.max_cwnd.map_or(grown, |most| grown.min(most)), ..*conditions };
        now + self.forecasts.once(horizon.saturating_sub(due), &next)
    }
}

impl Flight {
    fn follow(&mut self, last_sent: Instant, subflow: &SubflowView) {
        if subflow.sent > self.sent {
            self.sent = subflow.sent;
            let full = self.bursts.len() >= BURSTS;
            match self.bursts.back_mut() {
                Some(latest) if full || latest.0 == last_sent => latest.1 = subflow.sent,
                _ => self.bursts.push_back((last_sent, subflow.sent)),
            }
        }
        while self.bursts.front().is_some_and(|burst| burst.1 <= subflow.acked) {
            self.bursts.pop_front();
        }
    }
}
