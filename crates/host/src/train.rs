//! Consecutive segments that leave as one packet, for the device to cut (TCP segmentation offload).

use crate::{Device, MOST_PIECES, VirtioHeader};
use anabranch_wire::{Flags, Payload, Segment};
use bytes::BytesMut;
use std::io::{self, IoSlice};
use std::net::IpAddr;

/// Segments that are put together again exactly as they were when the packet is cut: they differ in sequence number and
/// IPv4 identification, which count on, in payload, and in PSH and FIN of the last.
pub(crate) struct Train {
    /// Segment that heads the packet; its payload is the first segment's.
    head: Option<Box<Segment>>,
    /// The payloads behind it; those that lie side by side in one buffer are one.
    pieces: Vec<Payload>,
    /// Segments whose payloads these are.
    behind: usize,
    /// Bytes of payload.
    length: usize,
    /// The last segment was short or said PSH or FIN: nothing may follow it.
    closed: bool,
    headers: BytesMut,
    /// Segments that are no longer needed.
    #[expect(clippy::vec_box, reason = "the boxes are what is handed out again")]
    spent: Vec<Box<Segment>>,
}

impl Train {
    pub(crate) fn new() -> Self {
        let (pieces, headers) = (Vec::with_capacity(MOST_PIECES), BytesMut::with_capacity(128));
        Train { head: None, pieces, behind: 0, length: 0, closed: false, headers, spent: Vec::new() }
    }

    /// Begins anew with this segment. The train must be empty.
    pub(crate) fn start(&mut self, segment: Box<Segment>) {
        self.length = segment.payload.len();
        self.closed = self.length == 0 || last_only(segment.flags) != Flags::default();
        self.head = Some(segment);
    }

    /// Segments in it.
    pub(crate) fn segments(&self) -> usize {
        usize::from(self.head.is_some()) + self.behind
    }

    /// Segments whose memory can be used again.
    pub(crate) fn spent(&mut self) -> impl Iterator<Item = Box<Segment>> + '_ {
        self.spent.drain(..)
    }

    /// Takes the segment in if it goes on where the train ends, and gives it back otherwise.
    pub(crate) fn push(&mut self, mut segment: Box<Segment>) -> Option<Box<Segment>> {
        let is_end = self.is_end(&segment);
        if !is_end && !self.takes(&segment) {
            return Some(segment);
        }
        let Some(head) = &mut self.head else { return Some(segment) };
        if is_end {
            head.flags = head.flags.with(Flags::FIN);
            self.closed = true;
            self.spent.push(segment);
            return None;
        }
        self.length += segment.payload.len();
        self.closed = segment.payload.len() < head.payload.len() || last_only(segment.flags) != Flags::default();
        head.flags = segment.flags;
        let payload = std::mem::take(&mut segment.payload);
        if !self.pieces.last_mut().is_some_and(|last| last.join(&payload)) {
            self.pieces.push(payload);
        }
        self.behind += 1;
        self.spent.push(segment);
        None
    }

    /// The segment is a FIN right behind the train's data: it needs no packet of its own (RFC 9293 §3.10.4).
    fn is_end(&self, next: &Segment) -> bool {
        let is_fin = next.flags.has(Flags::FIN) && next.payload.is_empty();
        self.length > 0
            && is_fin
            && self.head.as_ref().is_some_and(|head| !head.flags.has(Flags::FIN))
            && self.joins(next)
    }

    fn takes(&self, next: &Segment) -> bool {
        let Some(head) = &self.head else { return false };
        let length = next.payload.len();
        !self.closed
            && self.segments() + 1 < MOST_PIECES
            && (1..=head.payload.len()).contains(&length)
            && self.length + length <= LONGEST_PAYLOAD
            && self.joins(next)
    }

    /// The segment goes on where the train ends, and has all else in common with it.
    fn joins(&self, next: &Segment) -> bool {
        let Some(head) = &self.head else { return false };
        let id = match next.flow.src {
            IpAddr::V4(_) => u32::from((head.ip.id as u16).wrapping_add(self.segments() as u16)),
            IpAddr::V6(_) => head.ip.id,
        };
        next.seq == head.seq + self.length as u64
            && next.flow == head.flow
            && without_last(next.flags) == without_last(head.flags)
            && !next.flags.has(Flags::CWR)
            && (next.ack, next.window, next.urgent, next.reserved)
                == (head.ack, head.window, head.urgent, head.reserved)
            && anabranch_wire::IpHeader { id, ..head.ip } == next.ip
            && next.options == head.options
    }

    /// Hands the train to the device, and is empty if that took it. Answers the bytes handed over.
    pub(crate) fn send(&mut self, device: &mut dyn Device) -> io::Result<Option<usize>> {
        let Some(head) = &self.head else { return Ok(Some(0)) };
        let offload = device.has_offload();
        self.headers.clear();
        let written = if offload {
            anabranch_wire::emit_train(head, self.length, &mut self.headers)
        } else {
            anabranch_wire::emit_headers(head, anabranch_wire::TcpChecksum::Full, &mut self.headers)
        };
        written.expect("the engine sends only what can be written");
        let header = if offload {
            let ip_header = if head.flow.src.is_ipv4() { 20 } else { 40 };
            let segment_size = (self.behind > 0).then_some(head.payload.len() as u16);
            VirtioHeader::tcp(head.flow.src.is_ipv4(), ip_header, self.headers.len() as u16, segment_size)
        } else {
            VirtioHeader::default()
        };
        let mut slices = [IoSlice::new(&[]); MOST_PIECES];
        slices[0] = IoSlice::new(&self.headers);
        let payloads = std::iter::once(&head.payload).chain(&self.pieces).filter(|payload| !payload.is_empty());
        let mut count = 1;
        for (slice, payload) in slices[1..].iter_mut().zip(payloads) {
            *slice = IoSlice::new(payload);
            count += 1;
        }
        if !device.send_frame(&header, &slices[..count])? {
            return Ok(None);
        }
        let bytes = self.headers.len() + self.length;
        self.spent.extend(self.head.take());
        self.pieces.clear();
        (self.behind, self.length) = (0, 0);
        Ok(Some(bytes))
    }
}

