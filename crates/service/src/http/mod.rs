//! HTTP/1.1 (RFC 9110, RFC 9112), as much as a static file server, a download, the proxy's metrics and the laboratory
//! need.

mod body;
mod date;
#[cfg(target_os = "linux")]
mod files;
mod head;
mod local;
mod path;
mod range;
mod reply;
mod request;
#[cfg(target_os = "linux")]
mod session;
mod this_machine;

pub(crate) use body::{BodyError, BodyReader, Framing, with_buffer};
pub(crate) use date::today;
#[cfg(target_os = "linux")]
pub use files::Root;
pub(crate) use head::{Found, Head, field, fields};
pub use local::{Answerer, LocalSite, Resource};
pub(crate) use range::content_range;
pub(crate) use reply::{PLAIN, Reply, words};
pub(crate) use request::{Method, keep_alive, read as read_request};
#[cfg(target_os = "linux")]
pub(crate) use session::HttpSession;
#[cfg(target_os = "linux")]
pub use session::{HttpLimits, Site};
pub(crate) use this_machine::names_this_machine;
