//! From files to packets in the order of time.
//!
//! The files of one analysis are captures of the same time, for instance one per interface. Records within a file may
//! be out of order by a little (several interfaces, several queues); each file is sorted within a bounded number of
//! records. Where captures of several machines show that their clocks differ, all are taken by that of the first.

use crate::clock::{self, Difference, Seen};
use crate::copies::fingerprint;
use crate::inspector::{Findings, Inspector, Sighting};
use crate::limits::Limits;
use crate::report::{ClockReport, FileReport, Report};
use anabranch_capture::{LinkError, LinkType, ReadError, Reader, Record};
use anabranch_units::Instant;
use anabranch_wire::{Captured, ParseError, parse_captured};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io::Cursor;
use std::path::{Path, PathBuf};

/// Reads capture files and analyses what can be read of them; `-` is standard input. Troubles stand in
/// [`Report::files`]; a file of which nothing could be read has `is_capture` false there.
pub fn inspect(paths: &[PathBuf], limits: Limits) -> Report {
    inspect_watched(paths, limits, &mut |_| ()).findings.report
}

/// A packet on its way through an analysis.
#[derive(Clone, Copy, Debug)]
pub struct Passing<'a> {
    /// Index of its file.
    pub file: usize,
    /// Index of its interface in the file.
    pub interface: u32,
    /// Its number in the file, from 1, as Wireshark counts.
    pub number: u64,
    /// Flow that it belongs to.
    pub sighting: Sighting,
    /// Content.
    pub captured: &'a Captured,
}

/// An analysis, with what ties it to the packets that passed.
#[derive(Clone, Debug)]
pub struct Watched {
    /// Findings.
    pub findings: Findings,
    /// Names of the interfaces of each file.
    pub interfaces: Vec<Vec<Option<String>>>,
}

