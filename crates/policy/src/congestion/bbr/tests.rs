use super::*;
use crate::congestion::{FlowKey, RateSample};
use anabranch_units::{Bytes, SubflowId};

const MSS: f64 = 1000.0;
/// Rate of the path in most tests: 10 Mbit/s, 1250 bytes per millisecond.
const RATE: Rate = Rate::from_mbps(10);
const RTT: Duration = Duration::from_millis(100);
/// 10 Mbit/s · 100 ms.
const BDP: f64 = 125_000.0;
/// Three quanta of two segments.
const SLACK: f64 = 6_000.0;

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// BBR on one subflow, the window that it sets, and how much was delivered.
struct Sender {
    bbr: Bbr,
    cwnd: f64,
    delivered: u64,
}

impl Sender {
    fn new() -> Self {
        let bbr = Bbr::default();
        Sender { bbr, cwnd: 10.0 * MSS, delivered: 0 }
    }

    fn flow(&self) -> Flow {
        let (id, ssthresh) = (SubflowId(0), Window::INFINITE);
        Flow {
            id,
            key: FlowKey::nth(0),
            mss: Bytes::new(MSS as u64),
            cwnd: Window::new(self.cwnd),
            ssthresh,
            srtt: Some(RTT),
            recovering: false,
            counted: true,
        }
    }

    fn path(&mut self) -> &mut Path {
        let flow = self.flow();
        self.bbr.paths.of(&flow)
    }

    /// An ACK of what was sent one round ago, so that each ACK ends a round.
    fn ack(&mut self, now: Instant, rate: Rate, in_flight: f64) {
        let ack = self.round(rate, in_flight);
        self.take(now, &ack);
    }

    fn round(&mut self, rate: Rate, in_flight: f64) -> Ack {
        let prior_delivered = self.delivered;
        self.delivered += 1000;
        Ack {
            acked: Bytes::new(1000),
            srtt: Some(RTT),
            rtt: Some(RTT),
            in_flight_before: Bytes::new(in_flight as u64 + 1000),
            in_flight: Bytes::new(in_flight as u64),
            delivered: self.delivered,
            sample: Some(RateSample {
                prior_delivered,
                over: Some(rate.time_for(Bytes::new(1000))),
                ..RateSample::default()
            }),
            ..Ack::default()
        }
    }

    fn take(&mut self, now: Instant, ack: &Ack) {
        let flow = self.flow();
        self.cwnd = self.bbr.on_ack(now, &flow, ack).as_f64();
    }

    fn pacing(&self) -> f64 {
        self.bbr.model(&self.flow(), None).pacing.as_mbps()
    }

    /// Returns a sender in ProbeBW on the path of 10 Mbit/s, at 1 s.
    fn cruising() -> Self {
        let mut sender = Sender::new();
        sender.cwnd = 2.0 * BDP + SLACK;
        for n in 0..6 {
            sender.ack(at(100 * n), RATE, 2.0 * BDP);
        }
        assert_eq!(sender.path().mode, Mode::Drain);
        sender.ack(at(1000), RATE, BDP);
        assert!(matches!(sender.path().mode, Mode::ProbeBw(_)));
        sender
    }
}

#[test]
fn begins_with_the_initial_window_in_a_round_trip_and_the_gain_of_startup() {
    let sender = Sender::new();
    let pacing = |srtt| sender.bbr.model(&sender.flow(), srtt).pacing.as_mbps();
    assert!((pacing(Some(RTT)) - 2.308312).abs() < 1e-5); // 2.885 · 80 kbit / 100 ms
    assert!((pacing(None) - 230.8312).abs() < 1e-3); // of an RTT of 1 ms
    assert_eq!(sender.bbr.model(&sender.flow(), None).bdp, None);
}

