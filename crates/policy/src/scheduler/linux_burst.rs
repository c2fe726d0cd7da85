//! Linux burst: the default of the kernel's own MPTCP (5.10 and later), a cheap relative of BLEST.
//!
//! Each subflow has a send queue, which data enters before its congestion window lets it leave. What is in the queue or
//! in flight takes `linger = queued / pace` to leave. The rule picks the subflow with the least, of all usable ones. If
//! the pick's send buffer is full it waits: that is the idea of BLEST. Otherwise the pick's queue gets a burst of
//! 65,428 bytes, or what the peer's window still admits if that is less, and its average pace becomes
//! ```text
//! (average · queued + pace · burst) / (queued + burst)
//! ```
//! Then it picks anew. Data that is in a queue stays there, whatever room others have. The pace is what congestion
//! control paces at or, if it does not, what Linux would: [`SubflowView::pace`].
//!
//! From Linux 6.18: `mptcp_subflow_get_send` and `__subflow_push_pending` (`net/mptcp/protocol.c`). Send buffers are
//! those of [`send_buffer`].
//!
//! - What a queue holds is memory (`sk_wmem_queued`): payload, and 832 bytes for each record of segments that left
//!   together. Those are what the pace brings in a 1,024th of a second (`tcp_tso_autosize`), at least 1.25 and at most
//!   44. On 6.18 `ss` showed 700 to 900 bytes for each segment at 3 to 10 Mbit/s, 340 at 30 and 120 at 100, of which up
//!   to a half is of unsent data: to a slow path its queue looks half as long again.
//! - Data moves by page fragments of 32,728 bytes, and only then is it asked whether burst and buffer admit more. So a
//!   queue may exceed its buffer by a burst.
//! - A subflow's send buffer holds `sndbuf_expand` windows with `segment_memory` for each segment.
//! - A subflow with at least `subflow_lowat` bytes that wait unsent is full too; or with what its window exceeds a
//!   burst by, and until its first loss with a burst or a window, if that is more. Linux sets no such limit on
//!   subflows, but congestion control may: those of `anabranch kernel` set it to one segment, and `sndbuf_expand` to 8.
//! - The connection's buffer is the sum of those and 4 KiB. It holds what the peer has not acknowledged at the data
//!   level, in queues or not. When it is full the application sleeps until a third of it is free.
//!
//! So a short burst goes to one subflow, which may need several round trips for it, and a subflow that is many times
//! slower is given 65 kB at a time, which it carries window by window while the connection's buffer fills behind them.
//!
//! A queue is a tag on unsent bytes: no segment moves before it is sent. What waits for a subflow that is no longer
//! usable is put into the others' queues.
//!
//! Differences: `subflow_lowat` also limits a subflow without others, which the programs leave alone, and at once for
//! large windows, where they are up to a factor of two behind. Buffers grow with the window, in Linux only while the
//! application sleeps. What Linux repeats at the data level while it waits in a queue, we leave there. When nothing is
//! in flight nothing would end a wait, so the fastest subflow with room sends the first byte. Stale subflows are not
//! usable anyway.

use super::per_subflow::PerSubflow;
use super::tags::{Tags, places};
use super::{Entry, Scheduler, ack_due};
use crate::registry::{Number, Params, number};
use crate::send_buffer::{self, EXPAND};
use crate::{Decision, Event, SubflowView, View};
use anabranch_units::{Bytes, Dsn, Instant};

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "linux-burst",
    "64 kB at a time into the least lingering send queue of all; waits if that is full",
    include_str!("linux_burst.rs"),
    |p| Box::new(LinuxBurst::new(p)),
)
.paper("Linux 5.10 and later, default")
.parameters(&[SEGMENT_MEMORY.parameter(), SNDBUF_EXPAND.parameter(), SUBFLOW_LOWAT.parameter()]);

