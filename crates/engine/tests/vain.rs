//! Subflows that let joins through and nothing else: how a connection goes on beside them, and ends without others.
#![allow(clippy::unwrap_used)]

mod common;

use anabranch_engine::Policies;
use anabranch_policy::registry::{REINJECTIONS, find};
use anabranch_units::Duration;
use common::{CLIENT, PATTERN, Pair, SERVER, client_ip, config, server_ip};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A regular path swallows what is large, and so times out again and again, beside a backup that works. After three
/// repetitions in vain (RFC 9293 §3.8.3) the backup has its turn, also for a reinjection policy that calls no subflow
/// failed.
#[test]
fn a_backup_stands_in_for_a_path_that_only_times_out() {
    for policy in ["none", "on-rto", "upstream"] {
        let entry = find(REINJECTIONS, "reinjection", policy).unwrap();
        let (mut client, mut server) = (config((0..2).map(client_ip)), config([server_ip(0)]));
        client.addresses[1].backup = true;
        let params = entry.params(&BTreeMap::new()).unwrap();
        let policies = Policies { reinjection: Arc::new(move || (entry.build)(&params)), ..Policies::default() };
        (client.policies, server.policies) = (policies.clone(), policies);
        let mut pair = Pair::with(client, server);
        pair.open();
        pair.write(CLIENT, b"hello");
        pair.run(Duration::from_secs(1));
        pair.rule = Box::new(|_, segment| {
            let first = [segment.flow.src, segment.flow.dst].contains(&client_ip(0));
            !first || segment.payload.len() < 1000
        });
        pair.write(SERVER, PATTERN);
        pair.run(Duration::from_secs(120));
        assert_eq!(pair.read[CLIENT].len(), PATTERN.len(), "{policy}");
    }
}
