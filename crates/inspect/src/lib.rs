//! Analysis of captures of Multipath TCP, including the gaps of the capture.
//!
//! An [`Inspector`] takes packets in the order of time and returns a [`Report`]; [`inspect`] feeds it from files.
//! Captures may begin in the middle, be cut short and miss packets: the report marks inferred values as such, and
//! values that cannot be known as unknown.
#![forbid(unsafe_code)]

mod clock;
mod connection;
mod copies;
mod coverage;
mod feed;
mod flow;
mod inspector;
mod limits;
mod mapping;
mod offer;
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

pub use feed::{Passing, Watched, inspect, inspect_bytes, inspect_watched};
pub use inspector::{Findings, Inspector, Place, Sighting};
pub use limits::Limits;
pub use offer::Offer;
pub use report::{
    AttemptReport, CaptureReport, ClockReport, ConnectionReport, DirectionReport, EndReport, FallbackReport,
    FileReport, GapReport, KeyReport, PlainReport, ReinjectionReport, Report, RttReport, SignalReport,
    SubflowDirectionReport, SubflowReport,
};
pub use summary::article;
