//! The judge of a capture: the limits of a transfer from its packets alone, of anybody's stack.
//!
//! One pass over the files keeps what each packet said (`log.rs`), beside the analysis of `inspect`, which tells what
//! belongs to what. For the connection in question a picture is painted of when each packet left and arrived
//! (`picture.rs`), at both ends or by estimate. From it follow the slowest links (`link.rs`), the windows of the sender
//! (`sender.rs`) and what its application wrote (`stream.rs`); and from these, at each packet, the state that the
//! simulator would tell the judge of a run, who then judges (`verdict.rs`).
//!
//! The ideas are those of T-RAT (Zhang, Breslau, Paxson, Shenker, SIGCOMM 2002), which looks at one TCP connection from
//! one place, and of web100; subflows, mappings and the data level are ours.

mod answer;
mod beside;
mod buffer;
mod choice;
mod clock;
mod faults;
mod link;
mod log;
mod mechanism;
mod ordering;
mod picture;
mod sender;
mod silence;
mod stream;
mod trace;
mod twin;
mod verdict;
mod words;

pub use answer::{
    CaptureAnswer, Confidence, Fault, FaultKind, JudgedConnection, JudgedDirection, OtherConnection, PathAbout,
    PathMeasured,
};
pub use trace::{Flight, Heard, Sent, Trace, TracedFlow};
pub use twin::{Estimate, Twin, TwinError};

use crate::{Band, Bands, Interval, Limit, PathTime, Share};
use anabranch_inspect::{
    ConnectionReport, FileReport, Limits, Offer, PlainReport, Watched, inspect_bytes, inspect_watched,
};
use choice::{Candidate, candidates};
use faults::Group;
use log::{FlowLog, Log};
use picture::{FlowPicture, NEVER, Packet};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use verdict::{PathTraffic, Verdict};
use words::About;

/// A capture that was read, and can be asked.
#[derive(Debug)]
pub struct CaptureInquiry {
    log: Log,
    watched: Watched,
    candidates: Vec<Candidate>,
}

/// Connections beside the one that is judged that are listed.
const MOST_OTHERS: usize = 16;
/// Packets of other connections on the same paths that are looked at.
const MOST_BESIDE: usize = 1 << 20;
/// A direction with less is not judged if the other has more \[B\].
const LEAST: u64 = 10_000;

/// A picture of a connection: its flows, and the addresses of its paths.
struct Painted<'a> {
    flows: Vec<(&'a FlowLog, bool)>,
    pictures: Vec<FlowPicture>,
    paths: Vec<(IpAddr, IpAddr)>,
}

impl CaptureInquiry {
    /// Reads captures of the same time; what cannot be read is told in the answer. `-` is standard input.
    pub fn read(files: &[PathBuf]) -> Self {
        let mut log = Log::default();
        let watched = inspect_watched(files, Limits::default(), &mut |passing| log.packet(passing));
        CaptureInquiry::of(log, watched)
    }

    /// Reads captures that are in memory, each with its name.
    pub fn read_bytes(captures: Vec<(String, Vec<u8>)>) -> Self {
        let mut log = Log::default();
        let watched = inspect_bytes(captures, Limits::default(), &mut |passing| log.packet(passing));
        CaptureInquiry::of(log, watched)
    }

    fn of(log: Log, watched: Watched) -> Self {
        let candidates = candidates(&log, &watched);
        CaptureInquiry { log, watched, candidates }
    }

    /// Returns the number of connections that can be asked for.
    pub fn connections(&self) -> usize {
        self.candidates.len()
    }

    /// Returns the files, in the order in which they were named.
    pub fn files(&self) -> &[FileReport] {
        &self.watched.findings.report.files
    }

    /// Returns true if a file is a capture.
    pub fn is_capture(&self) -> bool {
        self.watched.findings.report.files.iter().any(|file| file.is_capture)
    }

