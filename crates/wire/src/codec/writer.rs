//! A header under construction.

/// Bytes of the longest header: IPv6, TCP, 40 bytes of options.
const LONGEST: usize = 100;

/// The headers of one packet, written in order into a fixed space.
pub(super) struct Writer {
    bytes: [u8; LONGEST],
    len: usize,
    /// Leave out the padding between options.
    packed: bool,
}

impl Writer {
    pub fn new(packed: bool) -> Self {
        Writer { bytes: [0; LONGEST], len: 0, packed }
    }

    /// Appends `bytes`. The caller has made sure that the options fit.
    #[inline]
    pub fn put(&mut self, bytes: &[u8]) {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    /// Appends one byte.
    #[inline]
    pub fn put_u8(&mut self, byte: u8) {
        self.bytes[self.len] = byte;
        self.len += 1;
    }

    /// Puts `count` NOPs in front of an option whose fields are to be aligned.
    #[inline]
    pub fn nops(&mut self, count: usize) {
        if !self.packed {
            (0..count).for_each(|_| self.put_u8(NOP));
        }
    }

    /// Pads with NOPs to a multiple of four after an option, as Linux does.
    #[inline]
    pub fn align(&mut self) {
        if !self.packed {
            self.align_to(0);
        }
    }

    /// Pads with NOPs so that `more` bytes end at a multiple of four.
    #[inline]
    pub fn align_to(&mut self, more: usize) {
        while !(self.len + more).is_multiple_of(4) {
            self.put_u8(NOP);
        }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Overwrites two bytes.
    pub fn set_u16(&mut self, at: usize, value: u16) {
        self.bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
    }
}

/// The option that only pads (RFC 9293 §3.1).
const NOP: u8 = 1;
