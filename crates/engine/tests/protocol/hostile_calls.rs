//! Programs with bugs: every public call of an endpoint, in any order and with any argument.
//!
//! With all settings that [`Config::check`] lets through, no call panics, and every invariant holds. Segments travel
//! between two endpoints or are lost; `hostile_segments.rs` has those that are made up.

use anabranch_engine::{
    Config, ConnectionId, Endpoint, Event, FastClose, Keepalive, LocalAddress, Policies, Profile, Switch,
};
use anabranch_policy::Truth;
use anabranch_policy::registry::{ACK_PATHS, CONGESTION, FIRST_PATHS, REINJECTIONS, SCHEDULERS, WINDOWS};
use anabranch_units::{Bytes, Duration, Instant, Rate, Seed, SubflowId, SubflowSeq};
use anabranch_wire::{Echo, Flags, FlowKey, pattern};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// A number where it hurts, or any.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 0..3000u64,
        2 => Just(u64::MAX),
        2 => (0..64u32).prop_map(|bit| 1 << bit),
        1 => (0..9u64).prop_map(|n| u64::from(u32::MAX) - 4 + n),
        2 => any::<u64>(),
    ]
}

fn duration() -> impl Strategy<Value = Duration> {
    prop_oneof![
        3 => (0..5000u64).prop_map(Duration::from_millis),
        1 => number().prop_map(Duration::from_nanos),
    ]
}

/// Addresses of either end, and others.
fn ip() -> impl Strategy<Value = IpAddr> {
    let own = |end: u8, path: u8| IpAddr::from([10, end, path, 1]);
    prop_oneof![
        8 => (0..2u8, 0..3u8).prop_map(move |(end, path)| own(end, path)),
        1 => any::<[u8; 4]>().prop_map(IpAddr::from),
        1 => any::<[u8; 16]>().prop_map(IpAddr::from),
        1 => Just(IpAddr::from([0; 4])),
        1 => Just(IpAddr::from([255; 4])),
    ]
}

fn port() -> impl Strategy<Value = u16> {
    prop_oneof![4 => Just(80), 1 => Just(0), 1 => any::<u16>()]
}

/// One call. Numbers `id` and `subflow` are taken as they come or reduced to what there is.
#[derive(Clone, Debug)]
enum Call {
    Pass(Duration),
    Exchange(u8),
    Open(IpAddr, SocketAddr),
    Listen(u16),
    StopListening(u16),
    Write(u8, u64),
    Replayable(u8),
    Read(u8),
    Shutdown(u8),
    Abort(u8),
    Switch(Option<u8>, u8, u8),
    Backup(u8, u16, bool),
    CloseSubflow(u8, u16),
    Departure(u64, u64),
    Carrier(IpAddr, bool),
    AddAddress(IpAddr, bool),
    RemoveAddress(IpAddr),
    Mtu(IpAddr, Option<u16>),
    TooBig(u8, u32, u32),
    Truth(IpAddr, Option<IpAddr>, u64, Duration, f64),
    Memory(Duration),
    Echo(IpAddr, IpAddr, u16),
    Ignores(IpAddr, u16, u8),
    Loads,
    Look(u8),
    NextTimeout,
    Forget(u8),
}

