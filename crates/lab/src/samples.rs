//! Samples of a run: its state at regular times, and goodput in windows.

use crate::measured::{Measured, PathSamples, Samples, WindowMeasured, deviation, mean, per_second};
use anabranch_net::Change;
use anabranch_scenario::Watch;
use anabranch_sim::{Outcome, Sample, Spec, Workload};
use anabranch_units::{Duration, Instant};

/// Adds the measurements from the samples of a run that began at `late`.
pub(crate) fn fill(watch: &Watch, measured: &mut Measured, spec: &Spec, outcome: &Outcome, late: Duration) {
    let begin = Instant::ZERO + late;
    measured.windows = watch.windows.iter().map(|window| span(*window, &outcome.samples, begin)).collect();
    let Some(every) = watch.every else { return };
    let regular = |sample: &&Sample| (sample.at.since(begin).as_nanos()).is_multiple_of(every.as_nanos());
    // The last sample is at the end of the run, which is no regular time.
    let kept: Vec<&Sample> = match outcome.samples.as_slice() {
        [before @ .., _end] => before.iter().filter(regular).collect(),
        [] => Vec::new(),
    };
    let under_way = while_under_way(spec, outcome, &kept);
    let mss = f64::from(spec.client.config.profile.mss.min(spec.server.config.profile.mss));
    let buffers: Vec<f64> = under_way.iter().map(|sample| sample.buffered as f64 / mss).collect();
    measured.buffer_mean_segments = mean(&buffers);
    measured.buffer_sd_segments = deviation(&buffers);
    measured.suspension_s = suspension(spec, &under_way);
    measured.samples = Some(series(spec.network.paths.len(), &kept, begin));
}

/// Measures a window. If the run ends inside or before it, the rest counts as silent.
fn span((from, to): (Duration, Duration), samples: &[Sample], begin: Instant) -> WindowMeasured {
    let at = |time: Duration| samples.iter().find(|sample| sample.at >= begin + time).or(samples.last());
    let (mut goodput_bps, mut path_bps) = (0.0, Vec::new());
    if let (Some(first), Some(last)) = (at(from), at(to)) {
        goodput_bps = per_second(last.read - first.read, to.saturating_sub(from));
        let both = first.paths.iter().zip(&last.paths);
        path_bps = both.map(|(a, b)| per_second(b.received - a.received, to.saturating_sub(from))).collect();
    }
    WindowMeasured { from_s: from.as_secs_f64(), to_s: to.as_secs_f64(), goodput_bps, path_bps }
}

/// Returns the samples taken while a transfer under test was under way.
fn while_under_way<'a>(spec: &Spec, outcome: &Outcome, samples: &[&'a Sample]) -> Vec<&'a Sample> {
    let own = |workload: usize| !matches!(spec.workloads[workload], Workload::Tcp { .. });
    let runs = |at: Instant| {
        let mut transfers = outcome.transfers.iter().filter(|transfer| own(transfer.workload));
        transfers.any(|transfer| transfer.started <= at && transfer.finished.is_none_or(|end| at < end))
    };
    samples.iter().copied().filter(|sample| runs(sample.at)).collect()
}

/// Returns the longest time after the first failure of a link in which nothing arrived over the remaining paths. Lone
/// segments do not count: a tail loss probe can arrive in the middle of a standstill and does not end it.
fn suspension(spec: &Spec, samples: &[&Sample]) -> Option<f64> {
    let failures =
        spec.network.changes.iter().filter(|change| matches!(change.change, Change::Down | Change::Blackhole));
    let failure = failures.min_by_key(|change| change.at)?;
    let crosses =
        |path: &anabranch_paths::PathSpec| path.name == failure.path || path.via.as_ref() == Some(&failure.path);
    let left: Vec<usize> = (0..spec.network.paths.len()).filter(|&path| !crosses(&spec.network.paths[path])).collect();
    let received = |sample: &Sample| left.iter().map(|&path| sample.paths[path].received).sum::<u64>();
    let at = Instant::ZERO + failure.at;
    let after = samples.iter().position(|sample| sample.at >= at).filter(|_| !left.is_empty())?;
    let lone = LONE_SEGMENT * left.len() as u64;
    let (mut known, mut since, mut longest) = (received(samples[after.saturating_sub(1)]), at, Duration::ZERO);
    for sample in &samples[after..] {
        // An arrival between two samples counts at the later one, at both ends of a standstill.
        longest = longest.max(sample.at.since(since));
        if received(sample) > known + lone {
            since = sample.at;
        }
        known = received(sample);
    }
    Some(longest.as_secs_f64())
}

/// Bytes between two samples of a path that count as a lone segment.
const LONE_SEGMENT: u64 = 1500;

