//! Studies: a figure of a paper as a file, and what becomes of it when it is run.
//!
//! ```text
//! file::StudyFile   axes, systems, plots, statements; `[scenario]` is a whole scenario
//!    │
//! StudyResult       figures with intervals, a verdict for each statement
//! ```

pub mod file;
mod result;
pub mod theory;

pub use result::{Assumption, Judged, StudyResult, SystemInfo, Tried, Verdict};
