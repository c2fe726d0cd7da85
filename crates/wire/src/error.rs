//! Why a segment could not be written, or a packet not read.

use thiserror::Error;

/// Why a [`Segment`](crate::Segment) cannot be written. The output is unchanged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum EmitError {
    /// One address is IPv4, the other IPv6.
    #[error("the addresses are of different families")]
    MixedFamilies,
    /// The options do not fit the header, even without padding.
    #[error("the options take {length} bytes, a header has 40")]
    OptionsTooLong {
        /// Bytes they would take.
        length: u64,
    },
    /// The packet is longer than the IP header can say.
    #[error("{length} bytes are more than the IP header's length field can say")]
    PacketTooLong {
        /// Bytes that the length field would have to hold.
        length: usize,
    },
    /// A field holds more than its bits on the wire.
    #[error("{field} is wider than its {bits} bits")]
    FieldTooWide {
        /// The field, as it appears in the message.
        field: &'static str,
        /// Bits it has.
        bits: u8,
    },
    /// An option holds a combination for which RFC 8684 has no layout.
    #[error("{0}")]
    NoLayout(&'static str),
}

/// Why a packet cannot be read as a [`Segment`](crate::Segment).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum ParseError {
    /// Ends before what its headers promise.
    #[error("{layer} ends after {have} bytes, {need} are needed")]
    Truncated {
        /// The layer cut short.
        layer: Layer,
        /// Bytes that its fields ask for.
        need: usize,
        /// Bytes that are there.
        have: usize,
    },
    /// Neither IPv4 nor IPv6.
    #[error("IP version {0}")]
    Version(u8),
    /// A header length below the smallest header.
    #[error("{layer} header length of {length} bytes")]
    HeaderLength {
        /// Layer of the length field.
        layer: Layer,
        /// Value of the field, in bytes.
        length: usize,
    },
    /// A part of a packet: reassembly belongs below TCP.
    #[error("a fragment")]
    Fragment,
    /// An IPv6 routing header with segments left: this address is not where the packet ends (RFC 8200 §4.4).
    #[error("a source route that has not ended")]
    SourceRoute,
    /// More IPv6 extension headers than anyone sends.
    #[error("more than {MOST_EXTENSIONS} extension headers")]
    Extensions,
    /// Another transport protocol, or encryption.
    #[error("IP protocol {0} is not TCP")]
    NotTcp(u8),
    /// The IPv4 header checksum is wrong.
    #[error("bad IPv4 header checksum")]
    IpChecksum,
    /// The TCP checksum is wrong.
    #[error("bad TCP checksum")]
    TcpChecksum,
}

/// Part of a packet named by a [`ParseError`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Layer {
    /// The IP header or the packet as a whole.
    Ip,
    /// An IPv6 extension header.
    Extension,
    /// The TCP header.
    Tcp,
}

impl std::fmt::Display for Layer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Layer::Ip => "IP",
            Layer::Extension => "IPv6 extension",
            Layer::Tcp => "TCP",
        })
    }
}

/// IPv6 extension headers walked: RFC 8200 §4.1 knows seven positions, a few of them optional twice.
pub(crate) const MOST_EXTENSIONS: usize = 8;
