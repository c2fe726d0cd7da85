//! Studies: figures of papers as files, their runs, and verdicts on the papers' statements.
//!
//! ```text
//! file::StudyFile   axes, systems, plots, statements; `[scenario]` is a whole scenario
//!    │ Study::load                    bases, names, values that must be there
//! Prepared          one scenario per system and point
//!    │ run                            missing runs, on any number of threads
//! anabranch_lab::Journal    one line per run: an interrupted study continues where it stopped
//!    │ result                         plot.rs draws, judge.rs decides, search.rs tries alternatives
//! StudyResult       figures with intervals, a verdict for each statement
//! ```

mod claim;
pub mod file;
mod grid;
mod judge;
mod load;
pub(crate) mod metric;
mod outline;
mod over_time;
mod papers;
mod plot;
mod result;
mod run;
mod scale;
mod search;
mod shipped;
mod tally;
pub mod theory;

pub use grid::StudyError;
pub use load::Study;
#[cfg(not(target_arch = "wasm32"))]
pub(crate) use load::fill;
pub use outline::{AxisOutline, Outline, SystemOutline};
pub use over_time::SERIES;
pub use papers::{PAPERS, Paper};
pub use result::{Assumption, Judged, Search, Standing, StudyResult, SystemInfo, Tried, Verdict};
pub use run::{Prepared, Provenance, StudyRow};
pub use tally::Tally;
