//! ACKs on the shortest path, between stock kernels.
//!
//! J. Cheng, J. Hwang, A. Tang. *Acceleration of Multipath TCP by Letting ACKs Take the Shortest Path.* IEEE Sarnoff
//! Symposium 2019. Programs at the devices of the paths (`bpf/acks.bpf.c`, attached by TCX links) give a pure ACK of
//! one subflow the addresses of another path and leave it its ports; those of the other host find the subflow by the
//! ports and put the addresses back before TCP sees them. RFC 8684 knows nothing of it, so both hosts run this, with
//! the same paths in the same order.
//!
//! [`Acks::run`] probes each path every τ, asks a policy where ACKs travel, and tells the other host which subflows it
//! restores. A program moves an ACK only while both are recent: the choice and the word of the other host are valid for
//! 3τ, so whatever ends either process, ACKs are on their own paths 3τ later. Before that, a RST of a host that does
//! not know an ACK, or data that is repeated after a silence, sends the ACKs of that subflow back to their own path,
//! for a second at first and each time twice as long. Every sixteenth ACK keeps its path in any case.

mod daemon;
mod device;
mod host;
mod maps;
mod message;
mod path;
mod programs;

pub use daemon::Acks;
pub use host::{Peer, Round};
pub use maps::Counts;
pub use path::{PathRound, PathSpec};

use crate::LoadError;
use anabranch_policy::ack_path::AckPath;
use std::io;
use std::net::IpAddr;

/// Maximum number of paths to a host.
pub const PATHS: usize = 8;

/// UDP port of the probes, on both hosts.
pub const PORT: u16 = 8684;

/// Other hosts, and what is to be done with them.
pub struct Setup {
    /// The other hosts.
    pub hosts: Vec<HostSetup>,
    /// UDP port of the probes, on all hosts.
    pub port: u16,
    /// Every sixteenth ACK keeps its path, and a detour that seems to lose ACKs is left.
    pub caution: bool,
}

/// One other host.
pub struct HostSetup {
    /// Name of it in reports.
    pub name: Option<String>,
    /// Paths to it, which it names in the same order.
    pub paths: Vec<PathSpec>,
    /// Chooses the path of ACKs; its subflows are the paths, by their number.
    pub policy: Box<dyn AckPath>,
}

/// Reason for which ACKs cannot be moved. Nothing stays in the kernel.
#[derive(Debug, thiserror::Error)]
pub enum AcksError {
    /// Fewer than two paths, or more than [`PATHS`].
    #[error("{count} paths{} are given; 2 to {PATHS} can be used", to(host))]
    Count {
        /// Name of the host, if it has one.
        host: Option<String>,
        /// Number of its paths.
        count: usize,
    },
    /// Two paths have the same addresses.
    #[error("path {0} has the addresses of path {1}")]
    Twice(usize, usize),
    /// Addresses of two families.
    #[error("path {number} goes from {local} to {remote}: one is an IPv4 address, the other an IPv6 address")]
    Families {
        /// Number of the path, from 1.
        number: usize,
        /// Our address.
        local: IpAddr,
        /// Address of the other host.
        remote: IpAddr,
    },
    /// The device cannot be used.
    #[error("cannot use the device {device} of path {number}: {error}")]
    Device {
        /// Number of the path, from 1.
        number: usize,
        /// Its device.
        device: String,
        /// Error of the operating system.
        error: io::Error,
    },
    /// The socket of the probes cannot be opened.
    #[error("cannot probe path {number} from {local}, port {port}: {error}")]
    Socket {
        /// Number of the path, from 1.
        number: usize,
        /// Our address.
        local: IpAddr,
        /// UDP port.
        port: u16,
        /// Error of the operating system.
        error: io::Error,
    },
    /// The programs cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The programs cannot be attached.
    #[error("cannot attach a program to {device}: {error}")]
    Attach {
        /// Name of the device.
        device: String,
        /// Error of the operating system.
        error: io::Error,
    },
    /// A system call failed.
    #[error("cannot {what}: {error}")]
    Failed {
        /// Intended step.
        what: &'static str,
        /// Its error.
        error: io::Error,
    },
}

/// Words for a host with a name.
fn to(host: &Option<String>) -> String {
    host.as_ref().map_or_else(String::new, |host| format!(" to {host}"))
}

impl AcksError {
    /// Returns a remedy, if there is one.
    pub fn remedy(&self) -> Option<&'static str> {
        match self {
            AcksError::Count { .. } => Some(
                "name each path with --path LOCAL,REMOTE, in the same order on both hosts; with several other hosts, \
                 --path HOST=LOCAL,REMOTE",
            ),
            AcksError::Twice(..) => Some("name each path once"),
            AcksError::Families { .. } => Some("the two addresses of a path are of one family"),
            AcksError::Device { .. } => Some("`ip address` lists the devices and their addresses"),
            AcksError::Socket { .. } => Some("the address must be one of this host, and the port free (--port)"),
            AcksError::Load(error) => error.remedy(),
            AcksError::Attach { .. } => Some("programs at devices (TCX) need Linux 6.6 and CAP_NET_ADMIN"),
            AcksError::Failed { .. } => None,
        }
    }
}
