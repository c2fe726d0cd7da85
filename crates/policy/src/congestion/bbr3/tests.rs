//! The draft's "BBR Example Test Cases" as far as one flow over a small bottleneck shows them; the rest is in
//! `crates/sim/tests/policies/congestion.rs`. A case is cited by its heading.

use super::bottleneck::{Bottleneck, FLOW, MSS};
use super::loss::is_inflight_too_high;
use crate::congestion::Flight;
use anabranch_units::{Bytes, Duration};

/// 10 Mbit/s and 40 ms: a BDP of 50 kB.
fn path(products: f64) -> Bottleneck {
    Bottleneck::new(10.0, 40, products)
}

/// Steps until the phase is another one, at most for this many seconds; returns it.
fn after(it: &mut Bottleneck, seconds: f64) -> &'static str {
    let phase = it.phase();
    it.until(seconds, |it| it.phase() != phase);
    it.phase()
}

fn near(value: f64, expected: f64, tolerance: f64) -> bool {
    (value / expected - 1.0).abs() <= tolerance
}

#[test]
fn begins_with_the_initial_window_in_a_round_trip_and_the_gain_of_startup() {
    let it = path(1.0);
    let pacing = |srtt| it.control.model(FLOW, srtt).expect("BBR paces").pacing.as_mbps();
    // 2.77 times ten segments of 1000 bytes in 100 ms, or in 1 ms where no round trip is known.
    assert!(near(pacing(Some(Duration::from_millis(100))), 2.77 * 0.8, 1e-6));
    assert!(near(pacing(None), 2.77 * 80.0, 1e-6));
    assert_eq!(it.phase(), "startup");
}

/// "Exiting STARTUP on Bandwidth Plateau".
#[test]
fn startup_ends_at_a_plateau() {
    let mut it = path(4.0);
    assert!(it.until(5.0, |it| it.get("full-bw-count") == 2.0));
    assert_eq!((it.phase(), it.is("full-bw-reached")), ("startup", false));
    it.reach("drain");
    assert!(it.is("full-bw-now") && it.is("full-bw-reached") && it.get("full-bw-count") == 3.0);
    assert!(near(it.get("max-bw"), it.rate, 0.02), "{}", it.get("max-bw"));
    assert!(it.dropped == 0 && it.get("inflight-longterm").is_infinite(), "no loss was needed");
}

/// "Exiting STARTUP on Loss When Application-Limited": every 20th packet, and 6 ranges in a round.
#[test]
fn startup_ends_by_loss_though_the_application_is_the_limit() {
    let mut it = Bottleneck::new(100.0, 40, 4.0);
    it.application = Some(0.5 * it.rate);
    it.run(1.0);
    assert_eq!((it.phase(), it.is("full-bw-reached")), ("startup", false));
    it.lose_every = 20;
    assert_ne!(after(&mut it, 2.0), "startup");
    // With half a BDP in flight, Drain ends with the ACK that it begins with.
    assert_eq!(it.get("drain-start-round"), it.get("round-count"));
    assert!(it.is("full-bw-now") && it.is("full-bw-reached"));
    // max(bdp, inflight_latest), of which the second is half of what the path carries in a round trip.
    assert!(
        near(it.get("inflight-longterm"), it.get("bw") * it.get("min-rtt"), 0.1),
        "{:?}",
        it.control.variables(FLOW)
    );
}

/// Fewer ranges in a round, or a loss rate within 2 %: Startup stays.
#[test]
fn startup_bears_few_losses() {
    for (mbps, lose_every) in [(10.0, 20), (100.0, 60)] {
        let mut it = Bottleneck::new(mbps, 40, 4.0);
        it.application = Some(0.5 * it.rate);
        it.run(1.0);
        it.lose_every = lose_every;
        it.run(2.0);
        assert_eq!(it.phase(), "startup", "{mbps} {lose_every}");
    }
}

