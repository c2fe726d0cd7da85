//! Statistics of the models, over several seeds.
#![allow(clippy::unwrap_used)]

use super::*;
use anabranch_net::{Step, Trace};
use anabranch_recording::{Periodic, periodic, spread};

/// Draws of 12 seeds, ten minutes each.
fn draws(model: &Model) -> Vec<Recording> {
    (1..=12).map(|seed| model.draw(Seed(seed), "test", LONGEST)).collect()
}

/// The mean of a number over the seeds, and its standard error.
fn over(draws: &[Recording], number: impl Fn(&Recording) -> f64) -> (f64, f64) {
    let all: Vec<f64> = draws.iter().map(number).collect();
    let n = all.len() as f64;
    let mean = all.iter().sum::<f64>() / n;
    let variance = all.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}

/// Holds the mean of a number to what is expected, within four standard errors and `tolerance` of it. Both must be
/// small enough for the test to say something.
fn holds(name: &str, draws: &[Recording], expected: f64, tolerance: f64, number: impl Fn(&Recording) -> f64) {
    let (mean, error) = over(draws, number);
    assert!(error < 0.1 * expected, "{name}: {error} of {expected} is too noisy to be a test");
    let off = (mean - expected).abs();
    assert!(off < 4.0 * error + tolerance * expected, "{name}: {mean} ± {error}, expected {expected}");
}

fn leo(change: impl FnOnce(&mut Leo)) -> Model {
    let mut model = Leo::default();
    change(&mut model);
    Model(ModelTable::Leo(model))
}

fn blockage(change: impl FnOnce(&mut Blockage)) -> Model {
    let mut model = Blockage::default();
    change(&mut model);
    Model(ModelTable::Blockage(model))
}

fn wifi(change: impl FnOnce(&mut Wifi)) -> Model {
    let mut model = Wifi::default();
    change(&mut model);
    Model(ModelTable::Wifi(model))
}

fn lte(change: impl FnOnce(&mut Lte)) -> Model {
    let mut model = Lte::default();
    change(&mut model);
    Model(ModelTable::Lte(model))
}

fn mbps(recording: &Recording) -> f64 {
    recording.trace().map_or(0.0, |trace| trace.mean_rate().as_mbps())
}

/// The values of a series in each such time.
fn each<T: Copy + PartialEq>(levels: &Levels<T>, step: Duration) -> Vec<T> {
    let count = levels.length().as_nanos() / step.as_nanos();
    (0..count).map(|n| levels.at(step * n)).collect()
}

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

#[test]
fn a_seed_and_a_path_fix_the_draws_and_nothing_else_does() {
    for name in NAMES {
        let model = Model::named(name).unwrap();
        assert_eq!(model.name(), name);
        let draw = |seed, path, seconds| model.draw(Seed(seed), path, Duration::from_secs(seconds));
        let text = |recording: &Recording| format!("{recording:?}");
        let one = draw(1, "a", 20);
        assert_eq!(text(&one), text(&draw(1, "a", 20)), "{name}");
        assert_ne!(text(&one), text(&draw(2, "a", 20)), "{name}");
        assert_ne!(text(&one), text(&draw(1, "b", 20)), "{name}");
        // A longer run begins like a shorter one.
        let (short, long) = (one.rates(ms(100)).unwrap(), draw(1, "a", 50).rates(ms(100)).unwrap());
        let first = |levels: &Levels<Rate>| each(levels, ms(100)).into_iter().take(199).collect::<Vec<_>>();
        assert_eq!(first(&short), first(&long), "{name}");
        let delays = |recording: &Recording| each(recording.delay.as_ref().unwrap(), ms(1))[..19_900].to_vec();
        assert_eq!(delays(&one), delays(&draw(1, "a", 50)), "{name}");
    }
}

