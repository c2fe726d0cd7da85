//! The codec: what can be read can be written and is read again as the same; what can be written is read as it was.

use crate::script::Script;
use crate::segments;
use anabranch_wire::{Checksums, EmitError, ParseError, Segment, emit, parse, parse_captured, plan};
use bytes::{Bytes, BytesMut};

/// Bytes that begin like IPv4 or IPv6 are a packet, all others a script for a segment.
pub fn codec(bytes: &[u8]) {
    match bytes.first().map(|byte| byte >> 4) {
        Some(4 | 6) => packet(bytes),
        Some(_) => structured(&mut Script::new(&bytes[1..])),
        None => {}
    }
}

/// An arbitrary packet.
fn packet(bytes: &[u8]) {
    let packet = Bytes::copy_from_slice(bytes);
    let verified = parse(&packet, Checksums::Verify);
    let captured = parse_captured(&packet);
    match parse(&packet, Checksums::Ignore) {
        Ok(segment) => {
            assert!(verified.is_ok() || matches!(verified, Err(ParseError::IpChecksum | ParseError::TcpChecksum)));
            let captured = captured.expect("a capture of a whole packet is read as well");
            assert_eq!(captured.payload_length, captured.segment.payload.len(), "nothing was cut");
            assert_eq!(captured.segment, segment);
            rewritten(&segment);
        }
        Err(error) => {
            assert_eq!(verified, Err(error));
            if let Ok(captured) = captured {
                assert!(captured.payload_length >= captured.segment.payload.len());
                rewritten(&captured.segment);
            }
        }
    }
}

/// Checks that a segment read can be written again, as the same packet in canonical layout.
pub(crate) fn rewritten(segment: &Segment) {
    let again = through(segment).expect("what was read can be written");
    assert_eq!(&again, segment, "written and read again");
}

/// The segment as it comes out at the other end of a wire.
pub(crate) fn through(segment: &Segment) -> Result<Segment, EmitError> {
    let mut out = BytesMut::new();
    emit(segment, &mut out)?;
    assert!(segment.options.wire_length() <= 40, "a header has 40 bytes for options");
    assert_eq!(out.len() as u64, segment.wire_length().get());
    Ok(parse(&out.freeze(), Checksums::Verify).expect("what is written is good"))
}

/// A made-up segment: made to fit, written, read.
fn structured(script: &mut Script<'_>) {
    let mut segment = segments::segment(script);
    let mut wishes = 0;
    while let Some(left_out) = plan(&mut segment.options).1 {
        assert!(segment.options.wire_length() <= 40);
        if let Ok(read) = through(&segment) {
            // An unknown option of a known kind may turn out to be a known one.
            if segment.options.foreign().is_empty() {
                assert_eq!(read, segment);
            }
            rewritten(&read);
        }
        // Options left out go onto the next segment, until a segment takes none.
        let is_stuck = *left_out == segment.options || wishes > 64;
        segment.options = *left_out;
        segment.options.set_timestamps(None);
        wishes += 1;
        if is_stuck || segment.options.mptcp().iter().any(|option| option.wire_length() > 40) {
            return;
        }
    }
    if let Ok(read) = through(&segment) {
        if segment.options.foreign().is_empty() {
            assert_eq!(read, segment);
        }
        rewritten(&read);
    }
}
