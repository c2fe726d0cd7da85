//! The time between two probes of the bandwidth, in part random ("Time Scale for Bandwidth Probing").

use super::path::Path;
use anabranch_units::{Duration, Instant};

impl Path {
    /// `PickProbeWait()`: 0 or 1 rounds count as over already; 2 to 3 s by the clock.
    pub(super) fn pick_probe_wait(&mut self, now: Instant) {
        self.draws += 1;
        let drawn = hash(now.as_nanos(), hash(self.serial, self.draws));
        self.rounds_since_probe_up = drawn & 1;
        let fraction = (drawn >> 11) as f64 / (1_u64 << 53) as f64;
        self.bw_probe_wait = WAIT + Duration::from_secs(1).mul_f64(fraction);
    }
}

/// Mixes two numbers (the finalizer of SplitMix64: G. Steele, D. Lea, C. Flood, OOPSLA 2014).
fn hash(a: u64, b: u64) -> u64 {
    let mut z = a ^ b.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The least time between probes.
const WAIT: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    /// A thousand draws: both round counts as often, the clock's part even over its second; flows and times differ.
    #[test]
    fn waits_are_spread_over_a_second_and_repeat() {
        let (mut ones, mut sum) = (0, 0.0);
        let mut path = Path::default();
        for n in 0..1000 {
            path.pick_probe_wait(Instant::ZERO + Duration::from_millis(2500) * n);
            ones += path.rounds_since_probe_up;
            let wait = path.bw_probe_wait.as_secs_f64();
            assert!((2.0..3.0).contains(&wait), "{wait}");
            sum += wait - 2.0;
        }
        assert!((440..560).contains(&ones), "{ones}");
        assert!((0.46..0.54).contains(&(sum / 1000.0)), "{sum}");
        let first = |serial| {
            let mut path = Path { serial, ..Path::default() };
            path.pick_probe_wait(Instant::ZERO);
            path.bw_probe_wait
        };
        assert_eq!(first(1), first(1));
        assert_ne!(first(1), first(2));
    }
}
