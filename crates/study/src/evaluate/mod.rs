//! Evaluation of congestion controls by the criteria of a document.
//!
//! ```text
//! file::CaseFile     one requirement: conditions, competitors, criteria with their reasons
//!    │ Suite::load   all cases of a document, and its obligations that are matters of words
//! Plan               runs of the candidate, of standard controls in its place, of competitors alone
//!    │ run           missing runs, on any number of threads; anabranch_lab::Flows of each is kept
//!    │ live_runs     missing runs of programs in real time, for whoever has a testbed
//! Evaluation         a row for each requirement: verdict, worst condition, command that repeats it
//! ```
//!
//! A document such as RFC 9743 gives no thresholds. Those of the cases stand in their files with their reasons; most
//! are what Reno and CUBIC reach in the same condition, which is the comparison that RFC 9743 §5.2 asks for.

pub mod file;
mod judge;
mod live;
mod load;
mod metric;
mod plan;
mod result;
mod shipped;

pub use live::{Kernel, LiveRun, Peer, Program, file_size, is_multipath};
pub use load::{Case, Suite};
pub use plan::{Candidate, Plan, Repeat};
pub use result::{Counts, Evaluation, Judged, OnTestbed, Row, RowVerdict, Worst};
