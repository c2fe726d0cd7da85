//! Room for what the application writes: a send buffer of fixed size, or one that grows with the congestion windows.
//!
//! The growing one is Linux's (`tcp_wmem`; [`send_buffer`]). Differences: memory is payload, where Linux counts the
//! records that hold it too, 2 % more at high rates and half as much again at 3 Mbit/s; a buffer grows with every ACK,
//! in Linux only while the application waits; with BBR it holds two windows, in Linux three.

use super::Connection;
use super::slots::Slot;
use super::subflows::Subflows;
use crate::shared::Shared;
use crate::{Config, Event};
use anabranch_policy::send_buffer::{self, EXPAND, SEGMENT_MEMORY};
use anabranch_units::Bytes;

/// Size of the send buffer of a connection with these subflows.
pub(super) fn size(subflows: &Subflows, config: &Config) -> Bytes {
    if config.profile.subflow_send_buffer.is_none() {
        return config.send_buffer;
    }
    let open = subflows.iter().filter(|subflow| subflow.is_open());
    config.send_buffer.min(open.fold(send_buffer::SMALLEST, |sum, subflow| sum + subflow.tx.send_buffer))
}

impl Connection {
    /// Returns the bytes that the send buffer admits now.
    pub(crate) fn write_space(&self, shared: &Shared) -> usize {
        if self.check_write().is_err() || (self.sender.outgoing.writer_waits && !self.takes_data_again(&shared.config))
        {
            return 0;
        }
        let space = size(&self.subflows, &shared.config).get().saturating_sub(self.sender.outgoing.held());
        usize::try_from(space).unwrap_or(usize::MAX)
    }

    /// Has the application write on that met a full buffer, if there is room enough.
    pub(super) fn wake_writer(&mut self, shared: &mut Shared) {
        if self.sender.outgoing.writer_waits && self.takes_data_again(&shared.config) {
            self.sender.outgoing.writer_waits = false;
            shared.event(self.id, Event::Writable);
        }
    }

    /// True if a writer that met a full buffer may go on.
    fn takes_data_again(&self, config: &Config) -> bool {
        let held = self.sender.outgoing.held();
        match config.profile.subflow_send_buffer {
            None => true,
            Some(_) => send_buffer::is_writable(size(&self.subflows, config), held),
        }
    }

    /// The send buffer of a subflow follows its congestion window.
    #[inline]
    pub(super) fn grow_send_buffer(&mut self, slot: Slot, shared: &mut Shared) {
        let Some(largest) = shared.config.profile.subflow_send_buffer else { return };
        let subflow = &mut self.subflows[slot];
        let window = self.sender.congestion.cwnd(subflow.id).get();
        let tx = &mut subflow.tx;
        let (before, mss) = (tx.send_buffer, u64::from(tx.mss).max(1));
        let window = window / mss;
        let segments = u32::try_from(window).unwrap_or(u32::MAX);
        tx.send_buffer = send_buffer::grown(before, EXPAND, segments, SEGMENT_MEMORY.max(mss), largest);
        if tx.send_buffer > before {
            self.wake_writer(shared);
        }
    }
}