    /// Answers about a connection, by its number; without one about that with most data.
    pub fn answer(&self, number: Option<usize>) -> CaptureAnswer {
        let chosen = self.choose(number);
        let mut others: Vec<&Candidate> =
            self.candidates.iter().filter(|it| Some(it.number) != chosen.map(|it| it.number)).collect();
        let other_connections = others.len();
        others.sort_by_key(|it| (u64::MAX - it.bytes[0] - it.bytes[1], it.number));
        others.truncate(MOST_OTHERS);
        others.sort_by_key(|it| it.number);
        let mut answer = CaptureAnswer {
            sentence: String::new(),
            connection: chosen.map(|chosen| self.judge(chosen)),
            other_connections,
            others: others.into_iter().map(|it| it.about(&self.log)).collect(),
            files: self.watched.findings.report.files.clone(),
        };
        answer.sentence = words::sentence(&answer);
        answer
    }

    /// Returns the course of both directions of a connection, as far as they carry data: first of that with most data.
    /// Without a number it is the connection that [`CaptureInquiry::answer`] judges.
    pub fn traces(&self, number: Option<usize>) -> Vec<Trace> {
        self.choose(number).map_or(Vec::new(), |chosen| self.trace(chosen))
    }

    /// The same of the connection that has a subflow between these addresses and ports, in either direction.
    pub fn traces_between(&self, one: SocketAddr, other: SocketAddr) -> Vec<Trace> {
        let is_it = |it: &&Candidate| {
            let mut flows = it.members.iter().filter_map(|(flow, _)| self.log.flows.get(*flow)?.as_ref());
            flows.any(|flow| [(one, other), (other, one)].contains(&(flow.key.source(), flow.key.destination())))
        };
        self.candidates.iter().find(is_it).map_or(Vec::new(), |chosen| self.trace(chosen))
    }

    fn trace(&self, candidate: &Candidate) -> Vec<Trace> {
        let painted = self.paint(candidate);
        let paths = self.names(&painted);
        let one = |side: usize| {
            let mut trace = trace::trace(&painted.pictures, side)?;
            let verdict = self.verdict(candidate, &painted, side, true);
            trace.flight = verdict.map_or(Vec::new(), |(verdict, _)| verdict.flight);
            trace.files = self.watched.findings.report.files.iter().map(|file| file.name.clone()).collect();
            trace.paths.clone_from(&paths);
            trace.joined = self.log.joined > 0;
            trace.subflows =
                painted.flows.iter().zip(&painted.pictures).map(|(it, picture)| traced(*it, picture, side)).collect();
            Some(trace)
        };
        let sides = if candidate.bytes[1] > candidate.bytes[0] { [1, 0] } else { [0, 1] };
        sides.into_iter().filter_map(one).collect()
    }

    /// The connection of this number, or else that with most data.
    fn choose(&self, number: Option<usize>) -> Option<&Candidate> {
        match number {
            Some(number) => self.candidates.iter().find(|it| it.number == number),
            None => self.candidates.iter().max_by_key(|it| (it.bytes[0] + it.bytes[1], usize::MAX - it.number)),
        }
    }

    /// Returns the intervals of each connection, in the order of their first packets: those of each side that sends
    /// data, with times since 1970.
    #[doc(hidden)]
    pub fn bands(&self) -> Vec<[Option<Bands>; 2]> {
        let mut all: Vec<(u64, [Option<Bands>; 2])> = Vec::new();
        for candidate in &self.candidates {
            let painted = self.paint(candidate);
            let first = packets(&painted.pictures).map(|it| it.sent).min().unwrap_or(0);
            let sides =
                [0, 1].map(|side| self.verdict(candidate, &painted, side, false).map(|(verdict, _)| verdict.bands));
            all.push((first, sides));
        }
        all.sort_by_key(|(first, _)| *first);
        all.into_iter().map(|(_, sides)| sides).collect()
    }

