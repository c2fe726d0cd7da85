//! Studies: a figure of a paper as a file, and what becomes of it when it is run.
//!
//! ```text
//! file::StudyFile   axes, systems, plots, statements; `[scenario]` is a whole scenario │ Study::load
//! bases, names, values that must be there Prepared          one scenario per system and point │ run
//! what the journal does not have, on any number of threads crate::Journal    one line per run: a killed study goes on
//! where it was │ result                                               plot.rs draws, judge.rs decides, search.rs tries
//! what else could be StudyResult       figures with intervals, a verdict for each statement
//! ```

mod claim;
pub mod file;
mod grid;
mod judge;
mod load;
pub(crate) mod metric;
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
pub use over_time::SERIES;
pub use papers::{PAPERS, Paper};
pub use result::{Assumption, Judged, Search, Standing, StudyResult, SystemInfo, Tried, Verdict};
pub use run::{Prepared, Provenance, StudyRow};
pub use tally::Tally;
