//! Policies of anybody's making, in combinations that no paper thought of: the data still gets through.
#![allow(clippy::unwrap_used)]

mod common;

use anabranch_engine::Switch;
use anabranch_policy::receive_window::{Buffers, ReceiveWindow, Usage};
use anabranch_policy::scheduler::Scheduler;
use anabranch_policy::{Decision, View};
use anabranch_units::{Bytes, Duration, Instant};
use common::{CLIENT, PATTERN, Pair, SERVER, config};
use common::{client_ip, server_ip};
use std::sync::Arc;

/// Leaves the first of the unsent segments for later, as forward-prediction schedulers do.
struct Skipper;

impl Scheduler for Skipper {
    fn decide(&mut self, _now: Instant, view: &View<'_>) -> Decision {
        let Some(on) = view.fastest_with_room() else { return Decision::Wait { until: None } };
        let skip = if view.admits(on.mss, on.mss) { on.mss } else { Bytes::ZERO };
        Decision::Send { on: on.id, skip }
    }
}

/// Gives nobody a share until all that was sent is acknowledged.
struct Miser;

impl ReceiveWindow for Miser {
    fn share(&mut self, _now: Instant, _buffers: &Buffers, usage: &[Usage], shares: &mut [Bytes]) {
        if usage.iter().any(|one| !one.unacked.is_zero()) {
            shares.fill(Bytes::ZERO);
        }
    }
}

/// What was skipped is all that the acknowledgment of the rest waits for, and nothing is under way that could bring it.
#[test]
fn a_skipped_byte_leaves_though_nobody_has_a_share() {
    let mut server = config([server_ip(0)]);
    server.policies.switch(&Switch::Scheduler(Arc::new(|| Box::new(Skipper))));
    server.policies.switch(&Switch::ReceiveWindow(Arc::new(|| Box::new(Miser))));
    let mut pair = Pair::with(config((0..2).map(client_ip)), server);
    pair.open();
    pair.write(CLIENT, b"GET");
    pair.run(Duration::from_secs(5));
    pair.write(SERVER, PATTERN);
    pair.run(Duration::from_secs(60));
    assert!(pair.read[CLIENT] == PATTERN, "{} bytes", pair.read[CLIENT].len());
    let stats = pair.hosts[SERVER].connection(pair.id[SERVER].unwrap()).unwrap();
    assert!(stats.overruled.shares > 0, "{:?}", stats.overruled);
}