/// "Exiting DRAIN Based on Inflight".
#[test]
fn drain_ends_when_a_bdp_is_in_flight() {
    let mut it = path(4.0);
    it.reach("drain");
    assert_eq!(it.get("pacing-gain"), 0.5);
    assert!(it.in_flight as f64 > 1.5 * it.bdp());
    while it.phase() == "drain" {
        assert!(it.in_flight as f64 > it.get("bw") * it.get("min-rtt"), "{}", it.in_flight);
        it.until(0.001, |_| false);
    }
    assert!(it.in_flight as f64 <= it.get("bw") * it.get("min-rtt") + MSS as f64);
    assert!(it.get("round-count") <= it.get("drain-start-round") + 3.0);
    assert!(it.phase().starts_with("probe-bw"));
}

/// "Exiting DRAIN Based on Time": the path is slower than thought, and cannot be emptied in three rounds.
#[test]
fn drain_ends_after_three_rounds() {
    let mut it = path(8.0);
    it.reach("drain");
    it.rate *= 0.45;
    while it.phase() == "drain" {
        it.until(0.001, |_| false);
    }
    assert_eq!(it.get("round-count"), it.get("drain-start-round") + 4.0, "the first round after three");
    assert!(it.in_flight as f64 > it.get("bw") * it.get("min-rtt"));
    assert_eq!(it.phase(), "probe-bw-down");
}

/// "Exiting PROBE_UP on Bandwidth Plateau".
#[test]
fn probing_ends_at_a_plateau() {
    let mut it = path(4.0);
    it.reach("probe-bw-up");
    assert_eq!((it.get("pacing-gain"), it.get("cwnd-gain")), (1.25, 2.25));
    assert!(!it.is("full-bw-now"));
    assert_eq!(after(&mut it, 1.0), "probe-bw-down");
    assert!(it.is("full-bw-now") && it.get("full-bw-count") == 3.0 && it.dropped == 0);
}

/// "Exiting PROBE_UP on Loss When Application-Limited": the phase ends, and inflight_longterm stays unset, since the
/// pseudocode sets it only where the application is not the limit.
#[test]
fn probing_ends_by_loss_though_the_application_is_the_limit() {
    let mut it = Bottleneck::new(100.0, 40, 4.0);
    it.reach("probe-bw-refill");
    it.application = Some(0.5 * it.rate);
    it.reach("probe-bw-up");
    it.run(0.2);
    assert_eq!(it.phase(), "probe-bw-up");
    it.lose_every = 10;
    // Down, and on with the same ACK, since less than a BDP is in flight.
    assert_eq!(after(&mut it, 0.5), "probe-bw-cruise");
    assert!(it.is("prev-probe-too-high") && !it.is("is-bw-probe-sample"));
    assert!(it.get("inflight-longterm").is_infinite());
}

/// "Never Exiting PROBE_UP (or STARTUP) When Application-Limited With No Loss": until ProbeRTT is due.
#[test]
fn an_application_that_is_the_limit_ends_neither_startup_nor_probing() {
    let mut it = path(4.0);
    it.application = Some(0.3 * it.rate);
    it.run(4.9);
    assert_eq!(it.log.len(), 1, "{:?}", it.log);
    let mut it = path(4.0);
    it.reach("probe-bw-refill");
    it.application = Some(0.3 * it.rate);
    it.reach("probe-bw-up");
    let longest = it.until(30.0, |it| it.phase() != "probe-bw-up");
    assert!(longest && it.phase() == "probe-rtt", "{:?}", it.log);
}

/// "Exiting PROBE_DOWN on Inflight", with a bound from losses.
#[test]
fn going_down_ends_with_headroom() {
    let mut it = path(0.5);
    it.reach("probe-bw-cruise");
    assert!(it.until(30.0, |it| it.phase() == "probe-bw-down" && it.is("prev-probe-too-high")), "{:?}", it.log);
    assert!(it.get("inflight-longterm").is_finite() && it.get("pacing-gain") == 0.9);
    assert_eq!(after(&mut it, 2.0), "probe-bw-cruise");
    let (headroom, bdp) = (0.85 * it.get("inflight-longterm"), it.get("max-bw") * it.get("min-rtt"));
    assert!(it.in_flight as f64 <= headroom.min(bdp) + 1.0, "{} {headroom} {bdp}", it.in_flight);
}

