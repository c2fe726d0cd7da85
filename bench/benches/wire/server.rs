//! Servers on the engine: a sink for all data, and an endless source.

use anabranch_engine::{ConnectionId, Event, Read};
use anabranch_host::{Application, Context};
use bytes::Bytes;

/// The port that takes everything.
pub const DISCARD: u16 = 9;
/// The port that sends without end.
pub const SOURCE: u16 = 19;

/// An application for one of the two.
pub struct Server {
    /// Data sent again and again.
    pattern: Option<Bytes>,
}

impl Server {
    /// Makes the server for a port.
    pub fn on(port: u16) -> Self {
        Server { pattern: (port == SOURCE).then(|| Bytes::from(vec![0x5a; 4 << 20])) }
    }
}

impl Application for Server {
    fn on_event(&mut self, cx: &mut Context<'_>, id: ConnectionId, event: Event) {
        match event {
            Event::Readable => while matches!(cx.endpoint.read(id), Ok(Read::Data(_))) {},
            Event::Accepted { .. } | Event::Writable => {
                let Some(pattern) = &self.pattern else { return };
                while cx.endpoint.write(id, pattern).unwrap_or(0) == pattern.len() {}
            }
            Event::PeerFinished => cx.endpoint.shutdown(id),
            _ => {}
        }
    }
}
