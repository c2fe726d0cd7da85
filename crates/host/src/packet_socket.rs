//! A packet device without TUN: a socket on one end of a veth pair, whose other end is a host's interface.
//!
//! For systems where an ordinary user may make network namespaces but not open `/dev/net/tun`. The interfaces neither
//! ask for addresses nor answer (NOARP), so nothing but IP packets is on the pair. A host hands packets to a veth
//! interface as to a network card, with checksums left open and several segments in one; the pair is therefore made
//! with offloads switched off, and what comes with an open checksum all the same has it completed here.

use crate::names;
use crate::sys::packet;
use crate::{CommandError, Device, Namespace, VirtioHeader};
use anabranch_wire::Checksum;
use rustix::io::Errno;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// The emulator's end of a veth pair.
#[derive(Debug)]
pub struct PacketSocket {
    socket: OwnedFd,
    name: String,
    /// Ethernet addresses of the pair: the host's end, our end.
    addresses: [[u8; 6]; 2],
    drops: u64,
}

/// Why a pair cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum VethError {
    /// `ip` could not make it.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// The system refused.
    #[error("cannot make the veth pair `{name}`: {error}")]
    System {
        /// The host's end.
        name: String,
        /// Error of the operating system.
        error: io::Error,
    },
}

impl PacketSocket {
    /// Makes a veth pair: the interface `name` in `host`, down and without addresses, as
    /// [`Tun::open`](crate::Tun::open) would, and its other end in `emulator`, under the name `end`.
    ///
    /// # Errors
    /// If there are such interfaces already, or without CAP_NET_ADMIN and CAP_NET_RAW in both namespaces.
    pub fn pair(host: &Namespace, name: &str, emulator: &Namespace, end: &str) -> Result<Self, VethError> {
        let fail = |error| VethError::System { name: name.to_owned(), error };
        let target = format!("/proc/{}/fd/{}", std::process::id(), emulator.file().as_raw_fd());
        for name in [name, end] {
            names::checked(name).map_err(fail)?;
        }
        host.command("ip", &["link", "add", "name", name, "type", "veth", "peer", "name", end, "netns", &target])?;
        // An interface without IPv6 neither announces itself nor listens.
        emulator.sysctl(&format!("net/ipv6/conf/{end}/disable_ipv6"), "1").map_err(fail)?;
        emulator.command("ip", &["link", "set", "dev", end, "arp", "off", "up"])?;
        host.command("ip", &["link", "set", "dev", name, "arp", "off"])?;
        let owned = name.to_owned();
        let address = host.run(move || -> io::Result<[u8; 6]> {
            let socket = std::net::UdpSocket::bind("127.0.0.1:0")?;
            packet::switch_offloads_off(socket.as_fd(), &owned)?;
            packet::hardware_address(socket.as_fd(), &owned)
        });
        let (address, owned) = (address.map_err(fail)?, end.to_owned());
        emulator.run(move || Self::open(&owned, address)).map_err(fail)
    }

    /// Opens one end of a pair, `name` in the caller's network namespace. The other end, with the Ethernet address
    /// `host`, must send packets as they are on a wire: see [`PacketSocket::pair`].
    ///
    /// # Errors
    /// `PermissionDenied` without CAP_NET_RAW; `NotFound` or the like if there is no such interface.
    pub fn open(name: &str, host: [u8; 6]) -> io::Result<Self> {
        let udp = std::net::UdpSocket::bind("127.0.0.1:0").or_else(|_| std::net::UdpSocket::bind("[::1]:0"))?;
        let socket = packet::packet_socket(rustix::net::netdevice::name_to_index(&udp, name)?)?;
        packet::set_receive_buffer(&socket, RECEIVE_BUFFER)?;
        let own = packet::hardware_address(socket.as_fd(), name)?;
        Ok(PacketSocket { socket, name: name.to_owned(), addresses: [host, own], drops: 0 })
    }