/// "Exiting PROBE_DOWN After Max Time": the path is slower than thought, so that the queue does not go. Over a BDP of
/// 50 packets the clock ends the phase, over one of 6 the rounds that a Reno flow would take.
#[test]
fn going_down_ends_in_time() {
    for (rtt_ms, by_clock) in [(40, true), (5, false)] {
        let mut it = Bottleneck::new(10.0, rtt_ms, 20.0);
        it.reach("probe-rtt");
        it.reach("probe-bw-up");
        it.reach("probe-bw-down");
        let (began, wait) = (it.now, it.get("bw-probe-wait"));
        it.rate *= 0.85;
        assert_eq!(after(&mut it, 4.0), "probe-bw-refill", "{rtt_ms} ms: {:?}", it.log);
        let took = it.now.since(began).as_secs_f64();
        assert_eq!(took > wait, by_clock, "{took} {wait}");
    }
}

/// "Entering and Exiting PROBE_RTT".
#[test]
fn probe_rtt_comes_after_five_seconds_and_lasts_a_fifth() {
    let mut it = path(4.0);
    it.reach("probe-rtt");
    let began = it.now;
    assert!((5.0..6.0).contains(&began.as_secs_f64()), "{began:?}");
    assert_eq!((it.get("cwnd-gain"), it.get("pacing-gain")), (0.5, 1.0));
    it.run(0.1);
    assert!(it.in_flight as f64 <= 0.5 * it.bdp() + MSS as f64, "{}", it.in_flight);
    assert_eq!(after(&mut it, 1.0), "probe-bw-cruise");
    let took = it.now.since(began);
    assert!(took > Duration::from_millis(200) && took < Duration::from_millis(320), "{took:?}");
    assert!(it.goodput(1.0) > 9.0, "it goes on as before");
}

/// "Skipping PROBE_RTT Due to Application-Limited Sending".
#[test]
fn a_pause_takes_the_place_of_probe_rtt() {
    let mut it = path(4.0);
    it.reach("probe-bw-cruise");
    it.pause(6.0);
    assert!(it.until(1.0, |it| it.is("idle-restart")));
    assert!(near(it.get("pacing-rate"), 0.99 * it.get("bw"), 1e-9));
    assert!(it.until(1.0, |it| !it.is("idle-restart")));
    it.run(1.0);
    assert!(it.log.iter().all(|(_, phase)| *phase != "probe-rtt"), "{:?}", it.log);
}

/// ACKs come every 20 ms (cases "Achieving Expected STARTUP Bandwidth on a Link With Aggregation" and "Achieving
/// Expected Cruise Bandwidth on a Link With Aggregation").
#[test]
fn bunched_acks_get_room_in_the_window() {
    let mut it = path(4.0);
    it.slot = Some(Duration::from_millis(20));
    it.reach("drain");
    assert!(near(it.get("max-bw"), it.rate, 0.25), "{}", it.get("max-bw") / it.rate);
    it.reach("probe-bw-cruise");
    it.run(1.0);
    let plain = 2.0 * it.get("bw") * it.get("min-rtt");
    assert!(it.get("extra-acked") > 0.25 * it.bdp(), "{} of {}", it.get("extra-acked"), it.bdp());
    assert!(it.cwnd() > plain, "{} {plain}", it.cwnd());
    let goodput = it.goodput(2.0);
    assert!(goodput > 9.5, "{goodput}");
}

