//! The proxy, in both directions: Multipath TCP on the engine's side, ordinary TCP through kernel sockets on the other.
//!
//! - [`Direction::Listen`]: clients connect to the engine with MPTCP or plain TCP, their streams go to a TCP service.
//! - [`Direction::Socks`]: clients connect to a kernel socket and ask by SOCKS5, HTTP CONNECT or plain HTTP, the engine
//!   connects to where they want over several local addresses.
//!
//! [`Proxy`] is an [`Application`](anabranch_host::Application): one thread, no call that blocks, except in the threads
//! of the resolver. A `Session` is one client with what was opened for it; its two streams are joined by a `Relay`.
//! Everything that a stranger can make grow has a bound ([`Limits`]).

mod access;
mod app;
mod dial;
mod forward;
mod front;
mod http;
mod limits;
mod metrics;
mod metrics_server;
mod proxy_protocol;
mod relay;
mod report;
mod resolver;
mod session;
mod settings;
mod slab;
mod socks;
mod sums;

pub use access::{Access, Network, NetworkError};
pub use app::{BuildError, Changes, Proxy, Reload};
pub use front::{Front, Host, Progress, Request};
pub use limits::Limit;
pub use proxy_protocol::header as proxy_protocol_header;
pub use report::Outcome;
pub use settings::{Direction, Limits, Settings, Timeouts, Users, UsersError};
