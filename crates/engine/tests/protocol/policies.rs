//! Third-party policies, in combinations that no paper describes: the data still gets through.

use crate::common::puppet::Puppet;
use crate::common::{CLIENT, PATTERN, Pair, SERVER, client_ip, config, server_ip};
use anabranch_engine::Switch;
use anabranch_policy::receive_window::{Buffers, ReceiveWindow, Usage};
use anabranch_policy::scheduler::Scheduler;
use anabranch_policy::{Decision, SubflowView, View};
use anabranch_units::{Bytes, Duration, Instant};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Leaves the first of the unsent segments for later, as forward-prediction schedulers do.
struct Skipper;

impl Scheduler for Skipper {
    fn decide(&mut self, _now: Instant, view: &View<'_>) -> Decision {
        let Some(on) = view.fastest_with_room() else { return Decision::Wait { until: None } };
        let skip = if view.admits(on.mss, on.mss) { on.mss } else { Bytes::ZERO };
        Decision::Send { on: on.id, skip }
    }
}

/// Gives no subflow a share until all sent data is acknowledged.
struct Miser;

impl ReceiveWindow for Miser {
    fn share(&mut self, _now: Instant, _buffers: &Buffers, usage: &[Usage], shares: &mut [Bytes]) {
        if usage.iter().any(|one| !one.unacked.is_zero()) {
            shares.fill(Bytes::ZERO);
        }
    }
}

/// A skipped byte leaves although all shares are zero: the acknowledgment of the rest waits for it, and nothing is
/// under way that could bring it.
#[test]
fn a_skipped_byte_leaves_though_nobody_has_a_share() {
    let mut server = config([server_ip(0)]);
    server.policies.switch(&Switch::Scheduler(Arc::new(|| Skipper.into())));
    server.policies.switch(&Switch::ReceiveWindow(Arc::new(|| Miser.into())));
    let mut pair = Pair::with(config((0..2).map(client_ip)), server);
    pair.open();
    pair.write(CLIENT, b"GET");
    pair.run(Duration::from_secs(5));
    pair.write(SERVER, PATTERN);
    pair.run(Duration::from_secs(60));
    assert!(pair.read[CLIENT] == PATTERN, "{} bytes", pair.read[CLIENT].len());
    let stats = pair.hosts[SERVER].connection_stats(pair.id[SERVER].unwrap()).unwrap();
    assert!(stats.overruled.shares > 0, "{:?}", stats.overruled);
}

/// Does nothing, and has itself woken again at once; with `after`, sends so long after it was first asked.
struct Sleeper {
    pause: Duration,
    after: Option<Duration>,
    begun: Option<Instant>,
}

impl Scheduler for Sleeper {
    fn decide(&mut self, now: Instant, view: &View<'_>) -> Decision {
        let begun = *self.begun.get_or_insert(now);
        match (view.fastest_with_room(), self.after) {
            (Some(on), Some(after)) if now >= begun + after => Decision::send(on.id),
            _ => Decision::Wait { until: Some(now + self.pause) },
        }
    }
}

/// A new scheduler is not blamed for acts of the old one: it gets its own timers and its full time.
#[test]
fn a_new_scheduler_begins_with_a_clean_record() {
    let sleeper =
        |pause, after| -> Switch { Switch::Scheduler(Arc::new(move || Sleeper { pause, after, begun: None }.into())) };
    let mut server = config([server_ip(0)]);
    server.policies.switch(&sleeper(Duration::from_nanos(1), None));
    let mut pair = Pair::with(config((0..2).map(client_ip)), server);
    pair.open();
    pair.write(CLIENT, b"GET");
    pair.run(Duration::from_secs(5));
    pair.write(SERVER, &PATTERN[..5000]);
    pair.run(Duration::from_millis(100));
    let overruled = |pair: &Pair| pair.hosts[SERVER].connection_stats(pair.id[SERVER].unwrap()).unwrap().overruled;
    let before = overruled(&pair);
    assert!(before.looping == 1 && before.starving == 0, "{before:?}");
    let id = pair.id[SERVER].unwrap();
    let patient = sleeper(Duration::from_millis(150), Some(Duration::from_millis(150)));
    pair.hosts[SERVER].switch_connection(pair.now, id, &patient);
    pair.run(Duration::from_secs(5));
    assert!(pair.read[CLIENT] == PATTERN[..5000], "{} bytes", pair.read[CLIENT].len());
    assert_eq!(overruled(&pair), before);
}

/// Counts the views in which a subflow has a DATA_ACK of what was never sent.
struct Believer(Arc<AtomicU64>);

impl Scheduler for Believer {
    fn decide(&mut self, _now: Instant, view: &View<'_>) -> Decision {
        let lie = |subflow: &SubflowView| subflow.data_acked.is_some_and(|acked| acked.after(view.unsent_from));
        self.0.fetch_add(u64::from(view.subflows.iter().any(lie)), Ordering::Relaxed);
        view.fastest_with_room().map_or(Decision::Wait { until: None }, |on| Decision::send(on.id))
    }
}

/// An optimistic DATA_ACK is ignored altogether (RFC 8684 §3.3.2): schedulers that learn from DATA_ACKs do not see it
/// either.
#[test]
fn schedulers_do_not_see_an_optimistic_data_ack() {
    let lies = Arc::new(AtomicU64::new(0));
    let mut server = config([server_ip(0)]);
    let count = lies.clone();
    server.policies.scheduler = Arc::new(move || Believer(count.clone()).into());
    let (mut puppet, line) = Puppet::accepted(server);
    puppet.confirm(line, 1, 0);
    puppet.join(1);
    puppet.write(PATTERN);
    let dss = puppet.data_ack(1 << 20);
    puppet.send(line.ack(1), |segment| segment.options.set_dss(Some(dss)));
    puppet.confirm(line.acking(1401), 1, 1400);
    puppet.wait(Duration::from_secs(1));
    assert_eq!(puppet.host.subflow_stats(puppet.id.unwrap()).len(), 2);
    assert_eq!(lies.load(Ordering::Relaxed), 0);
}
