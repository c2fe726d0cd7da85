//! Patience with a peer: runs out when nothing moves for a time, or when too little moves for longer.

use anabranch_engine::Load;
use anabranch_units::{Bytes, Duration, Instant, Rate};

/// Bounds on the slowness of a peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pace {
    /// Longest time without progress.
    pub stall: Duration,
    /// Rate below which progress does not count in full: each byte buys the time that it takes at this rate. At rate
    /// zero every byte buys the whole time.
    pub least: Rate,
}

/// Rate that the slowest paths in use exceed: 2 kB/s, a tenth of what GPRS carries. A peer or a box that lets a few
/// bytes through with every timeout stays below it.
pub const LEAST_RATE: Rate = Rate::from_bps(16_000);

/// Patience with one connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    until: Instant,
    /// Bytes read and written.
    moved: u64,
    /// Bytes of `moved` that the peer had acknowledged at the latest look.
    seen: u64,
    /// Something waited for the peer at the latest look.
    waited: bool,
}

impl Patience {
    /// Full patience from `now` on.
    pub(crate) fn new(now: Instant, pace: &Pace) -> Self {
        Patience { until: now + pace.stall, moved: 0, seen: 0, waited: true }
    }

    /// Time at which it runs out.
    pub(crate) fn until(&self) -> Instant {
        self.until
    }

    /// Full again: the wait is not the peer's fault.
    pub(crate) fn renew(&mut self, now: Instant, pace: &Pace) {
        self.until = now + pace.stall;
    }

    /// Takes note that `moved` more bytes were read and written, and of what the peer has acknowledged. Where nothing
    /// `waits` for the peer, any byte is as good as many; when something begins to, the silence before was not its
    /// fault.
    pub(crate) fn note(&mut self, now: Instant, moved: u64, load: Option<&Load>, waits: bool, pace: &Pace) {
        if waits && !self.waited {
            self.renew(now, pace);
        }
        self.waited = waits;
        self.moved += moved;
        let total = self.moved - load.map_or(0, |load| load.unacknowledged.get()).min(self.moved);
        let progress = total.saturating_sub(self.seen);
        self.seen = self.seen.max(total);
        if progress == 0 {
            return;
        }
        let full = now + pace.stall;
        self.until = if waits { full.min(self.until + pace.least.time_for(Bytes::new(progress))) } else { full };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: Pace = Pace { stall: Duration::from_secs(60), least: LEAST_RATE };

    /// Time after which a peer is given up that moves so many bytes a second; `None` if an hour does not end it.
    fn given_up(bytes: u64, waits: bool, pace: &Pace) -> Option<u64> {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let mut patience = Patience::new(at(0), pace);
        (1..3600).find(|second| {
            patience.note(at(*second), bytes, None, waits, pace);
            patience.until() <= at(*second)
        })
    }

    /// A rate of 1.5 kB/s where 2 are wanted uses up a quarter of each second: 60 s are gone after 240.
    #[test]
    fn too_little_runs_out_later_than_nothing() {
        let rows = [(0, Some(60)), (500, Some(80)), (1000, Some(120)), (1500, Some(240)), (2000, None), (50_000, None)];
        for (bytes, expected) in rows {
            assert_eq!(given_up(bytes, true, &PACE), expected, "{bytes} B/s");
        }
        assert_eq!(given_up(1, false, &PACE), None, "nothing waits");
        assert_eq!(given_up(1, true, &Pace { least: Rate::from_bps(0), ..PACE }), None, "without a least rate");
    }

    /// A silence in which nothing waited is forgotten when something does.
    #[test]
    fn a_wait_begins_with_full_patience() {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let mut patience = Patience::new(at(0), &PACE);
        for second in 1..50 {
            patience.note(at(second), 0, None, false, &PACE);
        }
        assert_eq!(patience.until(), at(60), "silence is no progress");
        patience.note(at(50), 0, None, true, &PACE);
        patience.note(at(51), 0, None, true, &PACE);
        assert_eq!(patience.until(), at(110), "it is renewed once");
    }

    /// A burst fills it and does not save for later.
    #[test]
    fn a_burst_buys_no_more_than_the_whole_time() {
        let mut patience = Patience::new(Instant::ZERO, &PACE);
        patience.note(Instant::ZERO, 1 << 30, None, true, &PACE);
        assert_eq!(patience.until(), Instant::ZERO + PACE.stall);
    }
}
