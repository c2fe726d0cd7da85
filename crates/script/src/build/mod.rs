//! From a segment's text to the segment that the peer sends.

mod options;

use crate::describe::{ACCURATE, ECN, LETTERS};
use crate::error::ScriptError;
use crate::names::COUNTERS;
use crate::pattern::{Side, pattern};
use crate::peer::World;
use crate::statement::{Field, OptionText, SegmentText};
use crate::text::Line;
use crate::value;
use anabranch_units::{Ecn, SubflowSeq};
use anabranch_wire::{Flags, Foreign, Handshake, SackBlock, SackBlocks, Segment, Timestamps, UnknownOption};

/// The segment that the peer sends on subflow `at`.
pub(crate) fn build(world: &World, at: usize, text: &SegmentText, line: &Line) -> Result<Segment, ScriptError> {
    Builder { world, at, text, line }.segment()
}

struct Builder<'a> {
    world: &'a World,
    at: usize,
    text: &'a SegmentText,
    line: &'a Line,
}

type Built<T> = Result<T, ScriptError>;

impl Builder<'_> {
    fn refuse<T>(&self, field: &Field, help: &str) -> Built<T> {
        let problem = format!("`{field}` cannot be sent");
        Err(ScriptError::refused(self.line, &field.at, problem, help))
    }

    fn unknown<T>(&self, what: &str) -> Built<T> {
        let whole = 0..self.line.text.len();
        let problem = format!("{what} is not known yet");
        Err(ScriptError::refused(self.line, &whole, problem, "expect the host's segment that says it first"))
    }

    fn number(&self, field: &Field) -> Built<i128> {
        match field.value.as_deref().and_then(value::number) {
            Some(number) => Ok(number),
            None => self.refuse(field, "a number: 1000, 0xff or 64KiB"),
        }
    }

    fn fit<T: TryFrom<i128>>(&self, field: &Field) -> Built<T> {
        let number = self.number(field)?;
        T::try_from(number).or_else(|_| self.refuse(field, "the number is too large for this place"))
    }

    fn maybe<T: TryFrom<i128>>(&self, option: &OptionText, name: &str) -> Built<Option<T>> {
        option.arg(name).map(|arg| self.fit(arg)).transpose()
    }

    /// A relative number, or an absolute one after `abs:`.
    fn sequence(&self, field: &Field, text: &str, isn: Option<SubflowSeq>) -> Built<SubflowSeq> {
        if let Some(absolute) = text.strip_prefix("abs:") {
            return match value::number(absolute).and_then(|number| u32::try_from(number).ok()) {
                Some(number) => Ok(SubflowSeq::new(number)),
                None => self.refuse(field, "abs: takes 32 bits"),
            };
        }
        let Some(number) = value::number(text).filter(|number| number.unsigned_abs() <= 1 << 32) else {
            return self.refuse(field, "a number from the initial sequence number on, or abs:0x… as on the wire");
        };
        match isn {
            Some(isn) => Ok(isn + number as u64),
            None => self.unknown("the host's initial sequence number"),
        }
    }

    fn segment(&self) -> Built<Segment> {
        let (text, line) = (self.text, &self.world.lines[self.at]);
        let Some(flow) = line.flow() else { return self.unknown("the host's port") };
        let flags = LETTERS
            .iter()
            .filter(|(letter, _)| text.flags.contains(*letter))
            .fold(Flags::default(), |flags, (_, bit)| flags.with(*bit));
        let syn = flags.has(Flags::SYN);
        let seq = match text.field("seq") {
            Some(field) => self.sequence(field, field.value.as_deref().unwrap_or_default(), Some(line.peer_isn))?,
            None => line.peer_isn + if syn { 0 } else { line.peer_next as u64 },
        };
        let ack = match text.field("ack") {
            Some(field) => self.sequence(field, field.value.as_deref().unwrap_or_default(), line.host_isn)?,
            None if flags.has(Flags::ACK) => match line.host_isn {
                Some(isn) => isn + line.host_next as u64,
                None => return self.unknown("the host's initial sequence number"),
            },
            None => SubflowSeq::new(0),
        };
        let mut segment = Segment::new(flow, flags, seq, ack);
        segment.window = text.field("win").map_or(Ok(u16::MAX), |field| self.fit(field))?;
        if let Some(field) = text.field("urg") {
            segment.urgent = self.fit(field)?;
        }
        if text.flags.contains('A') {
            segment.set_ace(segment.ace() | ACCURATE);
        }
        if let Some(field) = text.field("ecn") {
            match ECN.iter().find(|(name, _)| Some(*name) == field.value.as_deref()) {
                Some((_, ecn)) => segment.ip.ecn = *ecn,
                None => return self.refuse(field, "ecn=not-ect, ecn=ect0, ecn=ect1 or ecn=ce"),
            }
        }
        let start = self.payload(&mut segment)?;
        self.tcp_options(&mut segment, syn)?;
        for option in &text.options {
            if option.name == "dss" {
                segment.options.set_dss(Some(self.dss(option, &segment, start)?));
            } else {
                let built = self.option(option, &segment)?;
                segment.options.push_mptcp(built);
            }
        }
        Ok(segment)
    }

    /// Fills the payload in and says which data number it starts with.
    fn payload(&self, segment: &mut Segment) -> Built<i64> {
        let seq = i64::from(segment.seq.distance(self.world.lines[self.at].peer_isn));
        let (start, length) = if let Some(field) = self.text.field("data") {
            let ends = field.value.as_deref().and_then(|text| text.split_once(':'));
            let ends = ends.and_then(|(start, end)| value::number(start).zip(value::number(end)));
            match ends.filter(|(start, end)| start <= end && end - start <= 65_535 && start.unsigned_abs() < 1 << 62) {
                Some((start, end)) => (start as i64, (end - start) as usize),
                None => return self.refuse(field, "data=1:1001 carries the numbers 1 to 1000, at most 65535 of them"),
            }
        } else if let Some(field) = self.text.field("len") {
            (self.world.data_at(self.at, Side::Peer, seq), usize::from(self.fit::<u16>(field)?))
        } else {
            (self.world.data_at(self.at, Side::Peer, seq), 0)
        };
        segment.payload = pattern(Side::Peer, start, length).into();
        if let Some(field) = self.text.field("payload") {
            if field.value.as_deref() != Some("bad") || length == 0 {
                return self.refuse(field, "payload=bad changes one byte of the data");
            }
            let mut bytes = segment.payload.to_vec();
            bytes[0] ^= 1;
            segment.payload = bytes.into();
        }
        Ok(start)
    }

    fn tcp_options(&self, segment: &mut Segment, syn: bool) -> Built<()> {
        let text = self.text;
        let mut handshake = Handshake::default();
        match text.field("mss") {
            Some(field) if field.value.as_deref() == Some("none") => {}
            Some(field) => handshake.mss = Some(self.fit(field)?),
            // The largest in packets of 1500 bytes.
            None if syn => handshake.mss = Some(if segment.flow.src.is_ipv4() { 1460 } else { 1440 }),
            None => {}
        }
        handshake.window_scale = text.field("wscale").map(|field| self.fit(field)).transpose()?;
        handshake.sack_permitted = text.field("sack_ok").is_some();
        if handshake != Handshake::default() {
            *segment.options.handshake_mut() = handshake;
        }
        if let Some(field) = text.field("ts") {
            let parts = field.value.as_deref().and_then(|text| text.split_once(':')).and_then(|(value, echo)| {
                let echo = if echo == "last" { Some(self.world.lines[self.at].host_clock) } else { number32(echo) };
                number32(value).zip(echo)
            });
            let Some((value, echo)) = parts else { return self.refuse(field, "ts=1000:0, or ts=1000:last") };
            segment.options.set_timestamps(Some(Timestamps { value, echo }));
        }
        if let Some(field) = text.field("sack") {
            let isn = self.world.lines[self.at].host_isn;
            let mut blocks = SackBlocks::default();
            for block in field.value.as_deref().unwrap_or_default().split(',') {
                let Some((start, end)) = block.split_once(':') else {
                    return self.refuse(field, "sack=1001:2001,3001:4001");
                };
                let block =
                    SackBlock { start: self.sequence(field, start, isn)?, end: self.sequence(field, end, isn)? };
                if !blocks.push(block) {
                    return self.refuse(field, "at most four blocks");
                }
            }
            segment.options.set_sack(blocks);
        }
        let mut foreign = Foreign::default();
        for field in text.fields.iter().filter(|field| field.name == "option") {
            let parts = field.value.as_deref().and_then(|text| text.split_once(','));
            let parts = parts.and_then(|(kind, data)| {
                let kind =
                    value::number(kind.trim()).and_then(|kind| u8::try_from(kind).ok()).filter(|kind| *kind > 1)?;
                value::hex(data).map(|data| UnknownOption { kind, data })
            });
            let Some(option) = parts else {
                return self.refuse(field, "option(30, 00 11 22): kind and, in hexadecimal, what follows the length");
            };
            foreign.unknown.push(option);
        }
        if let Some(field) = text.field("broken") {
            let Some(bytes) = field.value.as_deref().and_then(value::hex) else {
                return self.refuse(field, "broken(1e 01): the rest of the options in hexadecimal");
            };
            foreign.broken = bytes;
        }
        if foreign != Foreign::default() {
            *segment.options.foreign_mut() = foreign;
        }
        if let Some(field) = text.field("accecn") {
            self.byte_counters(field, segment)?;
        }
        Ok(())
    }

    /// Adds the counters of the AccECN option, which lie in one of its orders from the first on.
    fn byte_counters(&self, field: &Field, segment: &mut Segment) -> Built<()> {
        let parts = field.value.as_deref().unwrap_or_default().split(',').map(|part| part.split_once(':'));
        let parts: Option<Vec<_>> = parts.map(|part| part.and_then(|(name, n)| Some((name, number32(n)?)))).collect();
        let named = |order: &&[(&str, Ecn); 3], parts: &[(&str, u32)]| {
            parts.len() <= order.len() && parts.iter().zip(*order).all(|(part, (name, _))| part.0 == *name)
        };
        let found = parts.and_then(|parts| Some((COUNTERS.iter().find(|order| named(order, &parts))?, parts)));
        let Some((order, parts)) = found else {
            return self.refuse(field, "accecn=e0b:1,ceb:0,e1b:1 or accecn=e1b:1,ceb:0,e0b:1, or the first of these");
        };
        segment.options.push_byte_counters(order[0].1, parts.into_iter().map(|(_, bytes)| bytes.into()));
        Ok(())
    }
}

fn number32(text: &str) -> Option<u32> {
    value::number(text).and_then(|number| u32::try_from(number).ok())
}
