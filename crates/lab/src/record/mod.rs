//! Records a run as capture files: one for each host, as `tcpdump` would write it there, with comments on each packet
//! from the simulator.

mod alteration;
mod describe;

use crate::version_with_build;
use alteration::alterations;
use anabranch_capture::{Backlog, Direction, Interface, Packet, Section, Ticket, WriteError, Writer, udp};
use anabranch_engine::Purpose;
use anabranch_paths::{End, PacketId, copy_name};
use anabranch_scenario::Scenario;
use anabranch_sim::{Condition, Content, Host, Loss, Observer, Sight, Spec, Workload};
use anabranch_units::Instant;
use anabranch_wire::Segment;
use bytes::BytesMut;
use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, SocketAddrV4};
use std::path::Path;

/// Observer that writes capture files into a directory. Without [`Recorder::finish`] the files are removed.
pub struct Recorder {
    files: Vec<HostFile>,
    /// Packets that were sent, and neither received nor known to be lost.
    under_way: BTreeMap<PacketId, UnderWay>,
    /// Schedulers of client and server, each with the time from which it is in use.
    schedulers: [Vec<(Instant, String)>; 2],
    /// Names of the paths.
    paths: Vec<String>,
    /// First error; no packet is written after it.
    failure: Option<WriteError>,
    scratch: BytesMut,
}

struct HostFile {
    /// Client whose paths the host is on, and the host.
    host: (usize, Host),
    writer: Writer,
    backlog: Backlog,
}

struct UnderWay {
    file: usize,
    ticket: Ticket,
    /// Segment as its host sent it; `None` for anything but TCP.
    segment: Option<Segment>,
}

impl Recorder {
    /// Creates the directory and the files of a run of `scenario`.
    ///
    /// # Errors
    ///
    /// If one of them cannot be written.
    pub fn create(directory: &Path, scenario: &Scenario, seed: u64) -> Result<Self, WriteError> {
        let fail = |error| WriteError { path: directory.to_owned(), error };
        fs::create_dir_all(directory).map_err(fail)?;
        let spec = scenario.spec(seed);
        let section = Section {
            application: format!("anabranch {}", version_with_build()),
            comment: format!(
                "scenario {} ({}), seed {seed}; this repeats it with that build: {}",
                scenario.name,
                scenario.digest,
                scenario.origin.command(seed)
            ),
        };
        let create = |host: (usize, Host)| {
            let path = directory.join(file_name(host));
            let writer = Writer::create(&path, &section, &interfaces(host, &spec))?;
            Ok(HostFile { host, writer, backlog: Backlog::new(HELD) })
        };
        Ok(Recorder {
            files: hosts(&spec).into_iter().map(create).collect::<Result<_, _>>()?,
            under_way: BTreeMap::new(),
            schedulers: scenario.schedulers(seed),
            paths: scenario.paths(),
            failure: None,
            scratch: BytesMut::new(),
        })
    }

    /// Completes the files at the end of the run. Packets still in flight are marked as such.
    ///
    /// # Errors
    ///
    /// If a file could not be written, now or earlier.
    pub fn finish(mut self) -> Result<(), WriteError> {
        for file in 0..self.files.len() {
            self.files[file].backlog.close("still under way when the run ended");
            self.write(file);
        }
        match self.failure {
            Some(failure) => Err(failure),
            None => self.files.into_iter().try_for_each(|file| file.writer.finish()),
        }
    }

    /// Returns the names of the files of a client and of its server.
    pub fn file_names(client: usize) -> [String; 2] {
        [Host::Client, Host::Server].map(|host| file_name((client, host)))
    }

    fn file_of(&self, sight: &Sight<'_>) -> usize {
        let found = self.files.binary_search_by_key(&(sight.client, sight.host), |file| file.host);
        found.expect("each host of the run has its file, in this order")
    }

    /// Builds the packet for the file.
    fn packet(&mut self, sight: &Sight<'_>, direction: Direction, comments: Vec<String>) -> Packet {
        let (bytes, comments) = match sight.content {
            Content::Segment(segment) => self.segment(segment, comments),
            Content::Echo(echo) => (echo.emit().unwrap_or_default(), comments),
            Content::Datagram { flow, from_client, ends, size } => {
                (datagram(flow, from_client, ends, size.get()), comments)
            }
        };
        Packet { interface: sight.path as u32, direction, at: sight.at, bytes, comments }
    }

    fn segment(&mut self, segment: &Segment, mut comments: Vec<String>) -> (Vec<u8>, Vec<String>) {
        self.scratch.clear();
        if let Err(error) = anabranch_wire::emit(segment, &mut self.scratch) {
            // Segments of the simulator are values and may hold what no packet can; the rest of the capture is still
            // useful.
            comments.push(format!("this segment cannot be encoded: {error}"));
        }
        (self.scratch.to_vec(), comments)
    }

    fn push(&mut self, file: usize, packet: Packet, settled: bool) -> Ticket {
        let ticket = self.files[file].backlog.push(packet, settled);
        self.write(file);
        ticket
    }

    fn settle(&mut self, under_way: &UnderWay, comment: Option<String>) {
        self.files[under_way.file].backlog.settle(under_way.ticket, comment);
        self.write(under_way.file);
    }

    /// Writes the packets that are complete.
    fn write(&mut self, file: usize) {
        let HostFile { writer, backlog, .. } = &mut self.files[file];
        while let Some(packet) = backlog.pop() {
            if self.failure.is_none() {
                self.failure = writer.packet(&packet).err();
            }
        }
    }
}