/// The digests fix the bits for all platforms: a change here changes the results of scenarios.
#[test]
fn draws_are_the_same_bits_everywhere() {
    use sha2::{Digest, Sha256};
    let digest = |name: &str| {
        let recording = Model::named(name).unwrap().draw(Seed(7), "a", Duration::from_secs(30));
        anabranch_units::hex(&Sha256::digest(format!("{recording:?}")))[..16].to_owned()
    };
    assert_eq!(NAMES.map(digest), ["ec9c675872f84cdc", "d4a890ba15d7883c", "752ee780ddb62610", "7506bfbbdf36a502"]);
}

#[test]
fn lengths_are_bounded_and_values_cover_them() {
    for name in NAMES {
        let model = Model::named(name).unwrap();
        for (asked, drawn) in [(Duration::ZERO, ms(1)), (ms(700), ms(700)), (Duration::MAX, LONGEST)] {
            let recording = model.draw(Seed(3), "a", asked);
            assert_eq!(recording.length(), drawn, "{name}");
            let lengths = [
                recording.rates(ms(100)).map(|levels| levels.length()),
                recording.delay.as_ref().map(|levels| levels.length()),
                recording.loss.as_ref().map(|levels| levels.length()),
            ];
            assert!(lengths.iter().flatten().all(|length| *length == drawn), "{name}: {lengths:?}");
        }
    }
}

/// Satellites change at moments of 15 s, which `anabranch trace` finds in delay and rate, and at the same ones on all
/// paths.
#[test]
fn satellites_change_every_fifteen_seconds_on_all_paths() {
    for seed in 1..=12 {
        let draw = |path| leo(|_| {}).draw(Seed(seed), path, LONGEST);
        let phase = |recording: &Recording| {
            let delay = recording.delay.as_ref().unwrap();
            let found: Periodic = periodic(delay, ms(250), Duration::as_secs_f64).unwrap();
            assert_eq!(found.period, Duration::from_secs(15), "{seed}");
            assert!(found.ratio.is_some_and(|ratio| ratio > 1.5), "{found:?}");
            found.phase
        };
        assert_eq!(phase(&draw("a")), phase(&draw("b")), "{seed}");
    }
}

#[test]
fn satellites_have_the_delays_and_losses_that_were_measured() {
    let draws = draws(&leo(|_| {}));
    // Within a slot: two draws of a range differ by a third of it, 3.3 ms one way and 6.7 ms of a round trip.
    holds("difference of round trips", &draws, 6.67, 0.05, |recording| {
        let losses = recording.loss.as_ref().unwrap();
        let round_trips: Vec<(f64, bool)> = (0..recording.length().as_millis() / 100)
            .map(|n| {
                let at = ms(100) * n + ms(37);
                (2.0 * recording.delay.as_ref().unwrap().at(at).as_millis_f64(), losses.at(at) > 0.0)
            })
            .collect();
        // Over 100 ms apart the draw is another; handovers apart.
        let pairs = round_trips.windows(3).filter(|some| some.iter().all(|(_, lossy)| !lossy));
        let differences: Vec<f64> = pairs.map(|some| (some[2].0 - some[0].0).abs()).collect();
        differences.iter().sum::<f64>() / differences.len() as f64
    });
    // Half of 500 ms at 80 % in each 15 s; Huston measured 1 to 2 %.
    holds("loss", &draws, 0.25 * 0.8 / 15.0, 0.03, |recording| spread(recording.loss.as_ref().unwrap(), |p| p).mean);
    holds("burst", &draws, 0.25, 0.03, |recording| {
        let (mut from, mut bursts) = (Duration::ZERO, Vec::new());
        for level in recording.loss.as_ref().unwrap().iter() {
            if level.value > 0.0 {
                bursts.push((level.until - from).as_secs_f64());
            }
            from = level.until;
        }
        assert!(bursts.iter().all(|burst| *burst <= 0.5) && bursts.len() >= 37, "{bursts:?}");
        bursts.iter().sum::<f64>() / bursts.len() as f64
    });
    // 15 ms, half of the 10 ms of satellites, half of the scatter of 10 ms, and 20 ms for 0.25 s in 15 s.
    holds("delay", &draws, 25.3, 0.02, |recording| {
        spread(recording.delay.as_ref().unwrap(), Duration::as_millis_f64).mean
    });
    // Steps from one satellite to the next: a third of their range.
    holds("step", &draws, 10.0 / 3.0, 0.1, |recording| {
        let losses: Vec<Level<f64>> = recording.loss.as_ref().unwrap().iter().collect();
        let delay = recording.delay.as_ref().unwrap();
        let ends = losses.iter().filter(|level| level.value == 0.0).map(|level| level.until);
        let ends: Vec<Duration> = ends.collect();
        let mean_between = |from: Duration, to: Duration| {
            let span = to - from;
            (0..100).map(|n| delay.at(from + span / 100 * n).as_millis_f64()).sum::<f64>() / 100.0
        };
        let means: Vec<f64> = ends
            .windows(2)
            .filter(|two| two[1] > two[0] + ms(2000))
            .map(|two| mean_between(two[0] + ms(600), two[1]))
            .collect();
        means.windows(2).map(|two| (two[1] - two[0]).abs()).sum::<f64>() / (means.len() - 1) as f64
    });
}

