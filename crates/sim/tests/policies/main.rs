//! Each policy against its neighbours: a simulation whose outcome changes, in the direction its paper argues, when the
//! one is swapped for the other.
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;

mod ack_path;
mod bbr3;
mod congestion;
mod first_path;
mod forecast;
mod marks;
mod plan;
mod queue;
mod reinjection;
mod simple;
mod switching;
mod watchdog;
mod window;

use anabranch_policy::registry::{Entry, Kind, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

#[allow(dead_code)]
/// Makes the policy called `name`, with these parameters set.
fn policy<T: Kind + ?Sized>(
    table: &'static [Entry<T>],
    name: &str,
    given: &[(&str, Value)],
) -> anabranch_engine::Factory<T> {
    let entry = table.iter().find(|entry| entry.name == name).unwrap();
    let given: BTreeMap<String, Value> =
        given.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    let params = entry.params(&given).unwrap();
    Arc::new(move || entry.build(&params))
}