    /// Bytes that a side sent, each once, as `inspect` counts them; those without a mapping count as well.
    fn bytes(&self, candidate: &Candidate, side: usize) -> u64 {
        let report = &self.watched.findings.report;
        match (candidate.number - 1).checked_sub(report.connections.len()) {
            Some(plain) => report.plain_tcp.get(plain).map_or(0, |it| it.bytes[side]),
            None => {
                let direction = &report.connections[candidate.number - 1].directions[side];
                direction.bytes + direction.unmapped_bytes
            }
        }
    }

    /// Findings of the inspector about a connection, if it is MPTCP.
    fn report(&self, candidate: &Candidate) -> Option<&ConnectionReport> {
        let connections = &self.watched.findings.report.connections;
        connections.iter().find(|it| candidate.multipath && it.number == candidate.number)
    }

    fn paint(&self, candidate: &Candidate) -> Painted<'_> {
        let flows: Vec<(&FlowLog, bool)> = candidate
            .members
            .iter()
            .filter_map(|(flow, swapped)| Some((self.log.flows.get(*flow)?.as_ref()?, *swapped)))
            .collect();
        let begin = |side: usize| {
            let idsns = self.watched.findings.idsns.get(candidate.number - 1).filter(|_| candidate.multipath);
            let known = idsns.and_then(|idsns| idsns[side]).map(|idsn| (idsn + 1).low());
            known.or_else(|| first_number(&flows, side)).unwrap_or(0)
        };
        let begins = [begin(0), begin(1)];
        let mut painted = Painted { flows, pictures: Vec::new(), paths: Vec::new() };
        for (flow, swapped) in &painted.flows {
            let ends = if *swapped { (flow.key.dst, flow.key.src) } else { (flow.key.src, flow.key.dst) };
            let path = painted.paths.iter().position(|path| *path == ends).unwrap_or(painted.paths.len());
            if path == painted.paths.len() {
                painted.paths.push(ends);
            }
            painted.pictures.push(picture::paint(flow, *swapped, path, begins));
        }
        painted
    }

    /// Judges what `side` sent. Other connections on the same paths fill the same links. `keeps` says that what is in
    /// flight is wanted as well.
    fn verdict(
        &self,
        candidate: &Candidate,
        painted: &Painted<'_>,
        side: usize,
        keeps: bool,
    ) -> Option<(Verdict, Vec<PathTraffic>)> {
        let end = packets(&painted.pictures).map(|it| it.sent).max().unwrap_or(0);
        let beside = self.beside(candidate, painted);
        let mut traffic = Vec::new();
        for (path, ends) in painted.paths.iter().enumerate() {
            let of = |side: usize| -> Vec<&[Packet]> {
                let own = painted.pictures.iter().filter(|it| it.path == path).map(|it| it.packets[side].as_slice());
                let others = beside.iter().filter(|(at, _)| at == ends).map(|(_, it)| it.packets[side].as_slice());
                own.chain(others).collect()
            };
            let mut of_path = PathTraffic::of(&of(side), &of(1 - side), end);
            of_path.down.extend(silence::silences(&painted.pictures, side, path));
            traffic.push(of_path);
        }
        let verdict = verdict::judge(&painted.pictures, side, traffic.clone(), keeps)?;
        Some((verdict, traffic))
    }

    /// Pictures of the flows of other connections on the same paths, as long as they are few.
    fn beside(&self, candidate: &Candidate, painted: &Painted<'_>) -> Vec<((IpAddr, IpAddr), FlowPicture)> {
        let mut beside = Vec::new();
        let mut room = MOST_BESIDE;
        for other in self.candidates.iter().filter(|it| it.number != candidate.number) {
            for (flow, _) in &other.members {
                let Some(flow) = self.log.flows.get(*flow).and_then(Option::as_ref) else { continue };
                let (ends, turned) = ((flow.key.src, flow.key.dst), (flow.key.dst, flow.key.src));
                let swap = match painted.paths.iter().find(|path| **path == ends || **path == turned) {
                    Some(path) if *path == ends => false,
                    Some(_) => true,
                    None => continue,
                };
                let size: usize = flow.places.values().map(Vec::len).sum();
                if size > room {
                    return Vec::new();
                }
                room -= size;
                beside.push((if swap { turned } else { ends }, picture::paint(flow, swap, 0, [0, 0])));
            }
        }
        beside
    }

    fn judge(&self, candidate: &Candidate) -> JudgedConnection {
        let painted = self.paint(candidate);
        let names = self.names(&painted);
        let report = self.report(candidate);
        let group = Group {
            flows: painted
                .flows
                .iter()
                .zip(&painted.pictures)
                .map(|((flow, swap), it)| (*flow, *swap, it.path))
                .collect(),
            pictures: &painted.pictures,
            names: &names,
            multipath: candidate.multipath,
            interfaces: &self.watched.interfaces,
            report,
        };
        // What left before the capture saw it arrive began earlier.
        let first = packets(&painted.pictures).map(|it| it.sent).min();
        let begin = self.watched.findings.report.capture.start_unix_ns.into_iter().chain(first).min().unwrap_or(0);
        let mut directions: Vec<JudgedDirection> = Vec::new();
        let largest = candidate.bytes[0].max(candidate.bytes[1]);
        let silent = |side: usize| painted.pictures.iter().all(|it| it.packets[side].is_empty());
        let one_sided = packets(&painted.pictures).nth(1).is_some() && (silent(0) || silent(1));
        for side in (0..2).filter(|_| !one_sided) {
            if candidate.bytes[side] == 0 || candidate.bytes[side] < LEAST.min(largest) {
                continue;
            }
            if let Some((verdict, traffic)) = self.verdict(candidate, &painted, side, false) {
                let confidence = self.about(candidate, &painted, side).confidence();
                let bytes = self.bytes(candidate, side);
                let frame = Frame { bytes, confidence, begin };
                directions.push(direction(&painted, &names, side, &verdict, &traffic, frame));
            }
        }
        directions.sort_by_key(|direction| u64::MAX - direction.bytes);
        let main = directions.first().map_or(0, |direction| direction.from);
        // A path that is down is said to be that, and not to be left unused.
        let is_down = |path: &Option<String>| {
            let mut shares = directions.iter().flat_map(|direction| &direction.shares);
            shares.any(|share| share.limit == Limit::PathDown && share.path == *path)
        };
        let mut faults = group.faults();
        if let Some(direction) = directions.first() {
            let found = mechanism::mechanisms(&painted.pictures, main, direction.time_ns, &names);
            faults.splice(0..0, found);
        }
        faults.retain(|fault| fault.kind != FaultKind::Unused || !is_down(&fault.path));
        let about = self.about(candidate, &painted, main);
        let report = &self.watched.findings.report;
        let plain = candidate.number.checked_sub(report.connections.len() + 1);
        let plain = plain.and_then(|index| report.plain_tcp.get(index));
        JudgedConnection {
            number: candidate.number,
            multipath: candidate.multipath,
            version: self.report(candidate).and_then(|report| report.version),
            orphan_options: plain.map_or(Vec::new(), PlainReport::orphan_words),
            sides: candidate.sides.map(str::to_owned),
            endpoints: candidate.endpoints(&self.log),
            captured: captured(&about, candidate, main),
            begin_unix_ns: begin,
            one_sided,
            paths: paths(&painted, &names),
            faults,
            directions,
            unknown: words::unknown(&about),
        }
    }

    /// Returns the facts about the capture of a direction.
    fn about(&self, candidate: &Candidate, painted: &Painted<'_>, side: usize) -> About {
        let pictures = &painted.pictures;
        let carries = |it: &&FlowPicture| it.packets[side].iter().any(|packet| packet.length > 0);
        let seen = |end: usize| {
            let sees = |it: &FlowPicture| if end == 0 { it.seen.own } else { it.seen.other };
            let some = pictures.iter().any(|it| carries(&it));
            pictures.iter().filter(|it| !some || carries(it)).all(sees)
        };
        let report = self.report(candidate);
        let offers = |flow: &FlowLog| [flow.syn, flow.syn_ack, flow.third].contains(&Offer::Cut);
        About {
            one_host: painted.paths.iter().all(|(own, other)| own == other),
            placed: pictures.iter().any(|it| it.placed),
            sender_seen: seen(side),
            receiver_seen: seen(1 - side),
            between: pictures.iter().any(|it| it.between),
            handshake: pictures.iter().filter(carries).all(|it| it.scaled),
            cut: painted.flows.iter().map(|(flow, _)| flow.cut).sum(),
            options_cut: painted.flows.iter().any(|(flow, _)| flow.options_cut > 0 || offers(flow)),
            joined: self.log.joined,
            left_out: self.log.left_out,
            unfit: pictures.iter().filter(carries).any(|it| it.unfit),
            apart: self.files().iter().find_map(|file| file.clock.as_ref()).map(|it| (it.ahead_s.abs(), it.within_s)),
            missing: report.is_some_and(|report| report.directions[side].missing_bytes > 0),
            backwards: self.watched.findings.report.capture.notes.iter().any(|note| note.contains("order")),
        }
    }

    /// Names of paths: those of interfaces where each path has its own, or else addresses.
    fn names(&self, painted: &Painted<'_>) -> Vec<String> {
        let of_interface = |path: usize| {
            let flow = painted.flows.iter().zip(&painted.pictures).find(|(_, it)| it.path == path)?.0.0;
            let (file, interface) = flow.interface;
            let name = self.watched.interfaces.get(file)?.get(interface as usize)?.as_ref()?;
            Some(name.rsplit('/').next().unwrap_or(name).to_owned())
        };
        let named: Option<Vec<String>> = (0..painted.paths.len()).map(of_interface).collect();
        let distinct = |names: &Vec<String>| {
            let set: std::collections::BTreeSet<&String> = names.iter().collect();
            set.len() == names.len() && names.iter().all(|name| name != "any")
        };
        if let Some(names) = named.filter(|names| names.len() > 1 && distinct(names)) {
            return names;
        }
        let own: Vec<String> = painted.paths.iter().map(|(own, _)| own.to_string()).collect();
        if distinct(&own) {
            return own;
        }
        painted.paths.iter().map(|(own, other)| format!("{own} > {other}")).collect()
    }
}

