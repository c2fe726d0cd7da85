//! Packets under way, in buffers that are used again.
//!
//! A packet that leaves, is lost or is refused gives its buffer back, so in the steady state nothing is allocated.
//! Buffers are plain vectors rather than `Bytes`, which would have to allocate a counter for each packet.

use anabranch_net::Carried;
use anabranch_units::{Ecn, Instant};
use anabranch_wire::carriage;
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

/// Free packet buffers. A clone is another handle to the same buffers.
#[derive(Clone, Default)]
pub(super) struct Pool(Rc<RefCell<Vec<Vec<u8>>>>);

/// An IP packet.
pub(super) struct Packet {
    bytes: Vec<u8>,
    /// Time at which it was read from its device.
    pub(super) entered: Instant,
    pool: Pool,
}

impl Pool {
    /// A packet of these bytes.
    #[inline]
    pub(super) fn packet(&self, bytes: &[u8], entered: Instant) -> Packet {
        let mut buffer = self.0.borrow_mut().pop().unwrap_or_default();
        buffer.clear();
        if buffer.capacity() < bytes.len() {
            // Few sizes, so that any buffer soon fits any packet.
            buffer.reserve(bytes.len().next_power_of_two().max(ORDINARY));
        }
        buffer.extend_from_slice(bytes);
        Packet { bytes: buffer, entered, pool: self.clone() }
    }

    /// Number of free buffers.
    #[cfg(test)]
    fn spare(&self) -> usize {
        self.0.borrow().len()
    }
}

impl Packet {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

impl Carried for Packet {
    fn flow(&self) -> u64 {
        carriage::flow_of(&self.bytes)
    }

    fn hosts(&self) -> [u64; 2] {
        carriage::hosts_of(&self.bytes)
    }

    fn ecn(&self) -> Ecn {
        carriage::ecn_of(&self.bytes)
    }

    fn mark(&mut self) {
        carriage::mark(&mut self.bytes);
    }
}

impl Clone for Packet {
    /// A copy in a buffer of its own, for links that duplicate.
    fn clone(&self) -> Self {
        self.pool.packet(&self.bytes, self.entered)
    }
}

impl Drop for Packet {
    #[inline]
    fn drop(&mut self) {
        let buffer = std::mem::take(&mut self.bytes);
        // Large ones are rare and would add up to far more memory than is in use.
        if buffer.capacity() <= KEPT {
            self.pool.0.borrow_mut().push(buffer);
        }
    }
}

impl fmt::Debug for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "packet of {} bytes, entered at {}", self.bytes.len(), self.entered)
    }
}

/// Room for what an Ethernet link carries (RFC 894), in a power of two.
const ORDINARY: usize = 2048;
const KEPT: usize = 4 * ORDINARY;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_used_again_unless_they_are_large() {
        let pool = Pool::default();
        let at = Instant::ZERO;
        let (first, large) = (pool.packet(&[1; 40], at), pool.packet(&[2; 65_000], at));
        let copy = first.clone();
        assert_eq!((copy.bytes(), large.bytes().len(), pool.spare()), (&[1; 40][..], 65_000, 0));
        drop((first, copy, large));
        assert_eq!(pool.spare(), 2);
        let (a, b) = (pool.packet(&[3; 1500], at), pool.packet(&[], at));
        assert_eq!((a.bytes(), b.bytes(), pool.spare()), (&[3; 1500][..], &[][..], 0));
    }
}
