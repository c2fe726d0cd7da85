//! Addresses changed at the edge of a device: the engine knows the outer ones, the device carries the inner ones.
//!
//! For an address that the machine's own stack has as well (see [`crate::addresses`]). Checksums are corrected by the
//! difference (RFC 1624), so that a packet that was damaged before stays recognisable.

use crate::Device;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};

/// An address of the machine, and its substitute on the device. Both are of one family.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pair {
    /// Address on the device.
    pub inner: IpAddr,
    /// Address in the engine and beyond the machine.
    pub outer: IpAddr,
}

/// A device behind which addresses are others. It takes whole packets: one with offload must not be behind it.
pub struct Translated<D> {
    device: D,
    pairs: Vec<Pair>,
    packet: Vec<u8>,
}

impl<D: Device> Translated<D> {
    /// `device`, with these pairs.
    pub fn new(device: D, pairs: Vec<Pair>) -> Self {
        assert!(!device.has_offload(), "checksums that are left open cannot be corrected");
        Translated { device, pairs, packet: Vec::new() }
    }
}

impl<D: Device> AsFd for Translated<D> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

impl<D: Device> Device for Translated<D> {
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let length = self.device.receive(buffer)?;
        if let Some(length) = length {
            rewrite(&mut buffer[..length], Side::Destination, self.pairs.iter().map(|pair| (pair.inner, pair.outer)));
        }
        Ok(length)
    }

    fn send(&mut self, packet: &[u8]) -> io::Result<bool> {
        self.packet.clear();
        self.packet.extend_from_slice(packet);
        rewrite(&mut self.packet, Side::Source, self.pairs.iter().map(|pair| (pair.outer, pair.inner)));
        self.device.send(&self.packet)
    }

    fn set_carrier(&mut self, up: bool) -> io::Result<bool> {
        self.device.set_carrier(up)
    }

    fn queue_drops(&mut self) -> io::Result<Option<u64>> {
        self.device.queue_drops()
    }
}

#[derive(Clone, Copy)]
enum Side {
    Source,
    Destination,
}

const TCP: u8 = 6;
const ICMPV6: u8 = 58;

/// Puts the second address of a pair in the place of the first; a packet without either stays as it is, as does one
/// that is no whole IP packet.
fn rewrite(packet: &mut [u8], side: Side, mut pairs: impl Iterator<Item = (IpAddr, IpAddr)>) {
    let (at, length, header) = match (packet.first().map(|first| first >> 4), side) {
        (Some(4), Side::Source) => (12, 4, usize::from(packet[0] & 15) * 4),
        (Some(4), Side::Destination) => (16, 4, usize::from(packet[0] & 15) * 4),
        (Some(6), Side::Source) => (8, 16, 40),
        (Some(6), Side::Destination) => (24, 16, 40),
        _ => return,
    };
    if packet.len() < header || header < at + length {
        return;
    }
    let mut old = [0; 16];
    old[..length].copy_from_slice(&packet[at..at + length]);
    let Some((_, new)) = pairs.find(|(from, _)| octets(*from) == (old, length)) else { return };
    let (new, _) = octets(new);
    packet[at..at + length].copy_from_slice(&new[..length]);
    let v4 = length == 4;
    if v4 {
        correct(packet, 10, &old[..length], &new[..length]);
    }
    let later_fragment = v4 && (u16::from_be_bytes([packet[6], packet[7]]) & 0x1fff) != 0;
    let checksum = match if v4 { packet[9] } else { packet[6] } {
        TCP => Some(header + 16),
        // It covers the addresses; that of ICMP for IPv4 does not.
        ICMPV6 if !v4 => Some(header + 2),
        _ => None,
    };
    if let Some(at) = checksum.filter(|at| !later_fragment && at + 2 <= packet.len()) {
        correct(packet, at, &old[..length], &new[..length]);
    }
}