/// A subflow, seen from the side that sends.
fn traced((flow, swapped): (&FlowLog, bool), picture: &FlowPicture, side: usize) -> TracedFlow {
    let ends = [flow.key.source().to_string(), flow.key.destination().to_string()];
    let turned = |place: usize| place ^ side;
    TracedFlow {
        path: picture.path,
        ends: [0, 1].map(|place| ends[turned(place) ^ usize::from(swapped)].clone()),
        files: [0, 1].map(|place| picture.files[turned(place)]),
    }
}

fn packets(pictures: &[FlowPicture]) -> impl Iterator<Item = &Packet> {
    pictures.iter().flat_map(|it| it.packets.iter().flatten())
}

/// The first data sequence number that the capture has of a side whose key it misses.
fn first_number(flows: &[(&FlowLog, bool)], side: usize) -> Option<u32> {
    let first = |(flow, swapped): &(&FlowLog, bool)| {
        let from = side ^ usize::from(*swapped);
        let entries = flow.places.values().flatten().filter(|entry| entry.from() == from && entry.has(log::DSN));
        entries.min_by_key(|entry| entry.at).map(|entry| (entry.at, entry.dsn))
    };
    flows.iter().filter_map(first).min().map(|(_, dsn)| dsn)
}

fn captured(about: &About, candidate: &Candidate, from: usize) -> String {
    let side = |side: usize| anabranch_inspect::article(candidate.sides[side]);
    match (about.sender_seen, about.receiver_seen) {
        _ if !about.placed => "at a place that its packets do not tell".to_owned(),
        _ if about.between => "between the hosts".to_owned(),
        (true, true) if about.one_host => "on the host that is both ends".to_owned(),
        (true, true) => "at both ends".to_owned(),
        (true, false) => format!("near {}", side(from)),
        (false, true) => format!("near {}", side(1 - from)),
        (false, false) => "at different places".to_owned(),
    }
}