/// "Correctly Managing Sub-Packet BDPs": 0.1 Mbit/s and 20 ms are 250 bytes.
#[test]
fn a_tiny_bdp_has_four_segments() {
    let mut it = Bottleneck::new(0.1, 20, 40.0);
    it.reach("probe-bw-cruise");
    assert!(it.cwnd() >= 4.0 * MSS as f64);
    assert!(near(it.get("pacing-rate"), 0.99 * it.rate, 0.05), "{}", it.get("pacing-rate") / it.rate);
    let goodput = it.goodput(4.0);
    assert!(goodput > 0.09, "{goodput}");
}

/// "Increasing Bandwidth 10x and Ensuring Full Bandwidth is Reached", with and without a bound from losses.
#[test]
fn ten_times_the_rate_is_found() {
    for products in [0.5, 4.0] {
        let mut it = path(products);
        it.reach("probe-bw-up");
        it.reach("probe-bw-cruise");
        it.rate *= 10.0;
        it.queue *= 10.0;
        assert!(it.until(12.0, |it| it.get("max-bw") > 0.95 * it.rate), "{products}: {:?}", it.log);
        let goodput = it.goodput(5.0);
        assert!(goodput > 85.0, "{products}: {goodput}");
    }
}

/// "Increasing Bandwidth 10x …" with `inflight_longterm` set: its step doubles in each round of probing.
#[test]
fn the_step_of_inflight_longterm_doubles() {
    let mut it = path(0.5);
    assert!(it.until(30.0, |it| it.get("inflight-longterm").is_finite()));
    it.rate *= 10.0;
    it.queue *= 10.0;
    it.reach("probe-bw-up");
    let mut steps = vec![it.get("probe-up-cnt")];
    while steps.len() < 4 {
        let last = steps[steps.len() - 1];
        assert!(it.until(5.0, |it| it.get("probe-up-cnt") != last), "{steps:?}");
        steps.push(it.get("probe-up-cnt"));
    }
    // The window grows meanwhile, and the volume for a segment more is the window over 1, 2, 4, 8.
    let finite: Vec<_> = steps.into_iter().filter(|step| step.is_finite()).collect();
    assert!(finite.len() >= 2 && finite.windows(2).all(|two| two[1] < 0.75 * two[0]), "{finite:?} {:?}", it.log);
}

/// "Decreasing Bandwidth 10x and Ensuring Max Bandwidth Adapts Down".
#[test]
fn a_tenth_of_the_rate_is_found() {
    let mut it = Bottleneck::new(100.0, 40, 1.0);
    it.reach("probe-bw-up");
    it.reach("probe-bw-cruise");
    it.rate /= 10.0;
    it.queue /= 10.0;
    assert!(it.until(1.0, |it| it.get("bw-shortterm") < 0.75 * it.get("max-bw")), "{:?}", it.control.variables(FLOW));
    assert!(it.until(20.0, |it| near(it.get("max-bw"), it.rate, 0.05)), "{}", it.get("max-bw") / it.rate);
    let goodput = it.goodput(3.0);
    assert!(goodput > 8.5, "{goodput}");
}

/// "Handling Spurious Fast Recovery": losses while probing end it; proven spurious, it begins again.
#[test]
fn a_spurious_recovery_is_undone() {
    let mut it = path(4.0);
    it.reach("probe-bw-up");
    it.run(0.06);
    let before = it.cwnd();
    it.lose_every = 5;
    assert_eq!(after(&mut it, 0.5), "probe-bw-down");
    it.lose_every = 0;
    let bound = it.get("inflight-longterm");
    assert!(bound.is_finite() && it.get("undo-inflight-longterm").is_infinite());
    it.prove_spurious();
    assert!(it.get("inflight-longterm").is_infinite() && it.get("bw-shortterm").is_infinite());
    assert_eq!(it.phase(), "probe-bw-refill");
    assert!(it.until(0.1, |it| it.cwnd() >= 0.99 * before), "{} {before}", it.cwnd());
    assert_eq!(after(&mut it, 0.5), "probe-bw-up");
}

