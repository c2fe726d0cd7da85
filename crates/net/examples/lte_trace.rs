//! Prints a made-up LTE trace in mahimahi's format, as the scenarios ship it:
//! `cargo run -p anabranch-net --example lte_trace -- 1 > lte.down`.

use anabranch_net::trace::{LteParams, synthetic_lte};

fn main() -> Result<(), std::num::ParseIntError> {
    let seed = std::env::args().nth(1).map_or(Ok(1), |seed| seed.parse())?;
    print!("{}", synthetic_lte(seed, &LteParams::default()));
    Ok(())
}
