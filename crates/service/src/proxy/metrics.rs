//! Metrics for Prometheus: the proxy's own counts, and every statistic of the engine's tables, merged over connections.

use super::limits::{Admission, Limit};
use super::report::Outcome;
use super::sums::{Sums, register};
use anabranch_engine::statistics::Tables;
use anabranch_engine::{ConnectionId, Endpoint};
use anabranch_units::statistic::Tally;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::collections::{BTreeMap, BTreeSet};
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
    /// Of connections that have ended.
    pub(super) ended: Sums<'static>,
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

pub(super) type Labels = Vec<(&'static str, String)>;

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
        gauge(registry, "build_info", "Version of this program", [(version, 1.0)]);
        level(registry, "draining", "1 after the first SIGTERM", f64::from(u8::from(self.draining)));
        level(registry, "connections", "Client connections now", self.sessions as f64);
        level(registry, "clients", "Client addresses with connections", self.admission.clients() as f64);
        let held = self.admission.held() as f64;
        level(registry, "held_bytes", "Memory held for the data of connections", held);
        one(registry, "connections_accepted", "Client connections accepted", totals.accepted);
        let outcomes = totals.outcomes.iter().map(|(outcome, count)| (label("outcome", outcome.name()), *count));
        counter(registry, "connections_ended", "Client connections ended, by outcome", outcomes);
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
        counter(registry, "limit_hits", "Connections refused or ended by a limit", limits);
        let evicted = |limit: Limit| totals.evicted.get(&limit).copied().unwrap_or(0);
        let evictions =
            [Limit::Memory, Limit::ClientMemory].map(|limit| (label("limit", limit.name()), evicted(limit)));
        counter(
            registry,
            "connections_evicted",
            "Connections closed because they held the most memory, by limit exceeded",
            evictions,
        );
        let bytes = [("from_client", totals.from_client), ("to_client", totals.to_client)];
        let bytes = bytes.map(|(way, count)| (label("direction", way), count));
        counter(registry, "bytes", "Bytes of client streams forwarded", bytes);
        one(registry, "connect_attempts_failed", "Addresses that could not be connected to", totals.attempts_failed);
        if let Some(drops) = self.device_drops {
            one(registry, "device_drops", "Packets lost because the TUN device's queue was full", drops);
        }
    }

    fn engine(&self, registry: &mut Registry) {
        let totals = self.totals;
        let kinds = [("mptcp", totals.multipath), ("tcp", totals.plain)];
        let kinds = kinds.map(|(kind, count)| (label("protocol", kind), count));
        counter(registry, "handshakes", "Engine connections established, by protocol", kinds);
        one(registry, "subflows_established", "Subflows that could carry data", totals.subflows);
        one(registry, "subflows_reset", "Subflows that the peer reset with a reason", totals.subflow_resets);
        let mut counters = Tally::new(Tables::ENGINE.endpoint);
        counters.add(self.endpoint.counters());
        register(registry, counters.iter(), &mut BTreeSet::new());
    }

    /// Over all connections, those that go on included.
    fn connections(&self, registry: &mut Registry) {
        let (mut all, mut now) = (self.totals.ended.clone(), Sums::default());
        let mut established = 0;
        let mut paths: BTreeMap<IpAddr, Vec<f64>> = BTreeMap::new();
        for id in &self.live {
            let subflows = self.endpoint.subflow_stats(*id);
            if let Some(stats) = self.endpoint.connection_stats(*id) {
                all.add(&stats, &subflows);
                now.add(&stats, &subflows);
            }
            for subflow in subflows.iter().filter(|subflow| subflow.established) {
                established += 1;
                let samples = paths.entry(subflow.local.ip()).or_default();
                samples.extend(subflow.srtt.map(|rtt| rtt.as_secs_f64()));
            }
        }
        all.register(&now, registry);
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

pub(super) fn label(name: &'static str, value: &str) -> Labels {
    vec![(name, value.to_owned())]
}

pub(super) fn one(registry: &mut Registry, name: &str, help: &str, value: u64) {
    let counter = Counter::<u64>::default();
    counter.inc_by(value);
    registry.register(name, help, counter);
}

pub(super) fn level(registry: &mut Registry, name: &str, help: &str, value: f64) {
    let gauge = Gauge::<f64, AtomicU64>::default();
    gauge.set(value);
    registry.register(name, help, gauge);
}

pub(super) fn counter(
    registry: &mut Registry,
    name: &str,
    help: &str,
    values: impl IntoIterator<Item = (Labels, u64)>,
) {
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