impl Observer for Recorder {
    fn on_sent(&mut self, sight: Sight<'_>, purpose: Option<Purpose>) {
        let file = self.file_of(&sight);
        let host = match sight.host {
            Host::Client => Some(0),
            Host::Server => Some(1),
            _ => None,
        };
        let scheduler = host.and_then(|host: usize| {
            let mut until_now = self.schedulers[host].iter().rev().filter(|(since, _)| *since <= sight.at);
            until_now.next().map(|(_, name)| name.as_str())
        });
        let comments = purpose.map(|purpose| describe::purpose(purpose, scheduler)).into_iter().collect();
        let packet = self.packet(&sight, Direction::Outbound, comments);
        let ticket = self.push(file, packet, false);
        let segment = match sight.content {
            Content::Segment(segment) => Some(segment.clone()),
            Content::Echo(_) | Content::Datagram { .. } => None,
        };
        self.under_way.insert(sight.id, UnderWay { file, ticket, segment });
    }

    fn on_received(&mut self, sight: Sight<'_>, condition: Condition) {
        let sent = self.under_way.remove(&sight.id);
        let mut comments = Vec::new();
        if condition == Condition::Damaged {
            comments.push("damaged on the way: the checksum fails, the host discards it".to_owned());
        }
        if sight.id == PacketId::default() {
            comments.push("comes from a middlebox, which made it, merged it or held it back".to_owned());
        } else if sent.is_none() {
            comments.push("a copy that a link made".to_owned());
        }
        let altered = match (&sent, sight.content) {
            (Some(UnderWay { segment: Some(before), .. }), Content::Segment(after)) => alterations(before, after),
            _ => Vec::new(),
        };
        if !altered.is_empty() {
            comments.push(format!("a middlebox changed: {}", altered.join(", ")));
        }
        let file = self.file_of(&sight);
        let mut packet = self.packet(&sight, Direction::Inbound, comments);
        if condition == Condition::Damaged {
            damage(&mut packet.bytes);
        }
        self.push(file, packet, true);
        if let Some(sent) = sent {
            let comment = match condition {
                Condition::Damaged => Some("lost: damaged on the way".to_owned()),
                Condition::Intact if !altered.is_empty() => {
                    Some(format!("a middlebox will change: {}", altered.join(", ")))
                }
                Condition::Intact => None,
            };
            self.settle(&sent, comment);
        }
    }

    fn on_lost(&mut self, id: PacketId, loss: Loss<'_>) {
        if let Some(sent) = self.under_way.remove(&id) {
            self.settle(&sent, Some(describe::loss(&loss)));
        }
    }

    fn on_kept(&mut self, id: PacketId, path: usize, end: End) {
        if let Some(sent) = self.under_way.remove(&id) {
            let (end, path) = (if end == End::Client { "client" } else { "server" }, &self.paths[path]);
            let comment = format!("kept by a middlebox at the {end}'s end of {path}: dropped, merged or held back");
            self.settle(&sent, Some(comment));
        }
    }
}

/// Returns the hosts of a run: client and server of each client in turn, then a pair for each competing TCP.
fn hosts(spec: &Spec) -> Vec<(usize, Host)> {
    let pairs = spec.workloads.iter().filter(|workload| matches!(workload, Workload::Tcp { .. })).count();
    let competing = (1..=pairs as u8).flat_map(|pair| [Host::CompetingClient(pair), Host::CompetingServer(pair)]);
    let mut of_one: Vec<Host> = [Host::Client, Host::Server].into_iter().chain(competing).collect();
    of_one.sort_unstable();
    (0..spec.clients).flat_map(|client| of_one.iter().map(move |&host| (client, host))).collect()
}

/// Returns the name of a host's file: `client.pcapng`, or `client-3.pcapng` for client 3.
fn file_name((client, host): (usize, Host)) -> String {
    match client {
        0 => format!("{host}.pcapng"),
        client => format!("{host}-{client}.pcapng"),
    }
}

fn interfaces((client, host): (usize, Host), spec: &Spec) -> Vec<Interface> {
    let host = copy_name(client, &host.to_string());
    let one = |path: &anabranch_paths::PathSpec| Interface {
        name: format!("{host}/{}", path.name),
        description: path.describe(&spec.network.shared),
    };
    spec.network.paths.iter().map(one).collect()
}

/// Builds a packet of a UDP workload between these addresses of client and server.
fn datagram(flow: usize, from_client: bool, ends: [IpAddr; 2], size: u64) -> Vec<u8> {
    let port = FIRST_UDP_PORT.saturating_add(u16::try_from(flow).unwrap_or(u16::MAX));
    let [client, server] = ends.map(|address| match address {
        IpAddr::V4(v4) => SocketAddrV4::new(v4, port),
        IpAddr::V6(_) => unreachable!("the simulator gives IPv4 addresses only"),
    });
    if from_client { udp(client, server, size) } else { udp(server, client, size) }
}

/// Falsifies the checksum, by which a receiver detects damage. The position of damaged bytes has no effect.
fn damage(bytes: &mut [u8]) {
    const PROTOCOL: usize = 9;
    const ICMP: u8 = 1;
    const TCP: u8 = 6;
    let offset = match bytes.get(PROTOCOL) {
        Some(&TCP) => 20 + 16,
        Some(&ICMP) => 20 + 2,
        _ => 20 + 6,
    };
    if let Some(byte) = bytes.get_mut(offset) {
        *byte ^= 0xff;
    }
}

/// Maximum bytes of packets held back for each file: the transit of 2 s at 100 Mbit/s.
const HELD: usize = 32 << 20;
/// First of the dynamic ports (RFC 6335 §6).
const FIRST_UDP_PORT: u16 = 49152;
