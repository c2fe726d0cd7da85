//! Applications on the wire: built-in services, a download client, the proxy. They are state machines over an endpoint,
//! so that they can be tested without a network.
#![forbid(unsafe_code)]

mod course;
mod fetch;
mod http;
mod journal;
mod patience;
mod plain;
pub mod proxy;
mod report;
mod server;
mod session;
pub mod statistics;
mod stream;

pub use course::Course;
pub use fetch::{
    Fetch, FetchError, FetchLimits, Outcome, Progress, Scheme, Sink, Target, TargetError, Upload, Watch, WriterSink,
};
pub use http::{Answerer, HttpLimits, LocalSite, Resource, Root, Site};
pub use journal::{ConnectionEvent, Journal};
pub use patience::{LEAST_RATE, Pace};
pub use report::{ConnectionReport, CounterReport};
pub use server::{Listener, Server, ServerLimits, Service, Totals};
pub use stream::Stream;