/// The same, and shows each TCP packet of a known flow to `watch`, in the order of time.
pub fn inspect_watched(paths: &[PathBuf], limits: Limits, watch: &mut dyn FnMut(Passing<'_>)) -> Watched {
    inspect_inputs(paths.iter().map(|path| Input::open(path)).collect(), limits, watch)
}

/// The same for captures that are in memory, each with its name.
pub fn inspect_bytes(captures: Vec<(String, Vec<u8>)>, limits: Limits, watch: &mut dyn FnMut(Passing<'_>)) -> Watched {
    let input = |(name, bytes)| Input::new(name, Reader::new(Cursor::new(bytes)));
    inspect_inputs(captures.into_iter().map(input).collect(), limits, watch)
}

fn inspect_inputs(mut inputs: Vec<Input>, limits: Limits, watch: &mut dyn FnMut(Passing<'_>)) -> Watched {
    agree(&mut inputs);
    let mut inspector = Inspector::new(limits);
    loop {
        let next = inputs.iter_mut().enumerate().filter_map(|(index, input)| Some((input.next_at()?, index))).min();
        let Some((_, index)) = next else { break };
        let Some((at, interface, number, packet)) = inputs[index].next_packet() else { continue };
        if let Some(sighting) = inspector.packet(at, (index as u32) << 16 | interface, &packet) {
            watch(Passing { file: index, interface, number, sighting, captured: &packet });
        }
    }
    let interfaces = inputs.iter().map(Input::interfaces).collect();
    let mut findings = inspector.finish_with_places();
    findings.report.files = inputs.into_iter().map(Input::report).collect();
    Watched { findings, interfaces }
}

/// Sets clocks back that are ahead of those of earlier files, as far as the beginnings of the files tell.
fn agree(inputs: &mut [Input]) {
    if inputs.len() < 2 {
        return;
    }
    // What is read ahead stays in memory until its time comes, in all files together no more than of two.
    let share =
        Ahead { records: 2 * MOST_COMPARED.records / inputs.len(), bytes: 2 * MOST_COMPARED.bytes / inputs.len() };
    let mut seen: Vec<Vec<Seen>> = inputs.iter_mut().map(|input| input.beginning(share)).collect();
    for later in 1..inputs.len() {
        let (earlier, rest) = seen.split_at_mut(later);
        let found = earlier.iter().enumerate().find_map(|(index, it)| Some((index, clock::compare(it, &rest[0])?)));
        let Some((index, difference)) = found.filter(|(_, difference)| difference.ahead != 0) else { continue };
        let against = inputs[index].name.clone();
        rest[0].iter_mut().for_each(|seen| seen.at = set_back(seen.at, difference.ahead));
        inputs[later].set_back(difference, against);
    }
}

/// Bounds of what is read ahead of a file.
#[derive(Clone, Copy)]
struct Ahead {
    records: usize,
    bytes: usize,
}

/// The time by a clock that was so far behind \[ns\].
fn set_back(at: Instant, ahead: i64) -> Instant {
    Instant::from_nanos(at.as_nanos().saturating_add_signed(ahead.saturating_neg()))
}

/// One file.
struct Input {
    name: String,
    reader: Option<Reader>,
    is_capture: bool,
    error: Option<String>,
    waiting: BinaryHeap<Reverse<Waiting>>,
    waiting_bytes: usize,
    /// The lead of its clock, and the file by whose clock it is.
    clock: Option<(Difference, String)>,
    /// The last time read, for records that have none.
    last_at: Instant,
    packets: u64,
    tcp: u64,
    passed_over: BTreeMap<Reason, u64>,
}

/// A record by its time, then by its place in the file.
struct Waiting {
    at: Instant,
    number: u64,
    record: Record,
}

/// Why a packet is not analysed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reason {
    UnknownLink(LinkType),
    NotIp,
    NotTcp,
    Fragment,
    Cut,
    Malformed,
}

impl Input {
    fn open(path: &Path) -> Self {
        let name = path.display().to_string();
        let reader = if name == "-" { Reader::new(std::io::stdin()) } else { Reader::open(path) };
        Input::new(name, reader)
    }

    fn new(name: String, reader: Result<Reader, ReadError>) -> Self {
        let mut input = Input {
            name,
            reader: None,
            is_capture: reader.is_ok(),
            error: None,
            waiting: BinaryHeap::new(),
            waiting_bytes: 0,
            clock: None,
            last_at: Instant::ZERO,
            packets: 0,
            tcp: 0,
            passed_over: BTreeMap::new(),
        };
        match reader {
            Ok(reader) => input.reader = Some(reader),
            Err(error) => input.fail(&error),
        }
        input.fill(MOST_WAITING);
        input
    }

    fn fail(&mut self, error: &ReadError) {
        self.error = Some(error.to_string());
    }

    fn fill(&mut self, most: Ahead) {
        while self.waiting.len() < most.records && self.waiting_bytes < most.bytes {
            let Some(reader) = &mut self.reader else { return };
            match reader.next_record() {
                Ok(Some(mut record)) => {
                    let ahead = self.clock.as_ref().map_or(0, |(difference, _)| difference.ahead);
                    record.at = record.at.map(|at| set_back(at, ahead));
                    self.last_at = record.at.unwrap_or(self.last_at);
                    self.waiting_bytes += record.bytes.len();
                    self.packets += 1;
                    self.waiting.push(Reverse(Waiting { at: self.last_at, number: self.packets, record }));
                }
                Ok(None) => return,
                Err(error) => return self.fail(&error),
            }
        }
    }

    /// Reads further ahead, for once, and returns the TCP packets.
    fn beginning(&mut self, most: Ahead) -> Vec<Seen> {
        self.fill(most);
        let Some(reader) = &self.reader else { return Vec::new() };
        let seen = |Reverse(waiting): &Reverse<Waiting>| {
            let link = reader.interfaces().get(waiting.record.interface as usize)?.link;
            let captured = segment(link, &waiting.record).ok()?;
            Some(Seen { print: fingerprint(&captured), flow: captured.segment.flow, at: waiting.record.at? })
        };
        self.waiting.iter().filter_map(seen).collect()
    }

    /// Takes the times of this file by the clock of another.
    fn set_back(&mut self, difference: Difference, against: String) {
        let back = |at: Instant| set_back(at, difference.ahead);
        let sooner = |Reverse(mut waiting): Reverse<Waiting>| {
            (waiting.at, waiting.record.at) = (back(waiting.at), waiting.record.at.map(back));
            Reverse(waiting)
        };
        self.waiting = std::mem::take(&mut self.waiting).into_iter().map(sooner).collect();
        self.last_at = back(self.last_at);
        self.clock = Some((difference, against));
    }

    fn next_at(&mut self) -> Option<Instant> {
        self.waiting.peek().map(|Reverse(waiting)| waiting.at)
    }

    /// The next record, if it is a TCP segment: time, interface, number, segment.
    fn next_packet(&mut self) -> Option<(Option<Instant>, u32, u64, Captured)> {
        let Reverse(Waiting { record, number, .. }) = self.waiting.pop()?;
        self.waiting_bytes -= record.bytes.len();
        self.fill(MOST_WAITING);
        let link = self.reader.as_ref()?.interfaces().get(record.interface as usize)?.link;
        match segment(link, &record) {
            Ok(captured) => {
                self.tcp += 1;
                Some((record.at, record.interface & 0xffff, number, captured))
            }
            Err(reason) => {
                *self.passed_over.entry(reason).or_default() += 1;
                None
            }
        }
    }

    /// Names of its interfaces.
    fn interfaces(&self) -> Vec<Option<String>> {
        let described = self.reader.iter().flat_map(|reader| reader.interfaces());
        described.map(|interface| interface.name.clone()).collect()
    }

    fn report(self) -> FileReport {
        let mut notes = Vec::new();
        for (reason, count) in self.passed_over {
            let of = match reason {
                Reason::UnknownLink(link) => format!("link type {link} is not understood"),
                Reason::NotIp => "not IP".to_owned(),
                Reason::NotTcp => "not TCP".to_owned(),
                Reason::Fragment => "IP fragments".to_owned(),
                Reason::Cut => "cut before the end of the TCP header".to_owned(),
                Reason::Malformed => "damaged headers".to_owned(),
            };
            notes.push(format!("{} passed over: {of}", packets(count)));
        }
        if let Some(reader) = &self.reader {
            if reader.strays() > 0 {
                let strays = packets(reader.strays());
                notes.push(format!("{strays} passed over: of interfaces that the file does not describe"));
            }
            let damages = reader.damages();
            if let Some(first) = &damages.first {
                let more = if damages.count > 1 {
                    format!(", and in {} more places", damages.count - 1)
                } else {
                    String::new()
                };
                notes.push(format!("damaged {first}{more}; {} bytes passed over", damages.bytes));
            }
            for interface in reader.interfaces().iter().filter(|interface| interface.dropped > 0) {
                let name = interface.name.as_deref().unwrap_or("an interface");
                notes.push(format!("the capturing program lost {} on {name}", packets(interface.dropped)));
            }
        }
        let clock = self.clock.map(|(difference, against)| ClockReport {
            against,
            ahead_s: difference.ahead as f64 * 1e-9,
            within_s: difference.within.as_secs_f64(),
        });
        notes.extend(clock.iter().map(ClockReport::words));
        let (name, is_capture, error) = (self.name, self.is_capture, self.error);
        FileReport { name, is_capture, packets: self.packets, tcp_packets: self.tcp, error, notes, clock }
    }
}

fn packets(count: u64) -> String {
    if count == 1 { "1 packet".to_owned() } else { format!("{count} packets") }
}

/// The TCP segment in a record.
fn segment(link: LinkType, record: &Record) -> Result<Captured, Reason> {
    let packet = link.ip_packet(&record.bytes).map_err(|error| match error {
        LinkError::Unknown(link) => Reason::UnknownLink(link),
        LinkError::NotIp => Reason::NotIp,
        LinkError::Cut => Reason::Cut,
        _ => Reason::Malformed,
    })?;
    let mut captured = parse_captured(&packet).map_err(|error| match error {
        ParseError::NotTcp(_) => Reason::NotTcp,
        ParseError::Fragment => Reason::Fragment,
        ParseError::Truncated { .. } if (record.bytes.len() as u64) < u64::from(record.original_length) => Reason::Cut,
        _ => Reason::Malformed,
    })?;
    // A packet that the network card was to cut into many says 0 for its length; then only the record knows.
    let no_length = match packet.first().map(|byte| byte >> 4) {
        Some(4) => packet.get(2..4) == Some(&[0, 0]),
        _ => packet.get(4..6) == Some(&[0, 0]),
    };
    if no_length {
        captured.payload_length += record.original_length as usize - record.bytes.len();
    }
    Ok(captured)
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.number) == (other.at, other.number)
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

/// As far as is needed to put records in order.
const MOST_WAITING: Ahead = Ahead { records: 4096, bytes: 32 << 20 };
/// As far as clocks are compared, of each of two files.
const MOST_COMPARED: Ahead = Ahead { records: 1 << 16, bytes: 32 << 20 };