/// The rate doubles up to 10 Mbit/s: no third round without growth by a quarter before there were three.
#[test]
fn startup_ends_when_three_rounds_bring_no_quarter_more() {
    let mut sender = Sender::new();
    for (n, mbps, filled) in [(0, 1, false), (1, 2, false), (2, 4, false), (3, 8, false), (4, 9, false), (5, 10, false)]
    {
        sender.ack(at(100 * n), Rate::from_mbps(mbps), 50_000.0);
        assert_eq!(sender.path().filled, filled, "round {n}");
        assert!((sender.pacing() - (2.885_390 * mbps as f64)).abs() < 1e-3, "round {n}: {}", sender.pacing());
    }
    // 10 is a quarter more than 8: it counts from there.
    for n in 6..8 {
        sender.ack(at(100 * n), Rate::from_mbps(12), 2.0 * BDP);
        assert_eq!(sender.path().mode, Mode::Startup);
    }
    sender.ack(at(800), Rate::from_mbps(12), 2.0 * BDP);
    assert_eq!(sender.path().mode, Mode::Drain);
    assert!((sender.pacing() - 12.0 / 2.885_390).abs() < 1e-3);
    // One product is 150 kB.
    sender.ack(at(900), Rate::from_mbps(12), 150_000.0 + SLACK + 1.0);
    assert_eq!(sender.path().mode, Mode::Drain);
    sender.ack(at(1000), Rate::from_mbps(12), 150_000.0 + SLACK - 1.0);
    assert!(matches!(sender.path().mode, Mode::ProbeBw(phase) if phase != 1));
}

#[test]
fn rounds_of_a_sender_with_too_little_to_send_end_no_startup_and_lower_no_rate() {
    let mut sender = Sender::new();
    for n in 0..20 {
        let mut ack = sender.round(Rate::from_mbps(2), 5000.0);
        ack.sample.as_mut().expect("it has one").app_limited = n > 0;
        sender.take(at(100 * n), &ack);
    }
    assert!(!sender.path().filled && sender.path().mode == Mode::Startup);
    // The round of the only sample that counts is long past, and still nothing replaces it but what is faster.
    assert_eq!(sender.path().bandwidth.best(), 250_000.0);
    let mut ack = sender.round(Rate::from_mbps(4), 5000.0);
    ack.sample.as_mut().expect("it has one").app_limited = true;
    sender.take(at(2000), &ack);
    assert_eq!(sender.path().bandwidth.best(), 500_000.0);
}

#[test]
fn the_cycle_probes_drains_and_cruises() {
    let mut sender = Sender::cruising();
    sender.path().mode = Mode::ProbeBw(0);
    sender.path().phase_since = at(1000);
    for (ms, in_flight, phase, mbps) in [
        (1090, BDP, 0, 12.5),
        (1110, 1.2 * BDP, 0, 12.5),         // a round trip long, and not enough in flight
        (1120, 1.25 * BDP + SLACK, 1, 7.5), // it is now
        (1130, 1.1 * BDP + SLACK, 1, 7.5),
        (1140, BDP + SLACK - MSS, 2, 10.0), // drained before a round trip was over
        (1230, BDP, 2, 10.0),
        (1241, BDP, 3, 10.0),
        (1342, BDP, 4, 10.0),
        (1443, BDP, 5, 10.0),
        (1544, BDP, 6, 10.0),
        (1645, BDP, 7, 10.0),
        (1746, BDP, 0, 12.5),
    ] {
        sender.ack(at(ms), RATE, in_flight);
        assert_eq!(sender.path().mode, Mode::ProbeBw(phase), "at {ms} ms");
        assert!((sender.pacing() - mbps).abs() < 1e-6, "at {ms} ms: {}", sender.pacing());
        assert!(sender.cwnd <= 2.0 * BDP + SLACK + 1e-6);
    }
    // A loss ends the probing as well.
    let mut ack = sender.round(RATE, BDP);
    ack.lost = Bytes::new(1000);
    sender.take(at(1900), &ack);
    assert_eq!(sender.path().mode, Mode::ProbeBw(1));
    let model = sender.bbr.model(&sender.flow(), None);
    assert_eq!(model.bdp, Some(Bytes::new(BDP as u64)));
}

#[test]
fn the_window_grows_to_two_products_and_no_further() {
    let mut sender = Sender::cruising();
    for n in 0..400 {
        sender.ack(at(1001 + n), RATE, BDP);
    }
    assert!((sender.cwnd - (2.0 * BDP + SLACK)).abs() < 1e-6);
}