fn series(paths: usize, samples: &[&Sample], begin: Instant) -> Samples {
    let all = |value: &dyn Fn(&Sample) -> u64| samples.iter().map(|sample| value(sample)).collect();
    Samples {
        at_s: samples.iter().map(|sample| sample.at.since(begin).as_secs_f64()).collect(),
        data_acked: all(&|sample| sample.data_acked),
        ofo_segments: all(&|sample| sample.ofo_segments),
        buffer_bytes: all(&|sample| sample.buffered),
        paths: (0..paths)
            .map(|path| PathSamples {
                received: all(&|sample| sample.paths[path].received),
                cwnd: all(&|sample| sample.paths[path].cwnd),
                queue: all(&|sample| sample.paths[path].queued),
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::{Keep, Run};
    use anabranch_scenario::{Origin, Scenario};
    use anabranch_sim::PathSample;
    use std::sync::Arc;

    const PATHS: &str =
        "[path.P1]\nrate = \"100mbit\"\nrtt = \"10ms\"\n[path.P2]\nrate = \"100mbit\"\nrtt = \"100ms\"\n";

    fn run(text: &str) -> Run {
        crate::run(&scenario(&format!("{PATHS}{text}")), 1, &Keep::default()).unwrap()
    }

    fn scenario(text: &str) -> Scenario {
        let catalogue = Arc::new(anabranch_policy::Catalogue::default());
        let none = |_: &str, _| Err(std::io::ErrorKind::NotFound.into());
        Scenario::read(&catalogue, "test", "test.toml", text, Origin::default(), &none).unwrap()
    }

    const BULK: &str = "[[workload]]\nkind = \"bulk\"\nduration = \"4s\"\n";
    const CUT: &str = "[[change]]\nat = \"2s\"\npath = \"P1\"\nstate = \"blackhole\"\n";

    /// Sampling does not change a run.
    #[test]
    fn looking_changes_nothing() {
        let plain = run(&format!("{BULK}{CUT}"));
        let asked = "[run]\nsample = \"10ms\"\nwindows = [[\"1s\", \"2s\"]]\ndecisions = true\n";
        let watched = run(&format!("{BULK}{CUT}{asked}"));
        assert_eq!(plain.outcome.digest, watched.outcome.digest);
        let Measured { windows, samples, suspension_s, decisions, .. } = plain.measured.clone();
        assert!(windows.is_empty() && samples.is_none() && suspension_s.is_none() && decisions.is_none());
        let bare = Measured {
            windows: Vec::new(),
            samples: None,
            suspension_s: None,
            decisions: None,
            buffer_mean_segments: None,
            buffer_sd_segments: None,
            ..watched.measured
        };
        assert_eq!(bare, plain.measured);
    }

    /// Windows that tile the run hold all of its bytes; both paths together carry at least the bytes that are read.
    #[test]
    fn windows_that_tile_the_run_add_up_to_it() {
        let Run { measured, outcome, .. } =
            run(&format!("{BULK}[run]\nwindows = [[\"0s\", \"1.5s\"], [\"1.5s\", \"4s\"]]\n"));
        let [first, second] = measured.windows.as_slice() else { panic!("two windows were asked for") };
        assert_eq!((first.from_s, first.to_s, second.from_s, second.to_s), (0.0, 1.5, 1.5, 4.0));
        let bytes = (first.goodput_bps * 1.5 + second.goodput_bps * 2.5) / 8.0;
        assert!((bytes - outcome.transfers[0].bytes as f64).abs() < 1.0, "{bytes} of {}", outcome.transfers[0].bytes);
        for window in &measured.windows {
            assert!(window.path_bps.iter().sum::<f64>() > 0.95 * window.goodput_bps && window.path_bps[0] > 0.0);
        }
        assert!((100e6..200e6).contains(&second.goodput_bps), "two paths of 100 Mbit/s: {second:?}");
    }

    /// From 2 s on nothing arrives over P1; P2 continues after at most the time in which the shared window is freed
    /// again.
    #[test]
    fn series_have_a_value_for_each_time_and_show_the_failure() {
        let measured = run(&format!("{BULK}{CUT}[run]\nsample = \"10ms\"\n")).measured;
        let samples = measured.samples.unwrap();
        assert_eq!((samples.at_s.len(), samples.at_s[0], samples.at_s[400]), (401, 0.0, 4.0));
        assert!(
            samples.data_acked.len() == 401 && samples.data_acked.is_sorted() && samples.data_acked[100] > 1_000_000
        );
        let [p1, p2] = samples.paths.as_slice() else { panic!("two paths") };
        assert_eq!((p1.received.len(), p1.cwnd.len(), p1.queue.len()), (401, 401, 401));
        assert!(p1.received[200] > p1.received[100], "alive");
        assert_eq!(p1.received[210], p1.received[400], "dead");
        assert!(p2.received[400] > p2.received[210] && p2.received.is_sorted());
        assert!(p1.queue.iter().any(|&packets| packets > 10) && p1.queue.iter().all(|&packets| packets <= 100));
        assert!(p1.cwnd[100] > 14_600, "grown beyond the initial window");
        assert!(samples.buffer_bytes.iter().max() > samples.buffer_bytes.first());
        let (mean, deviation) = (measured.buffer_mean_segments.unwrap(), measured.buffer_sd_segments.unwrap());
        let expected = samples.buffer_bytes[..400].iter().sum::<u64>() as f64 / 400.0 / 1460.0;
        assert!((mean - expected).abs() < 1e-6 && deviation > 0.0, "{mean} {expected} {deviation}");
        let suspension = measured.suspension_s.unwrap();
        assert!((0.01..1.5).contains(&suspension), "{suspension}");
    }

    /// LOWLAT Fig. 6 without small queues: min-RTT fills the fast window and turns to the slow path; STTF waits for it.
    #[test]
    fn decisions_are_told_in_the_order_in_which_they_were_made() {
        let burst = |scheduler: &str| {
            let text = "[[workload]]\nkind = \"bursts\"\nsize = \"21000B\"\nwarm-up = \"100kB\"\ninterval = \"5s\"\n";
            run(&format!("{text}[run]\ndecisions = true\n[host]\nscheduler = \"{scheduler}\"\n")).measured.decisions
        };
        assert_eq!(burst("min-rtt").as_deref(), Some("10 P1, 5 P2"));
        assert_eq!(burst("ecf").as_deref(), Some("10 P1, 5 P2"));
        assert_eq!(burst("sttf").as_deref(), Some("10 P1 | 5 P1"));
    }

    /// A journal keeps measurements as JSON: they come back to the last bit.
    #[test]
    fn what_was_measured_survives_json() {
        let asked = "[run]\nsample = \"50ms\"\nwindows = [[\"0.3s\", \"0.7s\"]]\ndecisions = true\n";
        let files = "[[workload]]\nkind = \"files\"\nsizes = [\"100kB\", \"1MB\", \"3MB\"]\n";
        let measured = run(&format!("{files}{CUT}{asked}")).measured;
        assert!(measured.completion_sd_s.is_some() && measured.mean_goodput_bps > 0.0);
        let text = serde_json::to_string(&measured).unwrap();
        assert_eq!(serde_json::from_str::<Measured>(&text).unwrap(), measured);
    }

    /// Returns a sample at `ms` in which all that the paths received is read.
    fn sample(ms: u64, received: &[u64]) -> Sample {
        let path = |&received: &u64| PathSample { received, ..PathSample::default() };
        Sample {
            at: Instant::ZERO + Duration::from_millis(ms),
            read: received.iter().sum(),
            data_acked: 0,
            ofo_segments: 0,
            buffered: 0,
            paths: received.iter().map(path).collect(),
        }
    }

    /// Path 0 fails at 150 ms. Path 1 stands still from 200 ms to 500 ms, and again for 100 ms. A later arrival on path
    /// 0 at 300 ms does not count, nor does a lone segment of path 1 at 400 ms.
    #[test]
    fn a_suspension_is_the_longest_standstill_of_the_paths_that_are_left() {
        let text = format!("{PATHS}{BULK}[[change]]\nat = \"150ms\"\npath = \"P1\"\nstate = \"down\"\n");
        let spec = scenario(&text).spec(1);
        let rows = [
            (0, [5000, 0]),
            (100, [9000, 0]),
            (200, [9000, 7000]),
            (300, [11_000, 7000]),
            (400, [11_000, 8420]),
            (500, [11_000, 11_000]),
            (600, [11_000, 11_000]),
            (700, [11_000, 14_000]),
        ];
        let samples: Vec<Sample> = rows.iter().map(|(ms, received)| sample(*ms, received)).collect();
        let longest = |spec: &Spec, until: usize| suspension(spec, &samples[..until].iter().collect::<Vec<_>>());
        assert_eq!(longest(&spec, 8), Some(0.3));
        assert_eq!(longest(&spec, 5), Some(0.2), "as far as the run went");
        assert_eq!(longest(&spec, 2), None, "it was over before the failure");
        let mut unharmed = spec.clone();
        unharmed.network.changes.clear();
        assert_eq!(longest(&unharmed, 8), None);
        // A standstill that ends with the first sample after the failure counts from the failure.
        assert_eq!(suspension(&spec, &[&sample(100, &[0, 3000]), &sample(400, &[0, 3000])]), Some(0.25));
    }

    /// 8000 bytes in 100 ms are 640 kbit/s; a run that ended at 250 ms is silent after that.
    #[test]
    fn a_window_is_the_difference_between_two_moments() {
        let samples =
            [sample(0, &[0, 0]), sample(100, &[6000, 2000]), sample(200, &[7000, 2000]), sample(250, &[8000, 2000])];
        let window = |from, to| {
            let times = (Duration::from_millis(from), Duration::from_millis(to));
            let WindowMeasured { from_s, to_s, goodput_bps, path_bps } = span(times, &samples, Instant::ZERO);
            assert_eq!((from_s, to_s), (from as f64 / 1e3, to as f64 / 1e3));
            (goodput_bps, path_bps)
        };
        assert_eq!(window(0, 100), (640_000.0, vec![480_000.0, 160_000.0]));
        assert_eq!(window(100, 300), (80_000.0, vec![80_000.0, 0.0]));
        assert_eq!(window(300, 400), (0.0, vec![0.0, 0.0]));
    }
}
