//! The short way in, for the two kinds of segments that bulk transfers consist of (header prediction: V. Jacobson, *4BSD TCP
//! Header Prediction*, CCR 20(2), 1990): data that is next on its subflow, in the mapping that it carries, with nothing
//! waiting; and ACKs without data. On an established subflow of confirmed MPTCP, with no options but timestamps, DSS and,
//! on ACKs, SACK.
//!
//! Nothing is changed before it is certain that the segment is of that kind, so the long way (`input`) can take all others,
//! and would have left the same state behind: the tests send every segment both ways.

use super::acceptance::acceptable_ack;
use super::{Connection, Life};
use crate::shared::Shared;
use crate::subflow::{State, Subflow};
use anabranch_units::{Instant, SubflowSeq};
use anabranch_wire::{DataSeq, Dss, Flags, Map, Segment};

impl Connection {
    /// Takes in a segment that is what was expected. False if it is not, and then nothing has happened.
    pub(super) fn take_expected(
        &mut self,
        now: Instant,
        index: usize,
        segment: &mut Segment,
        shared: &mut Shared,
    ) -> bool {
        #[cfg(test)]
        if shared.long_way {
            return false;
        }
        let subflow = &self.subflows[index];
        if !matches!(self.life, Life::Multipath) || !is_ordinary(subflow, segment, now) {
            return false;
        }
        let (Some(dss), Some(ack)) = (segment.options.dss, acceptable_ack(subflow, segment)) else { return false };
        match dss.map {
            None if segment.payload.is_empty() && !dss.data_fin => {
                let start = subflow.rx.rcv_nxt;
                self.note_valid(now, index, start, segment);
                self.note_dss(index, ack, now);
                self.handle_ack(now, index, start, segment, ack);
                self.take_data_ack(now, index, segment, &dss, shared);
                true
            }
            Some(map) => self.take_expected_data(now, index, segment, ack, (&dss, &map), shared),
            None => false,
        }
    }

    /// The same for data with its mapping, which acknowledges nothing new.
    fn take_expected_data(
        &mut self,
        now: Instant,
        index: usize,
        segment: &mut Segment,
        ack: u64,
        (dss, map): (&Dss, &Map),
        shared: &mut Shared,
    ) -> bool {
        let subflow = &self.subflows[index];
        let start = subflow.rx.rcv_nxt;
        let whole = usize::from(map.length) == segment.payload.len() && map.length > 0 && !dss.data_fin;
        let here = SubflowSeq::new(map.subflow_seq).offset_near(SubflowSeq::new(0), start) == Some(start);
        let proven = self.negotiated.checksum || map.checksum.is_some();
        let rx = &subflow.rx;
        let waits = !rx.ofo.is_empty() || !rx.maps.is_empty() || !rx.unplaced.is_empty() || rx.peer_fin.is_some();
        let quiet = ack == subflow.tx.recovery.snd_una() && segment.options.sack.is_empty();
        if !whole || !here || proven || waits || !quiet || shared.config.profile.coupled_acks {
            return false;
        }
        let Some(data) = self.data_offset(map.dsn) else { return false };
        self.note_valid(now, index, start, segment);
        self.note_dss(index, ack, now);
        self.subflows[index].tx.take_window(segment.window, start, ack);
        self.take_data_ack(now, index, segment, dss, shared);
        self.negotiated.long_dsn |= matches!(map.dsn, DataSeq::Long(_));

        let payload = std::mem::take(&mut segment.payload);
        self.receiver.on_segment();
        self.note_arrival(now, index, start, start + payload.len() as u64, shared);
        self.wake_prober(now);
        if data > self.receiver.next() {
            self.receiver.on_early();
        }
        self.consume(now, index, payload, Some(data), shared);
        true
    }
}

/// An ACK, with data or without, that begins with the next byte expected on an established subflow of which there is nothing
/// remarkable, with timestamps as they were agreed on.
fn is_ordinary(subflow: &Subflow, segment: &Segment, now: Instant) -> bool {
    const PUSHED: Flags = Flags(Flags::ACK.0 | Flags::PSH.0);
    let flags = segment.flags.0 | Flags::PSH.0 == PUSHED.0;
    let timely = match segment.options.timestamps {
        Some(timestamps) => subflow.timestamps && !subflow.rx.is_old(timestamps.value, now),
        None => !subflow.timestamps,
    };
    flags
        && timely
        && subflow.state == State::Established
        && segment.seq == subflow.rx.irs + subflow.rx.rcv_nxt
        && segment.options.mptcp.is_none()
        && !subflow.liveness.stale
        && subflow.liveness.removal_probe.is_none()
}