/// A spurious recovery that has ended Startup leads back to it.
#[test]
fn a_spurious_end_of_startup_is_undone() {
    let mut it = Bottleneck::new(100.0, 40, 4.0);
    it.application = Some(0.5 * it.rate);
    it.run(1.0);
    it.lose_every = 20;
    assert_ne!(after(&mut it, 2.0), "startup");
    it.lose_every = 0;
    it.prove_spurious();
    assert_eq!((it.phase(), it.is("full-bw-reached")), ("startup", false));
    assert!(it.get("inflight-longterm").is_infinite());
}

/// "Handling Spurious RTO Recovery".
#[test]
fn a_spurious_timeout_is_undone() {
    let mut it = path(4.0);
    it.reach("probe-bw-up");
    let before = it.cwnd();
    it.time_out();
    assert_eq!((it.phase(), it.cwnd()), ("probe-bw-down", MSS as f64));
    assert!(it.get("inflight-longterm").is_finite());
    it.prove_spurious();
    assert!(it.get("inflight-longterm").is_infinite());
    assert_eq!(it.phase(), "probe-bw-refill");
    assert!(it.until(0.2, |it| it.cwnd() >= 0.9 * before), "{} {before}", it.cwnd());
}

/// A timeout that was none of those: a segment, and the window of before once all is repaired.
#[test]
fn a_timeout_begins_with_a_segment() {
    let mut it = path(4.0);
    it.reach("probe-bw-cruise");
    let before = it.cwnd();
    it.time_out();
    assert_eq!(it.cwnd(), MSS as f64);
    assert!(it.until(0.5, |it| it.cwnd() >= 0.6 * before), "{} {before}", it.cwnd());
}

/// "Entering and Exiting PROBE_RTT During STARTUP".
#[test]
fn probe_rtt_in_startup_goes_back_to_it() {
    let mut it = path(4.0);
    it.application = Some(0.3 * it.rate);
    it.reach("probe-rtt");
    assert!(!it.is("full-bw-reached"));
    assert_eq!(after(&mut it, 1.0), "startup");
}

/// "Handling Loss During PROBE_UP After inflight_longterm is Set".
#[test]
fn loss_while_probing_lowers_the_bound() {
    let mut it = path(1.0);
    assert!(
        it.until(30.0, |it| it.phase() == "probe-bw-up" && it.get("inflight-longterm").is_finite()),
        "{:?}",
        it.log
    );
    let (before, target) = (it.get("inflight-longterm"), it.bdp().min(it.cwnd()));
    it.lose_every = 4;
    assert_eq!(after(&mut it, 0.5), "probe-bw-down");
    let bound = it.get("inflight-longterm");
    assert!(it.is("prev-probe-too-high") && bound <= before + 8.0 * MSS as f64, "{bound} {before}");
    assert!(bound >= 0.7 * 0.95 * target, "not below β of what is wanted: {bound} {target}");
}

/// "Handling Application-Limited Sending During PROBE_REFILL".
#[test]
fn an_application_that_stops_during_refill_lowers_no_rate() {
    let mut it = path(4.0);
    it.reach("probe-bw-refill");
    let before = it.get("max-bw");
    it.application = Some(0.1 * it.rate);
    assert_eq!(after(&mut it, 1.0), "probe-bw-up");
    it.run(0.3);
    assert_eq!((it.get("max-bw"), it.phase()), (before, "probe-bw-up"));
    it.application = None;
    assert_eq!(after(&mut it, 2.0), "probe-bw-down");
    assert!(near(it.get("max-bw"), it.rate, 0.03));
}

/// "Probing for Bandwidth In ProbeBW": 2 % of a flight is borne, more is not; without SACK nothing is.
#[test]
fn two_percent_are_borne() {
    let too_high = |lost, selective| {
        let (at_departure, lost_since) = (Bytes::new(100_000), Bytes::new(lost));
        is_inflight_too_high(&Flight { at_departure, lost_since, selective })
    };
    assert_eq!([too_high(2000, true), too_high(2001, true)], [false, true]);
    assert_eq!([too_high(0, false), too_high(1, false)], [false, true]);
}