/// Without a shorter RTT for 10 s: four segments for 200 ms and a round, then the previous state.
#[test]
fn looks_for_the_smallest_rtt_when_it_is_ten_seconds_old() {
    let mut sender = Sender::cruising();
    let before = sender.cwnd;
    let longer = |sender: &mut Sender, now, in_flight, rate| {
        let mut ack = sender.round(rate, in_flight);
        ack.rtt = Some(Duration::from_millis(110));
        sender.take(now, &ack);
    };
    longer(&mut sender, at(10_999), BDP, RATE);
    assert_eq!(sender.path().rtprop, Some(RTT));
    assert_ne!(sender.path().mode, Mode::ProbeRtt);
    longer(&mut sender, at(11_001), BDP, RATE);
    assert_eq!(sender.path().mode, Mode::ProbeRtt);
    assert_eq!(sender.path().rtprop, Some(Duration::from_millis(110)), "the latest, for want of a better one");
    assert_eq!(sender.cwnd, 4.0 * MSS);
    longer(&mut sender, at(11_100), 5.0 * MSS, RATE);
    assert_eq!(sender.path().probe_done, None, "too much in flight still");
    longer(&mut sender, at(11_200), 4.0 * MSS, RATE);
    // 20 rounds at a tenth of the rate, which say nothing of the path; a shorter RTT.
    for n in 0..19 {
        sender.ack(at(11_210 + 10 * n), Rate::from_mbps(1), 3.0 * MSS);
        assert_eq!((sender.path().mode, sender.cwnd), (Mode::ProbeRtt, 4.0 * MSS));
    }
    sender.ack(at(11_401), Rate::from_mbps(1), 3.0 * MSS);
    assert!(matches!(sender.path().mode, Mode::ProbeBw(_)));
    assert_eq!((sender.path().rtprop, sender.path().rtprop_at), (Some(RTT), at(11_401)));
    assert_eq!(sender.path().bandwidth.best(), 1_250_000.0);
    assert!(sender.cwnd >= before.min(2.0 * BDP), "{} of {before}", sender.cwnd);
}

#[test]
fn a_recovery_conserves_packets_for_a_round_and_gives_the_window_back() {
    let mut sender = Sender::cruising();
    sender.cwnd = 200_000.0;
    sender.bbr.on_fast_retransmit(at(1001), &sender.flow());
    // The ACK that began it found 10 segments lost.
    let ack = Ack { lost: Bytes::new(10_000), in_flight: Bytes::new(150_000), sample: None, ..sender.round(RATE, 0.0) };
    sender.take(at(1001), &ack);
    assert_eq!((sender.cwnd, sender.path().repair), (151_000.0, Repair::Conserving));
    // Within the round: as much as arrives.
    let mut ack = sender.round(RATE, 150_000.0);
    ack.sample.as_mut().expect("it has one").prior_delivered = 0;
    sender.take(at(1010), &ack);
    assert_eq!((sender.cwnd, sender.path().repair), (151_000.0, Repair::Conserving));
    // The next round grows, less what is lost.
    let mut ack = sender.round(RATE, 120_000.0);
    ack.lost = Bytes::new(3_000);
    sender.take(at(1110), &ack);
    assert_eq!((sender.cwnd, sender.path().repair), (149_000.0, Repair::Growing));
    sender.bbr.on_recovered(at(1200), &sender.flow());
    sender.ack(at(1200), RATE, 100_000.0);
    assert_eq!((sender.cwnd, sender.path().repair), (201_000.0, Repair::None));
}

#[test]
fn a_timeout_begins_with_a_segment_and_ends_with_the_window_of_before() {
    let mut sender = Sender::cruising();
    sender.cwnd = 200_000.0;
    sender.bbr.on_rto(at(1500), &sender.flow());
    sender.cwnd = MSS;
    sender.ack(at(1600), RATE, 0.0);
    assert_eq!(sender.cwnd, 4.0 * MSS);
    sender.ack(at(1700), RATE, 2000.0);
    assert_eq!(sender.cwnd, 5.0 * MSS);
    sender.bbr.on_recovered(at(1800), &sender.flow());
    sender.ack(at(1800), RATE, 2000.0);
    assert_eq!(sender.cwnd, 201_000.0);
    assert!((sender.pacing() - 10.0).abs() < 3.0, "a timeout leaves the model alone: {}", sender.pacing());
}

#[test]
fn after_a_pause_it_paces_at_the_bandwidth_and_puts_probe_rtt_off() {
    let mut sender = Sender::cruising();
    sender.path().mode = Mode::ProbeBw(0);
    sender.bbr.on_restart(at(20_000), &sender.flow());
    assert!((sender.pacing() - 10.0).abs() < 1e-6);
    sender.ack(at(20_100), RATE, BDP);
    assert_ne!(sender.path().mode, Mode::ProbeRtt);
}
