//! Buffers that the data of a run passes through, and their sizes.

use crate::Kind;
use crate::inquiry::ways;
use anabranch_paths::Direction;
use anabranch_sim::Spec;
use std::collections::BTreeSet;

/// The buffers that the data of a run passes through \[B\]: of several directions the smaller.
pub(crate) struct DataBuffers {
    /// Send buffer of the host that sends.
    pub(crate) send: u64,
    /// Receive buffer of the host that receives. One that tunes itself counts with its first size, and its last.
    pub(crate) receive: (u64, u64),
}

impl DataBuffers {
    pub(crate) fn of(spec: &Spec) -> Self {
        let mut all = DataBuffers { send: u64::MAX, receive: (u64::MAX, u64::MAX) };
        for way in ways(spec) {
            let (sender, receiver) = match way {
                Direction::Down => (&spec.server.config, &spec.client.config),
                Direction::Up => (&spec.client.config, &spec.server.config),
            };
            let last = receiver.receive_buffer.get();
            let first = receiver.initial_receive_buffer.map_or(last, |first| first.get().min(last));
            all.send = all.send.min(sender.largest_send_buffer(spec.network.paths.len()).get());
            all.receive = all.receive.min((first, last));
        }
        all
    }

    /// A kind of buffers as a sentence without its full stop.
    pub(crate) fn words(&self, kind: Kind) -> Option<String> {
        let (send, receive) = (size_text(self.send), size_text(self.receive.1));
        match kind {
            Kind::ReceiveBuffer => Some(format!("The receive buffer is {receive}")),
            Kind::SendBuffer => Some(format!("The send buffer is {send}")),
            Kind::Buffers => Some(format!("The receive buffer is {receive} and the send buffer {send}")),
            _ => None,
        }
    }

    /// The first size to try of a kind of buffers: none of those that it sets is larger now.
    pub(crate) fn first_larger(&self, kind: Kind) -> u64 {
        let (first, last) = self.receive;
        // A buffer that begins below its last size gains from having that at once.
        let receive = if first < last { last } else { last.saturating_mul(2) };
        match kind {
            Kind::ReceiveBuffer => receive,
            Kind::SendBuffer => self.send.saturating_mul(2),
            // Of both the larger may stay as it is.
            _ => last.max(self.send).max(2 * last.min(self.send)),
        }
        .max(1)
    }
}

/// Returns the overrides that give a buffer, or both, this size: of the hosts that the run's own data passes through.
pub(crate) fn buffers(spec: &Spec, kind: Kind, size: &str) -> Vec<String> {
    let mut sets = BTreeSet::new();
    for way in ways(spec) {
        let (sender, receiver) = match way {
            Direction::Down => ("server", "client"),
            Direction::Up => ("client", "server"),
        };
        if kind != Kind::SendBuffer {
            sets.insert(format!("{receiver}.receive-buffer=\"{size}\""));
        }
        if kind != Kind::ReceiveBuffer {
            sets.insert(format!("{sender}.send-buffer=\"{size}\""));
        }
    }
    sets.into_iter().collect()
}

/// A kind of buffers as a noun.
pub(crate) fn buffer_name(kind: Kind, of: &str) -> String {
    match kind {
        Kind::ReceiveBuffer => format!("a receive buffer of {of}"),
        Kind::SendBuffer => format!("a send buffer of {of}"),
        _ => format!("receive and send buffers of {of}"),
    }
}

/// A size as scenario files have it.
pub(crate) fn size_text(bytes: u64) -> String {
    match bytes {
        n if n % (1 << 20) == 0 => format!("{} MiB", n >> 20),
        n if n % (1 << 10) == 0 => format!("{} KiB", n >> 10),
        n => format!("{n} B"),
    }
}
