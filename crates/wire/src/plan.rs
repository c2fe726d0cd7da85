//! Selection of options when they exceed 40 bytes.
//!
//! Options are granted in this order, and within one line in the order requested:
//!
//! 1. MSS, window scale, SACK-permitted and timestamps, which a peer expects in every segment once negotiated (RFC 7323
//!    §3.2);
//! 2. MP_CAPABLE and MP_JOIN, without which there is no subflow; MP_FASTCLOSE and MP_TCPRST, the purpose of the
//!    segment;
//! 3. on a segment with data, the mapping, without which the data is lost to the connection (RFC 8684 §3.3.1), and with
//!    it the DATA_ACK, if that fits as well;
//! 4. MP_FAIL, MP_PRIO, REMOVE_ADDR, ADD_ADDR and its echo: those that do not fit go onto a segment of their own;
//! 5. on a segment without a mapping, the DATA_ACK;
//! 6. SACK, with as many blocks as fit, as in Linux;
//! 7. unknown options.
//!
//! Lines 1 and 2 fit in every combination that the RFCs permit. So does a mapping with DATA_ACK, checksum and
//! timestamps: exactly. A DATA_ACK is never cut to four bytes to make it fit, since a 64-bit DSN must be acknowledged
//! with 64 bits (RFC 8684 §3.3.2).

use crate::options::OPTION_SPACE;
use crate::{Dss, Handshake, MpOption, Options, SackBlocks};

/// Makes `options` fit the header, by the priorities above. Answers the bytes that they then take, padding included,
/// and the options that had to leave, which are the caller's to send: together the two are the wish list.
///
/// Options are padded as Linux does. Only an MPTCP option that finds no room beside the timestamps in any segment
/// (ADD_ADDR of an IPv6 address with port) goes without padding, if it is alone with them.
#[inline]
#[must_use = "what did not fit is for another segment"]
pub fn plan(options: &mut Options) -> (u64, Option<Box<Options>>) {
    let (length, packed) = options.layout();
    if length <= OPTION_SPACE && (!packed || is_alone(options)) {
        return (length, None);
    }
    let left_out = choose(options);
    (options.wire_length(), left_out)
}

/// SACK blocks that [`plan`] will grant beside `options`, which hold none yet.
pub fn sack_room(options: &Options) -> usize {
    // Kind and length with their padding, then eight bytes a block.
    (option_room(options).saturating_sub(4) / 8).min(SackBlocks::MAX as u64) as usize
}

/// Bytes of options that there is room for beside `options`.
pub fn option_room(options: &Options) -> u64 {
    OPTION_SPACE.saturating_sub(options.wire_length())
}

/// True if nothing but one MPTCP option stands beside the timestamps.
fn is_alone(options: &Options) -> bool {
    let nothing_else = !options.has_dss() && !options.has_sack() && options.handshake() == Handshake::default();
    options.mptcp().len() == 1 && nothing_else && options.foreign().is_empty()
}

/// Deals out the space.
#[cold]
fn choose(options: &mut Options) -> Option<Box<Options>> {
    let wish = std::mem::take(options);
    let mut left_out = Options::default();
    options.set_timestamps(wish.timestamps());
    if wish.handshake() != Handshake::default() {
        *options.handshake_mut() = wish.handshake();
    }
    let mut room = Room(OPTION_SPACE.saturating_sub(options.wire_length()));

    let mut granted: Vec<bool> =
        wish.mptcp().iter().map(|option| is_due(option) && room.take(option.wire_length())).collect();
    let mut deal_dss = |room: &mut Room, options: &mut Options| {
        let (granted, left) = room.take_dss(wish.dss());
        options.set_dss(granted);
        left_out.set_dss(left);
    };
    let has_map = wish.dss().is_some_and(|dss| dss.map.is_some());
    if has_map {
        deal_dss(&mut room, options);
    }
    for (option, granted) in wish.mptcp().iter().zip(&mut granted) {
        *granted = *granted || (!is_due(option) && room.take(option.wire_length()));
    }
    if !has_map {
        deal_dss(&mut room, options);
    }
    for (option, granted) in wish.mptcp().iter().zip(granted) {
        if granted { &mut *options } else { &mut left_out }.push_mptcp(option.clone());
    }
    for block in wish.sack().as_slice() {
        // Kind and length with their padding take four bytes, each block eight.
        let needed = if options.has_sack() { 8 } else { 12 };
        let to = if !left_out.has_sack() && room.take(needed) { &mut *options } else { &mut left_out };
        assert!(to.push_sack(*block), "a part has no more blocks than the whole");
    }
    for option in wish.unknown() {
        let to = if room.take(2 + option.data.len() as u64) { &mut *options } else { &mut left_out };
        to.push_unknown(option.kind, &option.data);
    }
    if !wish.broken().is_empty() {
        let to = if room.take(wish.broken().len() as u64) { options } else { &mut left_out };
        to.set_broken(wish.broken());
    }
    (left_out != Options::default()).then(|| Box::new(left_out))
}

