//! Exchanges: everything at once over a lossy, reordering channel.

use super::*;
use crate::ranges::RangeSet;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A packet in the toy network.
enum Packet {
    Data(u64, u64),
    Ack(u64, Vec<(u64, u64)>, Option<(u64, u64)>),
}

/// A sender of `total` bytes with a fixed window and a receiver that acknowledges each packet; the first `faults`
/// packets may be lost, delayed or doubled.
struct Toy {
    r: Recovery,
    rtt: RttEstimator,
    now: Instant,
    network: BTreeMap<(Instant, u64), Packet>,
    sent_packets: u64,
    received: RangeSet,
    rcv_nxt: u64,
    recent: Vec<u64>,
    random: u64,
    loss_percent: u64,
    jitter_ms: u64,
    faults: u64,
    single: bool,
}

impl Toy {
    fn draw(&mut self, n: u64) -> u64 {
        self.random = self.random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.random >> 33) % n
    }

    fn transmit(&mut self, packet: Packet) {
        self.sent_packets += 1;
        let faulty = self.sent_packets < self.faults;
        if faulty && self.draw(100) < self.loss_percent {
            return;
        }
        let jitter = if faulty { self.draw(self.jitter_ms + 1) } else { 0 };
        self.network.insert((self.now + ms(20 + jitter), self.sent_packets), packet);
    }

    fn fill(&mut self, total: u64) {
        // Elsewhere a window of zero in flight lets the first repetition out; here nothing behind it stops counting.
        while self.r.in_flight() < 16 * MSS || (self.single && self.r.next_retransmission().is_some()) {
            if let Some(sent) = self.r.next_retransmission() {
                self.r.on_retransmit(self.now, sent.start, &self.rtt);
                self.transmit(Packet::Data(sent.start, sent.end()));
            } else if self.r.snd_nxt() < total && self.r.snd_nxt() - self.r.snd_una() < 64 * MSS {
                self.new_segment(total);
            } else {
                break;
            }
        }
    }

    fn new_segment(&mut self, total: u64) {
        let start = self.r.snd_nxt();
        let len = (1 + self.draw(MSS)).min(total - start);
        let fin = start + len == total;
        self.r.on_sent(self.now, len as u32, start, if fin { FIN } else { 0 });
        self.transmit(Packet::Data(start, self.r.snd_nxt()));
    }

    fn receive(&mut self, start: u64, end: u64) {
        let fresh = self.received.insert(start, end);
        let dsack = (fresh == 0).then_some((start, end));
        self.rcv_nxt = self.received.end_of(0).unwrap();
        self.recent.retain(|&x| x != start);
        self.recent.insert(0, start);
        self.recent.truncate(8);
        let mut sack = vec![];
        for &x in &self.recent {
            let block = self.received.iter().find(|r| r.0 <= x && x < r.1).unwrap();
            if block.0 > 0 && !sack.contains(&block) && sack.len() < 3 {
                sack.push(block);
            }
        }
        self.transmit(Packet::Ack(self.rcv_nxt, sack, dsack));
    }

    /// An ACK arrives; returns what it delivers.
    fn acknowledge(&mut self, ack: u64, sack: &[(u64, u64)], dsack: Option<(u64, u64)>) -> u64 {
        let is_duplicate = ack == self.r.snd_una() && dsack.is_none();
        let ack = AckIn { ack, sack, dsack, is_duplicate, rtt_from_timestamp: None };
        let phase = self.r.phase();
        let out = self.r.on_ack(self.now, &ack, &self.rtt);
        assert_eq!(out.newly_lost > 0, out.newly_lost_bytes > 0);
        if out.left_recovery {
            assert!(matches!(phase, Phase::Recovery | Phase::Loss));
        }
        if let Some(sample) = out.rtt {
            assert!(sample >= ms(40), "Karn: no sample below the true round trip");
            self.rtt.sample(self.now, sample);
        }
        self.r.rearm(self.now, &self.rtt);
        assert!(self.r.deadline().is_none_or(|at| at >= self.now));
        out.delivered
    }

    /// A timer runs out.
    fn expire(&mut self, at: Instant, total: u64) {
        self.now = at;
        if self.r.on_deadline(self.now, &self.rtt) == Fired::Probe {
            if self.r.snd_nxt() < total {
                self.new_segment(total);
            } else if let Some(sent) = self.r.probe_candidate() {
                self.r.on_retransmit(self.now, sent.start, &self.rtt);
                self.transmit(Packet::Data(sent.start, sent.end()));
            }
        }
    }
}

fn exchange(config: Config, seed: u64, loss_percent: u64, jitter_ms: u64) {
    let total = 120 * MSS;
    let mut toy = Toy {
        r: Recovery::new(config, 1, Instant::ZERO),
        rtt: RttEstimator::new(RtoRule::Linux { min_var: ms(200) }),
        now: Instant::ZERO,
        network: BTreeMap::new(),
        sent_packets: 0,
        received: RangeSet::new(),
        rcv_nxt: 1,
        recent: vec![],
        random: seed,
        loss_percent,
        jitter_ms,
        faults: 600,
        single: config.single_repair,
    };
    toy.received.insert(0, 1);
    let mut delivered = 0;
    let mut steps = 0;
    toy.fill(total);
    while toy.r.snd_una() <= total {
        steps += 1;
        assert!(steps < 20_000, "everything arrives");
        let deadline = toy.r.deadline();
        let arrival = toy.network.first_key_value().map(|(key, _)| *key);
        assert!(deadline.is_some(), "a timer guards what is unacknowledged");
        assert!(deadline.unwrap() >= toy.now, "no deadline in the past");
        match (arrival, deadline) {
            (Some(key), Some(at)) if key.0 <= at => {
                toy.now = key.0;
                match toy.network.remove(&key).unwrap() {
                    Packet::Data(start, end) => toy.receive(start, end),
                    Packet::Ack(ack, sack, dsack) => delivered += toy.acknowledge(ack, &sack, dsack),
                }
            }
            (_, Some(at)) => toy.expire(at, total),
            _ => unreachable!("a deadline exists"),
        }
        assert_eq!(toy.r.totals(), toy.r.recompute());
        assert!(toy.r.in_flight() <= 2 * (toy.r.snd_nxt() - toy.r.snd_una()));
        toy.fill(total);
        assert_eq!(toy.r.totals(), toy.r.recompute());
    }
    assert!(toy.r.is_empty() && toy.r.totals() == (0, 0, 0) && toy.r.deadline().is_none());
    if config.sack {
        assert_eq!(delivered, total, "each number was delivered once");
    } else {
        assert!(delivered >= total);
    }
    if loss_percent == 0 && jitter_ms == 0 {
        assert_eq!((toy.r.retransmitted_segments(), toy.r.rto_count()), (0, 0));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn every_exchange_ends(seed in any::<u64>(), loss in 0u64..40, jitter in 0u64..40, kind in 0usize..6) {
        let config = [
            RACK,
            COUNT,
            NEWRENO,
            SINGLE,
            Config { tlp: true, early_retransmit: true, ..COUNT },
            Config { early_retransmit: true, ..NEWRENO },
        ][kind];
        exchange(config, seed, loss, jitter);
    }
}

#[test]
fn a_clean_path_sees_no_retransmission() {
    for config in [RACK, COUNT, NEWRENO] {
        exchange(config, 1, 0, 0);
    }
}