fn octets(address: IpAddr) -> ([u8; 16], usize) {
    let mut bytes = [0; 16];
    match address {
        IpAddr::V4(v4) => {
            bytes[..4].copy_from_slice(&v4.octets());
            (bytes, 4)
        }
        IpAddr::V6(v6) => (v6.octets(), 16),
    }
}

/// RFC 1624, equation 3: HC' = ~(~HC + ~m + m').
fn correct(packet: &mut [u8], at: usize, old: &[u8], new: &[u8]) {
    let words = |bytes: &[u8]| -> Vec<u32> {
        bytes.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).collect()
    };
    let mut sum = u32::from(!u16::from_be_bytes([packet[at], packet[at + 1]]));
    sum += words(old).iter().map(|word| 0xffff - word).sum::<u32>() + words(new).iter().sum::<u32>();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    packet[at..at + 2].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use anabranch_units::SubflowSeq;
    use anabranch_wire::{Checksums, Flags, FlowKey, Segment};
    use bytes::{Bytes, BytesMut};
    use std::collections::VecDeque;
    use std::fs::File;

    /// Keeps what is sent, and gives what it was given.
    struct Memory(File, VecDeque<Vec<u8>>);

    impl AsFd for Memory {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.0.as_fd()
        }
    }

    impl Device for Memory {
        fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
            Ok(self.1.pop_front().map(|packet| {
                buffer[..packet.len()].copy_from_slice(&packet);
                packet.len()
            }))
        }

        fn send(&mut self, packet: &[u8]) -> io::Result<bool> {
            self.1.push_back(packet.to_vec());
            Ok(true)
        }
    }

    fn packet(from: &str, to: &str) -> BytesMut {
        let flow = FlowKey::new(from.parse().unwrap(), to.parse().unwrap());
        let mut bytes = BytesMut::new();
        let payload = b"odd".into();
        anabranch_wire::emit(
            &Segment { payload, ..Segment::new(flow, Flags::ACK, SubflowSeq::new(1), SubflowSeq::new(1)) },
            &mut bytes,
        )
        .unwrap();
        bytes
    }

    #[test]
    fn addresses_change_and_checksums_stay_right() {
        let pair = |inner: &str, outer: &str| Pair { inner: inner.parse().unwrap(), outer: outer.parse().unwrap() };
        let pairs = vec![pair("198.18.0.1", "192.0.2.1"), pair("fd00::1", "2001:db8::1")];
        let mut device = Translated::new(Memory(File::open("/dev/null").unwrap(), VecDeque::new()), pairs);
        for (own, other, inner) in [
            ("192.0.2.1:5", "203.0.113.9:6", "198.18.0.1:5"),
            ("[2001:db8::1]:5", "[2001:db8::9]:6", "[fd00::1]:5"),
            ("192.0.2.2:5", "203.0.113.9:6", "192.0.2.2:5"),
        ] {
            assert!(device.send(&packet(own, other)).unwrap());
            let sent = Bytes::from(device.device.1.pop_front().unwrap());
            let sent = anabranch_wire::parse(&sent, Checksums::Verify).expect("its checksums are right");
            assert_eq!(sent.flow, FlowKey::new(inner.parse().unwrap(), other.parse().unwrap()));

            device.device.1.push_back(packet(other, inner).to_vec());
            let mut buffer = [0; 100];
            let length = device.receive(&mut buffer).unwrap().unwrap();
            let got = Bytes::copy_from_slice(&buffer[..length]);
            let got = anabranch_wire::parse(&got, Checksums::Verify).expect("its checksums are right");
            assert_eq!(got.flow, FlowKey::new(other.parse().unwrap(), own.parse().unwrap()));
        }
        for rubbish in [&[][..], &[0x45], &[0x60; 39], &[0x41; 60]] {
            assert!(device.send(rubbish).unwrap());
            assert_eq!(device.device.1.pop_front().unwrap(), rubbish);
        }
    }
}
