//! The limit of a connection between two looks at its sockets.

use super::message::{Memory, MptcpInfo, Socket, TcpInfo};
use crate::Limit;
use std::net::SocketAddr;

/// One connection at one moment.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Look {
    /// The connection as MPTCP has it; absent for plain TCP.
    pub mptcp: Option<(MptcpInfo, Memory)>,
    pub local: SocketAddr,
    pub remote: SocketAddr,
    pub inode: u32,
    pub subflows: Vec<Socket>,
}

/// Limit, and the cookie of the subflow that is meant. `None` where the other host decides.
pub(super) type Cause = (Option<Limit>, Option<u64>);

/// State after a timeout (`TCP_CA_Loss`).
const LOSS: u8 = 4;
/// Round trips this many times the shortest tell of a queue on the path.
const QUEUED: f64 = 1.25;
/// Time by which a round trip must be longer than the shortest to tell of a queue \[µs\].
const MEANINGFUL: u32 = 2_000;
/// Segments by which a window may seem to have room and be full: a burst waits until it is worth sending.
const BURST: u32 = 2;

impl Look {
    /// Bytes sent so far, each once.
    pub(super) fn sent(&self) -> u64 {
        match &self.mptcp {
            Some((info, _)) => info.snd_una,
            None => self.tcp().map(|it| it.bytes_acked).sum(),
        }
    }

    /// Bytes received so far.
    pub(super) fn received(&self) -> u64 {
        match &self.mptcp {
            Some((info, _)) => info.rcv_nxt,
            None => self.tcp().map(|it| it.bytes_received).sum(),
        }
    }

    /// Fills in positions that the kernel did not know at this look, with the handshake under way: those of `later`,
    /// less what its subflows have carried.
    pub(super) fn fill_in(&mut self, later: &Look) {
        let (Some((info, _)), Some((known, _))) = (&mut self.mptcp, &later.mptcp) else { return };
        let carried = |bytes: fn(&TcpInfo) -> u64| later.tcp().map(bytes).sum::<u64>();
        if info.rcv_nxt == 0 {
            info.rcv_nxt = known.rcv_nxt.saturating_sub(carried(|it| it.bytes_received));
        }
        if info.snd_una == 0 {
            info.snd_una = known.snd_una.saturating_sub(carried(|it| it.bytes_acked));
        }
    }

    fn tcp(&self) -> impl Iterator<Item = &TcpInfo> {
        self.subflows.iter().filter_map(Socket::tcp)
    }

    /// Bytes written by the application and not acknowledged.
    pub(super) fn outstanding(&self) -> u64 {
        match &self.mptcp {
            Some((info, _)) => info.write_seq.saturating_sub(info.snd_una),
            None => self.tcp().map(|it| in_flight(it) + u64::from(it.notsent)).sum(),
        }
    }

    fn memory(&self) -> Memory {
        match &self.mptcp {
            Some((_, memory)) => *memory,
            None => self.subflows.first().map(|it| it.memory).unwrap_or_default(),
        }
    }
}

/// Bytes sent and not acknowledged.
pub(super) fn in_flight(info: &TcpInfo) -> u64 {
    info.bytes_sent.saturating_sub(info.bytes_retrans).saturating_sub(info.bytes_acked)
}

/// Judges the time from `before` to `now`, `elapsed` microseconds. `sends` tells which way most data goes.
pub(super) fn judge(before: &Look, now: &Look, elapsed: u64, sends: bool) -> Cause {
    if sends { as_sender(before, now, elapsed) } else { as_receiver(now) }
}

/// The receiver sees whether its application reads, and nothing else.
fn as_receiver(now: &Look) -> Cause {
    let memory = now.memory();
    let all = u64::from(memory.received)
        + if now.mptcp.is_some() { now.subflows.iter().map(|it| u64::from(it.memory.received)).sum() } else { 0 };
    match memory.receive_buffer > 0 && all * 2 >= u64::from(memory.receive_buffer) {
        true => (Some(Limit::ApplicationReads), None),
        false => (None, None),
    }
}