fn paths(painted: &Painted<'_>, names: &[String]) -> Vec<PathAbout> {
    let about = |(path, (own, other)): (usize, &(IpAddr, IpAddr))| {
        let mine = || painted.pictures.iter().filter(move |it| it.path == path);
        let bytes =
            |side: usize| mine().flat_map(|it| &it.packets[side]).map(|it| it.length.max(0).unsigned_abs()).sum();
        let rtt = mine().map(|it| it.rtt).filter(|rtt| *rtt > 0).min();
        PathAbout {
            name: names[path].clone(),
            addresses: [own.to_string(), other.to_string()],
            bytes: [bytes(0), bytes(1)],
            rtt_ms: rtt.map(|rtt| rtt as f64 / 1e6),
        }
    };
    painted.paths.iter().enumerate().map(about).collect()
}

/// Facts about a direction that its packets' times do not tell.
struct Frame {
    bytes: u64,
    confidence: Confidence,
    /// Time of the first packet \[ns\].
    begin: u64,
}

fn direction(
    painted: &Painted<'_>,
    names: &[String],
    side: usize,
    verdict: &Verdict,
    traffic: &[PathTraffic],
    Frame { bytes, confidence, begin }: Frame,
) -> JudgedDirection {
    let interval = |band: &Band| Interval {
        from_ns: band.from.as_nanos().saturating_sub(begin),
        to_ns: band.to.as_nanos().saturating_sub(begin),
        limit: band.cause.limit,
        path: band.cause.path,
    };
    let intervals = |bands: &Bands| bands.iter().map(interval).collect();
    let whole = verdict.bands.total();
    let mut shares: Vec<Share> = verdict
        .bands
        .times()
        .into_iter()
        .map(|(cause, time)| Share {
            limit: cause.limit,
            path: cause.path.map(|path| names[path].clone()),
            time_ns: time.as_nanos(),
            share: if whole.is_zero() { 0.0 } else { time.per(whole) },
        })
        .collect();
    shares.sort_by_key(|share| std::cmp::Reverse(share.time_ns));
    JudgedDirection {
        from: side,
        bytes,
        finished: verdict.finished,
        confidence,
        from_ns: verdict.bands.start().as_nanos().saturating_sub(begin),
        time_ns: whole.as_nanos(),
        shares,
        widest_window: painted.pictures.iter().all(|it| it.scaled).then_some(verdict.widest_window),
        intervals: intervals(&verdict.bands),
        paths: verdict
            .paths
            .iter()
            .zip(names)
            .map(|(bands, name)| PathTime { path: name.clone(), intervals: intervals(bands) })
            .collect(),
        measured: names
            .iter()
            .enumerate()
            .map(|(path, name)| PathMeasured {
                settled_window: Some(verdict.settled[path]).filter(|window| *window > 0),
                ..measured(painted, name, path, side, &traffic[path])
            })
            .collect(),
    }
}

