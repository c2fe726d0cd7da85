//! Lies about a genuine segment.

use crate::script::Script;
use crate::segments;
use anabranch_units::{Dsn, SubflowSeq};
use anabranch_wire::{DataSeq, Flags, MpOption, Segment, Timestamps, dss_checksum, emit};
use bytes::{Bytes, BytesMut};

/// Changes one thing.
pub(crate) fn lie(script: &mut Script<'_>, segment: &mut Segment) {
    match script.below(14) {
        0 => segment.seq = SubflowSeq::new(script.near(segment.seq.get())),
        1 => segment.ack = SubflowSeq::new(script.near(segment.ack.get())),
        2 => segment.window = script.number() as u16,
        3 => {
            let flags =
                [Flags::FIN, Flags::SYN, Flags::RST, Flags::PSH, Flags::ACK, Flags::URG, Flags::ECE, Flags::CWR];
            segment.flags = Flags(segment.flags.0 ^ script.of(&flags).0);
        }
        4 => shape_dss(script, segment),
        5 => {
            let mut dss = segment.options.dss().unwrap_or_default();
            dss.data_fin ^= true;
            if let Some(map) = &mut dss.map {
                map.length = map.length.wrapping_add(u16::from(script.below(3))).wrapping_sub(1);
            }
            segment.options.set_dss(Some(dss));
        }
        6 => segment.options.set_dss(Some(segments::dss(script))),
        7 => segment.options.push_mptcp(segments::mptcp(script)),
        8 => segment.options.strip_mptcp(),
        9 => segments::wish(script, &mut segment.options),
        10 => {
            let timestamps = segment.options.timestamps();
            let near = |it: Timestamps| Timestamps { value: script.near(it.value), echo: script.near(it.echo) };
            segment.options.set_timestamps(timestamps.map(near));
        }
        11 => {
            let keep = usize::from(script.any::<u16>()) % (segment.payload.len() + 1);
            segment.payload = if script.any() { segment.payload.slice(keep..) } else { segment.payload.slice(..keep) };
        }
        12 => segment.payload = Bytes::copy_from_slice(script.bytes(200)).into(),
        _ => {
            // A piece cut out of the middle, its sequence number put right, as a middlebox would.
            let at = usize::from(script.any::<u16>()) % (segment.payload.len() + 1);
            segment.seq = segment.seq + at as u64;
            segment.payload = segment.payload.slice(at..);
        }
    }
}

/// Moves one field of the DSS a little, or far.
fn shape_dss(script: &mut Script<'_>, segment: &mut Segment) {
    let mut dss = segment.options.dss().unwrap_or_default();
    let mut shift = |seq: DataSeq| match seq {
        DataSeq::Short(low) => DataSeq::Short(script.near(low)),
        DataSeq::Long(dsn) if script.any() => DataSeq::Short(dsn.low()),
        DataSeq::Long(dsn) => DataSeq::Long(dsn + u64::from(script.near(0)) + script.number().wrapping_shl(33)),
    };
    match (&mut dss.map, &mut dss.data_ack) {
        (Some(map), _) if map.subflow_seq.is_multiple_of(2) => map.dsn = shift(map.dsn),
        (_, Some(ack)) => *ack = shift(*ack),
        _ => {}
    }
    if let Some(map) = &mut dss.map {
        match script.below(4) {
            0 => map.subflow_seq = script.near(map.subflow_seq),
            1 => map.length = script.number() as u16,
            2 => map.checksum = script.any::<bool>().then(|| script.any()),
            _ => {}
        }
    }
    segment.options.set_dss(Some(dss));
}

/// Puts the DSS checksum right for a mapping that this segment carries whole (RFC 8684 §3.3.1), if it has one. `idsn`
/// gives the whole number of a short data sequence number.
pub(crate) fn sign(segment: &mut Segment, idsn: Dsn) {
    let payload = segment.payload.clone();
    if let Some(mut dss) = segment.options.dss()
        && let Some(map) = &mut dss.map
        && usize::from(map.length) == payload.len() + usize::from(dss.data_fin)
    {
        let sum = dss_checksum(map.dsn.near(idsn), map.subflow_seq, map.length, [&payload[..]]);
        map.checksum = map.checksum.map(|_| sum);
        segment.options.set_dss(Some(dss));
    }
    for option in segment.options.mptcp_mut() {
        if let MpOption::Capable(capable) = option
            && let Some((length, Some(checksum))) = &mut capable.data
            && usize::from(*length) == payload.len()
        {
            *checksum = dss_checksum(idsn + 1, 1, *length, [&payload[..]]);
        }
    }
}

/// Changes single bytes of the packet; `None` if the segment has none.
pub(crate) fn corrupt(script: &mut Script<'_>, segment: &Segment) -> Option<Bytes> {
    let mut out = BytesMut::new();
    emit(segment, &mut out).ok()?;
    // Beyond the addresses, where it says something about the connection.
    let first = if segment.flow.src.is_ipv4() { 20 } else { 40 };
    for _ in 0..=script.below(3) {
        let at = first + usize::from(script.any::<u8>()) % (out.len() - first);
        out[at] = script.any();
    }
    Some(out.freeze())
}
