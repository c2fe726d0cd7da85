//! Prometheus metrics: the endpoint's counters, and sums over the proxy's connections.

use super::limits::{Admission, Limit};
use super::report::Outcome;
use anabranch_engine::{ConnectionId, ConnectionStats, Endpoint, FallbackReason, Overruled, SubflowStats};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::AtomicU64;

/// Counted from the start of the proxy.
#[derive(Default)]
pub(super) struct Totals {
    pub(super) accepted: u64,
    pub(super) outcomes: BTreeMap<Outcome, u64>,
    pub(super) limits: BTreeMap<Limit, u64>,
    /// Connections cut off because they held most, by the limit that was exceeded.
    pub(super) evicted: BTreeMap<Limit, u64>,
    pub(super) from_client: u64,
    pub(super) to_client: u64,
    pub(super) attempts_failed: u64,
    pub(super) multipath: u64,
    pub(super) plain: u64,
    pub(super) subflows: u64,
    pub(super) subflow_resets: u64,
    /// Sums over connections that have ended.
    pub(super) ended: Ended,
}

/// Counters of the engine for connections that have ended.
#[derive(Default, Clone, Copy)]
pub(super) struct Ended {
    retransmitted: u64,
    timeouts: u64,
    reinjected: u64,
    duplicates: u64,
    overruled: Overruled,
}

impl Ended {
    /// A connection with these figures has ended, or still goes on.
    pub(super) fn add(&mut self, stats: &ConnectionStats, subflows: &[SubflowStats]) {
        self.retransmitted += subflows.iter().map(|subflow| subflow.retransmitted).sum::<u64>();
        self.timeouts += subflows.iter().map(|subflow| subflow.rtos).sum::<u64>();
        self.reinjected += stats.reinjected;
        self.duplicates += stats.duplicates;
        let (all, one) = (&mut self.overruled, &stats.overruled);
        all.impossible += one.impossible;
        all.starving += one.starving;
        all.looping += one.looping;
        all.shares += one.shares;
        all.copies += one.copies;
    }
}

impl Totals {
    /// A limit was in someone's way.
    pub(super) fn hit(&mut self, limit: Limit) {
        *self.limits.entry(limit).or_default() += 1;
    }
}

/// Sources of the metrics at one moment.
pub(super) struct Scrape<'a> {
    pub(super) totals: &'a Totals,
    pub(super) endpoint: &'a Endpoint,
    pub(super) admission: &'a Admission,
    pub(super) sessions: usize,
    /// Connections of the endpoint that belong to sessions.
    pub(super) live: Vec<ConnectionId>,
    pub(super) draining: bool,
    /// Packets for us that the TUN device's queue had no room for.
    pub(super) device_drops: Option<u64>,
}