fn as_sender(before: &Look, now: &Look, elapsed: u64) -> Cause {
    let outstanding = now.outstanding();
    let memory = now.memory();
    let flight: u64 = now.tcp().map(in_flight).sum();
    let mss = u64::from(now.tcp().map(|it| it.mss).max().unwrap_or(1));
    let unsent = outstanding.saturating_sub(flight);
    let moved = now.sent() > before.sent();
    if outstanding == 0 && !moved {
        return (Some(Limit::ApplicationSends), None);
    }
    // A subflow that is a backup counts only if there is no other.
    let regular = now.subflows.iter().any(|it| !it.backup);
    let usable = || now.subflows.iter().filter(move |it| !regular || !it.backup);
    let of = |limit: Limit, socket: Option<&Socket>| (Some(limit), socket.map(|it| it.cookie));
    if let Some(lost) = usable().find(|it| it.tcp().is_some_and(in_timeout))
        && (!moved || usable().all(|it| it.tcp().is_some_and(in_timeout)))
    {
        return of(Limit::Timeout, Some(lost));
    }
    // Where the kernel keeps account itself, that is exact.
    let limited = |field: fn(&TcpInfo) -> u64| {
        usable().any(|it| {
            let old = before.subflows.iter().find(|old| old.cookie == it.cookie).and_then(Socket::tcp);
            let new = it.tcp();
            new.zip(old).is_some_and(|(new, old)| field(new).saturating_sub(field(old)) * 2 > elapsed)
        })
    };
    let window = u64::from(now.tcp().map(|it| it.window).max().unwrap_or(0));
    let all_have_room = usable().all(|it| it.tcp().is_some_and(has_room));
    let window_full = unsent > mss && outstanding + 2 * mss >= window && all_have_room;
    if limited(|it| it.rwnd_limited_us) || window_full {
        return (Some(Limit::PeerWindow), None);
    }
    let buffer_full = memory.send_buffer > 0 && u64::from(memory.queued) * 3 >= u64::from(memory.send_buffer) * 2;
    let buffer_full = limited(|it| it.sndbuf_limited_us) || (unsent <= mss && buffer_full);
    // Paths that carry all they can fill a buffer that grows with their windows: a larger one would not help. What a
    // small one holds leaves the windows empty, and its bursts queue all the same.
    let windows: u64 = usable().filter_map(Socket::tcp).map(|info| u64::from(info.cwnd) * u64::from(info.mss)).sum();
    let fills = buffer_full && outstanding * 4 >= windows * 3;
    let is_busy = |info: &TcpInfo| !has_room(info) || (fills && window_limit(info) == Limit::PathFull);
    if buffer_full && (usable().next().is_none() || !usable().all(|it| it.tcp().is_some_and(is_busy))) {
        return (Some(Limit::SendBuffer), None);
    }
    if unsent <= mss && !buffer_full {
        return (Some(Limit::ApplicationSends), None);
    }
    let full = usable().filter(|it| it.tcp().is_some_and(is_busy));
    if let Some(it) = full.max_by_key(|it| it.tcp().map_or(0, rate)) {
        return of(it.tcp().map_or(Limit::CongestionWindow, window_limit), Some(it));
    }
    match usable().find(|it| it.tcp().is_some_and(|info| info.notsent > 0)) {
        Some(it) => of(Limit::Pacing, Some(it)),
        None => of(Limit::Scheduler, usable().next()),
    }
}

fn in_timeout(info: &TcpInfo) -> bool {
    info.ca_state == LOSS || info.retransmits > 0
}

/// True if the congestion window admits a burst.
pub(super) fn has_room(info: &TcpInfo) -> bool {
    let under_way = (info.unacked + info.retrans).saturating_sub(info.sacked + info.lost);
    under_way + BURST < info.cwnd || (info.cwnd <= BURST && under_way == 0)
}

/// Bytes per second that a window admits.
fn rate(info: &TcpInfo) -> u64 {
    u64::from(info.cwnd) * u64::from(info.mss) * 1_000_000 / u64::from(info.rtt_us.max(1))
}

