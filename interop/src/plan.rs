//! Plan and outcome of one end of a connection, in the same terms for the engine and for kernel sockets.

/// Bytes to send, and when to close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Bytes of this end's pattern.
    pub send: u64,
    /// Action after the last byte.
    pub close: Close,
}

/// When an end closes its direction, or gives up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// As soon as everything is written.
    AfterSending,
    /// Once everything is written and the peer has closed its direction.
    AfterPeer,
    /// It gives the whole connection up (engine: abort; kernel: linger 0 and close) once so many bytes have come.
    AbortAfter(u64),
    /// Not at all.
    Never,
}

/// Progress at one end.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Transfer {
    /// Bytes that the stack has taken.
    pub sent: u64,
    /// Bytes that were read.
    pub received: u64,
    /// Offset of the first byte that differs from the peer's data.
    pub wrong: Option<u64>,
    /// The peer's end of stream has come.
    pub peer_finished: bool,
    /// Why it did not go to its end; for instance the error of a socket.
    pub failure: Option<String>,
}

impl Plan {
    /// Sends this much and closes.
    pub fn send(bytes: u64) -> Plan {
        Plan { send: bytes, close: Close::AfterSending }
    }

    /// The same, closing as this says.
    pub fn closing(self, close: Close) -> Plan {
        Plan { close, ..self }
    }
}

impl Transfer {
    /// Checks that this end sent all of its plan, received all of the peer's without a wrong byte, and then its end.
    ///
    /// # Errors
    /// The first discrepancy.
    pub fn check(&self, ours: &Plan, peer: &Plan) -> Result<(), String> {
        let whole = self.sent == ours.send && self.received == peer.send;
        if whole && self.wrong.is_none() && self.peer_finished && self.failure.is_none() {
            return Ok(());
        }
        Err(format!("sent {} of {}, received {} of {}: {self:?}", self.sent, ours.send, self.received, peer.send))
    }
}
