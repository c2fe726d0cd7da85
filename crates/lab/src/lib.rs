//! Lab: reads and checks scenario files, makes their runs, and summarises results with their uncertainty.
//!
//! ```text
//! file::File   the TOML as it is written, strict         ── the JSON schema is made from it
//!    │ resolve                                              defaults, contradictions, names
//! Scenario     one Spec per seed
//!    │ run, run_seeds                                        on any number of threads, in order
//! Measured     one row per run
//!    │ compare, stats                                       paired differences, intervals, baselines
//! Summary
//! ```
#![forbid(unsafe_code)]

mod asked;
pub mod calibration;
pub mod columnar;
pub mod compare;
mod counted;
mod error;
pub mod figure;
pub mod file;
mod journal;
mod load;
mod measured;
mod named;
mod page;
pub mod pairwise;
mod program;
pub mod rank;
mod record;
mod resolve;
mod run;
mod samples;
mod scenario;
mod schema;
pub mod shipped;
pub mod statistic;
pub mod stats;
pub mod study;
pub mod sweep;
pub mod timeline;
mod tree;
mod variant;
mod vary;
mod watch;

pub use asked::Answer;
pub use counted::Counted;
pub use error::{Problem, ScenarioError, Sources};
pub use journal::{Journal, JournalError, KeepError};
pub use load::load;
pub use measured::{Measured, MiddleboxCounts, PathSamples, Samples, WindowMeasured};
pub use named::{named, named_ack_path, split as split_policies};
pub use program::{UNKNOWN_BUILD, VERSION, build, build_is_of, version_with_build};
pub use record::Recorder;
pub use resolve::{Given, HostSettings};
pub use run::{Keep, Run, RunError, panic_text, run, run_seeds, threads};
pub use scenario::{Origin, ReadTrace, Scenario, in_shell, not_found};
pub use schema::schema;
pub use tree::Layer;
pub use variant::{Chosen, Settings, Switched, Variant};
pub use watch::Watch;