fn call() -> impl Strategy<Value = Call> {
    let id = any::<u8>();
    let share = prop_oneof![0.0..=1.0, any::<f64>()];
    prop_oneof![
        8 => duration().prop_map(Call::Pass),
        12 => any::<u8>().prop_map(Call::Exchange),
        4 => (ip(), ip(), port()).prop_map(|(local, remote, port)| Call::Open(local, (remote, port).into())),
        2 => port().prop_map(Call::Listen),
        1 => port().prop_map(Call::StopListening),
        6 => (id, number()).prop_map(|(id, n)| Call::Write(id, n)),
        1 => id.prop_map(Call::Replayable),
        3 => id.prop_map(Call::Read),
        2 => id.prop_map(Call::Shutdown),
        1 => id.prop_map(Call::Abort),
        2 => (any::<Option<u8>>(), 0..6u8, any::<u8>()).prop_map(|(id, kind, n)| Call::Switch(id, kind, n)),
        1 => (id, any::<u16>(), any::<bool>()).prop_map(|(id, n, backup)| Call::Backup(id, n, backup)),
        1 => (id, any::<u16>()).prop_map(|(id, n)| Call::CloseSubflow(id, n)),
        1 => (number(), number()).prop_map(|(tag, size)| Call::Departure(tag, size)),
        1 => (ip(), any::<bool>()).prop_map(|(ip, up)| Call::Carrier(ip, up)),
        1 => (ip(), any::<bool>()).prop_map(|(ip, backup)| Call::AddAddress(ip, backup)),
        1 => ip().prop_map(Call::RemoveAddress),
        2 => (ip(), any::<Option<u16>>()).prop_map(|(ip, mtu)| Call::Mtu(ip, mtu)),
        1 => (id, any::<u32>(), any::<u32>()).prop_map(|(id, seq, mtu)| Call::TooBig(id, seq, mtu)),
        1 => (ip(), proptest::option::of(ip()), number(), duration(), share)
            .prop_map(|(local, remote, rate, delay, loss)| Call::Truth(local, remote, rate, delay, loss)),
        1 => duration().prop_map(Call::Memory),
        1 => (ip(), ip(), any::<u16>()).prop_map(|(from, to, id)| Call::Echo(from, to, id)),
        1 => (ip(), port(), any::<u8>()).prop_map(|(ip, port, flags)| Call::Ignores(ip, port, flags)),
        1 => Just(Call::Loads),
        1 => id.prop_map(Call::Look),
        1 => Just(Call::NextTimeout),
        1 => id.prop_map(Call::Forget),
    ]
}

/// Settings, some of which cannot be.
#[derive(Clone, Debug)]
struct Settings {
    profile: usize,
    sizes: [u64; 4],
    spans: [Duration; 6],
    counts: [u64; 6],
    mss: u16,
    scale: Option<i8>,
    flags: [bool; 8],
    ports: Option<(u16, u16)>,
    policies: [u8; 6],
}

fn settings() -> impl Strategy<Value = Settings> {
    let mss = prop_oneof![3 => Just(1460), 1 => Just(64), 1 => Just(65_495), 1 => any::<u16>()];
    let scale = prop_oneof![2 => Just(None), 1 => any::<Option<i8>>()];
    let size = || prop_oneof![3 => Just(6u64 << 20), 1 => number()];
    let sizes = [size(), size(), size(), size()];
    let spans = std::array::from_fn(|_| duration().boxed());
    let counts = std::array::from_fn(|_| prop_oneof![3 => 1..9u64, 1 => number()].boxed());
    let ports = proptest::option::weighted(0.2, (any::<u16>(), any::<u16>()));
    (0..Profile::NAMES.len(), sizes, spans, counts, mss, scale, any::<[bool; 8]>(), ports, any::<[u8; 6]>()).prop_map(
        |(profile, sizes, spans, counts, mss, scale, flags, ports, policies)| Settings {
            profile,
            sizes,
            spans,
            counts,
            mss,
            scale,
            flags,
            ports,
            policies,
        },
    )
}

/// The `n`th policy of a kind, counted round.
fn switch(kind: u8, n: u8) -> Switch {
    let n = usize::from(n);
    match kind {
        0 => Switch::Scheduler(Arc::new(move || SCHEDULERS[n % SCHEDULERS.len()].build_default())),
        1 => Switch::Congestion(Arc::new(move || CONGESTION[n % CONGESTION.len()].build_default())),
        2 => Switch::ReceiveWindow(Arc::new(move || WINDOWS[n % WINDOWS.len()].build_default())),
        3 => Switch::AckPath(Arc::new(move || ACK_PATHS[n % ACK_PATHS.len()].build_default())),
        4 => Switch::Reinjection(Arc::new(move || REINJECTIONS[n % REINJECTIONS.len()].build_default())),
        _ => Switch::FirstPath(Arc::new(move || FIRST_PATHS[n % FIRST_PATHS.len()].build_default())),
    }
}

