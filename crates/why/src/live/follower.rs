//! Follows connections from look to look, and sums up.

use super::answer::{LiveAnswer, LiveConnection, LiveShare, LiveSubflow};
use super::judge::{Cause, Look, has_room, in_flight, judge, window_limit};
use super::message::{Info, Socket, TcpInfo};
use super::words;
use crate::Limit;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

/// Connections to follow.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// Those with this address and port at either end.
    Address(SocketAddr),
    /// Those whose sockets a process holds, by inode.
    Process(BTreeSet<u32>),
}

/// Follows connections.
#[derive(Debug, Default)]
pub struct Follower {
    targets: Vec<Target>,
    connections: BTreeMap<Key, Followed>,
    /// First look and the last one \[ns\].
    began: Option<u64>,
    last: u64,
    /// Beginning of the interval \[ns\].
    from: u64,
}

/// Token of an MPTCP connection, or cookie of a TCP socket.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Key {
    Token(u32),
    Cookie(u64),
}

#[derive(Debug)]
struct Followed {
    first: Look,
    /// At the beginning of the interval.
    begin: Look,
    now: Look,
    interval: Times,
    whole: Times,
    /// Addresses of all subflows that there were, by cookie: this host's and the other's.
    addresses: BTreeMap<u64, [IpAddr; 2]>,
    ended: bool,
}

/// Time by cause \[ns\]: of the connection, and of each subflow by its cookie.
#[derive(Clone, Debug, Default)]
struct Times {
    connection: BTreeMap<Cause, u64>,
    subflows: BTreeMap<u64, BTreeMap<Option<Limit>, u64>>,
}

/// States of a socket that sends and receives no more: what follows FIN in both directions.
const OVER: [u8; 4] = [4, 5, 9, 11];

impl Follower {
    /// Follows these; without any, all connections.
    pub fn new(targets: Vec<Target>) -> Self {
        Follower { targets, ..Follower::default() }
    }

    /// Follows these from now on, beside the connections that are followed already.
    pub fn set_targets(&mut self, targets: Vec<Target>) {
        self.targets = targets;
    }

    /// Returns true if a connection was found that belongs to a target, be it over or not.
    pub fn has_found(&self) -> bool {
        !self.connections.is_empty()
    }

    /// Returns the number of connections that are followed and have not ended.
    pub fn connections(&self) -> usize {
        self.connections.values().filter(|it| !it.ended).count()
    }

    /// Looks at all sockets of the host, at a time in nanoseconds.
    pub fn look(&mut self, at: u64, sockets: Vec<Socket>) {
        let elapsed = at.saturating_sub(self.last);
        let first = self.began.is_none();
        if first {
            (self.began, self.from) = (Some(at), at);
        }
        self.last = at;
        let looks = group(sockets);
        for (key, followed) in &mut self.connections {
            followed.ended |= !looks.contains_key(key);
        }
        for (key, look) in looks {
            match self.connections.get_mut(&key) {
                Some(followed) => followed.step(look, elapsed),
                None if self.targets.is_empty() || self.targets.iter().any(|target| target.is_of(&look)) => {
                    self.connections.insert(key, Followed::new(look));
                }
                None => {}
            }
        }
    }

    /// Ends the interval and tells of it.
    pub fn interval(&mut self) -> LiveAnswer {
        let length = self.last.saturating_sub(self.from);
        let mut answer = self.answer(length, |it| (&it.begin, &it.interval));
        answer.interval_s = length as f64 / 1e9;
        self.from = self.last;
        for followed in self.connections.values_mut() {
            followed.begin = followed.now.clone();
            followed.interval = Times::default();
        }
        // What has ended was told of, and counts in the whole alone.
        answer.connections.retain(|it| it.sent + it.received > 0 || !it.ended);
        answer
    }

    /// Tells of the whole time.
    pub fn whole(&self) -> LiveAnswer {
        let length = self.last.saturating_sub(self.began.unwrap_or(self.last));
        let mut answer = self.answer(length, |it| (&it.first, &it.whole));
        answer.interval_s = length as f64 / 1e9;
        answer.whole = true;
        answer
    }

