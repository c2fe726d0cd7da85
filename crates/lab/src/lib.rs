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
#[path = "../../scenario/src/error.rs"]
mod error;
#[path = "../../study/src/figure.rs"]
pub mod figure;
#[path = "../../scenario/src/file/mod.rs"]
pub mod file;
mod journal;
#[path = "../../study/src/load.rs"]
mod load;
mod measured;
#[path = "../../scenario/src/named.rs"]
mod named;
#[path = "../../scenario/src/page/mod.rs"]
mod page;
pub mod pairwise;
mod program;
#[path = "../../study/src/rank/mod.rs"]
pub mod rank;
mod record;
#[path = "../../scenario/src/resolve/mod.rs"]
mod resolve;
mod run;
mod samples;
#[path = "../../scenario/src/scenario.rs"]
mod scenario;
#[path = "../../scenario/src/schema.rs"]
mod schema;
#[path = "../../scenario/src/shipped.rs"]
pub mod shipped;
pub mod statistic;
pub mod stats;
#[path = "../../study/src/study/mod.rs"]
pub mod study;
#[path = "../../study/src/sweep/mod.rs"]
pub mod sweep;
pub mod timeline;
#[path = "../../scenario/src/tree.rs"]
mod tree;
#[path = "../../scenario/src/variant.rs"]
mod variant;
#[path = "../../scenario/src/vary.rs"]
mod vary;
#[path = "../../scenario/src/watch.rs"]
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