/// The least lingering queue, in bursts.
pub struct LinuxBurst {
    /// Send-buffer memory of a segment.
    segment: u64,
    /// Windows that a send buffer holds.
    expand: f64,
    /// Unsent bytes at which a subflow is full.
    subflow_lowat: Bytes,
    queues: PerSubflow<Queue>,
    tags: Tags,
    connection: Option<Connection>,
}

/// State of a subflow besides the tags of its queue.
#[derive(Clone, Copy)]
struct Queue {
    /// Average [bit/s]; 0 before there is one.
    pace: f64,
    /// Size of the send buffer.
    buffer: Bytes,
}

/// The connection's send buffer.
#[derive(Clone, Copy)]
struct Connection {
    /// Behind all that is in a queue or was sent.
    assigned: Dsn,
    /// Behind all that the application had room for.
    written: Dsn,
}

impl LinuxBurst {
    /// Creates it with the parameters of one connection.
    pub fn new(params: &Params) -> Self {
        LinuxBurst {
            segment: SEGMENT_MEMORY.of(params) as u64,
            expand: SNDBUF_EXPAND.of(params),
            subflow_lowat: Bytes::new(SUBFLOW_LOWAT.of(params) as u64),
            queues: PerSubflow::default(),
            tags: Tags::default(),
            connection: None,
        }
    }

    /// Takes the subflows of the view. A joining subflow finds the send buffers of the others full.
    fn follow(&mut self, view: &View<'_>) {
        self.queues.follow(view.subflows, |_| Queue { pace: 0.0, buffer: Bytes::ZERO });
        for (queue, subflow) in self.queues.iter_mut().zip(view.subflows) {
            if queue.pace == 0.0 {
                queue.pace = subflow.pace().as_bps() as f64;
            }
            let segment = self.segment.max(subflow.mss.get());
            let window = subflow.cwnd_segments();
            queue.buffer = send_buffer::grown(queue.buffer, self.expand, window, segment, send_buffer::LARGEST);
        }
        if !self.tags.is_of(view) {
            let queues = &self.queues;
            self.tags.adopt(view, |tags| pick(queues, tags, view, |_| true));
            if view.subflows.iter().any(is_new) {
                self.fill(view, |subflow| !is_new(subflow));
            }
        }
    }

    /// Moves data into the queues of these subflows until the pick's buffer is full or there is no more.
    fn fill(&mut self, view: &View<'_>, eligible: impl Fn(&SubflowView) -> bool) {
        let mut connection = self.connection.unwrap_or(Connection { assigned: view.data_una, written: view.data_una });
        if self.tags.total().is_zero() || connection.assigned.before(view.unsent_from) {
            connection.assigned = view.unsent_from;
        }
        let buffer = self.queues.iter().fold(send_buffer::SMALLEST, |sum, queue| sum + queue.buffer);
        if send_buffer::is_writable(buffer, past(view.data_una, connection.written)) {
            connection.written = view.data_una + buffer.get();
        }
        loop {
            let admitted = view.sendable.saturating_sub(self.tags.total());
            let mut waiting = admitted.min(Bytes::new(past(connection.assigned, connection.written)));
            let Some(place) = pick(&self.queues, &self.tags, view, &eligible).filter(|_| !waiting.is_zero()) else {
                break;
            };
            let subflow = &view.subflows[place];
            if self.is_full(place, subflow) {
                break;
            }
            let queued = memory(&self.tags, place, subflow);
            let queue = &mut self.queues[place];
            let mut burst = BURST.min(admitted);
            let weights = (queued.as_f64(), burst.as_f64());
            let now = subflow.pace().as_bps() as f64;
            queue.pace = (queue.pace * weights.0 + now * weights.1) / (weights.0 + weights.1);
            while !burst.is_zero() && !waiting.is_zero() && !self.is_full(place, subflow) {
                let fragment = FRAGMENT.min(waiting);
                self.tags.push(place, fragment);
                connection.assigned = connection.assigned + fragment.get();
                burst = burst.saturating_sub(fragment);
                waiting = waiting.saturating_sub(fragment);
            }
        }
        self.connection = Some(connection);
    }