#[test]
fn satellites_have_the_rates_of_the_drive() {
    let draws = draws(&leo(|_| {}));
    let seconds = |recording: &Recording| {
        let rates = recording.rates(ms(100)).unwrap();
        each(&rates, Duration::from_secs(1)).into_iter().map(Rate::as_mbps).collect::<Vec<_>>()
    };
    // Levels below a tenth of the mean are cut off, which adds a little.
    holds("mean", &draws, 150.0, 0.03, mbps);
    // √(0.43² + 0.31² (1 + 0.43²)) of the mean.
    holds("deviation", &draws, 0.547 * 150.0, 0.06, |recording| {
        let all = seconds(recording);
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        (all.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / all.len() as f64).sqrt()
    });
    assert!(draws.iter().all(|recording| seconds(recording).iter().all(|mbps| *mbps > 0.0)));
}

#[test]
fn obstructions_take_their_share_and_most_are_short() {
    // Obstructions do not heed handovers.
    for interval in [15_000, 7_300, 1_900].map(ms) {
        obstructed_for(interval);
    }
}

fn obstructed_for(interval: Duration) {
    let model = leo(|model| (model.obstructed, model.interval) = (Unit(Share(0.16)), Unit(interval)));
    let all: Vec<Recording> = (1..=40).map(|seed| model.draw(Seed(seed), "car", LONGEST)).collect();
    let mut lengths = Vec::new();
    let mut blocked = 0.0;
    for recording in &all {
        let mut from = Duration::ZERO;
        for level in recording.rates(ms(100)).unwrap().iter() {
            if level.value.is_zero() {
                lengths.push((level.until - from).as_secs_f64());
                blocked += (level.until - from).as_secs_f64();
            }
            from = level.until;
        }
    }
    let share = blocked / (40.0 * 600.0);
    // Lengths are heavy-tailed: over 40 times ten minutes the share varies by a tenth of itself.
    assert!((0.11..0.21).contains(&share), "{interval}: {share}");
    let short = |most: f64| lengths.iter().filter(|length| **length <= most).count() as f64 / lengths.len() as f64;
    // A half lasts one second, a third of the rest another, and a tenth 10 s and more. The few that follow at once upon
    // another are seen as one.
    for (most, expected) in [(1.0, 0.5), (2.0, 0.667), (9.5, 0.9)] {
        assert!((short(most) - expected).abs() < 0.05, "{interval}, {most} s: {}", short(most));
    }
}