fn measured(painted: &Painted<'_>, name: &str, path: usize, side: usize, traffic: &PathTraffic) -> PathMeasured {
    let data = || {
        let mine = painted.pictures.iter().filter(move |it| it.path == path);
        mine.flat_map(move |it| &it.packets[side]).filter(|it| it.length > 0)
    };
    let mut delays: Vec<u64> =
        data().filter(|it| it.arrived != NEVER).map(|it| it.arrived.saturating_sub(it.sent)).collect();
    delays.sort_unstable();
    let queue = delays.first().zip(delays.get(delays.len() / 2)).map(|(least, median)| (median - least) as f64 / 1e6);
    let latest = data().filter(|it| it.arrived != NEVER).map(|it| it.sent).max().unwrap_or(0);
    let seen = |it: &&FlowPicture| if side == 0 { it.seen.own } else { it.seen.other };
    // Where only arrivals were seen, what closes a hole late was lost once.
    let unseen = painted.pictures.iter().filter(|it| it.path == path && !seen(it));
    let (repaired, repaired_by_chance) =
        unseen.map(|it| repaired(it, side)).fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
    PathMeasured {
        path: name.to_owned(),
        packets: data().count() as u64,
        // What is on its way when the capture ends is not lost.
        lost: data().filter(|it| it.arrived == NEVER && it.sent < latest).count() as u64 + repaired,
        lost_by_chance: by_chance(data().filter(|it| it.arrived != NEVER || it.sent < latest)) + repaired_by_chance,
        rate_bps: Some(traffic.link.rate).filter(|rate| *rate > 0.0),
        line_bps: Some(traffic.link.line).filter(|rate| *rate > 0.0),
        carried_bps: Some(traffic.link.carried).filter(|rate| *rate > 0.0),
        settled_window: None,
        queue_ms: queue,
    }
}

