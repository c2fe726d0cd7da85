//! Course of a connection, looked at now and then: the sentence about one that was slower than its best path alone.
//!
//! The best path carries at least the most that a subflow carried between two looks: bytes acknowledged for a sender,
//! bytes received for a receiver. An estimate from the distances of ACKs (`path_rate` of `SubflowInfo`) is no evidence
//! here: where a host reads many packets at once, a burst of what had waited passes for a rate. Times of waiting are
//! the engine's own counters, so that nothing is counted for each packet.

use anabranch_engine::path_use::path_name;
use anabranch_engine::{ConnectionId, ConnectionInfo, ConnectionStats, Endpoint, SubflowInfo, SubflowStats};
use anabranch_units::{Bytes, Duration, Instant, Rate, SubflowId};

/// A connection as it was seen to go.
#[derive(Debug, Default)]
pub struct Course {
    due: Instant,
    /// Absent until the first look.
    seen: Option<Box<Seen>>,
}

#[derive(Debug, Default)]
struct Seen {
    at: Instant,
    paths: Vec<PathSeen>,
    /// Time between looks in which data came, and the bytes of it.
    busy: Duration,
    came: u64,
}

/// A subflow as it was seen to go.
#[derive(Debug)]
struct PathSeen {
    id: SubflowId,
    /// Rate that distances of ACKs suggest, once a queue stood on the path towards the peer.
    suggested: Option<Rate>,
    delivered: Carried,
    received: Carried,
}

/// Bytes carried in one direction.
#[derive(Debug, Default)]
struct Carried {
    /// Bytes by the latest look.
    total: u64,
    /// Most between two looks, as a rate.
    most: Option<Rate>,
}

/// The sending side of a subflow at a look.
struct Sending {
    id: SubflowId,
    /// Bytes acknowledged so far.
    delivered: u64,
    /// The rate that ACKs of queued data suggest.
    path_rate: Option<Rate>,
}

/// Time between two looks, at least.
const EVERY: Duration = Duration::from_millis(500);
/// Transfers of less data or time tell nothing: they are over before windows are open.
const LEAST_BYTES: u64 = 500_000;
const LEAST_TIME: Duration = Duration::from_secs(1);
/// Share of the best path's rate below which a transfer falls short of it: handshakes, slow start and headers take the
/// rest.
const SHORT: f64 = 0.8;
/// Share of the time from which on a wait is a cause worth naming.
const LARGE: f64 = 0.2;
/// The same where no rate of a path is known.
const MOST: f64 = 0.5;

impl Course {
    /// Looks at a connection, unless it was looked at just now.
    pub fn look(&mut self, now: Instant, endpoint: &Endpoint, id: ConnectionId) {
        if now < self.due {
            return;
        }
        let mut info = ConnectionInfo::default();
        if endpoint.connection_info(id, &mut info) {
            self.due = now + EVERY;
            let sending = |it: &SubflowInfo| Sending { id: it.id, delivered: it.delivered, path_rate: it.path_rate };
            let sendings: Vec<Sending> = info.subflows.iter().map(sending).collect();
            self.note(now, &sendings, &endpoint.subflow_stats(id));
        }
    }

    /// Takes down what subflows carried since the look before.
    fn note(&mut self, now: Instant, sendings: &[Sending], subflows: &[SubflowStats]) {
        let is_first = self.seen.is_none();
        let seen = self.seen.get_or_insert_default();
        let over = now.since(seen.at);
        seen.at = now;
        let mut came = 0;
        for stats in subflows {
            let sending = sendings.iter().find(|it| it.id == stats.id);
            let place = seen.paths.iter().position(|path| path.id == stats.id).unwrap_or(seen.paths.len());
            if place == seen.paths.len() {
                let (delivered, received) = (Carried::default(), Carried::default());
                seen.paths.push(PathSeen { id: stats.id, suggested: None, delivered, received });
            }
            let path = &mut seen.paths[place];
            // The time before the first look is not known.
            let over = Some(over).filter(|_| !is_first);
            came += path.received.note(stats.bytes_received, over);
            if let Some(sending) = sending {
                path.delivered.note(sending.delivered, over);
                path.suggested = sending.path_rate.or(path.suggested);
            }
        }
        if came > 0 && !is_first {
            seen.came += came;
            seen.busy += over;
        }
    }