/// Flags that only the last segment carries; the device that cuts the packet removes them from the others.
fn last_only(flags: Flags) -> Flags {
    Flags(flags.0 & (Flags::PSH.0 | Flags::FIN.0))
}

fn without_last(flags: Flags) -> Flags {
    Flags(flags.0 & !(Flags::PSH.0 | Flags::FIN.0))
}

/// Payload of one packet, so that its length fits the 16 bits that either IP header has for it, whatever the options.
pub(crate) const LONGEST_PAYLOAD: usize = u16::MAX as usize - 20 - 60;

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_units::SubflowSeq;
    use anabranch_wire::{Checksums, DataSeq, Dss, FlowKey, Timestamps};
    use rustix::event::{EventfdFlags, eventfd};
    use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

    /// Device that records its packets.
    struct Recorder {
        file: OwnedFd,
        offload: bool,
        full: bool,
        frames: Vec<(VirtioHeader, Vec<u8>)>,
    }

    fn recorder(offload: bool) -> Recorder {
        let file = eventfd(0, EventfdFlags::empty()).expect("an event descriptor");
        Recorder { file, offload, full: false, frames: Vec::new() }
    }

    impl AsFd for Recorder {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.file.as_fd()
        }
    }

    impl Device for Recorder {
        fn receive(&mut self, _: &mut [u8]) -> io::Result<Option<usize>> {
            Ok(None)
        }

        fn send(&mut self, packet: &[u8]) -> io::Result<bool> {
            self.send_frame(&VirtioHeader::default(), &[IoSlice::new(packet)])
        }

        fn has_offload(&self) -> bool {
            self.offload
        }

        fn send_frame(&mut self, header: &VirtioHeader, pieces: &[IoSlice<'_>]) -> io::Result<bool> {
            if !self.full {
                let pieces: Vec<&[u8]> = pieces.iter().map(|piece| &**piece).collect();
                self.frames.push((*header, pieces.concat()));
            }
            Ok(!self.full)
        }
    }

    /// Segment `n` of a flow with 1000 bytes in each.
    fn segment(n: u64) -> Segment {
        let flow = FlowKey::new("10.0.0.1:1".parse().expect("valid"), "10.0.0.2:2".parse().expect("valid"));
        let mut segment =
            Segment::new(flow, Flags::ACK, SubflowSeq::new(u32::MAX - 500) + n * 1000, SubflowSeq::new(7));
        segment.ip.id = u32::from(0xffff_u16.wrapping_add(n as u16));
        segment.payload = vec![n as u8; 1000].into();
        segment.options.set_timestamps(Some(Timestamps { value: 1, echo: 2 }));
        segment
    }

    fn takes(first: Segment, next: Segment) -> bool {
        let mut train = Train::new();
        train.start(Box::new(first));
        train.push(Box::new(next)).is_none()
    }

    #[test]
    fn segments_that_go_on_leave_as_one_packet() {
        let (mut train, mut device) = (Train::new(), recorder(true));
        train.start(Box::new(segment(0)));
        assert!(
            train.push(Box::new(segment(1))).is_none() && train.push(Box::new(segment(2))).is_none(),
            "across both wraps"
        );
        let mut last = segment(3);
        last.payload.truncate(10);
        last.flags = Flags::ACK.with(Flags::PSH).with(Flags::FIN);
        assert!(train.push(Box::new(last)).is_none());
        assert!(train.push(Box::new(segment(4))).is_some(), "nothing follows the last");
        device.full = true;
        assert_eq!(train.send(&mut device).ok(), Some(None));
        device.full = false;
        assert_eq!(train.send(&mut device).ok(), Some(Some(20 + 32 + 3010)), "what was refused is still there");
        assert_eq!((train.segments(), train.send(&mut device).ok(), device.frames.len()), (0, Some(Some(0)), 1));

        let (header, packet) = device.frames.remove(0);
        assert_eq!(header, VirtioHeader::tcp(true, 20, 52, Some(1000)));
        let whole = anabranch_wire::parse(&packet.into(), header.examine(&[0x45; 3062]).expect("it is right"));
        let payload = [vec![0; 1000], vec![1; 1000], vec![2; 1000], vec![3; 10]].concat();
        let expected = Segment { flags: Flags(0x19), payload: payload.into(), ..segment(0) };
        assert_eq!(whole, Ok(expected));
    }

    /// Payloads that lie side by side in one buffer are one slice for the device, and the packet is the same.
    #[test]
    fn neighbours_in_one_buffer_are_one_piece() {
        let buffer = Payload::from((0..4000).map(|at| (at / 7) as u8).collect::<Vec<_>>());
        let (mut train, mut device) = (Train::new(), recorder(true));
        let of = |n: usize| Segment { payload: buffer.slice(1000 * n..1000 * (n + 1)), ..segment(n as u64) };
        train.start(Box::new(of(0)));
        assert!((1..4).all(|n| train.push(Box::new(of(n))).is_none()));
        assert_eq!((train.pieces.len(), train.segments()), (1, 4));
        assert_eq!(train.send(&mut device).ok(), Some(Some(20 + 32 + 4000)));
        let (header, packet) = device.frames.remove(0);
        assert_eq!(header, VirtioHeader::tcp(true, 20, 52, Some(1000)));
        assert!(packet[52..] == buffer[..] && train.segments() == 0);
    }

    #[test]
    fn a_fin_behind_the_last_data_needs_no_packet_of_its_own() {
        let fin = |n: u64| Segment { flags: Flags::ACK.with(Flags::FIN), payload: Payload::new(), ..segment(n) };
        let (mut train, mut device) = (Train::new(), recorder(true));
        train.start(Box::new(segment(0)));
        let last = Segment { flags: Flags::ACK.with(Flags::PSH), ..segment(1) };
        assert!(train.push(Box::new(last)).is_none() && train.push(Box::new(fin(2))).is_none());
        assert!(
            train.push(Box::new(fin(2))).is_some() && train.push(Box::new(segment(2))).is_some(),
            "nothing follows it"
        );
        assert_eq!(train.send(&mut device).ok(), Some(Some(20 + 32 + 2000)));
        let (header, packet) = device.frames.remove(0);
        let whole = anabranch_wire::parse(&packet.into(), header.examine(&[0x45; 2052]).expect("it is right"));
        assert_eq!(whole.map(|whole| (whole.flags, whole.payload.len())), Ok((Flags(0x19), 2000)));
        let mut signal = fin(1);
        signal.options.set_dss(Some(Dss::default()));
        let pure = Segment { payload: Payload::new(), ..segment(0) };
        for (what, first, next) in [
            ("behind a gap", segment(0), fin(2)),
            ("with something else to say", segment(0), signal),
            ("behind no data", pure, Segment { seq: segment(0).seq, ..fin(0) }),
        ] {
            assert!(!takes(first, next), "{what}");
        }
    }

    #[test]
    fn whatever_cutting_would_not_bring_back_stays_apart() {
        assert!(takes(segment(0), segment(1)));
        type Change = fn(&mut Segment);
        let changes: [(&str, Change); 13] = [
            ("longer", |next| next.payload = vec![0; 1001].into()),
            ("empty", |next| next.payload = Payload::new()),
            ("not what follows", |next| next.seq = next.seq + 1),
            ("another flow", |next| next.flow.src_port = 9),
            ("another ACK", |next| next.ack = next.ack + 1),
            ("another window", |next| next.window += 1),
            ("another flag", |next| next.flags = Flags::ACK.with(Flags::URG)),
            ("CWR, which stays on the first", |next| next.flags = Flags::ACK.with(Flags::CWR)),
            ("another identification", |next| next.ip.id += 1),
            ("another TTL", |next| next.ip.ttl -= 1),
            ("other timestamps", |next| next.options.set_timestamps(Some(Timestamps { value: 2, echo: 2 }))),
            ("no timestamps", |next| next.options.set_timestamps(None)),
            ("a DATA_ACK", |next| {
                next.options.set_dss(Some(Dss { data_ack: Some(DataSeq::Short(1)), ..Dss::default() }))
            }),
        ];
        for (what, change) in changes {
            let mut next = segment(1);
            change(&mut next);
            assert!(!takes(segment(0), next), "{what}");
        }
        let mut pushed = segment(0);
        pushed.flags = Flags::ACK.with(Flags::PSH);
        assert!(!takes(pushed, segment(1)), "behind PSH");
        let reduced = |n| Segment { flags: Flags::ACK.with(Flags::CWR), ..segment(n) };
        assert!(!takes(reduced(0), reduced(1)), "cutting leaves CWR on the first alone");
        let mut short = segment(1);
        short.payload.truncate(999);
        let mut train = Train::new();
        train.start(Box::new(segment(0)));
        assert!(
            train.push(Box::new(short)).is_none() && train.push(Box::new(segment(2))).is_some(),
            "behind a short one"
        );
    }

    #[test]
    fn a_train_ends_before_its_length_outgrows_the_header() {
        let (mut train, mut device) = (Train::new(), recorder(true));
        train.start(Box::new(Segment { payload: vec![0; 8000].into(), ..segment(0) }));
        let next = |n: u64| Segment {
            payload: vec![0; 8000].into(),
            seq: SubflowSeq::new(u32::MAX - 500) + n * 8000,
            ..segment(n)
        };
        let taken = (1..100).take_while(|n| train.push(Box::new(next(*n))).is_none()).count();
        assert_eq!(taken, 7, "8 times 8000 bytes");
        assert!(train.send(&mut device).is_ok());
        let mut train = Train::new();
        let one = |n: u64| Segment { payload: vec![0; 1].into(), seq: SubflowSeq::new(n as u32), ..segment(n) };
        train.start(Box::new(one(0)));
        let taken = (1..100).take_while(|n| train.push(Box::new(one(*n))).is_none()).count();
        assert_eq!(taken + 2, MOST_PIECES, "headers and pieces");
        assert!(train.send(&mut device).is_ok());
    }

    #[test]
    fn without_offload_a_packet_is_complete() {
        let (mut train, mut device) = (Train::new(), recorder(false));
        train.start(Box::new(segment(0)));
        assert_eq!(train.send(&mut device).ok(), Some(Some(1052)));
        let (header, packet) = device.frames.remove(0);
        assert_eq!(header, VirtioHeader::default());
        assert_eq!(anabranch_wire::parse(&packet.into(), Checksums::Verify), Ok(segment(0)));
    }
}
