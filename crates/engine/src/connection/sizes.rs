//! Segments become smaller where a path carries no larger ones.
//!
//! Sent segments stay recorded as they left. One that is too large now is repeated in parts, with the mapping of the
//! whole and under the same sequence numbers.

use super::sender::Sender;
use super::slots::Slot;
use super::subflows::Kind;
use super::{Connection, Mode};
use crate::path_mtu::{self, PathMtu};
use crate::shared::Shared;
use crate::subflow::{State, Subflow};
use anabranch_units::{Bytes, Instant, SubflowSeq};
use std::net::IpAddr;

impl Sender {
    /// Limits the packets of a subflow to this size for a while. Returns false if none was larger.
    fn narrow(&mut self, now: Instant, subflow: &mut Subflow, mtu: u16, dss: u32) -> bool {
        let before = subflow.tx.path_mtu;
        if before.is_some_and(|path| path.mtu < mtu) {
            return false;
        }
        subflow.tx.path_mtu = Some(PathMtu::new(now, mtu));
        let smaller = self.resize(now, subflow, dss);
        if !smaller {
            subflow.tx.path_mtu = before;
        }
        smaller
    }

    /// Full segments of the subflow have the size that is left beside a DSS of `dss` bytes; returns it.
    fn set_size(&mut self, subflow: &mut Subflow, dss: u32) -> u32 {
        let mss = subflow.leave_room(dss);
        self.congestion.set_mss(subflow.id, Bytes::new(u64::from(mss)));
        mss
    }

    /// Brings the size of a subflow's full segments up to date; what is under way and larger than they are is lost.
    /// False if nothing became smaller.
    fn resize(&mut self, now: Instant, subflow: &mut Subflow, dss: u32) -> bool {
        let before = subflow.tx.mss;
        let mss = self.set_size(subflow, dss);
        let smaller = mss < before;
        if smaller && subflow.tx.recovery.lose_larger_than(mss) {
            // The network has not shown to be crowded: the window stays (Linux `tcp_simple_retransmit`).
            subflow.tx.retransmit_now = true;
            subflow.tx.recovery.rearm(now, &subflow.tx.rtt);
        }
        smaller
    }
}

impl Connection {
    /// Bytes that the DSS takes from a full segment.
    pub(super) fn dss_room(&self) -> u32 {
        if self.life.mode() == Mode::Plain { 0 } else { self.negotiated.dss.room() }
    }

    /// The DSS has become longer: segments hold less, and what is repeated of those under way is cut.
    #[cold]
    pub(super) fn on_longer_dss(&mut self) {
        let dss = self.dss_room();
        for subflow in self.subflows.iter_mut().filter(|subflow| subflow.tx.mss > subflow.payload_room(dss)) {
            self.sender.set_size(subflow, dss);
        }
    }

    /// A router says that the packet of the subflow in `slot` that began at `seq` was too big. True if that may be.
    pub(crate) fn on_too_big(&mut self, now: Instant, slot: Slot, seq: SubflowSeq, mtu: u32) -> bool {
        let subflow = &self.subflows[slot];
        let (una, nxt) = (subflow.tx.recovery.snd_una(), subflow.tx.recovery.snd_nxt());
        let under_way = seq.offset_near(subflow.tx.iss, una).is_some_and(|offset| (una..nxt).contains(&offset));
        if subflow.state != State::Established || !under_way {
            return false;
        }
        let mtu = path_mtu::believable(mtu, &subflow.flow);
        let dss = self.dss_room();
        self.sender.narrow(now, &mut self.subflows[slot], mtu, dss)
    }

    /// The device with this address carries no larger packets than this.
    pub(crate) fn on_device_mtu(&mut self, now: Instant, local: IpAddr, mtu: u16) {
        let dss = self.dss_room();
        for subflow in self.subflows.iter_mut().filter(|subflow| subflow.flow.src == local) {
            subflow.tx.mss_option = subflow.tx.mss_option.min(path_mtu::segment_in(mtu, &subflow.flow));
            self.sender.resize(now, subflow, dss);
        }
    }

    /// Tries full segments again on every subflow whose path MTU was found too long ago.
    pub(super) fn widen_when_old(&mut self, now: Instant) {
        let is_old = |subflow: &Subflow| subflow.tx.path_mtu.is_some_and(|path| path.until <= now);
        let dss = self.dss_room();
        let mut old = self.subflows.those(Kind::Narrowed, is_old);
        while let Some(slot) = self.subflows.take_first(&mut old) {
            let subflow = &mut self.subflows[slot];
            subflow.tx.path_mtu = None;
            self.sender.resize(now, subflow, dss);
        }
    }

    /// A subflow has timed out. If what it repeats is large, the path may swallow what is large and nothing else:
    /// then it answers to a small packet.
    pub(super) fn suspect_black_hole(&mut self, now: Instant, slot: Slot, shared: &mut Shared) {
        let Some(most) = shared.config.black_hole_timeouts else { return };
        let dss = self.dss_room();
        let subflow = &mut self.subflows[slot];
        let timeouts = subflow.tx.recovery.consecutive_rtos();
        // The client's first data left room for the keys.
        let keys = |data: u64| if data == 0 { self.negotiated.dss.keys_beyond() } else { 0 };
        let front = subflow.tx.recovery.iter().next().map(|front| front.len + keys(front.data));
        let full = front.is_some_and(|length| length >= subflow.tx.mss);
        let header = if subflow.flow.dst.is_ipv6() { 60 } else { 40 };
        let mtu = subflow.tx.path_mtu.map_or(subflow.tx.mss_option.saturating_add(header), |path| path.mtu);
        let Some(less) = path_mtu::smaller(mtu, &subflow.flow).filter(|_| full && subflow.tx.mss_option > 512) else {
            return;
        };
        if timeouts >= most && subflow.tx.asked_small.take().is_some_and(|asked| subflow.liveness.heard > asked) {
            shared.counters.black_holes += u64::from(subflow.tx.path_mtu.is_none());
            self.sender.narrow(now, subflow, less, dss);
        }
        if timeouts + 1 >= most {
            subflow.tx.asked_small = Some(now);
            self.send_window_probe(now, slot, shared);
        }
    }
}
