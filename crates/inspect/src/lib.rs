//! What happened in a capture of Multipath TCP, and what the capture does not show.
//!
//! An [`Inspector`] takes packets in the order of time and answers a [`Report`]; [`inspect`] feeds it from files. Captures of
//! strangers begin in the middle, are cut short and miss packets: what cannot be known is said, not guessed, and what is
//! inferred is called that.
#![forbid(unsafe_code)]

mod connection;
mod copies;
mod coverage;
mod feed;
mod flow;
mod inspector;
mod limits;
mod mapping;
mod race;
mod report;
mod samples;
mod sequence;
mod signal;
mod stream;
mod summary;
mod unknown;
mod verdict;
mod version;

pub use feed::inspect;
pub use inspector::Inspector;
pub use limits::Limits;
pub use report::{
    AttemptReport, CaptureReport, ConnectionReport, DirectionReport, EndReport, FallbackReport, FileReport, GapReport,
    KeyReport, PlainReport, ReinjectionReport, Report, RttReport, SignalReport, SubflowDirectionReport, SubflowReport,
};