type Labels = Vec<(&'static str, String)>;

impl Scrape<'_> {
    /// Formats the metrics in the OpenMetrics text format.
    pub(super) fn text(&self) -> String {
        let mut registry = Registry::with_prefix("anabranch");
        self.proxy(&mut registry);
        self.engine(&mut registry);
        self.connections(&mut registry);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).expect("writing to a String cannot fail");
        text
    }

    fn proxy(&self, registry: &mut Registry) {
        let totals = self.totals;
        let version = vec![("version", env!("CARGO_PKG_VERSION").to_owned())];
        gauge(registry, "build_info", "The program that answers", [(version, 1.0)]);
        level(registry, "draining", "1 after the first SIGTERM", f64::from(u8::from(self.draining)));
        level(registry, "connections", "Client connections now", self.sessions as f64);
        level(registry, "clients", "Client addresses with connections", self.admission.clients() as f64);
        let held = self.admission.held() as f64;
        level(registry, "held_bytes", "Memory held for the data of connections", held);
        one(registry, "connections_accepted", "Client connections", totals.accepted);
        let outcomes = totals.outcomes.iter().map(|(outcome, count)| (label("outcome", outcome.name()), *count));
        counter(registry, "connections_ended", "Client connections ended, by how", outcomes);
        let limits = [
            Limit::Connections,
            Limit::ClientConnections,
            Limit::Memory,
            Limit::ClientMemory,
            Limit::Resolver,
            Limit::Network,
            Limit::Draining,
        ];
        let hit = |limit: Limit| totals.limits.get(&limit).copied().unwrap_or(0);
        let limits = limits.map(|limit| (label("limit", limit.name()), hit(limit)));
        counter(registry, "limit_hits", "How often a limit was in a client's way", limits);
        let evicted = |limit: Limit| totals.evicted.get(&limit).copied().unwrap_or(0);
        let evictions =
            [Limit::Memory, Limit::ClientMemory].map(|limit| (label("limit", limit.name()), evicted(limit)));
        counter(registry, "connections_evicted", "Connections cut off because they held most, by limit", evictions);
        let bytes = [("from_client", totals.from_client), ("to_client", totals.to_client)];
        let bytes = bytes.map(|(way, count)| (label("direction", way), count));
        counter(registry, "bytes", "Bytes of client streams passed on", bytes);
        one(registry, "connect_attempts_failed", "Addresses that could not be connected to", totals.attempts_failed);
        if let Some(drops) = self.device_drops {
            one(registry, "device_drops", "Packets lost because the TUN device's queue was full", drops);
        }
    }

    fn engine(&self, registry: &mut Registry) {
        let (totals, counters) = (self.totals, self.endpoint.counters());
        let kinds = [("mptcp", totals.multipath), ("tcp", totals.plain)];
        let kinds = kinds.map(|(kind, count)| (label("protocol", kind), count));
        counter(registry, "handshakes", "Engine connections established, by protocol", kinds);
        one(registry, "subflows_established", "Subflows that could carry data", totals.subflows);
        one(registry, "subflows_reset", "Subflows that the peer reset with a reason", totals.subflow_resets);
        let count = |reason: &FallbackReason| counters.fallbacks.get(reason).copied().unwrap_or(0);
        let fallbacks = FallbackReason::ALL.iter().map(|reason| (label("reason", reason.name()), count(reason)));
        counter(registry, "fallbacks", "Connections that are plain TCP although MPTCP was asked for", fallbacks);
        let sent = counters.resets_sent.iter().map(|(reason, count)| (label("reason", &reason.name()), *count));
        counter(registry, "resets_sent", "RSTs sent with a reason (MP_TCPRST)", sent);
        one(registry, "resets_received", "RSTs accepted", counters.resets_received);
        one(registry, "joins_refused", "MP_JOINs refused: token, HMAC or limit", counters.joins_refused);
        one(registry, "checksum_failures", "Mappings with a wrong DSS checksum", counters.checksum_failures);
        one(registry, "unacceptable_segments", "Segments outside the window or failing PAWS", counters.unacceptable);
        one(registry, "unknown_flow_segments", "Segments of no connection", counters.unknown_flow);
        one(registry, "syn_cookies_sent", "SYNs answered with a SYN cookie", counters.cookies_sent);
        one(registry, "syn_cookies_received", "Connections made of a SYN cookie's answer", counters.cookies_received);
        one(registry, "syn_cookies_invalid", "Segments that answered no SYN cookie of ours", counters.cookies_invalid);
        one(registry, "half_open_dropped", "SYNs not answered: no SYN cookie for them", counters.half_open_dropped);
        one(registry, "joins_deferred", "MP_JOINs answered without a subflow", counters.joins_deferred);
        one(registry, "half_open_joins_dropped", "Such joins forgotten for others", counters.half_open_joins_dropped);
        one(registry, "refused_data_bytes", "Data beyond the window or memory limits", counters.refused_data);
    }

    /// Over all connections, those that go on included.
    fn connections(&self, registry: &mut Registry) {
        let mut all = self.totals.ended;
        let mut established = 0;
        let mut paths: BTreeMap<IpAddr, Vec<f64>> = BTreeMap::new();
        for id in &self.live {
            let subflows = self.endpoint.subflows(*id);
            if let Some(stats) = self.endpoint.connection(*id) {
                all.add(&stats, &subflows);
            }
            for subflow in subflows.iter().filter(|subflow| subflow.established) {
                established += 1;
                let samples = paths.entry(subflow.local.ip()).or_default();
                samples.extend(subflow.srtt.map(|rtt| rtt.as_secs_f64()));
            }
        }
        one(registry, "retransmissions", "Segments retransmitted", all.retransmitted);
        one(registry, "retransmission_timeouts", "Retransmission timeouts", all.timeouts);
        one(registry, "reinjected_bytes", "Bytes sent again on another subflow", all.reinjected);
        one(registry, "duplicate_bytes", "Bytes received more than once", all.duplicates);
        let Overruled { impossible, starving, looping, shares, copies } = all.overruled;
        let kinds = [
            ("impossible", impossible),
            ("starving", starving),
            ("looping", looping),
            ("shares", shares),
            ("copies", copies),
        ];
        let kinds = kinds.map(|(kind, count)| (label("kind", kind), count));
        counter(registry, "policy_overruled", "Decisions of policies that were not followed", kinds);
        level(registry, "subflows", "Subflows established now", f64::from(established));
        let rtts = paths.iter().filter(|(_, samples)| !samples.is_empty()).flat_map(|(local, samples)| {
            let least = samples.iter().copied().fold(f64::INFINITY, f64::min);
            let most = samples.iter().copied().fold(0.0, f64::max);
            let mean = samples.iter().sum::<f64>() / samples.len() as f64;
            [("min", least), ("mean", mean), ("max", most)]
                .map(|(statistic, value)| (vec![("local", local.to_string()), ("statistic", statistic.into())], value))
        });
        gauge(registry, "path_rtt_seconds", "Smoothed RTT of the subflows from a local address now", rtts);
    }
}

fn label(name: &'static str, value: &str) -> Labels {
    vec![(name, value.to_owned())]
}

fn one(registry: &mut Registry, name: &str, help: &str, value: u64) {
    let counter = Counter::<u64>::default();
    counter.inc_by(value);
    registry.register(name, help, counter);
}

fn level(registry: &mut Registry, name: &str, help: &str, value: f64) {
    let gauge = Gauge::<f64, AtomicU64>::default();
    gauge.set(value);
    registry.register(name, help, gauge);
}

fn counter(registry: &mut Registry, name: &str, help: &str, values: impl IntoIterator<Item = (Labels, u64)>) {
    let family = Family::<Labels, Counter>::default();
    for (labels, value) in values {
        family.get_or_create(&labels).inc_by(value);
    }
    registry.register(name, help, family);
}

fn gauge(registry: &mut Registry, name: &str, help: &str, values: impl IntoIterator<Item = (Labels, f64)>) {
    let family = Family::<Labels, Gauge<f64, AtomicU64>>::default();
    for (labels, value) in values {
        family.get_or_create(&labels).set(value);
    }
    registry.register(name, help, family);
}

/// Packets for the process that found the queue of the TUN device full, as the kernel counts them.
pub(super) fn device_drops(device: &str) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/net/dev").ok()?;
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix(device)?.strip_prefix(':'))?;
    // Eight columns received, then bytes, packets, errs, drop of what the kernel sends, which is what we receive.
    line.split_whitespace().nth(11)?.parse().ok()
}
