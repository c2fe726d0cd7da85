//! The rate of a path itself, as far as ACKs show it.
//!
//! A sample of the delivery rate says how fast a sender was served, and a sender of little data is served slowly by any
//! path. A link that has a queue works without a pause, however: segments that waited in it arrive at the link's rate.
//! So what is delivered between two ACKs that both came late, for data that waited, over the time between them is the
//! path's rate (packet dispersion; C. Dovrolis, P. Ramanathan, D. Moore, *What Do Packet Dispersion Techniques
//! Measure?*, IEEE INFOCOM 2001).

use anabranch_units::{Bytes, Duration, Instant, Rate};

/// The rate of one subflow's path, towards the peer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PathRate {
    rate: Option<Rate>,
    /// The estimate is of a train of two or three segments: the first proper one takes its place.
    rough: bool,
    /// Time at which the train of ACKs under way began, and the bytes delivered by then.
    train: Option<(Instant, u64)>,
}

/// A train shorter than this says little: the peer acknowledges every other segment, and boxes bunch ACKs.
const SHORTEST: u64 = 4;
/// Segments of a train that count where nothing else is known: a rough estimate is better than none.
const ROUGH: u64 = 2;
/// Segments after which a new train begins, so that a rate which changes is seen.
const LONGEST: u64 = 32;

impl PathRate {
    /// Begins with a rate learnt before, until samples correct it.
    pub(crate) fn known(rate: Rate) -> Self {
        PathRate { rate: Some(rate), rough: false, train: None }
    }

    /// The best estimate; `None` while no queue was seen.
    pub(crate) fn get(&self) -> Option<Rate> {
        self.rate
    }

    /// Ends the train: no data is in flight. The link pauses, and the last ACK may have been delayed.
    pub(crate) fn drained(&mut self) {
        self.train = None;
    }

    /// An ACK came, with the RTT of its newest segment if that can be told; `delivered` bytes by now. An RTT above
    /// `min` by an eighth and a millisecond has a queue in it. The estimate rises with a sample at once and falls by a
    /// third of the difference: a delayed ACK makes a path look slow, and nothing makes a link faster than it is.
    pub(crate) fn acked(&mut self, now: Instant, delivered: u64, rtt: Option<Duration>, min: Duration, mss: Bytes) {
        let Some(rtt) = rtt else { return };
        if rtt <= min + min / 8 + Duration::from_millis(1) {
            self.train = None;
            return;
        }
        let (began, before) = *self.train.get_or_insert((now, delivered));
        let carried = Bytes::new(delivered - before);
        let rough = carried < mss.times(SHORTEST);
        if rough && (carried < mss.times(ROUGH) || self.rate.is_some_and(|_| !self.rough)) {
            return;
        }
        let Some(sample) = Rate::of(carried, now.since(began)) else { return };
        let fallen = |known: Rate| known.as_bps() - known.as_bps().saturating_sub(sample.as_bps()) / 3;
        let known = self.rate.filter(|_| !self.rough);
        self.rate = Some(known.map_or(sample, |known| sample.max(Rate::from_bps(fallen(known)))));
        self.rough = rough;
        if carried >= mss.times(LONGEST) {
            self.train = Some((now, delivered));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1000;
    const MIN: Duration = Duration::from_millis(20);

    fn rtt(ms: u64) -> Option<Duration> {
        Some(Duration::from_millis(ms))
    }

    /// Feeds `acks` ACKs of a segment each, `gap` ms apart, from `start` ms and `delivered` segments on.
    fn train(path: &mut PathRate, start: u64, delivered: u64, acks: u64, gap: u64, rtt: Option<Duration>) {
        for n in 0..acks {
            let now = Instant::ZERO + Duration::from_millis(start + gap * n);
            path.acked(now, MSS * (delivered + n), rtt, MIN, Bytes::new(MSS));
        }
    }

    fn mbps(path: &PathRate) -> Option<f64> {
        path.get().map(Rate::as_mbps)
    }

    /// 1000 bytes each 4 ms are 2 Mbit/s, whenever the flight began.
    #[test]
    fn segments_that_waited_arrive_at_the_rate_of_the_link() {
        let mut path = PathRate::default();
        train(&mut path, 30, 1, 2, 4, rtt(30));
        assert_eq!(mbps(&path), None, "a segment since the first ACK");
        train(&mut path, 37, 3, 1, 4, rtt(37));
        assert_eq!(mbps(&path), Some(2.285_714), "a rough estimate");
        train(&mut path, 42, 4, 1, 4, rtt(42));
        train(&mut path, 46, 5, 1, 4, rtt(46));
        assert_eq!(mbps(&path), Some(2.0), "the first of four segments takes its place");
        // From then on a short train says nothing.
        train(&mut path, 80, 6, 1, 4, rtt(20));
        train(&mut path, 90, 7, 4, 1, rtt(30));
        assert_eq!(mbps(&path), Some(2.0));
    }

    #[test]
    fn without_a_queue_nothing_is_learnt() {
        let mut path = PathRate::default();
        train(&mut path, 30, 1, 100, 4, rtt(23)); // 20 + 2.5 + 1 ms is the bound
        train(&mut path, 500, 101, 100, 4, None);
        assert_eq!(mbps(&path), None);
        // A pause between two queues is not the link's.
        for start in [1000, 2000, 3000] {
            train(&mut path, start, start, 2, 4, rtt(30));
            train(&mut path, start + 20, start + 2, 1, 4, rtt(20));
        }
        for start in [4000, 5000, 6000] {
            train(&mut path, start, start, 2, 4, rtt(30));
            path.drained();
        }
        assert_eq!(mbps(&path), None);
    }

    #[test]
    fn rises_at_once_and_falls_by_thirds() {
        let mut path = PathRate::default();
        train(&mut path, 0, 1, 6, 4, rtt(30));
        train(&mut path, 100, 7, 1, 4, rtt(20));
        train(&mut path, 200, 8, 5, 1, rtt(30));
        assert_eq!(mbps(&path), Some(8.0));
        train(&mut path, 300, 13, 1, 4, rtt(20));
        train(&mut path, 400, 14, 5, 8, rtt(30)); // 1 Mbit/s
        assert_eq!(mbps(&path), Some(5.666_667));
    }

    /// From 2 to 1 Mbit/s within one queue: after at most 32 segments a train of the new rate begins.
    #[test]
    fn a_change_of_the_rate_is_seen_while_the_queue_stands() {
        let mut path = PathRate::default();
        train(&mut path, 0, 1, 20, 4, rtt(30));
        train(&mut path, 80, 21, 100, 8, rtt(30));
        assert!(mbps(&path).is_some_and(|rate| rate < 1.01), "{path:?}");
    }
}