    /// The name of our end.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Device for PacketSocket {
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        loop {
            let (mut virtio, mut ethernet) = ([0; VirtioHeader::LENGTH], [0; ETHERNET]);
            let pieces = [&mut virtio[..], &mut ethernet[..], &mut *buffer];
            let length = match rustix::io::readv(&self.socket, &mut pieces.map(IoSliceMut::new)) {
                Ok(length) => length,
                Err(Errno::AGAIN) => return Ok(None),
                Err(error) => return Err(error.into()),
            };
            let Some(length) = length.checked_sub(VirtioHeader::LENGTH + ETHERNET) else {
                continue;
            };
            let kind = u16::from_be_bytes([ethernet[12], ethernet[13]]);
            if !matches!(kind, IPV4 | IPV6) {
                continue; // Only IP is carried.
            }
            let header = VirtioHeader::read(&virtio);
            if header.segmentation != 0 {
                return Err(io::Error::new(io::ErrorKind::InvalidData, OFFLOAD));
            }
            if header.flags & VirtioHeader::NEEDS_CHECKSUM != 0 {
                // Counted from the Ethernet header on.
                let start = usize::from(header.checksum_start).saturating_sub(ETHERNET);
                complete_checksum(&mut buffer[..length], start, usize::from(header.checksum_offset));
            }
            return Ok(Some(length));
        }
    }

    fn send(&mut self, packet: &[u8]) -> io::Result<bool> {
        let kind = match packet.first().map(|first| first >> 4) {
            Some(4) => IPV4,
            Some(6) => IPV6,
            _ => return Err(io::Error::new(io::ErrorKind::InvalidInput, "neither an IPv4 nor an IPv6 packet")),
        };
        let [host, own] = self.addresses;
        let mut ethernet = [0; ETHERNET];
        ethernet[..6].copy_from_slice(&host);
        ethernet[6..12].copy_from_slice(&own);
        ethernet[12..].copy_from_slice(&kind.to_be_bytes());
        let virtio = VirtioHeader::default().write();
        match rustix::io::writev(&self.socket, &[&virtio[..], &ethernet, packet].map(IoSlice::new)) {
            Ok(_) => Ok(true),
            Err(Errno::AGAIN | Errno::NOBUFS) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes our end down, which is what pulling a cable out of the pair is.
    fn set_carrier(&mut self, up: bool) -> io::Result<bool> {
        packet::set_up(self.socket.as_fd(), &self.name, up)?;
        Ok(true)
    }

    fn queue_drops(&mut self) -> io::Result<Option<u64>> {
        self.drops += u64::from(packet::packet_drops(&self.socket)?);
        Ok(Some(self.drops))
    }
}

/// Sums from `start` on, where the field at `start + offset` holds the sum of the pseudo-header, and writes the sum
/// there (Virtual I/O Device 1.2 §5.1.6.2). Without effect if that is not within the packet.
fn complete_checksum(bytes: &mut [u8], start: usize, offset: usize) {
    if start + offset + 2 > bytes.len() {
        return;
    }
    let mut checksum = Checksum::new();
    checksum.add(&bytes[start..]);
    // A sum of zero is written as its other representation: zero would say that UDP has none (RFC 768).
    let value = if checksum.value() == 0 { 0xffff } else { checksum.value() };
    bytes[start + offset..][..2].copy_from_slice(&value.to_be_bytes());
}

const ETHERNET: usize = 14;
const IPV4: u16 = libc::ETH_P_IP as u16;
const IPV6: u16 = libc::ETH_P_IPV6 as u16;
/// Seconds of 10 Mbit/s, a tenth of a second of 1 Gbit/s: the kernel counts a packet with all its memory.
const RECEIVE_BUFFER: i32 = 32 << 20;
const OFFLOAD: &str = "the host's interface sends several segments in one packet: \
                       switch that off with `ethtool -K INTERFACE tso off gso off tx off`";

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use anabranch_units::SubflowSeq;
    use anabranch_wire::{Checksums, Flags, FlowKey, Segment, TcpChecksum};
    use bytes::{Bytes, BytesMut};

    #[test]
    fn an_open_checksum_is_completed() {
        for (from, to, ip) in [("10.0.0.1:1", "10.0.0.2:2", 20), ("[fd00::1]:1", "[fd00::2]:2", 40)] {
            let flow = FlowKey::new(from.parse().unwrap(), to.parse().unwrap());
            let mut segment = Segment::new(flow, Flags::ACK, SubflowSeq::new(1), SubflowSeq::new(2));
            segment.payload = Bytes::from_static(b"odd").into();
            let mut packet = BytesMut::new();
            anabranch_wire::emit_headers(&segment, TcpChecksum::Offload, &mut packet).unwrap();
            packet.extend_from_slice(b"odd");
            let parse = |packet: &BytesMut| anabranch_wire::parse(&packet.clone().freeze(), Checksums::Verify);
            assert!(parse(&packet).is_err());
            complete_checksum(&mut packet, ip, 16);
            assert_eq!(parse(&packet).unwrap().payload[..], *b"odd");
            complete_checksum(&mut packet, usize::from(u16::MAX), 0); // A header that lies.
        }
    }
}