    fn answer(&self, length: u64, part: impl Fn(&Followed) -> (&Look, &Times)) -> LiveAnswer {
        let mut connections: Vec<LiveConnection> =
            self.connections.values().map(|it| it.tell(part(it), length)).collect();
        connections.sort_by_key(|it| (u64::MAX - it.sent - it.received, it.local));
        let time_s = self.last.saturating_sub(self.began.unwrap_or(self.last)) as f64 / 1e9;
        LiveAnswer { time_s, connections, ..LiveAnswer::default() }
    }
}

impl Target {
    fn is_of(&self, look: &Look) -> bool {
        match self {
            Target::Address(address) => {
                let mut ends = look.subflows.iter().flat_map(|it| [it.local, it.remote]);
                look.local == *address || look.remote == *address || ends.any(|end| end == *address)
            }
            Target::Process(inodes) => {
                inodes.contains(&look.inode) || { look.subflows.iter().any(|it| inodes.contains(&it.inode)) }
            }
        }
    }
}

/// Puts subflows to their connections. One whose token is hidden stands alone, as does plain TCP.
fn group(sockets: Vec<Socket>) -> BTreeMap<Key, Look> {
    let mut looks: BTreeMap<Key, Look> = BTreeMap::new();
    let mut subflows = Vec::new();
    for socket in sockets {
        match (&socket.info, socket.token) {
            (Info::Mptcp(info), Some(token)) => {
                let Socket { local, remote, inode, memory, .. } = socket;
                let mptcp = Some((*info, memory));
                looks.insert(Key::Token(token), Look { mptcp, local, remote, inode, subflows: Vec::new() });
            }
            (Info::Mptcp(_), None) => {}
            (Info::Tcp(_), _) => subflows.push(socket),
        }
    }
    subflows.sort_by_key(|it| it.cookie);
    for socket in subflows {
        match socket.token.and_then(|token| looks.get_mut(&Key::Token(token))) {
            Some(look) => look.subflows.push(socket),
            None => {
                let Socket { local, remote, inode, cookie, .. } = socket;
                looks.insert(Key::Cookie(cookie), Look { mptcp: None, local, remote, inode, subflows: vec![socket] });
            }
        }
    }
    // A connection whose last subflow is closing moves no more data.
    looks.retain(|_, look| look.subflows.iter().any(|it| !OVER.contains(&it.state)));
    looks
}

impl Followed {
    fn new(look: Look) -> Self {
        let mut followed = Followed {
            first: look.clone(),
            begin: look.clone(),
            now: look,
            interval: Times::default(),
            whole: Times::default(),
            addresses: BTreeMap::new(),
            ended: false,
        };
        followed.learn_addresses();
        followed
    }

    fn learn_addresses(&mut self) {
        let ends = |it: &Socket| (it.cookie, [it.local.ip(), it.remote.ip()]);
        self.addresses.extend(self.now.subflows.iter().map(ends));
    }

    /// Name of a subflow: its address on this host, or that of the other where this host has but one.
    fn name(&self, cookie: u64) -> Option<String> {
        let ends = self.addresses.get(&cookie)?;
        let own: BTreeSet<IpAddr> = self.addresses.values().map(|[own, _]| *own).collect();
        Some(ends[usize::from(own.len() == 1 && self.addresses.len() > 1)].to_string())
    }

    /// The next look, `elapsed` nanoseconds after the last.
    fn step(&mut self, look: Look, elapsed: u64) {
        for earlier in [&mut self.first, &mut self.begin, &mut self.now] {
            earlier.fill_in(&look);
        }
        let cause = judge(&self.now, &look, elapsed / 1000, self.sends(&look));
        for times in [&mut self.interval, &mut self.whole] {
            *times.connection.entry(cause).or_default() += elapsed;
            for socket in &look.subflows {
                let own = own_cause(socket, cause);
                *times.subflows.entry(socket.cookie).or_default().entry(own).or_default() += elapsed;
            }
        }
        self.now = look;
        self.learn_addresses();
    }

