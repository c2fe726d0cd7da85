//! Lab: makes the runs of scenarios, and summarises results with their uncertainty.
//!
//! ```text
//! Scenario     of `anabranch-scenario`: one Spec per seed
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
mod flow_observer;
mod flows;
pub mod format;
mod journal;
mod live_flows;
mod measured;
mod packet_event;
pub mod pairwise;
mod program;
mod qlog;
mod record;
mod run;
mod samples;
pub mod statistic;
pub mod stats;
pub mod timeline;

pub use asked::Answer;
pub use counted::Counted;
pub use flows::{Delay, Flows, Party, PhaseChange, Span, flows};
pub use journal::{Journal, JournalError, JournalLine, KeepError, Kept};
pub use live_flows::{LiveFlows, LiveParty, Place};
pub use measured::{LinkMeasured, Measured, MiddleboxCounts, PathSamples, QueueMeasured, Samples, WindowMeasured};
pub use packet_event::{PacketEvent, RunHead};
pub use program::{UNKNOWN_BUILD, VERSION, build, build_is, build_is_of, version_with_build};
pub use qlog::{QlogObserver, qlog_head};
pub use record::Recorder;
pub use run::{BATCH, Keep, Run, RunError, in_batches, in_parallel, panic_text, run, run_seeds, run_watched, threads};

/// Time at which a run begins in its captures, since 1970.
pub const CAPTURES_BEGIN: anabranch_units::Duration = anabranch_capture::EPOCH;