    /// Returns the sentence about a connection that was slower than its best path alone, with what it waited for;
    /// `None` if it was not, or if that cannot be told.
    pub fn sentence(&self, now: Instant, stats: &ConnectionStats, subflows: &[SubflowStats]) -> Option<String> {
        let seen = self.seen.as_ref()?;
        let sends = stats.data_acked > stats.received;
        let (bytes, time) = if sends {
            (stats.data_acked, now.since(stats.opened_at).saturating_sub(stats.blocked.application))
        } else {
            (seen.came, seen.busy)
        };
        if bytes < LEAST_BYTES || time < LEAST_TIME {
            return None;
        }
        let goodput = Rate::of(Bytes::new(bytes), time)?;
        let rate_of = |path: &PathSeen| if sends { path.delivered.most } else { path.received.most };
        let best = seen.paths.iter().filter_map(|path| Some((path.id, rate_of(path)?))).max_by_key(|it| it.1);
        let short = best.filter(|(_, rate)| goodput.as_mbps() < SHORT * rate.as_mbps());
        let ours = goodput.as_mbps();
        if let Some((best, rate)) = short {
            let cause = if sends { waited(stats, subflows, time, LARGE) } else { held(stats, time) }?;
            let name = subflows.iter().find(|it| it.id == best).map(path_name)?;
            let alone = if seen.paths.len() > 1 { "slower than its best path alone" } else { "slower than its path" };
            return Some(format!("{alone}: {ours:.1} Mbit/s, where {name} has carried {:.1}. {cause}", rate.as_mbps()));
        }
        // A sender whose congestion windows have room, but not its peer's, fills no queue for long. Where one stood,
        // the path may have been full: then the distances of ACKs, which are too short where ACKs are bunched, must
        // suggest that it could do twice as much.
        let full = |rate: Rate| 2.0 * goodput.as_mbps() >= rate.as_mbps();
        let queued = seen.paths.iter().filter_map(|path| path.suggested).any(full);
        let is_open = stats.blocked.cwnd < stats.blocked.receive_window.max(stats.blocked.scheduler);
        let cause = waited(stats, subflows, time, MOST).filter(|_| sends && !queued && is_open)?;
        Some(format!("slower than its paths allow: {ours:.1} Mbit/s. {cause}"))
    }
}

impl Carried {
    /// Takes down the `total` by now, the look before `over` ago; returns the bytes since then.
    fn note(&mut self, total: u64, over: Option<Duration>) -> u64 {
        let new = total.saturating_sub(self.total);
        self.total = total;
        let rate = over.and_then(|over| Rate::of(Bytes::new(new), over));
        self.most = self.most.max(rate.filter(|_| new > 0));
        new
    }
}

/// The longest wait of a sender, if it was long.
fn waited(stats: &ConnectionStats, subflows: &[SubflowStats], time: Duration, least: f64) -> Option<String> {
    let blocked = &stats.blocked;
    let waits = [blocked.receive_window, blocked.cwnd, blocked.scheduler];
    let (cause, wait) = waits.into_iter().enumerate().rev().max_by_key(|(_, wait)| *wait)?;
    let share = wait.per(time).min(1.0);
    (share >= least).then_some(())?;
    let percent = format!("{:.0} % of the time", 100.0 * share);
    Some(match cause {
        0 => format!(
            "{percent} the other host's window was used up: a larger receive buffer there would help \
             (net.ipv4.tcp_rmem, SO_RCVBUF, or a faster reader)."
        ),
        1 => format!("{percent} congestion windows were full{}.", repeats(subflows)),
        _ => format!("{percent} the scheduler held data back although a path had room."),
    })
}

