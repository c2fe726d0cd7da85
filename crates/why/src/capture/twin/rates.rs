//! The rate of a link over time, from packets that waited for the one before.

use super::super::picture::{NEVER, Packet};

/// A time from which on a link has another rate.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Step {
    /// Time \[ns\].
    pub at: u64,
    /// Rate \[bit/s\].
    pub rate: f64,
}

/// Share of a window in which the link has to be busy for its rate to count.
const BUSY: f64 = 0.3;
/// Windows that have to count.
const LEAST: usize = 5;
/// Deviation of the windows' rates, as a share of the mean, above which the rate changes.
const VARIES: f64 = 0.15;
/// A rate nearer to the one before is the same.
const SAME: f64 = 0.1;
/// Steps, at most.
pub(super) const MOST: usize = 400;

/// Returns the rate of the link over all packets that waited for the one before; absent if they are few. Where arrivals
/// are estimates, those that one acknowledgment tells of are at one time: only long runs of packets count.
pub(super) fn mean(data: &[&Packet], delay: u64, exact: bool, bits: &dyn Fn(&Packet) -> f64) -> Option<f64> {
    let least = if exact { 1 } else { LONG };
    let (mut sum, mut busy, mut count) = (0.0, 0, 0);
    let all = waiting(data, delay);
    for run in all.split(|(_, _, waits)| !waits).filter(|run| run.len() >= least) {
        let began = run.iter().position(|(_, apart, _)| *apart > 0).unwrap_or(run.len());
        for (it, apart, _) in &run[began..] {
            (sum, busy, count) = (sum + bits(it), busy + apart, count + 1);
        }
    }
    (count >= ENOUGH && busy > 0).then(|| sum * 1e9 / busy as f64)
}

/// Pairs that tell a rate.
const ENOUGH: usize = 10;
/// Packets in a row that tell it where arrivals are estimates.
const LONG: usize = 16;

/// Packets in the order in which they arrived, each with the time since the one before, and whether it waited for it.
fn waiting<'a>(data: &[&'a Packet], delay: u64) -> Vec<(&'a Packet, u64, bool)> {
    let mut arrived: Vec<&Packet> = data.iter().copied().filter(|it| it.arrived != NEVER).collect();
    arrived.sort_by_key(|it| it.arrived);
    let pair = |pair: &[&'a Packet]| {
        let (before, it) = (pair[0], pair[1]);
        (it, it.arrived - before.arrived, it.sent <= before.arrived.saturating_sub(delay))
    };
    arrived.windows(2).map(pair).collect()
}

/// Returns the changes of the rate, if it changes: the first of them at the first window that counts. `data` is in the
/// order in which packets left, `delay` the shortest from host to host, `bits` the size of a packet on the wire.
pub(super) fn steps(data: &[&Packet], delay: u64, width: u64, bits: &dyn Fn(&Packet) -> f64) -> Vec<Step> {
    let begin = data.iter().map(|it| it.arrived).min().unwrap_or(0);
    // Bits and time of busy spans, by window.
    let mut windows: Vec<(f64, u64)> = Vec::new();
    for (it, apart, _) in waiting(data, delay).into_iter().filter(|(_, _, waits)| *waits) {
        let window = ((it.arrived - begin) / width.max(1)) as usize;
        if window >= MOST_WINDOWS {
            break;
        }
        if windows.len() <= window {
            windows.resize(window + 1, (0.0, 0));
        }
        windows[window].0 += bits(it);
        windows[window].1 += apart;
    }
    let counts = |(index, (sum, busy)): (usize, &(f64, u64))| {
        (*busy as f64 >= BUSY * width as f64)
            .then(|| Step { at: begin + index as u64 * width, rate: sum * 1e9 / *busy as f64 })
    };
    let all: Vec<Step> = windows.iter().enumerate().filter_map(counts).collect();
    if all.len() < LEAST || deviation(&all) < VARIES {
        return Vec::new();
    }
    let mut steps: Vec<Step> = Vec::new();
    for step in all {
        let same = steps.last().is_some_and(|last| (step.rate / last.rate - 1.0).abs() < SAME);
        if !same && steps.len() < MOST {
            steps.push(step);
        }
    }
    steps
}

/// Windows that are looked at, at most.
const MOST_WINDOWS: usize = 1 << 16;

fn deviation(steps: &[Step]) -> f64 {
    let n = steps.len() as f64;
    let mean = steps.iter().map(|it| it.rate).sum::<f64>() / n;
    let square = steps.iter().map(|it| (it.rate - mean) * (it.rate - mean)).sum::<f64>() / n;
    square.sqrt() / mean
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::picture::tests_packet;

    /// A link of 8 Mbit/s, and of 4 from one second on: 1000 bytes take 1 ms, then 2.
    #[test]
    fn a_rate_that_halves_is_two_steps() {
        let mut at = 0;
        let packets: Vec<Packet> = (0..1500)
            .map(|_| {
                at += if at < 1_000_000_000 { 1_000_000 } else { 2_000_000 };
                tests_packet(0, at, 1000)
            })
            .collect();
        let data: Vec<&Packet> = packets.iter().collect();
        let steps = steps(&data, 0, 200_000_000, &|_| 8000.0);
        let told: Vec<(u64, u64)> =
            steps.iter().map(|it| (it.at / 1_000_000, (it.rate / 1e3).round() as u64)).collect();
        assert_eq!(told, [(1, 8000), (1001, 4000)]);
    }

    #[test]
    fn a_constant_rate_has_no_steps() {
        let packets: Vec<Packet> = (1..2000).map(|n| tests_packet(0, n * 1_000_000, 1000)).collect();
        let data: Vec<&Packet> = packets.iter().collect();
        assert_eq!(steps(&data, 0, 200_000_000, &|_| 8000.0), []);
    }
}
