//! Serves packets by a queue discipline at a constant rate, and tells what became of each:
//! `cargo run -p anabranch-net --example queue -- codel,target=5 10 1000 < arrivals.csv > fates.csv`.
//!
//! Arguments are the discipline, the rate in Mbit/s, the packets that may wait, and the seed of random draws (1 unless
//! given). Lines of the input are `at,size,flow,ecn`, in ns and bytes, below a line of names; lines of the output are
//! `kind,at` for packets in the same order. Lines of one number are times at which a packet may leave: where there are
//! any, packets leave at those times alone, whatever the rate.

mod replay;

use replay::{Set, read, replay};
use std::error::Error;
use std::fmt::Write;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (discipline, mbit, limit, seed) = match arguments.as_slice() {
        [discipline, mbit, limit] => (discipline, mbit, limit, "1"),
        [discipline, mbit, limit, seed] => (discipline, mbit, limit, seed.as_str()),
        _ => return Err("arguments: DISCIPLINE[,NAME=VALUE...] MBIT PACKETS [SEED]".into()),
    };
    let (arrivals, slots) = read(&std::io::read_to_string(std::io::stdin())?)?;
    let set =
        Set { discipline: discipline.clone(), mbit: mbit.parse()?, limit: limit.parse()?, seed: seed.parse()?, slots };
    let fates = replay(&set, &arrivals)?;
    let mut text = String::from("kind,at\n");
    for fate in fates {
        writeln!(text, "{},{}", fate.kind, fate.at)?;
    }
    print!("{text}");
    Ok(())
}