    /// True if this host sent more than it received since following began, or has more to send.
    fn sends(&self, look: &Look) -> bool {
        let sent = look.sent().saturating_sub(self.first.sent()) + look.outstanding();
        sent >= look.received().saturating_sub(self.first.received())
    }

    fn tell(&self, (begin, times): (&Look, &Times), length: u64) -> LiveConnection {
        let whole = times.connection.values().sum::<u64>().max(1);
        let mut shares: Vec<LiveShare> = times
            .connection
            .iter()
            .map(|((limit, path), time)| LiveShare {
                limit: *limit,
                path: path.and_then(|cookie| self.name(cookie)),
                share: *time as f64 / whole as f64,
            })
            .collect();
        shares.sort_by(|a, b| b.share.total_cmp(&a.share));
        let mut connection = LiveConnection {
            sentence: String::new(),
            local: self.now.local,
            remote: self.now.remote,
            multipath: self.now.mptcp.is_some_and(|(info, _)| !info.fallback),
            sends: self.sends(&self.now),
            ended: self.ended,
            sent: self.now.sent().saturating_sub(begin.sent()),
            received: self.now.received().saturating_sub(begin.received()),
            shares,
            subflows: self
                .now
                .subflows
                .iter()
                .map(|it| of_subflow(it, self.name(it.cookie).unwrap_or_default(), begin, times, length))
                .collect(),
        };
        connection.sentence = words::sentence(&connection, &self.now, length);
        connection
    }
}

/// The limit of a subflow itself: that of the connection if it binds all, or the one that was named.
fn own_cause(socket: &Socket, (limit, path): Cause) -> Option<Limit> {
    match limit {
        Some(Limit::Timeout | Limit::SlowStart | Limit::CongestionWindow | Limit::PathFull | Limit::Pacing)
            if path != Some(socket.cookie) =>
        {
            let info = socket.tcp()?;
            Some(if has_room(info) { Limit::Scheduler } else { window_limit(info) })
        }
        limit => limit,
    }
}