fn config(end: u8, it: &Settings) -> Config {
    let mut profile = Profile::named(Profile::NAMES[it.profile]).unwrap();
    let [multipath, full_mesh, checksum, departures, ack_rewrite, small, tune, keep] = it.flags;
    let count = |n: usize| u32::try_from(it.counts[n]).unwrap_or(u32::MAX);
    profile.mss = it.mss;
    profile.adv_win_scale = it.scale;
    profile.initial_window = count(0);
    profile.tsq_segments = count(1);
    profile.syn_retries = count(2);
    profile.max_consecutive_rtos = count(3);
    (profile.initial_rto, profile.max_rto) = (it.spans[0], it.spans[1]);
    profile.delayed_ack = small.then_some(it.spans[2]);
    profile.initial_ssthresh = tune.then(|| count(4));
    let addresses = (0..3).map(|path| LocalAddress { ip: [10, end, path, 1].into(), backup: path == 2 });
    let mut config = Config::new(profile, addresses.collect());
    (config.multipath, config.full_mesh, config.checksum) = (multipath, full_mesh, checksum);
    (config.reports_departures, config.ack_rewrite) = (departures, ack_rewrite);
    config.max_subflows = it.counts[5] as usize;
    config.send_buffer = Bytes::new(it.sizes[0]);
    config.receive_buffer = Bytes::new(it.sizes[1]);
    config.initial_receive_buffer = tune.then_some(Bytes::new(it.sizes[2]));
    config.burst = keep.then_some(Bytes::new(it.sizes[3]));
    (config.rejoin, config.close_timeout) = (Some(it.spans[3]), it.spans[4]);
    config.user_timeout = small.then_some(it.spans[5]);
    let idle = keep.then_some(it.spans[3]);
    config.keepalive = Keepalive { idle, interval: it.spans[4], probes: count(4) };
    config.fast_close = if tune { FastClose::Ack } else { FastClose::Rst };
    config.black_hole_timeouts = small.then(|| count(3));
    config.resets_per_second = keep.then(|| count(2));
    config.max_half_open = if small { 0 } else { 1024 };
    config.ports = it.ports.map(|(first, last)| first..=last);
    let mut policies = Policies::default();
    for (kind, n) in (0..).zip(it.policies) {
        policies.switch(&switch(kind, n));
    }
    config.policies = policies;
    config
}

/// Two endpoints, the segments between them, and the connections that each has heard of.
struct Bench {
    ends: [Endpoint; 2],
    ids: Vec<ConnectionId>,
    wire: VecDeque<(usize, anabranch_wire::Segment)>,
    now: Instant,
}

impl Bench {
    /// Makes a call on one end. Identifiers may be those of the other.
    fn call(&mut self, end: usize, call: &Call) {
        let (now, host) = (self.now, &mut self.ends[end]);
        let ids = &self.ids;
        let id = |n: u8| ids.get(usize::from(n) % ids.len().max(1)).copied();
        match *call {
            Call::Pass(span) => {
                self.now += span;
                self.ends.iter_mut().for_each(|end| end.handle_timeout(self.now));
            }
            Call::Exchange(loss) => self.exchange(loss),
            Call::Open(local, remote) => self.ids.extend(host.open(now, local, remote)),
            Call::Listen(port) => host.listen(port),
            Call::StopListening(port) => host.stop_listening(port),
            Call::Write(n, length) => {
                let data = pattern::slice(0, length.min(100_000));
                let _ = id(n).map(|id| host.write(id, &data));
            }
            Call::Replayable(n) => id(n).into_iter().for_each(|id| host.set_replayable(id)),
            Call::Read(n) => {
                let _ = id(n).map(|id| host.read(id));
            }
            Call::Shutdown(n) => id(n).into_iter().for_each(|id| host.shutdown(id)),
            Call::Abort(n) => id(n).into_iter().for_each(|id| host.abort(now, id)),
            Call::Switch(None, kind, which) => host.switch(now, &switch(kind, which)),
            Call::Switch(Some(n), kind, which) => {
                id(n).into_iter().for_each(|id| host.switch_connection(now, id, &switch(kind, which)));
            }
            Call::Backup(n, subflow, backup) => {
                id(n).into_iter().for_each(|id| host.set_backup(now, id, SubflowId(subflow % 40), backup));
            }
            Call::CloseSubflow(n, subflow) => {
                let _ = id(n).map(|id| host.close_subflow(now, id, SubflowId(subflow % 40)));
            }
            Call::Departure(tag, size) => host.handle_departure(tag, Bytes::new(size)),
            Call::Carrier(ip, up) => host.set_carrier(now, ip, up),
            Call::AddAddress(ip, backup) => {
                host.add_address(now, LocalAddress { ip, backup });
            }
            Call::RemoveAddress(ip) => {
                host.remove_address(now, ip);
            }
            Call::Mtu(ip, mtu) => host.set_mtu(now, ip, mtu),
            Call::TooBig(n, seq, mtu) => {
                let flows = id(n).map(|id| host.subflow_stats(id)).unwrap_or_default();
                for subflow in flows {
                    let flow = FlowKey::new(subflow.local, subflow.remote);
                    host.handle_too_big(now, flow, SubflowSeq::new(seq), mtu);
                }
            }
            Call::Truth(local, remote, rate, delay, loss) => {
                let truth = Truth { rate: Rate::from_bps(rate), delay, loss };
                host.set_truth(local, remote, Some(truth));
            }
            Call::Memory(age) => {
                let memory = host.path_memory(now).aged(age);
                host.set_path_memory(now, &memory);
            }
            Call::Echo(source, destination, identifier) => {
                host.handle_echo(now, Echo { source, destination, reply: false, identifier, sequence: 1 });
                while host.poll_echo().is_some() {}
            }
            Call::Ignores(ip, port, flags) => {
                let flow = FlowKey::new((ip, port).into(), ([10, end as u8, 0, 1], 80).into());
                host.ignores(now, &flow, Flags(flags));
            }
            Call::Loads => {
                host.watch_loads();
                while let Some(id) = host.poll_changed() {
                    let _ = host.load(id);
                }
            }
            Call::Look(n) => {
                if let Some(id) = id(n) {
                    let _ = (host.connection_stats(id), host.subflow_stats(id), host.write_space(id), host.load(id));
                }
                let _ = (host.connection_count(), host.poll_timeout(), host.addresses().count());
            }
            Call::NextTimeout => {
                host.next_timeout();
            }
            Call::Forget(n) => id(n).into_iter().for_each(|id| host.forget(id)),
        }
    }