/// Data packets that closed a hole which had been open for most of a round trip; and those of them right before which a
/// packet arrived that had not waited long.
fn repaired(flow: &FlowPicture, side: usize) -> (u64, u64) {
    let data = flow.packets[side].iter().filter(|it| it.length > 0 && it.arrived != NEVER);
    let mut in_order: Vec<&Packet> = data.collect();
    in_order.sort_by_key(|it| it.arrived);
    let short = short_wait(&in_order);
    // Packets that came beyond the highest so far, by their ends.
    let mut high: Vec<&Packet> = Vec::new();
    let (mut repaired, mut by_chance) = (0, 0);
    for it in in_order {
        if high.last().is_none_or(|highest| it.end() > highest.end()) {
            high.push(it);
            continue;
        }
        let beyond = high.partition_point(|other| other.end() <= it.seq);
        let since = high.get(beyond).map_or(it.arrived, |other| other.arrived);
        if it.arrived.saturating_sub(since) >= flow.rtt / 10 * 8 {
            repaired += 1;
            let before = beyond.checked_sub(1).and_then(|before| high.get(before));
            by_chance += u64::from(before.is_none_or(|before| wait(before) < short));
        }
    }
    (repaired, by_chance)
}

/// Time from a packet's departure to its arrival.
fn wait(packet: &Packet) -> u64 {
    packet.arrived.saturating_sub(packet.sent)
}

/// A wait below this is no sign of a queue that is about to overflow.
fn short_wait(arrived: &[&Packet]) -> u64 {
    let mut waits: Vec<u64> = arrived.iter().map(|it| wait(it)).collect();
    waits.sort_unstable();
    let (Some(least), Some(most)) = (waits.first(), waits.get(waits.len() * 49 / 50)) else { return 0 };
    if most - least < 2 * MOMENT { u64::MAX } else { least + (most - least) / 2 }
}

/// Lost packets right before which a packet arrived that had not waited long.
fn by_chance<'a>(data: impl Iterator<Item = &'a Packet>) -> u64 {
    let mut data: Vec<&Packet> = data.collect();
    data.sort_by_key(|it| it.sent);
    let arrived: Vec<&Packet> = data.iter().copied().filter(|it| it.arrived != NEVER).collect();
    let short = short_wait(&arrived);
    let (mut last, mut lost) = (0, 0);
    for it in data {
        match it.arrived {
            NEVER => lost += u64::from(last < short),
            _ => last = wait(it),
        }
    }
    lost
}

/// A queue that never holds packets for longer is not worth the name \[ns\].
const MOMENT: u64 = 1_000_000;
