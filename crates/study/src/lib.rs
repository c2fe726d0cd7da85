//! Studies: many scenarios at once, and verdicts on them.
//!
//! ```text
//! study     figures and tables of papers: axes, systems, plots, statements -> verdicts
//! field     results that others measured, beside predictions from their inputs
//! sweep     systems over axes of conditions, run by any number of processes
//! evaluate  congestion controls by the criteria of a document -> a row for each requirement
//! rank      the leaderboard: conditions drawn from a distribution, and a search for the worst of them
//! ```
#![forbid(unsafe_code)]

#[cfg(not(target_arch = "wasm32"))]
pub mod evaluate;
// A page in a browser reads no files and fetches nothing.
#[cfg(not(target_arch = "wasm32"))]
pub mod field;
pub mod figure;
mod load;
pub mod rank;
pub mod study;
pub mod sweep;
#[cfg(test)]
mod testing;

pub use load::load;