/// A blocker is in one of four stages for 1/0.21, 1/7.88, 1/7.70 and 1/7.67 s on average.
#[test]
fn blockers_have_the_stages_that_were_measured() {
    let whole: f64 = [0.21, 7.88, 7.70, 7.67].iter().map(|rate| 1.0 / rate).sum();
    let shares: Vec<[f64; 2]> = (0..12)
        .map(|seed| {
            let mut blocker = blockage::Blocker::new(Seed(seed).stream("blocker"));
            let values: Vec<f64> = (0..1_200_000).map(|n| blocker.attenuation(ms(n))).collect();
            let share = |count: usize| count as f64 / values.len() as f64;
            let shadowed = values.iter().filter(|value| **value >= blockage::SHADOW).count();
            let clear = values.iter().filter(|value| **value <= 0.0).count();
            assert!(values.iter().all(|value| (0.0..=blockage::SHADOW).contains(value)));
            [share(shadowed), share(clear)]
        })
        .collect();
    for (n, expected) in [(0, 1.0 / 7.70 / whole), (1, 1.0 / 0.21 / whole)] {
        let mean = shares.iter().map(|both| both[n]).sum::<f64>() / shares.len() as f64;
        assert!((mean - expected).abs() < 0.05 * expected, "{mean} {expected}");
    }
}

/// Attenuations add: with more blockers less passes, and short and deep fades come more often.
#[test]
fn blockers_take_rate_and_recover() {
    // A signal so strong that one blocker takes it from the best indicator at 40 dB to 24.2 dB, which is the best as
    // well.
    let strong = draws(&blockage(|model| model.signal_db = 40.0));
    let least = |recording: &Recording| spread(&recording.rates(ms(10)).unwrap(), Rate::as_mbps).least;
    assert!(over(&strong, mbps).0 > 0.99 * 800.0);
    let [none, one, three] = [0, 1, 3].map(|blockers| draws(&blockage(|model| model.blockers = blockers)));
    let means = [&none, &one, &three].map(|draws| over(draws, mbps).0);
    // One blocker is there for 7.5 % of the time and then takes most of the rate.
    assert!((0.92..0.97).contains(&(means[1] / means[0])) && means[2] < 0.9 * means[0], "{means:?}");
    assert!(over(&one, least).0 < 0.3 * over(&none, least).0, "{} {}", over(&one, least).0, over(&none, least).0);
    // It comes 0.19 times a second, and each fade is shorter than half a second in the mean.
    holds("fades", &one, 600.0 / (1.0 / 0.21 + 1.0 / 7.88 + 1.0 / 7.70 + 1.0 / 7.67), 0.3, |recording| {
        let rates = each(&recording.rates(ms(10)).unwrap(), ms(10));
        let falls = rates.windows(30).filter(|some| {
            let (before, after) = (some[0].as_mbps(), some[29].as_mbps());
            after < 0.4 * before && some[28].as_mbps() >= 0.4 * before
        });
        falls.count() as f64
    });
}

/// The opportunities of a recording: times and bytes.
fn opportunities(recording: &Recording) -> Vec<(Duration, u64)> {
    let Some(Supply::Opportunities(trace)) = &recording.rate else { panic!("rates") };
    let of = |trace: &Trace| -> Vec<Step> { trace.rates(Duration::from_micros(100)) };
    let mut at = Duration::ZERO;
    let mut all = Vec::new();
    for step in of(trace) {
        let bytes = step.rate.bytes_in(step.until - at).get();
        if bytes > 0 {
            all.push((step.until, (bytes + 750) / 1500 * 1500));
        }
        at = step.until;
    }
    all
}