    /// Returns true if the subflow at `place` is given no more.
    fn is_full(&self, place: usize, subflow: &SubflowView) -> bool {
        let queue = &self.queues[place];
        memory(&self.tags, place, subflow) >= queue.buffer || self.tags.queued(place) >= self.lowat(subflow)
    }

    /// Unsent bytes with which it is full.
    fn lowat(&self, subflow: &SubflowView) -> Bytes {
        match subflow.ssthresh {
            None => self.subflow_lowat.max(BURST).max(subflow.cwnd),
            Some(_) => self.subflow_lowat.max(subflow.cwnd.saturating_sub(BURST)),
        }
    }
}

impl Scheduler for LinuxBurst {
    fn decide(&mut self, _now: Instant, view: &View<'_>) -> Decision {
        self.tags.truncate(view.unsent);
        self.follow(view);
        self.fill(view, |_| true);
        match self.tags.first_of(places(view, SubflowView::has_room)) {
            Some((place, skip)) if view.admits(skip, view.subflows[place].mss) => {
                Decision::Send { on: view.subflows[place].id, skip }
            }
            _ if view.subflows.iter().any(ack_due) => Decision::WAIT,
            _ => view.fastest_with_room().map_or(Decision::WAIT, |fastest| Decision::send(fastest.id)),
        }
    }

    fn observe(&mut self, _now: Instant, event: &Event) {
        if let Event::Sent { dsn, skip, length, .. } = *event {
            self.tags.remove(skip, length);
            if let Some(connection) = &mut self.connection
                && connection.assigned.before(dsn + length.get())
            {
                connection.assigned = dsn + length.get();
            }
        }
    }
}

/// The place of the least lingering queue of these subflows.
fn pick(
    queues: &PerSubflow<Queue>,
    tags: &Tags,
    view: &View<'_>,
    eligible: impl Fn(&SubflowView) -> bool,
) -> Option<usize> {
    let mut best: Option<(usize, f64)> = None;
    for (place, (queue, subflow)) in queues.iter().zip(view.subflows).enumerate() {
        // A subflow without room and without data in flight is left out: no ACK would end the wait.
        if queue.pace == 0.0 || !eligible(subflow) || !(subflow.has_room() || ack_due(subflow)) {
            continue;
        }
        let linger = memory(tags, place, subflow).as_f64() / queue.pace;
        if best.is_none_or(|(_, least)| linger < least) {
            best = Some((place, linger));
        }
    }
    best.map(|(place, _)| place)
}

/// Memory of the queue of the subflow at `place`, with what was sent and is not acknowledged (`sk_wmem_queued`).
fn memory(tags: &Tags, place: usize, subflow: &SubflowView) -> Bytes {
    let sent = subflow.sent.saturating_sub(subflow.acked);
    let burst = subflow.pace().as_bps() as f64 / 8.0 * BURST_TIME;
    let together = (burst / subflow.mss.as_f64().max(1.0)).clamp(LEAST_TOGETHER, MOST_TOGETHER);
    let records = sent as f64 / (subflow.mss.as_f64().max(1.0) * together);
    tags.queued(place) + Bytes::new(sent.saturating_add((records * RECORD) as u64))
}

/// Returns true if it has carried no data so far.
fn is_new(subflow: &SubflowView) -> bool {
    subflow.last_sent.is_none()
}

/// Bytes from `from` to `to`; 0 if `to` comes first.
fn past(from: Dsn, to: Dsn) -> u64 {
    to.distance(from).max(0) as u64
}

/// Largest burst of one pick (`MPTCP_SEND_BURST_SIZE`).
const BURST: Bytes = Bytes::new(65_428);
/// A fragment of 32 KiB without its `struct mptcp_data_frag`.
const FRAGMENT: Bytes = Bytes::new(32_728);

