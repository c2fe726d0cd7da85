//! Cost of the codec: nanoseconds per packet written and read, payload and checksum apart, and bytes per second of the
//! checksum.

use crate::counting;
use crate::figure::Spread;
use anabranch_units::{Dsn, SubflowSeq};
use anabranch_wire::{
    Checksum, Checksums, DataSeq, Dss, Flags, FlowKey, Map, SackBlock, Segment, TcpChecksum, Timestamps, emit,
    emit_headers, parse, parse_parts,
};
use bytes::{Bytes, BytesMut};
use std::hint::black_box;

/// A full packet: 1500 bytes less IPv4, TCP, timestamps and DSS.
const PAYLOAD: usize = 1420;

/// Figures for one kind of segment.
pub struct Line {
    /// Name of the case.
    pub name: &'static str,
    /// Headers written, checksum offloaded.
    pub emit: Spread,
    /// Headers read, checksum not looked at.
    pub parse: Spread,
    /// The whole packet written, payload copied and summed.
    pub emit_whole: Spread,
    /// The whole packet read, checksum verified.
    pub parse_whole: Spread,
    /// Allocations per packet written and read.
    pub allocations: f64,
}

/// A data segment with DSS and timestamps, and an ACK with SACK, DATA_ACK and timestamps; IPv4 and IPv6.
pub fn all() -> Vec<Line> {
    let v4 = FlowKey::new(([10, 0, 0, 1], 1).into(), ([10, 1, 0, 1], 2).into());
    let v6 = FlowKey::new(([0xfd; 16], 1).into(), ([0xfe; 16], 2).into());
    vec![
        measure("data with DSS, IPv4", &data(v4)),
        measure("data with DSS, IPv6", &data(v6)),
        measure("ACK with SACK, IPv4", &ack(v4)),
        measure("ACK with SACK, IPv6", &ack(v6)),
    ]
}

/// Nanoseconds to find that the options of a data segment fit, as nearly all do.
pub fn plan() -> Spread {
    let mut options = data(FlowKey::new(([10, 0, 0, 1], 1).into(), ([10, 1, 0, 1], 2).into())).options;
    Spread::per_call(64, || assert!(anabranch_wire::plan(black_box(&mut options)).1.is_none(), "a full mapping fits"))
}

/// Gigabytes per second that the checksum sums.
pub fn checksum() -> Spread {
    let bytes = vec![0xa5; PAYLOAD];
    let nanos = Spread::per_call(64, || {
        let mut checksum = Checksum::new();
        checksum.add(black_box(&bytes));
        black_box(checksum.sum());
    });
    nanos.inverse(PAYLOAD as f64)
}

fn data(flow: FlowKey) -> Segment {
    let map = Map { dsn: DataSeq::Long(Dsn::new(1 << 40)), subflow_seq: 7, length: PAYLOAD as u16, checksum: None };
    let mut segment = Segment::new(flow, Flags::ACK, SubflowSeq::new(1), SubflowSeq::new(2));
    segment.options.set_timestamps(Some(Timestamps { value: 1, echo: 2 }));
    segment.options.set_dss(Some(Dss { data_ack: Some(DataSeq::Long(Dsn::new(9))), map: Some(map), data_fin: false }));
    segment.payload = Bytes::from(vec![0x5a; PAYLOAD]).into();
    segment
}

fn ack(flow: FlowKey) -> Segment {
    let mut segment = Segment::new(flow, Flags::ACK, SubflowSeq::new(1), SubflowSeq::new(2));
    segment.options.set_timestamps(Some(Timestamps { value: 1, echo: 2 }));
    for n in 0..2 {
        let block = SackBlock { start: SubflowSeq::new(3000 * n), end: SubflowSeq::new(3000 * n + 1420) };
        assert!(segment.options.sack().push(block));
    }
    segment.options.set_dss(Some(Dss { data_ack: Some(DataSeq::Short(9)), ..Dss::default() }));
    segment
}

fn measure(name: &'static str, segment: &Segment) -> Line {
    let mut out = BytesMut::with_capacity(2048);
    emit_headers(segment, TcpChecksum::Full, &mut out).expect("the segment fits");
    let headers = Bytes::copy_from_slice(&out);
    out.extend_from_slice(&segment.payload);
    let packet = Bytes::copy_from_slice(&out);

    let emit_headers = Spread::per_call(64, || {
        out.clear();
        emit_headers(black_box(segment), TcpChecksum::Offload, &mut out).expect("the segment fits");
        black_box(&out);
    });
    let emit_whole = Spread::per_call(64, || {
        out.clear();
        emit(black_box(segment), &mut out).expect("the segment fits");
        black_box(&out);
    });
    let parse_headers = Spread::per_call(64, || {
        let parsed = parse_parts(black_box(&headers), segment.payload.clone(), Checksums::Ignore);
        black_box(&parsed.expect("the packet is whole"));
    });
    let parse_whole = Spread::per_call(64, || {
        black_box(&parse(black_box(&packet), Checksums::Verify).expect("the packet is good"));
    });
    let before = counting::calls();
    for _ in 0..1000 {
        out.clear();
        emit(black_box(segment), &mut out).expect("the segment fits");
        black_box(&parse(black_box(&packet), Checksums::Verify).expect("the packet is good"));
    }
    let allocations = (counting::calls() - before) as f64 / 1000.0;
    Line { name, emit: emit_headers, parse: parse_headers, emit_whole, parse_whole, allocations }
}
