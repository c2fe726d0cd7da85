//! Applications on the wire: built-in services, a download client, the proxy. They are state machines over an endpoint,
//! so that they can be tested without a network.
//!
//! Server, client and proxy need Linux. Elsewhere there is a page on a socket of the host's own stack, with more of
//! HTTP than it needs.
#![forbid(unsafe_code)]
#![cfg_attr(not(target_os = "linux"), expect(dead_code, unused_imports))]

mod course;
#[cfg(target_os = "linux")]
mod fetch;
mod http;
mod journal;
mod patience;
mod plain;
#[cfg(target_os = "linux")]
pub mod proxy;
#[cfg(target_os = "linux")]
mod server;
mod session;
mod stream;

pub use course::Course;
#[cfg(target_os = "linux")]
pub use fetch::{
    Fetch, FetchError, FetchLimits, Outcome, Progress, Scheme, Sink, Target, TargetError, Upload, Watch, WriterSink,
};
pub use http::{Answerer, LocalSite, Resource};
#[cfg(target_os = "linux")]
pub use http::{HttpLimits, Root, Site};
pub use journal::{Form, Journal};
pub use patience::{LEAST_RATE, Pace};
#[cfg(target_os = "linux")]
pub use server::{Listener, Server, ServerLimits, Service, Totals};
pub use stream::Stream;
