//! Header before each packet of a device with offload: open checksums and segmentation.
//!
//! `struct virtio_net_hdr` of ten bytes (Virtual I/O Device 1.2 §5.1.6) in the machine's own byte order, as
//! `IFF_VNET_HDR` gives it. Only TCP is cut here.

use anabranch_wire::Checksums;

/// Header of a packet. All zero means that the packet is as it would be on a wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VirtioHeader {
    /// [`VirtioHeader::NEEDS_CHECKSUM`], [`VirtioHeader::DATA_VALID`].
    pub flags: u8,
    /// Segmentation: 0 for none, otherwise [`VirtioHeader::TCP_V4`] or [`VirtioHeader::TCP_V6`].
    pub segmentation: u8,
    /// Bytes of IP and TCP header; a hint, that may be too large.
    pub header_length: u16,
    /// Bytes of payload in each segment but the last.
    pub segment_size: u16,
    /// Offset of the first byte to be summed.
    pub checksum_start: u16,
    /// Offset of the checksum from `checksum_start`.
    pub checksum_offset: u16,
}

/// Why a received header is invalid and its packet dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VirtioFault {
    /// Segmentation that was not offered, or does not match the IP version.
    #[error("segmentation type {0:#04x} is none that was offered, or not that of the packet's IP version")]
    Segmentation(u8),
    /// Segmentation into segments of zero bytes.
    #[error("segments of no bytes")]
    SegmentSize,
    /// Segmentation with a checksum that is already complete.
    #[error("a packet to be cut whose checksum is not left open")]
    CompleteChecksum,
    /// The checksum would lie beyond the packet.
    #[error("a checksum at {start} + {offset} of a packet of {length} bytes")]
    ChecksumPlace {
        /// Offset of the first byte to be summed.
        start: u16,
        /// Offset of the checksum from there.
        offset: u16,
        /// Bytes of the packet.
        length: usize,
    },
    /// The headers would be longer than the packet.
    #[error("{headers} bytes of headers in a packet of {length} bytes")]
    HeaderLength {
        /// Header length in the header.
        headers: u16,
        /// Bytes of the packet.
        length: usize,
    },
}

impl VirtioHeader {
    /// Its size before each packet.
    pub const LENGTH: usize = 10;
    /// The checksum field holds the sum of the pseudo-header only.
    pub const NEEDS_CHECKSUM: u8 = 1;
    /// The checksum has been verified.
    pub const DATA_VALID: u8 = 2;
    /// TCP over IPv4.
    pub const TCP_V4: u8 = 1;
    /// TCP over IPv6.
    pub const TCP_V6: u8 = 4;

    /// For a TCP packet whose checksum is left open. With a `segment_size` it is to be cut.
    pub fn tcp(is_ipv4: bool, ip_header: u16, headers: u16, segment_size: Option<u16>) -> Self {
        let segmentation = if is_ipv4 { Self::TCP_V4 } else { Self::TCP_V6 };
        VirtioHeader {
            flags: Self::NEEDS_CHECKSUM,
            segmentation: if segment_size.is_some() { segmentation } else { 0 },
            header_length: headers,
            segment_size: segment_size.unwrap_or(0),
            checksum_start: ip_header,
            checksum_offset: TCP_CHECKSUM,
        }
    }

    /// Reads the bytes before a packet.
    pub fn read(bytes: &[u8; Self::LENGTH]) -> Self {
        let field = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        VirtioHeader {
            flags: bytes[0],
            segmentation: bytes[1],
            header_length: field(2),
            segment_size: field(4),
            checksum_start: field(6),
            checksum_offset: field(8),
        }
    }

    /// The bytes to stand before a packet.
    pub fn write(&self) -> [u8; Self::LENGTH] {
        let mut bytes = [self.flags, self.segmentation, 0, 0, 0, 0, 0, 0, 0, 0];
        let fields = [self.header_length, self.segment_size, self.checksum_start, self.checksum_offset];
        for (place, field) in bytes[2..].chunks_exact_mut(2).zip(fields) {
            place.copy_from_slice(&field.to_ne_bytes());
        }
        bytes
    }

