//! The judge: why a transfer took as long as it did.
//!
//! - [`Limit`] is the vocabulary, with one line for each limit in [`LIMITS`].
//! - [`Bands`] cut the time of a transfer into intervals, each with its [`Cause`]. They have no gaps, and add up to the
//!   transfer's time to the nanosecond.
//! - [`Judge`] watches a run of the simulator and gives each moment to one limit; `attribution.rs` has the order of
//!   precedence.
//! - [`Follower`] finds them in what the stock kernel tells of its sockets.
//! - [`CaptureInquiry`] finds the same limits in captures of anybody's hosts, and makes a [`Twin`]: a scenario.
//! - [`Alternatives`] are runs with one thing changed; [`Inquiry`] makes them and sums up in [`Answer`].
#![forbid(unsafe_code)]

mod alternative;
mod answer;
mod attribution;
mod bands;
mod budget;
mod buffers;
mod capture;
mod element;
mod idle;
mod inquiry;
mod judge;
mod limit;
mod live;
mod meter;
mod order;
mod pauses;
mod phrases;
mod sentence;

pub use alternative::{Alternative, Alternatives, Kind, LeftOut, Load, Others};
pub use anabranch_wire::Flags;
pub use answer::{Answer, IdlePath, Interval, Measure, PathTime, Pauses, Reason, Share, Transfer, Tried};
pub use bands::{Band, Bands, Cause};
pub use capture::{
    CaptureAnswer, CaptureInquiry, Confidence, Estimate, Fault, FaultKind, Flight, Heard, JudgedConnection,
    JudgedDirection, OtherConnection, PathAbout, PathMeasured, Sent, Trace, TracedFlow, Twin, TwinError,
};
pub use inquiry::{Inquiry, InquiryError, Progress};
pub use judge::{Judge, Judged};
pub use limit::{Entry, LIMITS, Limit};
pub use live::{
    Follower, Info, LiveAnswer, LiveConnection, LiveShare, LiveSubflow, Memory, MptcpInfo, Protocol, Socket, Target,
    TcpInfo,
};
