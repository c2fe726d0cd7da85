//! Replaces bytes of a stream, as an application-level gateway does.
//!
//! Everything follows from positions in the stream, so a retransmission comes out as the original did, however it is
//! cut. The first of the bytes replaced are inverted in place; what is too many is cut out behind them, what is missing
//! is inserted there.

use super::declaration::{Choice, Typed, direction, short, whole};
use super::flow::{Flows, concerns};
use super::{Element, MiddleboxInfo, Out, Settings};
use crate::Direction;
use crate::PerDirection;
use anabranch_units::{Instant, SubflowSeq};
use anabranch_wire::{Flags, SackBlock, SackBlocks, Segment};
use bytes::BytesMut;

/// Replaces bytes of each flow's stream, once, as an application-level gateway does; where that changes the length,
/// sequence and acknowledgment numbers are adjusted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AlterPayload {
    /// Offset in the subflow's stream, counted from its first byte \[B\].
    pub offset: u32,
    /// Bytes removed \[B\].
    pub remove: u16,
    /// Bytes inserted \[B\].
    pub insert: u16,
    /// Direction of the data.
    pub direction: Option<Direction>,
}

impl AlterPayload {
    /// The kind as [`MIDDLEBOXES`](super::MIDDLEBOXES) lists it.
    pub const ENTRY: MiddleboxInfo = MiddleboxInfo {
        name: "alter-payload",
        about: "replaces bytes of the stream, adjusting sequence numbers where the length changes",
        meaning: "Replaces bytes of each flow's stream once.",
        source: "RFC 8684 §3.3.1, §3.7, §6; RFC 2663 §2.9",
        keys: &[OFFSET.key(), REMOVE.key(), INSERT.key(), DIRECTION.key()],
        read: |given| {
            Ok(AlterPayload {
                offset: OFFSET.of(given),
                remove: REMOVE.of(given),
                insert: INSERT.of(given),
                direction: DIRECTION.of(given),
            }
            .into())
        },
    };
}

/// The default lies behind the handshake and the first windows.
const OFFSET: Typed<u32> = whole("offset", "Offset in the subflow's stream in bytes; 100000 unless given.", 100_000);
/// The default is a few bytes, as of an address.
const REMOVE: Typed<u16> = short("remove", "Number of bytes replaced; 4 unless given.", 4);
const INSERT: Typed<u16> = short("insert", "Number of bytes put in their place; 4 unless given.", 4);
const DIRECTION: Choice<Option<Direction>> = direction("Direction of the data.");

/// Keeps a full segment of 1460 bytes, with what is inserted, far from the largest IP packet.
const LARGEST_INSERT: u16 = 1000;

impl Settings for AlterPayload {
    fn build(&self, _stream: anabranch_units::Stream) -> Box<dyn Element> {
        Box::new(Alter::new(self.offset, self.remove, self.insert, self.direction))
    }

    fn check(&self) -> Result<(), &'static str> {
        match (self.remove, self.insert) {
            (0, 0) => Err("`remove` or `insert` above zero; with neither the box alters nothing"),
            (_, insert) if insert > LARGEST_INSERT => Err("what is inserted fits a segment: at most 1000 bytes"),
            _ => Ok(()),
        }
    }

    fn alters_payload(&self) -> bool {
        true
    }
}

struct Alter {
    edit: Edit,
    direction: Option<Direction>,
    flows: Flows<PerDirection<Option<Stream>>>,
}

/// Positions count as sequence numbers do: the SYN is 0, the first byte 1.
#[derive(Clone, Copy)]
struct Edit {
    /// The first byte inverted.
    first: u64,
    /// Behind the last byte inverted: where the length changes.
    seam: u64,
    /// Bytes cut out from the seam on.
    cut: u64,
    /// Bytes inserted at the seam.
    grow: u64,
}

/// One direction of a flow.
#[derive(Clone, Copy)]
struct Stream {
    initial: SubflowSeq,
    /// Behind the last position that passed.
    end: u64,
}

impl Alter {
    fn new(offset: u32, remove: u16, insert: u16, direction: Option<Direction>) -> Self {
        let (first, inverted) = (1 + u64::from(offset), u64::from(remove.min(insert)));
        let (cut, grow) = (u64::from(remove) - inverted, u64::from(insert) - inverted);
        Alter { edit: Edit { first, seam: first + inverted, cut, grow }, direction, flows: Flows::new() }
    }
}

impl Element for Alter {
    fn pass(&mut self, _now: Instant, direction: Direction, mut segment: Segment, out: &mut Out<'_>) {
        let Alter { edit, direction: only, flows } = self;
        let streams = flows.of(direction, &segment, || PerDirection { down: None, up: None });
        if concerns(*only, direction.reversed())
            && segment.flags.has(Flags::ACK)
            && let Some(stream) = streams.of(direction.reversed())
        {
            edit.restore_acknowledgments(stream, &mut segment);
        }
        if !concerns(*only, direction) {
            return out.forward(direction, segment);
        }
        let stream = streams.of_mut(direction);
        if segment.flags.has(Flags::SYN) && stream.is_none_or(|known| known.initial != segment.seq) {
            *stream = Some(Stream { initial: segment.seq, end: 0 });
        }
        let Some(stream) = stream else { return out.forward(direction, segment) };
        if edit.apply(stream, &mut segment) {
            out.forward_altered(direction, segment);
        } else {
            out.forward(direction, segment);
        }
    }
}

