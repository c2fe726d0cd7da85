//! Leaderboard of schedulers over conditions that are drawn from a defined distribution.
//!
//! ```text
//! Point        one number of [0, 1) per choice           ── drawn from seed and number, or moved by the adversary
//!    │ Condition::at                                         the distribution (docs/leaderboard.md)
//! Condition    paths, loss, dynamics, work, buffers          written as TOML, read back as a Scenario
//!    │ League::run                                           every system on common seeds: a campaign of crate::sweep
//! Field        times of every system in one condition
//!    │ Leaderboard::of                                       ratios to the best of all others, and their distribution
//! Leaderboard
//! ```

// A page has no use for the search, whose algebra is slow to compile.
#[cfg(not(target_arch = "wasm32"))]
mod adversary;
mod condition;
mod drive;
mod leaderboard;
mod league;
mod point;
#[cfg(not(target_arch = "wasm32"))]
mod recorded;
mod written;

#[cfg(not(target_arch = "wasm32"))]
pub use adversary::{Find, Hunt, TCP, Verified};
pub use condition::{BULK_SECONDS, Class, Condition, DrawnPath, Dynamics, Family, LossKind, PageKind, Work};
pub use drive::Network;
pub use leaderboard::{Cell, Leaderboard, Reference, Slower, Split, Standing, ToBackups, Worst};
pub use league::{Field, League, RankError};
pub use point::Point;
#[cfg(not(target_arch = "wasm32"))]
pub use recorded::{Recorded, WINDOW};

/// Schedulers that know more than a host can. They are ranked, but do not count as another scheduler's best other.
pub const ORACLES: &[&str] = &["edpf"];

/// Seed and number of conditions of the frozen set, which never change.
pub const FROZEN: (u64, u32) = (2026, 1000);

/// Number of drives of the frozen set, of the same seed.
pub const FROZEN_DRIVES: u32 = 200;

/// Returns true if the scheduler, named with or without parameters, is an oracle.
pub(crate) fn is_oracle(name: &str) -> bool {
    ORACLES.contains(&name.split(':').next().unwrap_or(name))
}

#[cfg(test)]
mod tests;