#[test]
fn wifi_serves_in_bursts_of_whole_packets() {
    let alone = draws(&wifi(|model| (model.signal_dbm, model.stations) = (-45.0, 0)));
    // -45 dBm carries MCS 9 almost always: 64 frames of 1560 bytes at 390 Mbit/s take 2.05 ms, and the rest of a turn
    // 43 + 67.5 + 40 + 48 us.
    let turn = 64.0 * 1560.0 * 8.0 / 390e6 + 198.5e-6;
    holds("rate alone", &alone, 64.0 * 1500.0 * 8.0 / turn / 1e6, 0.03, mbps);
    let sizes =
        |recording: &Recording| opportunities(recording).iter().map(|(_, bytes)| bytes / 1500).collect::<Vec<_>>();
    for recording in &alone {
        let sizes = sizes(recording);
        let full = sizes.iter().filter(|packets| **packets == 64).count() as f64 / sizes.len() as f64;
        assert!(full > 0.8 && sizes.iter().all(|packets| *packets <= 64), "{full}");
    }
    // With three others it has a fourth of the turns, and waits for 3 turns of 2.9 ms on average between its own.
    let busy = draws(&wifi(|model| (model.signal_dbm, model.stations) = (-45.0, 3)));
    let others = 3.0 * (0.3e-3 + 5.184e-3 / 2.0 + 158.5e-6);
    holds("gap", &busy, (turn + others) * 1e3, 0.04, |recording| {
        let all = opportunities(recording);
        let gaps: Vec<f64> = all.windows(2).map(|two| (two[1].0 - two[0].0).as_millis_f64()).collect();
        gaps.iter().sum::<f64>() / gaps.len() as f64
    });
    let longest = |recording: &Recording| {
        opportunities(recording).windows(2).map(|two| (two[1].0 - two[0].0).as_millis()).max().unwrap()
    };
    assert!(busy.iter().all(|recording| longest(recording) > 30));
}

#[test]
fn wifi_adapts_its_rate_to_the_signal() {
    let means: Vec<f64> = [-50.0, -62.0, -72.0, -80.0]
        .iter()
        .map(|dbm| over(&draws(&wifi(|model| model.signal_dbm = *dbm)), mbps).0)
        .collect();
    assert!(means.windows(2).all(|two| two[1] < 0.75 * two[0]), "{means:?}");
    // At -80 dBm, under the least sensitivity, there are long times without service, and others with.
    let weak = draws(&wifi(|model| model.signal_dbm = -80.0));
    let silent = |recording: &Recording| {
        let rates = each(&recording.rates(ms(100)).unwrap(), ms(100));
        rates.iter().filter(|rate| rate.is_zero()).count() as f64 / rates.len() as f64
    };
    let share = over(&weak, silent).0;
    // 84 % of a normal distribution lie below its mean and one deviation.
    assert!((0.7..0.95).contains(&share), "{share}");
}

#[test]
fn lte_repeats_blocks_after_eight_milliseconds() {
    let draws = draws(&lte(|_| {}));
    let share = |late: u64| {
        move |recording: &Recording| {
            let delays = recording.delay.as_ref().unwrap();
            let Some(Supply::Opportunities(trace)) = &recording.rate else { panic!("rates") };
            // A block leaves at the end of its millisecond.
            let steps = trace.rates(ms(1));
            let blocks: Vec<Duration> =
                steps.iter().filter(|step| !step.rate.is_zero()).map(|step| delays.at(step.until) - ms(20)).collect();
            assert!(blocks.iter().all(|late| [0, 8, 16, 24, 44].contains(&late.as_millis())));
            blocks.iter().filter(|block| **block == ms(late)).count() as f64 / blocks.len() as f64
        }
    };
    // A tenth of blocks fails, of those a tenth again, and so on.
    for (late, expected) in [(0, 0.9), (8, 0.09), (16, 0.009)] {
        holds(&format!("{late} ms"), &draws, expected, 0.01, share(late));
    }
    let (all, _) = over(&draws, share(44));
    assert!((0.00005..0.0002).contains(&all), "{all}");
    // Repetitions take the place of new blocks: 1 + 0.1 + 0.01 + 0.001 turns a block.
    holds("turns", &draws, 1.0 / 1.111, 0.01, |recording| {
        let Some(Supply::Opportunities(trace)) = &recording.rate else { panic!("rates") };
        let steps = trace.rates(ms(1));
        steps.iter().filter(|step| !step.rate.is_zero()).count() as f64 / steps.len() as f64
    });
    let perfect = super::tests::draws(&lte(|model| (model.errors, model.signal_db) = (Unit(Share(0.0)), 40.0)));
    assert!(perfect.iter().all(|it| it.delay.as_ref().unwrap().iter().count() == 1 && mbps(it) > 0.98 * 75.0));
}

