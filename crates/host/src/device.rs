//! Devices that deliver and accept IP packets.

use crate::VirtioHeader;
use std::io::{self, IoSlice};
use std::os::fd::AsFd;

/// A non-blocking packet device: one IP packet, IPv4 or IPv6, per call.
pub trait Device: AsFd + Send {
    /// Fills `buffer` with the next packet and answers its length; `None` if none is waiting. What does not fit into
    /// `buffer` is lost, so it should have [`LONGEST_PACKET`] bytes.
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>>;

    /// Hands a packet over. `false` if the device cannot take it now; the packet is then not sent.
    fn send(&mut self, packet: &[u8]) -> io::Result<bool>;

    /// Shows the host, whose interface this is, that the cable is pulled out or back in. `false` if this kind of device
    /// cannot.
    fn set_carrier(&mut self, _up: bool) -> io::Result<bool> {
        Ok(false)
    }

    /// Packets of the host dropped since the interface was made, because its queue was full: a drop-tail queue that is
    /// not part of the scenario. `None` if this kind of device cannot tell.
    fn queue_drops(&mut self) -> io::Result<Option<u64>> {
        Ok(None)
    }

    /// Returns true if packets may be larger than the MTU and their checksums left open, both ways. Then
    /// [`Device::receive_frame`] and [`Device::send_frame`] are to be used.
    fn has_offload(&self) -> bool {
        false
    }

    /// Like [`Device::receive`], with the device's header of the packet.
    fn receive_frame(&mut self, buffer: &mut [u8]) -> io::Result<Option<(VirtioHeader, usize)>> {
        Ok(self.receive(buffer)?.map(|length| (VirtioHeader::default(), length)))
    }

    /// Like [`Device::send`], for a packet in at most [`MOST_PIECES`] pieces. `header` names the work left to the
    /// device; without offload it must be all zero.
    fn send_frame(&mut self, header: &VirtioHeader, pieces: &[IoSlice<'_>]) -> io::Result<bool> {
        assert_eq!(*header, VirtioHeader::default(), "nothing is left to a device without offload");
        let pieces: Vec<&[u8]> = pieces.iter().map(|piece| &**piece).collect();
        self.send(&pieces.concat())
    }
}

/// No IP packet is longer, IPv6 jumbograms apart, which nothing here speaks.
pub const LONGEST_PACKET: usize = 65_575;

/// Pieces that a packet may lie in: headers and as many segments as 64 KiB hold at the usual MTU.
pub const MOST_PIECES: usize = 64;