/// Returns true for options that are the purpose of the segment.
fn is_due(option: &MpOption) -> bool {
    match option {
        MpOption::Capable(_) | MpOption::JoinSyn(_) | MpOption::JoinSynAck(_) | MpOption::JoinAck(_) => true,
        MpOption::FastClose { .. } | MpOption::TcpReset { .. } => true,
        MpOption::Fail { .. } | MpOption::Prio { .. } | MpOption::RemoveAddr(_) | MpOption::AddAddr(_) => false,
    }
}

/// Bytes not yet given away.
struct Room(u64);

impl Room {
    /// Takes space for an option of `length` bytes and its padding; false if there is not enough.
    fn take(&mut self, length: u64) -> bool {
        let left = self.0.checked_sub(length.next_multiple_of(4));
        self.0 = left.unwrap_or(self.0);
        left.is_some()
    }

    /// Takes space for as much of a DSS as fits. Returns the part granted and the part left out.
    fn take_dss(&mut self, wish: Option<Dss>) -> (Option<Dss>, Option<Dss>) {
        let Some(wish) = wish else { return (None, None) };
        if self.take(wish.wire_length()) {
            return (Some(wish), None);
        }
        let bare = Dss { data_ack: None, ..wish };
        if wish.map.is_some() && self.take(bare.wire_length()) {
            return (Some(bare), Some(Dss { data_ack: wish.data_ack, ..Dss::default() }));
        }
        (None, Some(wish))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AddAddr, DataSeq, Map, SackBlock, Timestamps};
    use anabranch_units::{AddressId, Dsn, SubflowSeq};

    fn wishes(dss: Option<(bool, bool)>, blocks: u32, mptcp: Vec<MpOption>) -> Options {
        let mut options = Options::default();
        options.set_timestamps(Some(Timestamps { value: 1, echo: 2 }));
        options.set_dss(dss.map(|(ack, map)| Dss {
            data_ack: ack.then_some(DataSeq::Long(Dsn::new(7))),
            map: map.then_some(Map { dsn: DataSeq::Long(Dsn::new(9)), subflow_seq: 1, length: 9, checksum: Some(3) }),
            data_fin: false,
        }));
        for n in 0..blocks {
            assert!(options.push_sack(SackBlock { start: SubflowSeq::new(n), end: SubflowSeq::new(n + 1) }));
        }
        mptcp.into_iter().for_each(|option| options.push_mptcp(option));
        options
    }

    /// Sizes beside timestamps (12): a full map takes 28, a DATA_ACK 12 or 8, n SACK blocks 4 + 8n.
    #[test]
    fn worked_examples() {
        let prio = || MpOption::Prio { backup: true };
        let add = |port| {
            let (address, hmac) = ([9; 16].into(), Some([5; 8]));
            MpOption::AddAddr(AddAddr { id: AddressId(1), address, port, hmac })
        };
        // Eight bytes are left beside it, not enough for a whole DATA_ACK.
        let address = [10, 0, 0, 1].into();
        let v4 = MpOption::AddAddr(AddAddr { id: AddressId(1), address, port: Some(80), hmac: Some([5; 8]) });
        // wishes                                               DSS  blocks  MPTCP  left out: DSS  blocks  MPTCP
        for (wishes, granted, left) in [
            (wishes(Some((true, true)), 0, vec![]), (28, 0, 0), (0, 0, 0)),
            (wishes(Some((true, true)), 3, vec![prio()]), (28, 0, 0), (0, 3, 1)),
            (wishes(Some((true, false)), 4, vec![]), (12, 1, 0), (0, 3, 0)),
            (wishes(Some((true, false)), 1, vec![prio()]), (12, 1, 1), (0, 0, 0)),
            (wishes(Some((true, false)), 4, vec![prio()]), (12, 1, 1), (0, 3, 0)),
            (wishes(None, 4, vec![]), (0, 3, 0), (0, 1, 0)),
            (wishes(Some((true, false)), 0, vec![add(None)]), (0, 0, 1), (12, 0, 0)),
            (wishes(Some((true, false)), 0, vec![v4]), (0, 0, 1), (12, 0, 0)),
            (wishes(None, 0, vec![add(Some(80))]), (0, 0, 1), (0, 0, 0)),
            (wishes(Some((true, false)), 0, vec![add(Some(80))]), (12, 0, 0), (0, 0, 1)),
        ] {
            let seen = |options: &Options| {
                let dss = options.dss().map_or(0, |dss| dss.wire_length().next_multiple_of(4));
                (dss, options.sack().as_slice().len(), options.mptcp().len())
            };
            let mut options = wishes.clone();
            let left_out = plan(&mut options).1.unwrap_or_default();
            assert_eq!((seen(&options), seen(&left_out)), (granted, left), "{wishes:?}");
            assert!(options.wire_length() <= OPTION_SPACE);
            let mut without = options.clone();
            without.set_sack(SackBlocks::default());
            let asked = wishes.sack().as_slice().len();
            assert_eq!(sack_room(&without).min(asked), options.sack().as_slice().len(), "{wishes:?}");
        }
    }
}