    /// Carries segments to and fro. Of eight, those are lost whose bits are set in `loss`.
    fn exchange(&mut self, loss: u8) {
        for round in 0..4 {
            for end in 0..2 {
                while let Some((id, event)) = self.ends[end].poll_event() {
                    if let Event::Accepted { .. } = event {
                        self.ids.push(id);
                    }
                }
                let mut count = 0;
                while let Some(transmit) = self.ends[end].poll_transmit(self.now) {
                    count += 1;
                    assert!(count < 100_000, "an endpoint never stops sending");
                    self.wire.push_back((1 - end, *transmit.segment));
                }
            }
            for (number, (end, mut segment)) in self.wire.drain(..).enumerate() {
                if loss >> ((number + round) % 8) & 1 == 0 {
                    self.ends[end].handle_segment(self.now, &mut segment);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { max_global_rejects: 100_000, ..ProptestConfig::default() })]

    #[test]
    fn no_call_panics(
        settings in [settings(), settings()],
        seed in any::<u64>(),
        start in prop_oneof![3 => Just(0), 1 => number()],
        calls in proptest::collection::vec((0..2usize, call()), 1..80),
    ) {
        let end = |n: u8| Endpoint::new(config(n, &settings[usize::from(n)]), Seed(seed));
        let (client, server) = (end(0), end(1));
        prop_assume!(client.is_ok() && server.is_ok());
        let (client, server) = (client.unwrap(), server.unwrap());
        let now = Instant::from_nanos(start);
        let mut bench = Bench { ends: [client, server], ids: Vec::new(), wire: VecDeque::new(), now };
        // Most programs begin so, and others would seldom get as far.
        bench.ends[1].listen(80);
        bench.call(0, &Call::Open([10, 0, 0, 1].into(), ([10, 1, 0, 1], 80).into()));
        bench.exchange(0);
        for (end, call) in &calls {
            bench.call(*end, call);
        }
        bench.exchange(0);
        // What calls in the wrong order have delayed is made up for.
        let is_late = |bench: &Bench| bench.ends.iter().any(|end| end.poll_timeout().is_some_and(|at| at < bench.now));
        for _ in 0..20 {
            bench.call(0, &Call::Pass(Duration::ZERO));
            bench.exchange(0xff);
            if !is_late(&bench) {
                break;
            }
        }
        // After a leap of time, probes of a keepalive are made up for one by one, which can take many rounds.
        if is_late(&bench) {
            return Ok(());
        }
        for end in &bench.ends {
            prop_assert_eq!(end.check(bench.now), Ok(()));
        }
    }
}