const SEGMENT_MEMORY: Number = number(
    "segment_memory",
    "memory a send buffer provides per segment: 2304, or 4352 in kernels built for long link headers",
    send_buffer::SEGMENT_MEMORY as f64,
    1.0..=65_536.0,
)
.in_unit("B");

const SNDBUF_EXPAND: Number =
    number("sndbuf_expand", "congestion windows that a send buffer holds; 3 with BBR", EXPAND, 1.0..=1024.0);

/// Memory of a record of sent segments besides their payload: `SKB_TRUESIZE` of a header.
const RECORD: f64 = 832.0;
/// Time of what leaves together in one record \[s\] (`tcp_tso_autosize`), and its segments at least and at most. The
/// least is what `ss` showed of a kernel at 3 and 10 Mbit/s: 1 to 1.8.
const BURST_TIME: f64 = 1.0 / 1024.0;
const LEAST_TOGETHER: f64 = 1.25;
const MOST_TOGETHER: f64 = 44.0;

/// As the kernel's "not set", UINT_MAX.
const NO_LIMIT: f64 = u32::MAX as f64;

const SUBFLOW_LOWAT: Number = number(
    "subflow_lowat",
    "unsent bytes with which a subflow gets no more (`TCP_NOTSENT_LOWAT` of the subflow)",
    NO_LIMIT,
    1.0..=NO_LIMIT,
)
.in_unit("B");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::{SCHEDULERS, Value};
    use crate::scheduler::testing::*;
    use anabranch_units::{Rate, SubflowId};

    fn linux_burst() -> LinuxBurst {
        limited(&[])
    }

    fn limited(parameters: &[(&str, f64)]) -> LinuxBurst {
        let entry = SCHEDULERS.iter().find(|entry| entry.name == "linux-burst").expect("it is registered");
        let given = parameters.iter().map(|(name, value)| (name.to_string(), Value::Number(*value))).collect();
        LinuxBurst::new(&entry.params(&given).expect("they are in range"))
    }

    /// Returns an old subflow past its first loss, with these segments in flight.
    fn busy(id: SubflowId, srtt_ms: u64, cwnd: u64, in_flight: u64) -> SubflowView {
        let after_loss = SubflowView { ssthresh: Some(segments(1)), ..subflow(id, srtt_ms, cwnd, in_flight) };
        let sent = 1_000_000 + segments(in_flight).get();
        SubflowView { sent, acked: 1_000_000, last_sent: Some(at(0)), ..after_loss }
    }

    fn queued(burst: &LinuxBurst) -> [u64; 2] {
        [0, 1].map(|place| burst.tags.queued(place).get())
    }

    fn send(on: SubflowId, skip: u64) -> Decision {
        Decision::Send { on, skip: Bytes::new(skip) }
    }

    fn sent(burst: &mut LinuxBurst, on: SubflowId, dsn: u64, skip: u64) {
        let (dsn, skip) = (Dsn::new(dsn), Bytes::new(skip));
        burst.observe(at(0), &Event::Sent { on, dsn, skip, length: segments(1) });
    }

    /// Windows of 10 in 10 and 100 ms. The first subflow takes a burst of 15 to 50 segments whole, although its window
    /// has room for ten: a 17-ms matter for 30 of them, where the kernel needs 21 to 27, and 50 ms by the other.
    #[test]
    fn a_short_burst_goes_to_one_subflow_whatever_its_window() {
        for total in [10, 15, 30, 50] {
            let mut burst = linux_burst();
            let idle = [busy(FAST, 10, 10, 0), busy(SLOW, 100, 10, 0)];
            assert_eq!(burst.decide(at(0), &view(&idle, total)), Decision::send(FAST));
            assert_eq!(queued(&burst), [1000 * total, 0]);
            let full = [busy(FAST, 10, 10, 10), idle[1]];
            for segment in 0..10 {
                sent(&mut burst, FAST, 1 + 1000 * segment, 0);
            }
            let rest = View { unsent_from: Dsn::new(10_001), ..view(&full, total - 10) };
            assert_eq!(burst.decide(at(0), &rest), Decision::WAIT, "{total}");
        }
    }

    /// Windows of 10 in 10 and 40 ms, so paces of 1.2 and 0.3 segments per ms. Both buffers are 2 · 10 · 2,304 = 46,080
    /// bytes, the connection's is 4,096 more than both, 96,256. The fast queue gets two fragments, the slow one, which
    /// is empty, the rest of the 96,256.
    #[test]
    fn the_least_lingering_queue_gets_a_burst() {
        let mut burst = linux_burst();
        let idle = [busy(FAST, 10, 10, 0), busy(SLOW, 40, 10, 0)];
        assert_eq!(burst.decide(at(0), &view(&idle, 500)), Decision::send(FAST));
        assert_eq!(queued(&burst), [2 * 32_728, 96_256 - 2 * 32_728]);
        // The slow one begins behind what waits for the fast one.
        let full = [busy(FAST, 10, 10, 10), idle[1]];
        assert_eq!(burst.decide(at(0), &view(&full, 500)), send(SLOW, 65_456));
    }

    /// Same as above, with these numbers of segments in flight: the queue that lingers less is picked, and the buffer
    /// of the pick is full or not. Each takes 1,000 + 832 / 1.25 bytes of memory: 28 and 8 of them linger 38.9 and 44.4
    /// ms, and 28 are full, 27 are not.
    #[test]
    fn a_full_pick_is_waited_for() {
        for (fast, slow, expected) in [
            (28, 8, [0, 0]),               // 38.9 < 44.4, and 46,636 > 46,080
            (28, 6, [0, 2 * 32_728]),      // 38.9 > 33.3; then both are full
            (27, 8, [32_728, 2 * 32_728]), // 37.5 < 44.4, full with one fragment; then 64.7 > 44.4
            (27, 40, [32_728, 0]),         // 37.5 < 222; then 64.7 < 222
        ] {
            let mut burst = linux_burst();
            let pair = [busy(FAST, 10, 10, fast), busy(SLOW, 40, 10, slow)];
            // The connection's buffer does not bind.
            burst.connection = Some(Connection { assigned: Dsn::new(1), written: Dsn::new(1_000_000) });
            burst.decide(at(0), &view(&pair, 500));
            assert_eq!(queued(&burst), expected, "{fast} {slow}");
        }
    }

    /// Buffers of 46,080 each and 4,096: 96,256. What is written is 96,256 until no more than two thirds, 64,170, of it
    /// are not acknowledged.
    #[test]
    fn the_application_sleeps_until_a_third_of_the_connections_buffer_is_free() {
        let mut burst = linux_burst();
        let pair = [busy(FAST, 10, 10, 0), busy(SLOW, 40, 10, 0)];
        burst.decide(at(0), &view(&pair, 500));
        for (una, written) in [(32_086, 96_257), (32_087, 96_256 + 32_087)] {
            burst.decide(at(10), &View { data_una: Dsn::new(una), ..view(&pair, 500) });
            assert_eq!(burst.connection.map(|connection| connection.written), Some(Dsn::new(written)), "{una}");
        }
    }

    /// Each queue is empty once, and both buffers and the connection's have room for more.
    #[test]
    fn a_subflow_with_unsent_data_gets_no_more() {
        for (parameters, each) in
            [(&[("subflow_lowat", 1.0)][..], 32_728), (&[("subflow_lowat", 32_729.0)], 2 * 32_728)]
        {
            let mut burst = limited(parameters);
            let idle = [busy(FAST, 10, 20, 0), busy(SLOW, 40, 20, 0)];
            burst.decide(at(0), &view(&idle, 500));
            assert_eq!(queued(&burst), [each; 2], "{parameters:?}");
        }
    }

    #[test]
    fn a_send_buffer_grows_with_the_window_and_does_not_shrink() {
        let (mut burst, mut larger) = (linux_burst(), limited(&[("sndbuf_expand", 8.0)]));
        for (cwnd, buffer, four_times) in
            [(1, 46_080, 184_320), (145, 668_160, 2_672_640), (10, 668_160, 2_672_640), (5_000, 4 << 20, 4 << 20)]
        {
            let alone = [busy(FAST, 10, cwnd, 0)];
            burst.follow(&view(&alone, 500));
            larger.follow(&view(&alone, 500));
            assert_eq!([burst.queues[0].buffer.get(), larger.queues[0].buffer.get()], [buffer, four_times]);
        }
    }

    /// The window may admit less than a burst.
    #[test]
    fn nothing_is_queued_that_the_window_does_not_admit() {
        let mut burst = linux_burst();
        let pair = [busy(FAST, 10, 10, 0), busy(SLOW, 40, 10, 0)];
        burst.decide(at(0), &View { sendable: segments(3), ..view(&pair, 500) });
        assert_eq!(queued(&burst), [3000, 0]);
    }

    /// 20 segments in flight are 31,359 bytes of memory, as 1.46 leave together. The pace is then (6 · 31.359 + 12 ·
    /// 65.428) / 96.787 = 10.056 Mbit/s, by a script of our own.
    #[test]
    fn the_pace_is_averaged_over_what_is_queued() {
        let mut burst = linux_burst();
        let paced = |mbps| SubflowView { pacing: Some(Rate::from_mbps(mbps)), ..busy(FAST, 10, 100, 20) };
        burst.follow(&view(&[paced(6)], 500));
        let faster = [paced(12)];
        let burst_and_no_more = View { sendable: BURST, ..view(&faster, 500) };
        assert_eq!(burst.decide(at(0), &burst_and_no_more), Decision::send(FAST));
        assert!((burst.queues[0].pace - 10_055_999.26).abs() < 0.01, "{}", burst.queues[0].pace);
    }

    /// Data written while there was one subflow is in its queue, as far as its buffer of 92,160 bytes goes: 20 segments
    /// in flight take 27,099 of them, and two fragments the rest. What is left of the connection's 142,336 bytes is the
    /// new one's.
    #[test]
    fn a_subflow_that_joins_begins_behind_what_is_queued() {
        let mut burst = linux_burst();
        let pair = [busy(FAST, 10, 20, 20), SubflowView { last_sent: None, ..busy(SLOW, 100, 10, 0) }];
        let later = View { unsent_from: Dsn::new(20_001), ..view(&pair, 500) };
        assert_eq!(burst.decide(at(0), &later), send(SLOW, 2 * 32_728));
        assert_eq!(queued(&burst), [2 * 32_728, 142_336 - 20_000 - 2 * 32_728]);
    }

    #[test]
    fn the_pace_of_linux_is_twice_the_rate_in_slow_start() {
        let late = SubflowView { ssthresh: Some(segments(10)), ..subflow(FAST, 10, 10, 0) };
        assert_eq!(late.pace(), Rate::from_bps(9_600_000));
        for early in [None, Some(segments(11))] {
            assert_eq!(SubflowView { ssthresh: early, ..late }.pace(), Rate::from_bps(16_000_000));
        }
        assert_eq!(SubflowView { pacing: Some(Rate::from_mbps(3)), ..late }.pace(), Rate::from_mbps(3));
    }

    #[test]
    fn a_silent_subflow_is_not_waited_for() {
        let held_back = SubflowView { throttled: true, ..busy(FAST, 10, 10, 0) };
        let pair = [held_back, busy(SLOW, 40, 10, 9)];
        assert_eq!(linux_burst().decide(at(0), &view(&pair, 500)), Decision::send(SLOW));
        let paceless = SubflowView { pacing: Some(Rate::from_bps(0)), ..subflow(SLOW, 40, 10, 0) };
        assert_eq!(linux_burst().decide(at(0), &view(&[held_back, paceless], 500)), Decision::send(SLOW));
    }
}
