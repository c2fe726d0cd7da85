//! The 4-tuple that names a subflow on the wire.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// A 4-tuple as the sender of a segment sees it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowKey {
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// Source address.
    pub src: IpAddr,
    /// Destination address.
    pub dst: IpAddr,
}

impl FlowKey {
    /// The flow from `src` to `dst`.
    pub fn new(src: SocketAddr, dst: SocketAddr) -> Self {
        FlowKey { src: src.ip(), dst: dst.ip(), src_port: src.port(), dst_port: dst.port() }
    }

    /// The same flow as its other end sees it.
    pub fn reversed(self) -> Self {
        FlowKey { src: self.dst, dst: self.src, src_port: self.dst_port, dst_port: self.src_port }
    }

    /// Source address and port.
    pub fn source(self) -> SocketAddr {
        SocketAddr::new(self.src, self.src_port)
    }

    /// Destination address and port.
    pub fn destination(self) -> SocketAddr {
        SocketAddr::new(self.dst, self.dst_port)
    }
}

impl fmt::Display for FlowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} > {}", self.source(), self.destination())
    }
}

impl fmt::Debug for FlowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
