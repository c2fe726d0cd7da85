//! Record of the ACKs of one subflow on the paths of others (A-ACK-MOVE, A-ACK-CAUTION; `connection/detour.rs` has the
//! rules).

use anabranch_units::{Duration, Instant, SubflowId};

/// Record of a subflow's ACKs on other paths.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Detour {
    /// ACKs that went another way since the latest on the own path, and which.
    pub(crate) away: u32,
    pub(crate) via: Option<SubflowId>,
    /// The next ACK keeps its path.
    stay: bool,
    /// Time at which new data last arrived.
    last_new: Option<Instant>,
    bar: Option<Bar>,
}

/// ACKs do not arrive on this path.
#[derive(Clone, Copy, Debug)]
struct Bar {
    via: SubflowId,
    until: Instant,
    length: Duration,
}

/// Period in ACKs after which one keeps its own path (A-ACK-CAUTION).
const OWN_EVERY: u32 = 16;

const SHORTEST_BAR: Duration = Duration::from_secs(1);
const LONGEST_BAR: Duration = Duration::from_secs(64);

impl Detour {
    /// New data has arrived. After a round trip of silence it may be a probe for ACKs that were lost.
    pub(crate) fn on_new(&mut self, now: Instant, srtt: Duration) {
        self.stay |= self.silence(now) >= srtt;
        self.last_new = Some(now);
    }

    fn silence(&self, now: Instant) -> Duration {
        self.last_new.map_or(Duration::ZERO, |last| now.since(last))
    }

    /// Data has arrived again. True if that shows that ACKs on the other path are lost.
    pub(crate) fn on_repeated(&mut self, now: Instant, srtt: Duration) -> bool {
        self.stay = true;
        let Some(via) = self.via.filter(|_| self.away > 0 && self.silence(now) >= srtt) else { return false };
        self.bar(now, via);
        true
    }

    pub(crate) fn bar(&mut self, now: Instant, via: SubflowId) {
        let length = match self.bar {
            Some(bar) if bar.via == via && now < bar.until + bar.length => (bar.length * 2).min(LONGEST_BAR),
            _ => SHORTEST_BAR,
        };
        self.bar = Some(Bar { via, until: now + length, length });
        self.away = 0;
    }

    pub(crate) fn is_barred(&self, now: Instant, via: SubflowId) -> bool {
        self.bar.is_some_and(|bar| bar.via == via && now < bar.until)
    }

    /// Tells whether the next ACK, which may go by way of `via`, does.
    pub(crate) fn take(&mut self, via: SubflowId) -> bool {
        let goes = !self.stay && self.away + 1 < OWN_EVERY;
        self.stay = false;
        self.away = if goes { self.away + 1 } else { 0 };
        self.via = Some(via);
        goes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VIA: SubflowId = SubflowId(3);

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn one_ack_of_sixteen_keeps_its_path() {
        let mut detour = Detour::default();
        let kept: Vec<_> = (1..=48).filter(|_| !detour.take(VIA)).collect();
        assert_eq!(kept, [16, 32, 48]);
    }

    #[test]
    fn an_ack_after_silence_or_of_repeated_data_keeps_its_path() {
        let mut detour = Detour::default();
        let srtt = Duration::from_millis(40);
        detour.on_new(at(0), srtt);
        assert!(detour.take(VIA));
        detour.on_new(at(39), srtt);
        assert!(detour.take(VIA));
        detour.on_new(at(79), srtt);
        assert!(!detour.take(VIA) && detour.take(VIA));
        assert!(!detour.on_repeated(at(80), srtt), "the sender was just in a hurry");
        assert!(!detour.take(VIA) && !detour.is_barred(at(80), VIA));
    }

    #[test]
    fn a_path_that_loses_acks_is_barred_each_time_for_longer() {
        let mut detour = Detour::default();
        let mut bars = Vec::new();
        let mut now = 0;
        for _ in 0..9 {
            detour.on_new(at(now), Duration::from_millis(40));
            assert!(detour.take(VIA) || detour.take(VIA));
            now += 40;
            assert!(detour.on_repeated(at(now), Duration::from_millis(40)));
            let length = (0..).find(|s| !detour.is_barred(at(now + 1000 * s), VIA));
            bars.push(length.unwrap_or_default());
            assert!(!detour.is_barred(at(now), SubflowId(4)), "other paths are free");
            now += 1000 * length.unwrap_or_default();
        }
        assert_eq!(bars, [1, 2, 4, 8, 16, 32, 64, 64, 64]);
        // After as long again without a fault the past is forgotten.
        now += 64_000;
        detour.on_new(at(now), Duration::from_millis(40));
        assert!(detour.take(VIA) || detour.take(VIA));
        assert!(detour.on_repeated(at(now + 40), Duration::from_millis(40)));
        assert!(!detour.is_barred(at(now + 1040), VIA));
    }
}
