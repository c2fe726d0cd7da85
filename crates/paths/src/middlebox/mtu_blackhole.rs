//! Drops packets that are too large for a link behind it, without a word.

use super::declaration::{Choice, Typed, direction, size, time};
use super::flow::concerns;
use super::{Element, MiddleboxInfo, Out, Settings};
use crate::Direction;
use anabranch_units::{Duration, Instant, Stream};
use anabranch_wire::Segment;

/// Silently drops packets above a size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MtuBlackhole {
    /// The largest IP packet that passes \[B\].
    pub size: u16,
    /// Time at which it begins, since the beginning of the run.
    pub from: Duration,
    /// Direction of the packets.
    pub direction: Option<Direction>,
}

impl MtuBlackhole {
    /// The kind as [`MIDDLEBOXES`](super::MIDDLEBOXES) lists it.
    pub const ENTRY: MiddleboxInfo = MiddleboxInfo {
        name: "mtu-blackhole",
        about: "swallows large packets without a word",
        meaning: "Drops large packets without an ICMP error.",
        source: "RFC 2923 §2.1; RFC 4821 §1",
        keys: &[SIZE.key(), FROM.key(), DIRECTION.key()],
        read: |given| {
            Ok(MtuBlackhole { size: SIZE.of(given), from: FROM.of(given), direction: DIRECTION.of(given) }.into())
        },
    };
}

/// The default is the smallest MTU of an IPv6 link (RFC 8200 §5), and a common limit of tunnels.
const SIZE: Typed<u16> = size("size", "Largest IP packet that passes; 1280B unless given.", 1280);
const FROM: Typed<Duration> =
    time("from", "Time from which packets are dropped; the beginning unless given.", Duration::ZERO);
const DIRECTION: Choice<Option<Direction>> = direction("Direction of the packets.");

/// RFC 791 §3.2.
const SMALLEST_MTU: u16 = 68;

impl Settings for MtuBlackhole {
    fn build(&self, _stream: Stream) -> Box<dyn Element> {
        Box::new(*self)
    }

    fn check(&self) -> Result<(), &'static str> {
        if self.size < SMALLEST_MTU {
            Err("every IPv4 link carries packets of 68 bytes (RFC 791 §3.2)")
        } else {
            Ok(())
        }
    }

    fn shift(&mut self, late: Duration) {
        if !self.from.is_zero() {
            self.from += late;
        }
    }
}

impl Element for MtuBlackhole {
    fn pass(&mut self, now: Instant, direction: Direction, segment: Segment, out: &mut Out<'_>) {
        let too_large = segment.wire_length().get() > u64::from(self.size);
        if too_large && now >= Instant::ZERO + self.from && concerns(self.direction, direction) {
            out.drop();
        } else {
            out.forward(direction, segment);
        }
    }
}