    /// Checks the header against `packet` and returns the verification that its checksums need.
    ///
    /// # Errors
    /// If the header contradicts the packet or itself.
    pub fn examine(&self, packet: &[u8]) -> Result<Checksums, VirtioFault> {
        let length = packet.len();
        let is_open = self.flags & Self::NEEDS_CHECKSUM != 0;
        let checksum_end = usize::from(self.checksum_start) + usize::from(self.checksum_offset) + 2;
        if is_open && checksum_end > length {
            let (start, offset) = (self.checksum_start, self.checksum_offset);
            return Err(VirtioFault::ChecksumPlace { start, offset, length });
        }
        let version = packet.first().map_or(0, |byte| byte >> 4);
        match (self.segmentation & !ECN, version) {
            (0, _) => {}
            (Self::TCP_V4, 4) | (Self::TCP_V6, 6) => {
                if self.segment_size == 0 {
                    return Err(VirtioFault::SegmentSize);
                }
                if !is_open {
                    return Err(VirtioFault::CompleteChecksum);
                }
                if usize::from(self.header_length) > length {
                    return Err(VirtioFault::HeaderLength { headers: self.header_length, length });
                }
            }
            _ => return Err(VirtioFault::Segmentation(self.segmentation)),
        }
        let is_known = self.flags & (Self::NEEDS_CHECKSUM | Self::DATA_VALID) != 0;
        Ok(if is_known { Checksums::Ignore } else { Checksums::Verify })
    }
}

/// Set in the segmentation type if the first segment alone is to have CWR.
const ECN: u8 = 0x80;
/// Offset of the checksum in a TCP header.
const TCP_CHECKSUM: u16 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(version: u8, length: usize) -> Vec<u8> {
        let mut packet = vec![0; length];
        packet[0] = version << 4;
        packet
    }

    #[test]
    fn what_is_written_is_read() {
        let header = VirtioHeader::tcp(true, 20, 60, Some(1420));
        assert_eq!(header.write()[..2], [1, 1]);
        assert_eq!(VirtioHeader::read(&header.write()), header);
        let whole = VirtioHeader::tcp(false, 40, 60, None);
        assert_eq!((whole.segmentation, whole.checksum_start, whole.checksum_offset), (0, 40, 16));
    }

    #[test]
    fn only_what_the_device_vouches_for_goes_unverified() {
        let (packet, open) = (packet(4, 100), VirtioHeader::tcp(true, 20, 60, None));
        assert_eq!(VirtioHeader::default().examine(&packet), Ok(Checksums::Verify));
        assert_eq!(open.examine(&packet), Ok(Checksums::Ignore));
        let valid = VirtioHeader { flags: VirtioHeader::DATA_VALID, ..VirtioHeader::default() };
        assert_eq!(valid.examine(&packet), Ok(Checksums::Ignore));
    }

    #[test]
    fn headers_that_lie_are_refused() {
        let (good, length) = (VirtioHeader::tcp(true, 20, 60, Some(1420)), 4000);
        assert!(good.examine(&packet(4, length)).is_ok());
        assert!(VirtioHeader { segmentation: 0x81, ..good }.examine(&packet(4, length)).is_ok(), "with the ECN bit");
        let place = |start, offset| VirtioFault::ChecksumPlace { start, offset, length };
        for (header, version, fault) in [
            (VirtioHeader { segment_size: 0, ..good }, 4, VirtioFault::SegmentSize),
            (VirtioHeader { flags: 0, ..good }, 4, VirtioFault::CompleteChecksum),
            (VirtioHeader { flags: VirtioHeader::DATA_VALID, ..good }, 4, VirtioFault::CompleteChecksum),
            (VirtioHeader { header_length: 4001, ..good }, 4, VirtioFault::HeaderLength { headers: 4001, length }),
            // UDP, never offered; a type that does not exist; IPv4's on IPv6 and the other way round; on no IP at all.
            (VirtioHeader { segmentation: 3, ..good }, 4, VirtioFault::Segmentation(3)),
            (VirtioHeader { segmentation: 5, ..good }, 4, VirtioFault::Segmentation(5)),
            (VirtioHeader { segmentation: 0x42, ..good }, 4, VirtioFault::Segmentation(0x42)),
            (good, 6, VirtioFault::Segmentation(1)),
            (VirtioHeader { segmentation: 4, ..good }, 4, VirtioFault::Segmentation(4)),
            (good, 0, VirtioFault::Segmentation(1)),
            (VirtioHeader { checksum_start: 3999, ..good }, 4, place(3999, 16)),
            (VirtioHeader { checksum_offset: 3979, ..good }, 4, place(20, 3979)),
            (VirtioHeader { checksum_start: 0xffff, checksum_offset: 0xffff, ..good }, 4, place(0xffff, 0xffff)),
        ] {
            assert_eq!(header.examine(&packet(version, length)), Err(fault), "{header:?}");
        }
        let last = VirtioHeader { checksum_offset: 3978, ..good };
        assert!(last.examine(&packet(4, length)).is_ok(), "the last two bytes are still inside");
        assert!(good.examine(&[]).is_err());
    }
}
