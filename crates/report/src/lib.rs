//! Output of results for people and programs: tables for the terminal, CSV, Parquet, JSON, and HTML pages with figures.
//!
//! This crate formats and computes nothing new; the sentence under a comparison only puts its numbers into words. The
//! same results give the same bytes.
#![forbid(unsafe_code)]

#[cfg(test)]
mod added;
#[cfg(not(target_arch = "wasm32"))]
mod adversary;
mod calibration;
mod comparison;
#[cfg(not(target_arch = "wasm32"))]
mod evaluation;
#[cfg(not(target_arch = "wasm32"))]
mod field;
pub mod file;
mod headline;
pub mod html;
mod inspection;
mod leaderboard;
mod number;
mod pairwise;
#[cfg(not(target_arch = "wasm32"))]
pub mod plot;
mod policies;
mod recording;
mod rows;
mod runs;
mod sheet;
mod study;
mod sweep;
mod table;
mod twin;
mod why;
mod why_capture;
mod why_live;
mod wrap;
mod xplot;

#[cfg(not(target_arch = "wasm32"))]
pub use adversary::hunt;
pub use calibration::calibration;
pub use comparison::comparison;
#[cfg(not(target_arch = "wasm32"))]
pub use evaluation::{evaluation, evaluation_document};
#[cfg(not(target_arch = "wasm32"))]
pub use field::{field, field_document};
pub use headline::{Headline, PaperHead, paper_heads};
pub use inspection::inspection;
pub use leaderboard::{LISTED, leaderboard};
pub use number::{bytes, percent};
pub use pairwise::pairwise;
pub use recording::{Recorded, Recordings, Window, recordings};
pub use rows::{Frame, Header, Results, Row, comparison_rows, json, run_rows};
pub use runs::{Repeated, in_full};
pub use sheet::Sheet;
pub use study::{reproduction, study};
pub use sweep::{Rows, sweep};
pub use table::{Align, Table};
pub use twin::twin;
pub use why::why;
pub use why_capture::why_capture;
pub use why_live::why_live;
pub use wrap::{hang, wrap};
pub use xplot::{XplotFile, xplot};