/// Words about what was sent again.
fn repeats(subflows: &[SubflowStats]) -> String {
    let again: u64 = subflows.iter().map(|it| it.retransmitted).sum();
    let (sent, rtos) = subflows.iter().fold((0, 0), |(sent, rtos), it| (sent + it.segments_sent, rtos + it.rtos));
    let Some(most) = subflows.iter().max_by_key(|it| it.retransmitted).filter(|_| again > 0 && sent > 0) else {
        return String::new();
    };
    let share = 100.0 * again as f64 / sent as f64;
    let timeouts = match rtos {
        0 => String::new(),
        1 => ", with 1 timeout".to_owned(),
        _ => format!(", with {rtos} timeouts"),
    };
    format!(", and {share:.2} % of the segments were sent again, most of them from {}{timeouts}", path_name(most))
}

/// The wait of a receiver for missing data, if it was long.
fn held(stats: &ConnectionStats, time: Duration) -> Option<String> {
    let share = stats.hol_blocked.per(time).min(1.0);
    let percent = format!("{:.0} % of the time", 100.0 * share);
    (share >= LARGE).then(|| {
        format!(
            "{percent} data that had arrived waited for missing data: a larger receive buffer (--receive-buffer) here, \
             or another scheduler at the sender, may help."
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_engine::SubflowCounts;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn subflow(id: u16, received: u64) -> SubflowStats {
        let mut counts = SubflowCounts::default();
        (counts.segments_sent, counts.retransmitted, counts.rtos) = (1000, 10 * u64::from(id), u64::from(id));
        counts.bytes_received = received;
        SubflowStats {
            id: SubflowId(id),
            local: ([10, 0, id as u8, 1], 5000).into(),
            remote: ([10, 1, 0, 1], 80).into(),
            established: true,
            backup: false,
            srtt: None,
            cwnd: Bytes::new(14_000),
            counts,
        }
    }

    /// Bytes that each subflow has acknowledged, and the rates that distances of ACKs suggest [Mbit/s].
    fn sendings(delivered: [u64; 2], mbps: Option<u64>) -> [Sending; 2] {
        let path_rate = mbps.map(Rate::from_mbps);
        [0, 1].map(|n| Sending { id: SubflowId(n as u16), delivered: delivered[n], path_rate })
    }

    /// A sender over paths that carried 10 and 4 Mbit/s for half a second; it has 1.25 MB acknowledged, of which 1 s
    /// was without data to send.
    fn sender(mbps: Option<u64>) -> (Course, ConnectionStats, Vec<SubflowStats>) {
        let subflows = vec![subflow(0, 0), subflow(1, 0)];
        let mut course = Course::default();
        course.note(at(500), &sendings([0, 0], None), &subflows);
        course.note(at(1000), &sendings([625_000, 250_000], mbps), &subflows);
        let mut stats = ConnectionStats::default();
        stats.data_acked = 1_250_000;
        stats.blocked.application = Duration::from_secs(1);
        (course, stats, subflows)
    }

    /// 1.25 MB in 3 s less 1 s are 5 Mbit/s, half of what the first path carries.
    #[test]
    fn a_sender_says_what_it_waited_for() {
        let (course, mut stats, subflows) = sender(Some(11));
        let say = |stats: &ConnectionStats| course.sentence(at(3000), stats, &subflows);
        assert_eq!(say(&stats), None, "no wait explains it");
        stats.blocked.receive_window = Duration::from_millis(1400);
        let head = "slower than its best path alone: 5.0 Mbit/s, where 10.0.0.1 to 10.1.0.1 has carried 10.0. ";
        let window = "70 % of the time the other host's window was used up: a larger receive buffer there would help \
                      (net.ipv4.tcp_rmem, SO_RCVBUF, or a faster reader).";
        assert_eq!(say(&stats), Some(format!("{head}{window}")));
        stats.blocked.cwnd = Duration::from_millis(1500);
        let windows = "75 % of the time congestion windows were full, and 0.50 % of the segments were sent again, most \
                       of them from 10.0.1.1 to 10.1.0.1, with 1 timeout.";
        assert_eq!(say(&stats), Some(format!("{head}{windows}")));
        stats.blocked.scheduler = Duration::from_millis(1600);
        let scheduler = "80 % of the time the scheduler held data back although a path had room.";
        assert_eq!(say(&stats), Some(format!("{head}{scheduler}")));
    }

    /// 38 MB in 1 s are 304 Mbit/s, and no subflow ever carried more; ACKs that came in one burst suggest 9904 Mbit/s.
    #[test]
    fn a_burst_of_acks_is_not_the_rate_of_a_path() {
        let (mut course, subflows) = (Course::default(), [subflow(0, 0), subflow(1, 0)]);
        for (millis, delivered) in [(0, [0, 0]), (500, [11_000_000, 8_000_000]), (1000, [22_000_000, 16_000_000])] {
            course.note(at(millis), &sendings(delivered, Some(9904)), &subflows);
        }
        let mut stats = ConnectionStats::default();
        stats.data_acked = 38_000_000;
        stats.blocked.cwnd = Duration::from_millis(900);
        assert_eq!(course.sentence(at(1000), &stats, &subflows), None);
    }

    /// A window that admits little never fills a queue. 5 Mbit/s are more than four fifths of what a path carried.
    #[test]
    fn a_sender_that_never_filled_a_queue_says_so_too() {
        let (mut course, mut stats, subflows) = (Course::default(), sender(None).1, sender(None).2);
        for (millis, delivered) in [(500, [0, 0]), (1000, [380_000, 250_000])] {
            course.note(at(millis), &sendings(delivered, None), &subflows);
        }
        stats.blocked.receive_window = Duration::from_millis(1400);
        let said = "slower than its paths allow: 5.0 Mbit/s. 70 % of the time the other host's window was used up: a \
                    larger receive buffer there would help (net.ipv4.tcp_rmem, SO_RCVBUF, or a faster reader).";
        assert_eq!(course.sentence(at(3000), &stats, &subflows), Some(said.to_owned()));
        stats.blocked.cwnd = Duration::from_millis(1500);
        assert_eq!(course.sentence(at(3000), &stats, &subflows), None, "the path may be full");
        (stats.blocked.cwnd, stats.blocked.receive_window) = (Duration::ZERO, Duration::from_millis(900));
        assert_eq!(course.sentence(at(3000), &stats, &subflows), None, "45 %");
    }

    #[test]
    fn nothing_is_said_of_a_fast_or_a_short_transfer() {
        let (course, mut stats, subflows) = sender(Some(11));
        stats.blocked.receive_window = Duration::from_secs(1);
        stats.data_acked = 2_000_000;
        assert_eq!(course.sentence(at(3000), &stats, &subflows), None, "8 of 10 Mbit/s are enough");
        stats.data_acked = 499_999;
        assert_eq!(course.sentence(at(3000), &stats, &subflows), None, "too little data");
        stats.data_acked = 500_000;
        assert_eq!(course.sentence(at(1900), &stats, &subflows), None, "too short");
        assert_eq!(Course::default().sentence(at(3000), &stats, &subflows), None, "never looked at");
    }

    /// The first subflow brings 500 kB in a half second, which is 8 Mbit/s; then both stand still but for 100 kB.
    #[test]
    fn a_receiver_knows_what_came_between_two_looks() {
        let mut course = Course::default();
        for (millis, first, second) in
            [(500, 0, 0), (1000, 500_000, 0), (2000, 550_000, 50_000), (9000, 550_000, 50_000)]
        {
            course.note(at(millis), &[], &[subflow(0, first), subflow(1, second)]);
        }
        let mut stats = ConnectionStats::default();
        (stats.received, stats.hol_blocked) = (600_000, Duration::from_millis(600));
        let subflows = [subflow(0, 550_000), subflow(1, 50_000)];
        let said = "slower than its best path alone: 3.2 Mbit/s, where 10.0.0.1 to 10.1.0.1 has carried 8.0. 40 % of \
                    the time data that had arrived waited for missing data: a larger receive buffer (--receive-buffer) \
                    here, or another scheduler at the sender, may help.";
        // 600 kB in the 1.5 s in which something came.
        assert_eq!(course.sentence(at(9000), &stats, &subflows), Some(said.to_owned()));
        stats.hol_blocked = Duration::from_millis(200);
        assert_eq!(course.sentence(at(9000), &stats, &subflows), None, "the sender may have had nothing to send");
    }
}