fn of_subflow(socket: &Socket, path: String, begin: &Look, times: &Times, length: u64) -> LiveSubflow {
    let none = TcpInfo::default();
    let now = socket.tcp().unwrap_or(&none);
    let before = begin.subflows.iter().find(|it| it.cookie == socket.cookie).and_then(Socket::tcp);
    // A subflow that is new in the interval began with nothing.
    let before = before.unwrap_or(&none);
    let length = (length / 1000).max(1) as f64;
    let share = |field: fn(&TcpInfo) -> u64| (field(now).saturating_sub(field(before)) as f64 / length).min(1.0);
    let bytes = |field: fn(&TcpInfo) -> u64| field(now).saturating_sub(field(before));
    let most = times.subflows.get(&socket.cookie).and_then(|it| it.iter().max_by_key(|(_, time)| **time));
    LiveSubflow {
        path,
        local: socket.local,
        remote: socket.remote,
        backup: socket.backup,
        sent: bytes(|it| it.bytes_acked),
        received: bytes(|it| it.bytes_received),
        retransmitted: now.total_retrans.saturating_sub(before.total_retrans),
        segments: now.data_segs_out.saturating_sub(before.data_segs_out),
        rtt_ms: f64::from(now.rtt_us) / 1e3,
        min_rtt_ms: f64::from(now.min_rtt_us) / 1e3,
        cwnd: u64::from(now.cwnd) * u64::from(now.mss),
        in_flight: in_flight(now),
        window: u64::from(now.window),
        busy: share(|it| it.busy_us),
        rwnd_limited: share(|it| it.rwnd_limited_us),
        sndbuf_limited: share(|it| it.sndbuf_limited_us),
        limit: most.and_then(|(limit, _)| *limit),
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::{Memory, MptcpInfo};
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn socket(cookie: u64, token: Option<u32>, info: Info) -> Socket {
        Socket {
            local: SocketAddr::from(([10, 0, 0, 1], 80)),
            remote: SocketAddr::from(([10, 1, cookie as u8, 2], 5000)),
            inode: cookie as u32,
            cookie,
            state: 1,
            token,
            backup: false,
            memory: Memory::default(),
            info,
        }
    }

    /// A connection with two subflows, of which the second has a full window; it has moved `sent` bytes.
    fn sockets(sent: u64) -> Vec<Socket> {
        let whole = MptcpInfo { write_seq: sent + 500_000, snd_una: sent, subflows_max: 2, ..MptcpInfo::default() };
        let subflow = |flight: u32, cwnd: u32| TcpInfo {
            mss: 1_000,
            unacked: flight,
            cwnd,
            ssthresh: 10,
            rtt_us: 20_000,
            min_rtt_us: 20_000,
            bytes_acked: sent / 2,
            bytes_sent: sent / 2 + u64::from(flight) * 1_000,
            ..TcpInfo::default()
        };
        vec![
            socket(1, Some(7), Info::Mptcp(whole)),
            socket(2, Some(7), Info::Tcp(subflow(20, 20))),
            socket(3, Some(7), Info::Tcp(subflow(5, 5))),
            socket(4, None, Info::Tcp(TcpInfo::default())),
        ]
    }

    /// The positions of an MPTCP connection are known when its handshake is over; they begin anywhere.
    #[test]
    fn a_connection_that_begins_while_it_is_followed_has_carried_little() {
        let begin = 8_862_383_161_539_217_735;
        let look = |known: bool, sent: u64| {
            let at = |position: u64| if known { position } else { 0 };
            let (snd_una, rcv_nxt) = (at(begin / 2 + sent), at(begin + 1_000));
            let whole = MptcpInfo { write_seq: snd_una, snd_una, rcv_nxt, ..MptcpInfo::default() };
            let bytes_received = if known { 1_000 } else { 0 };
            let subflow = TcpInfo { bytes_acked: sent, bytes_received, ..TcpInfo::default() };
            vec![socket(1, Some(7), Info::Mptcp(whole)), socket(2, Some(7), Info::Tcp(subflow))]
        };
        let mut follower = Follower::new(Vec::new());
        follower.look(0, look(false, 0));
        follower.look(SECOND / 10, look(false, 0));
        follower.look(SECOND, look(true, 5_000));
        follower.look(2 * SECOND, look(true, 9_000));
        for answer in [follower.interval(), follower.whole()] {
            let it = &answer.connections[0];
            assert_eq!((it.sent, it.received, it.sends), (9_000, 1_000, true));
        }
    }

    #[test]
    fn time_adds_up_over_intervals_and_as_a_whole() {
        let mut follower = Follower::new(vec![Target::Process([1].into())]);
        for n in 0..=10 {
            follower.look(n * SECOND / 10, sockets(n * 100_000));
        }
        let interval = follower.interval();
        assert_eq!((interval.connections.len(), follower.connections()), (1, 1), "the other is not asked for");
        let it = &interval.connections[0];
        assert_eq!((it.sent, it.multipath, it.sends, it.ended), (1_000_000, true, true, false));
        assert_eq!(
            (it.shares[0].limit, it.shares[0].path.as_deref()),
            (Some(Limit::CongestionWindow), Some("10.1.2.2"))
        );
        assert!((it.shares.iter().map(|it| it.share).sum::<f64>() - 1.0).abs() < 1e-9);
        assert!(it.sentence.starts_with("All the time the congestion window of 10.1.2.2 was full"), "{}", it.sentence);
        assert_eq!(it.subflows[1].sent, 500_000);
        follower.look(2 * SECOND, Vec::new());
        assert_eq!((follower.connections(), follower.interval().connections.len()), (0, 0), "it has ended");
        let whole = follower.whole();
        assert!(whole.whole && whole.connections[0].ended && whole.connections[0].sent == 1_000_000, "{whole:?}");
    }

    #[test]
    fn connections_are_found_by_the_address_of_either_end() {
        for (address, found) in [("10.0.0.1:80", 2), ("10.1.3.2:5000", 1), ("10.0.0.1:81", 0)] {
            let target = Target::Address(address.parse().expect("an address"));
            let mut follower = Follower::new(vec![target]);
            follower.look(0, sockets(0));
            assert_eq!(follower.connections(), found, "{address}");
        }
    }
}