impl Edit {
    /// Moves a segment to where it belongs after the edit; true if its payload is another now.
    fn apply(&self, stream: &mut Stream, segment: &mut Segment) -> bool {
        let Some(start) = segment.seq.offset_near(stream.initial, stream.end) else { return false };
        let end = start + segment.payload.len() as u64;
        stream.end = stream.end.max(end);
        segment.seq = stream.initial + self.moved(start);
        let spans_seam = start <= self.seam && self.seam < end && self.grow > 0;
        if !(spans_seam || start < self.seam + self.cut && self.first < end) {
            return false;
        }
        let mut payload = BytesMut::with_capacity(segment.payload.len() + self.grow as usize);
        for (position, &byte) in (start..).zip(&segment.payload) {
            if position == self.seam {
                payload.resize(payload.len() + self.grow as usize, FILLING);
            }
            match position {
                _ if position < self.first || position >= self.seam + self.cut => payload.extend_from_slice(&[byte]),
                _ if position < self.seam => payload.extend_from_slice(&[!byte]),
                _ => {}
            }
        }
        segment.payload = payload.freeze().into();
        true
    }

    /// Maps a position before the edit to the one after it.
    fn moved(&self, position: u64) -> u64 {
        match position {
            _ if position <= self.seam => position,
            _ if position >= self.seam + self.cut => position - self.cut + self.grow,
            _ => self.seam,
        }
    }

    /// Maps a position after the edit to the one before it; inserted bytes map to the place of insertion.
    fn restored(&self, position: u64, stream: &Stream) -> u64 {
        let cut_passed = stream.end >= self.seam + self.cut;
        match position {
            _ if position < self.seam || (position == self.seam && !cut_passed) => position,
            _ if position >= self.seam + self.grow => position - self.grow + self.cut,
            _ => self.seam,
        }
    }

    fn restore_acknowledgments(&self, stream: &Stream, segment: &mut Segment) {
        let near = self.moved(stream.end);
        let restore = |seq: SubflowSeq| match seq.offset_near(stream.initial, near) {
            Some(position) => stream.initial + self.restored(position, stream),
            None => seq,
        };
        segment.ack = restore(segment.ack);
        let mut blocks = SackBlocks::default();
        for block in segment.options.sack().as_slice() {
            blocks.push(SackBlock { start: restore(block.start), end: restore(block.end) });
        }
        segment.options.set_sack(blocks);
    }
}

/// Byte that is inserted.
const FILLING: u8 = b'#';

#[cfg(test)]
mod tests {
    use super::super::through;
    use super::*;
    use anabranch_wire::FlowKey;
    use bytes::Bytes;

    fn flow() -> FlowKey {
        FlowKey::new(([10, 0, 0, 1], 1).into(), ([10, 1, 0, 1], 2).into())
    }

    fn pass(alter: &mut Alter, direction: Direction, segment: Segment) -> Segment {
        through(alter, Instant::ZERO, direction, segment).pop().expect("nothing is dropped").segment
    }

    /// `abcdefgh` with three bytes from the third on replaced, in segments cut in every way: always the same stream.
    #[test]
    fn the_edit_does_not_depend_on_how_the_stream_is_cut() {
        const ISN: u32 = u32::MAX - 3;
        let invert = |text: &str| text.bytes().map(|byte| !byte).collect::<Vec<u8>>();
        for (insert, expected) in [
            (3, [b"ab", invert("cde").as_slice(), b"fgh"].concat()),
            (1, [b"ab", invert("c").as_slice(), b"fgh"].concat()),
            (5, [b"ab", invert("cde").as_slice(), b"##fgh"].concat()),
        ] {
            for cut in 1..8 {
                let mut alter = Alter::new(2, 3, insert, None);
                let segment = |seq: u32, flags, payload: &'static [u8]| {
                    let mut segment =
                        Segment::new(flow(), flags, SubflowSeq::new(ISN) + u64::from(seq), SubflowSeq::new(0));
                    segment.payload = Bytes::from_static(payload).into();
                    segment
                };
                pass(&mut alter, Direction::Up, segment(0, Flags::SYN, b""));
                let text: &'static [u8] = b"abcdefgh";
                let mut stream = vec![0; expected.len()];
                for (at, piece) in [(1, &text[..cut]), (1 + cut as u32, &text[cut..]), (1, text)] {
                    let moved = pass(&mut alter, Direction::Up, segment(at, Flags::ACK, piece));
                    let at = moved.seq.distance(SubflowSeq::new(ISN)) as usize - 1;
                    stream[at..at + moved.payload.len()].copy_from_slice(&moved.payload);
                }
                assert_eq!(stream, expected, "insert {insert}, cut {cut}");
                let end = SubflowSeq::new(ISN) + 1 + expected.len() as u64;
                let answer = Segment::new(flow().reversed(), Flags::ACK, SubflowSeq::new(9), end);
                let restored = pass(&mut alter, Direction::Down, answer).ack;
                assert_eq!(restored, SubflowSeq::new(ISN) + 9, "the sender hears of its own eight bytes");
            }
        }
    }
}
