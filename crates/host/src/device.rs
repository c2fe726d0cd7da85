//! Where IP packets come from and go to.

use std::io;
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

    /// How many packets of the host were dropped since the interface was made because they were not fetched in time: the
    /// interface's own queue is a drop-tail queue that nobody configured. `None` if this kind of device cannot tell.
    fn queue_drops(&mut self) -> io::Result<Option<u64>> {
        Ok(None)
    }
}

/// No IP packet is longer, IPv6 jumbograms apart, which nothing here speaks.
pub const LONGEST_PACKET: usize = 65_575;
