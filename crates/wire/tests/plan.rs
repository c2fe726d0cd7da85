//! The option planner keeps its promises for every list of wishes.

mod common;

use anabranch_units::SubflowSeq;
use anabranch_wire::{Flags, FlowKey, MpOption, Options, Segment, emit, plan};
use bytes::BytesMut;
use common::segments::wishes;
use proptest::prelude::*;

fn makes_the_segment(option: &MpOption) -> bool {
    !matches!(option, MpOption::Fail { .. } | MpOption::Prio { .. } | MpOption::RemoveAddr(_) | MpOption::AddAddr(_))
}

/// Bytes of `option` in a header.
fn padded(option: &MpOption) -> u64 {
    option.wire_length().next_multiple_of(4)
}

/// Bytes that options take if each is padded by itself.
fn padded_apart(options: &Options) -> u64 {
    let part = |set: &dyn Fn(&mut Options)| {
        let mut part = Options::default();
        set(&mut part);
        part.wire_length()
    };
    part(&|it| {
        it.set_timestamps(options.timestamps());
        *it.handshake_mut() = options.handshake();
    }) + part(&|it| it.set_sack(options.sack()))
        + part(&|it| it.set_dss(options.dss()))
        + options.mptcp().iter().map(padded).sum::<u64>()
        + options.unknown().iter().map(|option| (2 + option.data.len() as u64).next_multiple_of(4)).sum::<u64>()
        + (options.broken().len() as u64).next_multiple_of(4)
}

/// The two lists dealt back into one, each MPTCP option and unknown option where it stood.
fn together(granted: &Options, left_out: &Options, wish: &Options) -> Options {
    let mut all = granted.clone();
    for block in left_out.sack().as_slice() {
        assert!(all.push_sack(*block));
    }
    if let Some(left) = left_out.dss() {
        let granted = all.dss().unwrap_or(left);
        all.set_dss(Some(anabranch_wire::Dss { data_ack: left.data_ack, ..granted }));
    }
    let (mut here, mut there) = (granted.mptcp().iter().peekable(), left_out.mptcp().iter().peekable());
    all.retain_mptcp(|_| false);
    for option in wish.mptcp() {
        let from = if here.peek() == Some(&option) { &mut here } else { &mut there };
        all.push_mptcp(from.next().expect("no wish is lost").clone());
    }
    assert!(here.next().is_none() && there.next().is_none(), "no wish is granted twice");
    let (mut here, mut there) = (granted.unknown().iter().peekable(), left_out.unknown().iter().peekable());
    *all.foreign_mut() = wish.foreign().clone();
    for option in wish.unknown() {
        let from = if here.peek() == Some(&option) { &mut here } else { &mut there };
        assert_eq!(from.next(), Some(option), "no wish is lost");
    }
    assert!(here.next().is_none() && there.next().is_none(), "no wish is granted twice");
    let broken: Vec<_> = [granted.broken(), left_out.broken()].into_iter().filter(|rest| !rest.is_empty()).collect();
    assert_eq!(broken.concat(), wish.broken());
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16_384, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_wish_list(wish in wishes()) {
        let mut granted = wish.clone();
        let (length, left_out) = plan(&mut granted);
        let left_out = left_out.map(|left_out| *left_out);
        prop_assert_eq!(length, granted.wire_length());

        // Never over 40 bytes, and what was granted can be written.
        prop_assert!(granted.wire_length() <= 40);
        let flow = FlowKey::new(([10, 0, 0, 1], 1).into(), ([10, 1, 0, 1], 2).into());
        let mut segment = Segment::new(flow, Flags::ACK, SubflowSeq::new(1), SubflowSeq::new(2));
        segment.options = granted.clone();
        prop_assert!(emit(&segment, &mut BytesMut::new()).is_ok());

        // Every omission is reported, and no report is empty.
        if let Some(left_out) = &left_out {
            prop_assert!(*left_out != Options::default());
        }
        let left_out = left_out.unwrap_or_default();
        let all = together(&granted, &left_out, &wish);
        prop_assert_eq!(&all, &wish);

        // Timestamps and SYN options always stay; what makes the segment stays if it can.
        prop_assert_eq!((granted.timestamps(), granted.handshake()), (wish.timestamps(), wish.handshake()));
        let mut tcp = Options::default();
        tcp.set_timestamps(wish.timestamps());
        *tcp.handshake_mut() = wish.handshake();
        let due: Vec<_> = wish.mptcp().iter().filter(|option| makes_the_segment(option)).collect();
        let first = tcp.wire_length() + due.iter().map(|option| padded(option)).sum::<u64>();
        if first <= 40 {
            prop_assert!(due.iter().all(|option| granted.mptcp().contains(option)));
        }
        let map = wish.dss().and_then(|dss| Some(anabranch_wire::Dss { data_ack: None, map: Some(dss.map?), ..dss }));
        if let Some(map) = map
            && first + map.wire_length().next_multiple_of(4) <= 40
        {
            prop_assert_eq!(granted.dss().and_then(|dss| dss.map), map.map, "data keeps its mapping");
            prop_assert_eq!(granted.dss().map(|dss| dss.data_fin), Some(map.data_fin));
        }

        // No DSS that says nothing takes the place of one that did not fit.
        let says = |dss: anabranch_wire::Dss| dss.map.is_some() || dss.data_ack.is_some();
        prop_assert!(!wish.dss().is_some_and(says) || granted.dss().is_none_or(says));
        // Padded as Linux pads, but for one MPTCP option alone with timestamps.
        let mut only = Options::default();
        only.set_timestamps(granted.timestamps());
        granted.mptcp().iter().for_each(|option| only.push_mptcp(option.clone()));
        let is_alone = granted == only && granted.mptcp().len() == 1;
        prop_assert!(is_alone || padded_apart(&granted) <= 40);

        // No option is left out that would have fitted.
        let free = 40 - granted.wire_length();
        prop_assert!(left_out.mptcp().iter().all(|option| padded(option) > free));
        let block = if !granted.has_sack() { 12 } else { 8 };
        prop_assert!(!left_out.has_sack() || free < block);
        let late = left_out.dss().is_some_and(|dss| dss.map.is_none());
        let needed = |dss: anabranch_wire::Dss| {
            let whole = granted.dss().map_or(dss, |granted| anabranch_wire::Dss { data_ack: dss.data_ack, ..granted });
            let held = granted.dss().map_or(0, |granted| granted.wire_length().next_multiple_of(4));
            whole.wire_length().next_multiple_of(4) - held
        };
        prop_assert!(!late || left_out.dss().is_none_or(|dss| free < needed(dss)), "a DATA_ACK");
    }

    /// Left out and sent on a segment of its own with the same timestamps, every control option finds room.
    #[test]
    fn what_is_left_out_fits_a_segment_of_its_own(wish in wishes()) {
        let mut granted = wish.clone();
        let Some(left_out) = plan(&mut granted).1 else { return Ok(()) };
        for option in left_out.mptcp() {
            let mut own = Options::default();
            own.set_timestamps(wish.timestamps());
            own.push_mptcp(option.clone());
            let fits = padded(option) + if wish.timestamps().is_some() { 12 } else { 0 } <= 40;
            let packed = option.wire_length() + if wish.timestamps().is_some() { 10 } else { 0 } <= 40;
            prop_assert_eq!(plan(&mut own).1.is_none(), fits || packed);
        }
    }
}