/// The signal is normal around 14 dB with 6 dB, so the mean rate is the mean over the ladder.
#[test]
fn lte_has_the_rates_of_its_signal() {
    let draws = draws(&lte(|model| model.errors = Unit(Share(0.0))));
    let ladder = (-40..=70).map(|n| f64::from(n) * 0.5);
    let (mut sum, mut weight) = (0.0, 0.0);
    for decibels in ladder {
        let density = libm::exp(-0.5 * (decibels - 14.0) * (decibels - 14.0) / 36.0);
        sum += density * signal::rate(Rate::from_mbps(75), decibels).as_mbps();
        weight += density;
    }
    holds("rate", &draws, sum / weight, 0.03, mbps);
    let least = draws.iter().map(|it| spread(&it.rates(ms(100)).unwrap(), Rate::as_mbps).percentiles[0]);
    assert!(least.into_iter().all(|p5| p5 < 0.5 * sum / weight), "there are bad times");
}

#[test]
fn parameters_out_of_range_are_refused() {
    for (model, problem, accepted) in [
        (leo(|it| it.rate = Unit(Rate::from_bps(1000))), "`rate` is 1kbit", "1mbit to 10gbit"),
        (leo(|it| it.delay = Unit(Duration::from_secs(2))), "`delay` is 2s", "0s to 1s"),
        (leo(|it| it.interval = Unit(Duration::ZERO)), "`interval` is 0s", "1s to 600s"),
        (leo(|it| it.steps = Unit(Duration::from_secs(2))), "`steps` is 2s", "0s to 1s"),
        (leo(|it| it.loss = Unit(Share(0.6))), "`loss` is 60 %", "0% to 50%"),
        (leo(|it| it.obstructed = Unit(Share(1.0))), "`obstructed` is 100 %", "0% to 90%"),
        (blockage(|it| it.blockers = 21), "`blockers` is 21", "0 to 20"),
        (blockage(|it| it.signal_db = -1.0), "`signal-db` is -1", "0 to 40"),
        (blockage(|it| it.signal_db = f64::NAN), "`signal-db` is NaN", "0 to 40"),
        (wifi(|it| it.signal_dbm = 0.0), "`signal-dbm` is 0", "-90 to -30"),
        (wifi(|it| it.stations = 51), "`stations` is 51", "0 to 50"),
        (lte(|it| it.signal_db = f64::INFINITY), "`signal-db` is inf", "0 to 40"),
        (lte(|it| it.errors = Unit(Share(0.51))), "`errors` is 51 %", "0% to 50%"),
    ] {
        let refusal = model.check().unwrap_err();
        assert!(refusal.problem == problem && refusal.accepted.ends_with(accepted), "{refusal:?}");
    }
    assert!(NAMES.iter().all(|name| Model::named(name).unwrap().check().is_ok()));
    assert!(Model::named("LEO").is_none());
}

/// The ends of all ranges draw something, in bounded time.
#[test]
fn the_ends_of_ranges_are_drawn() {
    let models = [
        leo(|it| (it.interval, it.obstructed) = (Unit(Duration::from_secs(1)), Unit(Share(0.9)))),
        leo(|it| (it.interval, it.steps, it.delay) = (Unit(LONGEST), Unit(Duration::ZERO), Unit(Duration::ZERO))),
        blockage(|it| (it.blockers, it.signal_db) = (20, 0.0)),
        wifi(|it| (it.rate, it.signal_dbm, it.stations) = (Unit(Rate::from_mbps(1)), -90.0, 50)),
        wifi(|it| (it.rate, it.signal_dbm, it.stations) = (Unit(Rate::from_mbps(10_000)), -30.0, 0)),
        lte(|it| (it.rate, it.errors, it.signal_db) = (Unit(Rate::from_mbps(1)), Unit(Share(0.5)), 0.0)),
    ];
    for model in models {
        model.check().unwrap();
        for seed in 0..3 {
            let recording = model.draw(Seed(seed), "end", LONGEST);
            assert_eq!(recording.length(), LONGEST, "{model:?}");
        }
    }
}
