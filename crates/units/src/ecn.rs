//! The ECN field of IP headers.

/// The ECN field of an IP header (RFC 3168 §5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable: the transport does not know marks.
    #[default]
    NotEct = 0,
    /// ECN-capable, codepoint 1: of a transport with L4S (RFC 9331).
    Ect1 = 1,
    /// ECN-capable, codepoint 0.
    Ect0 = 2,
    /// Congestion experienced: a mark.
    Ce = 3,
}

impl Ecn {
    /// Reads the low two bits of the IPv4 type of service or IPv6 traffic class.
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }

    /// Returns the two bits.
    pub const fn bits(self) -> u8 {
        self as u8
    }

    /// Returns true if the transport knows marks.
    pub fn is_capable(self) -> bool {
        self != Ecn::NotEct
    }
}
