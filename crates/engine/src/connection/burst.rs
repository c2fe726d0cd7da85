//! One mapping over a burst of segments (`Config::burst`), so that a driver can hand them to the network card as one.
//!
//! Segmentation offload repeats one TCP header on all segments, options included. So segments that leave one after the
//! other on a subflow, with data that is contiguous, declare one mapping over all of them, each with its whole length,
//! as Linux does (RFC 8684 §3.3.1: a mapping may span segments). The scheduler is asked segment by segment as ever; a
//! burst ends where it names another subflow, where a segment is shorter than the first, and with the round of sending:
//! a mapping is closed before its first segment is out of our hands. Acknowledgment, window and timestamps are alike
//! within a round anyway.
//!
//! With DSS checksums the one checksum covers the whole mapping: the receiver can hand on nothing of a burst before all
//! of it has arrived, which is what Linux asks of its peers too. A DATA_FIN at the end is part of the shared mapping.
//! Each segment is repeated with the mapping that it left with; what is sent again on another subflow gets one of its
//! own.

use super::sender::Sender;
use super::slots::Slot;
use super::{Connection, Mode};
use crate::Purpose;
use crate::originals::Declared;
use crate::recovery::Sent;
use crate::shared::Shared;
use anabranch_units::SubflowId;
use anabranch_wire::{Dss, Map, MpOption, Options, dss_checksum};

/// Segments in the endpoint's queue whose mapping may yet grow.
pub(super) struct Burst {
    subflow: SubflowId,
    /// Position of the first segment in the queue, and number of segments.
    first: usize,
    segments: usize,
    /// First subflow and data offset.
    start: u64,
    data: u64,
    /// Bytes so far, and in each segment but the last.
    length: u64,
    size: u32,
    data_fin: bool,
}

impl Burst {
    /// `sent` on `subflow` can share the mapping of all before it, which together may have `most` bytes.
    fn admits(&self, subflow: SubflowId, sent: &Sent, most: u64) -> bool {
        let whole = self.length == self.segments as u64 * u64::from(self.size);
        let next = sent.start == self.start + self.length && sent.data == self.data + self.length;
        let fits = sent.len <= self.size && self.length + u64::from(sent.len) <= most;
        self.subflow == subflow && whole && next && fits && !self.data_fin
    }
}

impl Sender {
    /// `sent` left on `subflow` and is at place `last`, the end, of the endpoint's queue: the burst goes on with it, or
    /// begins.
    pub(super) fn extend_burst(&mut self, subflow: SubflowId, sent: &Sent, data_fin: bool, last: usize) {
        let Sent { start, data, len: size, .. } = *sent;
        let burst = self.burst.get_or_insert(Burst {
            subflow,
            first: last,
            segments: 0,
            start,
            data,
            length: 0,
            size,
            data_fin: false,
        });
        assert!(burst.first + burst.segments == last, "nothing leaves between the segments of a burst");
        burst.segments += 1;
        burst.length += u64::from(size);
        burst.data_fin = data_fin;
    }
}

/// The longest mapping: with the DATA_FIN its length must fit 16 bits.
const LONGEST_MAP: u64 = u16::MAX as u64 - 1;

impl Connection {
    /// `sent` is about to leave on the subflow in `slot`: a burst that it does not continue is closed.
    pub(super) fn before_segment(&mut self, slot: Slot, sent: &Sent, purpose: Purpose, shared: &mut Shared) {
        let most = shared.config.burst.map_or(0, |burst| burst.get().min(LONGEST_MAP));
        let subflow = self.subflows[slot].id;
        let fresh = matches!(purpose, Purpose::NewData(_));
        if !self.sender.burst.as_ref().is_some_and(|burst| fresh && burst.admits(subflow, sent, most)) {
            self.close_burst(shared);
        }
    }

    /// The mapping of `sent`, which leaves for the first time, may grow until the burst is closed.
    pub(super) fn may_grow(&self, sent: &Sent, purpose: Purpose, shared: &Shared) -> bool {
        let fresh = matches!(purpose, Purpose::NewData(_));
        fresh && sent.len > 0 && shared.config.burst.is_some() && self.life.mode() == Mode::Multipath
    }

    /// Ends the burst, if there is one: all its segments declare the mapping over all of them.
    #[inline]
    pub(super) fn close_burst(&mut self, shared: &mut Shared) {
        if let Some(burst) = self.sender.burst.take() {
            self.declare_burst(&burst, shared);
        }
    }

    fn declare_burst(&mut self, burst: &Burst, shared: &mut Shared) {
        let Some(slot) = self.subflows.slot(burst.subflow) else { return };
        if burst.segments == 1 && !self.negotiated.checksum {
            // It has the mapping that it shall have.
            return;
        }
        let mut declared = Declared {
            start: burst.start,
            data: burst.data,
            length: burst.length as u16,
            checksum: None,
            data_fin: burst.data_fin,
        };
        let mut map = self.keys.map(&declared, self.negotiated.dss);
        let places = burst.first..burst.first + burst.segments;
        if self.negotiated.checksum {
            let payloads = shared.out.range(places.clone()).map(|transmit| transmit.segment.payload.as_ref());
            declared.checksum = Some(dss_checksum(self.keys.dsn(burst.data), map.subflow_seq, map.length, payloads));
            map.checksum = declared.checksum;
        }
        self.subflows[slot].tx.originals.declare(declared);
        let mut segments = shared.out.range_mut(places);
        let keys = segments.next().and_then(|first| {
            declare(&mut first.segment.options, &map, declared.data_fin);
            (!first.segment.options.mptcp().is_empty()).then(|| first.segment.options.clone())
        });
        for transmit in segments {
            match &keys {
                // The first data repeats the keys; so must all of its mapping.
                Some(options) => {
                    transmit.segment.options = options.clone();
                    transmit.size = transmit.segment.wire_length();
                }
                None => declare(&mut transmit.segment.options, &map, declared.data_fin),
            }
        }
    }
}

/// Replaces the mapping of the options.
fn declare(options: &mut Options, map: &Map, data_fin: bool) {
    if let Some(dss) = options.dss() {
        options.set_dss(Some(Dss { map: Some(*map), data_fin, ..dss }));
    }
    for option in options.mptcp_mut() {
        if let MpOption::Capable(capable) = option {
            capable.data = Some((map.length, map.checksum));
        }
    }
}
