//! Studies: many scenarios at once, and verdicts on them.
//!
//! ```text
//! study     figures and tables of papers: axes, systems, plots, statements -> verdicts
//! sweep     systems over axes of conditions, run by any number of processes
//! rank      the leaderboard: conditions drawn from a distribution, and a search for the worst of them
//! ```
#![forbid(unsafe_code)]

pub mod figure;
mod load;
pub mod rank;
pub mod study;
pub mod sweep;
#[cfg(test)]
mod testing;

pub use load::load;
