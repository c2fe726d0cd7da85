//! Builds a SYN with MP_CAPABLE, writes it as an IP packet, and reads that.
//!
//! ```text
//! cargo run --example codec
//! ```

use anabranch::units::SubflowSeq;
use anabranch::wire::{Checksums, Flags, FlowKey, Handshake, MpCapable, MpOption, Segment, emit, parse};
use bytes::BytesMut;

/// Runs the example.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let flow = FlowKey::new("10.0.0.1:40000".parse()?, "10.1.0.1:443".parse()?);
    let mut syn = Segment::new(flow, Flags::SYN, SubflowSeq::new(1000), SubflowSeq::new(0));
    let handshake = Handshake { mss: Some(1460), window_scale: Some(7), sack_permitted: true };
    *syn.options.handshake_mut() = handshake;
    syn.options.push_mptcp(MpOption::Capable(MpCapable::OFFER));

    let mut packet = BytesMut::new();
    emit(&syn, &mut packet)?;
    println!("{} bytes: {:02x?}", packet.len(), &packet[..]);

    let read = parse(&packet.freeze(), Checksums::Verify)?;
    assert_eq!(read.options, syn.options);
    println!("{:?}", read.options);
    Ok(())
}