/// The limit of a subflow whose congestion window is full: its path, if a queue has built up there.
pub(super) fn window_limit(info: &TcpInfo) -> Limit {
    let queue = info.rtt_us.saturating_sub(info.min_rtt_us);
    let queued = f64::from(info.rtt_us) >= QUEUED * f64::from(info.min_rtt_us) && queue >= MEANINGFUL;
    match () {
        () if queued && info.min_rtt_us > 0 => Limit::PathFull,
        () if info.cwnd < info.ssthresh => Limit::SlowStart,
        () => Limit::CongestionWindow,
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::Info;
    use super::*;

    const MSS: u32 = 1_000;

    /// A subflow of so many segments in flight and in its window, over a path with a round trip of 20 ms.
    fn subflow(n: u8, under_way: u32, cwnd: u32) -> Socket {
        let bytes = u64::from(under_way * MSS);
        let info = TcpInfo {
            mss: MSS,
            unacked: under_way,
            cwnd,
            ssthresh: 10,
            rtt_us: 20_000,
            min_rtt_us: 20_000,
            bytes_acked: 1_000_000,
            bytes_sent: 1_000_000 + bytes,
            window: 1 << 20,
            ..TcpInfo::default()
        };
        Socket {
            local: SocketAddr::from(([10, 0, 0, n], 80)),
            remote: SocketAddr::from(([10, 1, 0, 1], 5000)),
            inode: 0,
            cookie: u64::from(n),
            state: 1,
            token: Some(1),
            backup: false,
            memory: Memory::default(),
            info: Info::Tcp(info),
        }
    }

    /// A connection with so many bytes written and not acknowledged.
    fn look(outstanding: u64, subflows: Vec<Socket>) -> Look {
        let info = MptcpInfo { write_seq: 5_000 + outstanding, snd_una: 5_000, ..MptcpInfo::default() };
        let memory = Memory { send_buffer: 1 << 22, receive_buffer: 1 << 22, queued: outstanding as u32, received: 0 };
        let (local, remote) = (subflows[0].local, subflows[0].remote);
        Look { mptcp: Some((info, memory)), local, remote, inode: 0, subflows }
    }

    fn change(mut socket: Socket, change: impl Fn(&mut TcpInfo)) -> Socket {
        if let Info::Tcp(info) = &mut socket.info {
            change(info);
        }
        socket
    }

    fn judged(now: &Look) -> Cause {
        judge(&look(0, now.subflows.iter().map(|it| subflow(it.cookie as u8, 0, 10)).collect()), now, 100_000, true)
    }

    #[test]
    fn each_limit_of_a_sender_is_told_from_the_others() {
        let on = |n: u64| Some(n);
        let both = |a: Socket, b: Socket| look(200_000, vec![a, b]);
        let full = || subflow(1, 20, 20);
        assert_eq!(judged(&both(full(), subflow(2, 10, 10))), (Some(Limit::CongestionWindow), on(1)));
        let growing = change(subflow(2, 30, 30), |it| it.ssthresh = 1_000);
        assert_eq!(judged(&both(full(), growing)), (Some(Limit::SlowStart), on(2)));
        let queued = change(subflow(2, 90, 90), |it| it.rtt_us = 60_000);
        assert_eq!(judged(&both(full(), queued)), (Some(Limit::PathFull), on(2)));
        let limited = change(subflow(1, 5, 20), |it| it.rwnd_limited_us = 90_000);
        assert_eq!(judged(&both(limited, subflow(2, 5, 20))), (Some(Limit::PeerWindow), None));
        let narrow = change(subflow(1, 5, 20), |it| it.window = 200_000);
        let other = change(subflow(2, 5, 20), |it| it.window = 200_000);
        assert_eq!(judged(&both(narrow, other)), (Some(Limit::PeerWindow), None));
        let lost = |n| change(subflow(n, 1, 1), |it| it.retransmits = 2);
        assert_eq!(judged(&both(lost(1), lost(2))), (Some(Limit::Timeout), on(1)));
        assert_eq!(judged(&both(subflow(1, 5, 20), subflow(2, 5, 20))), (Some(Limit::Scheduler), on(1)));
        let mut small = look(10_000, vec![subflow(1, 10, 20)]);
        assert_eq!(judged(&small), (Some(Limit::ApplicationSends), None));
        small.mptcp.as_mut().expect("it is MPTCP").1.send_buffer = 12_000;
        assert_eq!(judged(&small), (Some(Limit::SendBuffer), None));
        // A burst makes a queue as well; only with a window that is nearly full it is not the buffer that holds data
        // up.
        small.subflows[0] = change(subflow(1, 10, 20), |it| it.rtt_us = 60_000);
        assert_eq!(judged(&small), (Some(Limit::SendBuffer), None));
        small.subflows[0] = change(subflow(1, 10, 13), |it| it.rtt_us = 60_000);
        assert_eq!(judged(&small), (Some(Limit::PathFull), on(1)));
    }

    #[test]
    fn a_receiver_tells_only_whether_its_application_reads() {
        let mut now = look(0, vec![subflow(1, 0, 10)]);
        assert_eq!(judge(&now, &now, 100_000, false), (None, None));
        now.mptcp.as_mut().expect("it is MPTCP").1.received = 3 << 20;
        assert_eq!(judge(&now, &now, 100_000, false), (Some(Limit::ApplicationReads), None));
    }
}
