//! Results of runs, for tests.
#![allow(clippy::unwrap_used)]

use anabranch_lab::{Keep, Measured, run};
use anabranch_policy::Catalogue;
use anabranch_scenario::{Origin, Scenario};
use std::sync::{Arc, OnceLock};

const SCENARIO: &str = "[path.a]\nrate = \"10mbit\"\ndelay = \"5ms\"\n[path.b]\nrate = \"10mbit\"\ndelay = \"5ms\"\n\
                        [[workload]]\nkind = \"files\"\nsize = \"20kB\"\n";

/// Returns the result of a small run with this seed, completion time and goodput in place of its own.
pub(crate) fn measured(seed: u64, completion_s: f64, goodput_bps: f64) -> Measured {
    static SMALL: OnceLock<Measured> = OnceLock::new();
    let small = SMALL.get_or_init(|| {
        let (catalogue, origin) = (Arc::new(Catalogue::default()), Origin::default());
        let read = |_: &str, _| Err(std::io::ErrorKind::NotFound.into());
        let scenario = Scenario::read(&catalogue, "small", "small.toml", SCENARIO, origin, &read).unwrap();
        run(&scenario, 1, &Keep::default()).unwrap().measured
    });
    Measured { seed, completion_s: Some(completion_s), goodput_bps, mean_goodput_bps: goodput_bps, ..small.clone() }
}
