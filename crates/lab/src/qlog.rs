//! Records a run as qlog: segments at each host as [`PacketEvent`] has them, events of connections, and what senders
//! know of loss and congestion.
//!
//! A sequential file of qlog has one trace, and a run has several hosts: `group_id` tells them apart, as the main
//! document has it for events of different sources in one file. `tuple` tells their subflows apart.

use crate::{PacketEvent, version_with_build};
use anabranch_engine::{ConnectionId, Detector, Event, Purpose};
use anabranch_events::qlog::{
    self, Happening, Head, Header, MetricsLog, Numbered, Packet, PacketLost, PacketsAcked, Raw, Record, VantagePoint,
};
use anabranch_events::{ConnectionEvent, Happened};
use anabranch_paths::{End, PacketId, copy_name};
use anabranch_scenario::Scenario;
use anabranch_sim::{Condition, Content, EventKind, EventRecord, Host, Loss, Observer, Onlook, Sight};
use anabranch_wire::{Flags, FlowKey, Segment};
use serde::Serialize;
use serde_json::Map;
use std::collections::{BTreeMap, VecDeque};

/// Returns the first text of a file about runs of this scenario.
pub fn qlog_head(scenario: &Scenario) -> Vec<u8> {
    let title = format!("{} by anabranch {}", scenario.name, version_with_build());
    text(&Head::new(title, VantagePoint::SIMULATOR))
}

/// Observer that writes the events of a run as texts of a JSON text sequence.
pub struct QlogObserver {
    out: Vec<u8>,
    /// Prefix of the groups of this run: empty, or its seed if a file has several runs.
    prefix: String,
    /// Names of the paths.
    paths: Vec<String>,
    metrics: BTreeMap<(usize, Host), MetricsLog>,
    outstanding: BTreeMap<(usize, Host, FlowKey), Outstanding>,
}

impl QlogObserver {
    /// Makes an observer for a run of the scenario with this seed, which is or `is_one_of_many` in its file.
    pub fn new(scenario: &Scenario, seed: u64, is_one_of_many: bool) -> Self {
        let prefix = if is_one_of_many { format!("seed-{seed}/") } else { String::new() };
        let mut details = Map::new();
        details.insert("seed".to_owned(), seed.into());
        details.insert("digest".to_owned(), scenario.digest.to_string().into());
        details.insert("command".to_owned(), scenario.origin.command(seed).into());
        let mut observer = QlogObserver {
            out: Vec::new(),
            prefix,
            paths: scenario.paths(),
            metrics: BTreeMap::new(),
            outstanding: BTreeMap::new(),
        };
        let group = observer.group(0, Host::Client);
        observer.write(&Record::of_scenario(Some(&group), &scenario.name, details));
        observer
    }

    /// Returns the texts of the run, at its end.
    pub fn finish(self) -> Vec<u8> {
        self.out
    }

    fn group(&self, client: usize, host: Host) -> String {
        format!("{}{}", self.prefix, copy_name(client, &host.to_string()))
    }

    fn write(&mut self, record: &Record<'_>) {
        self.out.extend(text(record));
    }

    /// Writes an event of a segment at this host, whose subflow has the addresses `flow`.
    fn write_packet(&mut self, sight: &Sight<'_>, flow: FlowKey, happening: Happening) {
        let group = self.group(sight.client, sight.host);
        self.write(&Record::new(sight.at, Some(&group), Some(qlog::tuple(flow)), happening));
    }

    fn packet(&self, sight: &Sight<'_>, segment: &Segment, kind: EventKind) -> Option<Packet> {
        let PacketEvent { path, flags, seq, ack, window, length, dsn, data_ack, .. } =
            PacketEvent::from(&EventRecord::of(sight, kind)?);
        let packet_number = (sight.id != PacketId::default()).then_some(sight.id.0);
        Some(Packet {
            header: Header { packet_number, flags, seq, ack, window, dsn, data_ack },
            raw: Raw { length: segment.wire_length().get(), payload_length: length.into() },
            path: self.paths[path].clone(),
            trigger: None,
        })
    }

    fn tell_lost(&mut self, sight: &Sight<'_>, segment: &Segment, detector: Detector) {
        let trigger = match detector {
            Detector::Rto => "retransmission_timeout",
            Detector::Rack => "time_threshold",
            Detector::Sack | Detector::DuplicateAcks => "reordering_threshold",
            _ => return, // A probe repeats what is not known to be lost.
        };
        let seq = segment.seq.get();
        let key = (sight.client, sight.host, segment.flow);
        let packet_number = self.outstanding.get_mut(&key).and_then(|all| all.lose(seq));
        let lost =
            PacketLost { header: Numbered { packet_number, seq }, path: self.paths[sight.path].clone(), trigger };
        self.write_packet(sight, segment.flow, Happening::PacketLost(lost));
    }
}

impl Observer for QlogObserver {
    fn on_sent(&mut self, sight: Sight<'_>, purpose: Option<Purpose>) {
        let Content::Segment(segment) = sight.content else { return };
        if let Some(Purpose::Retransmission(detector)) = purpose {
            self.tell_lost(&sight, segment, detector);
        }
        if let Some(mut packet) = self.packet(&sight, segment, EventKind::Sent) {
            packet.trigger = purpose.map(|purpose| purpose.to_string());
            self.write_packet(&sight, segment.flow, Happening::PacketSent(packet));
        }
        if !segment.payload.is_empty() {
            let all = self.outstanding.entry((sight.client, sight.host, segment.flow)).or_default();
            all.add(sight.id.0, segment.seq.get(), segment.payload.len() as u32);
        }
    }

    fn on_received(&mut self, sight: Sight<'_>, condition: Condition) {
        let Content::Segment(segment) = sight.content else { return };
        let flow = segment.flow.reversed();
        if condition == Condition::Damaged {
            if let Some(packet) = self.packet(&sight, segment, EventKind::Corrupted) {
                let packet = Packet { trigger: Some("checksum".to_owned()), ..packet };
                self.write_packet(&sight, flow, Happening::PacketDropped(packet));
            }
            return;
        }
        if let Some(packet) = self.packet(&sight, segment, EventKind::Received) {
            self.write_packet(&sight, flow, Happening::PacketReceived(packet));
        }
        if segment.flags.has(Flags::ACK)
            && let Some(all) = self.outstanding.get_mut(&(sight.client, sight.host, flow))
        {
            let packet_numbers = all.acknowledge(segment.ack.get());
            if !packet_numbers.is_empty() {
                self.write_packet(&sight, flow, Happening::PacketsAcked(PacketsAcked { packet_numbers }));
            }
        }
    }

    fn on_lost(&mut self, _id: PacketId, _loss: Loss<'_>) {}

    fn on_kept(&mut self, _id: PacketId, _path: usize, _end: End) {}

    fn watches_endpoints(&self) -> bool {
        true
    }

    fn on_event(&mut self, onlook: Onlook<'_>, connection: usize, id: ConnectionId, event: Event) {
        let Onlook { at, client, host, endpoint } = onlook;
        let number = connection as u64 + 1;
        let Some(line) = ConnectionEvent::of(at, number, endpoint, id, event, None) else { return };
        let metrics = self.metrics.entry((client, host)).or_default();
        match line.happened {
            Happened::Connected(_) | Happened::Reopened(_) | Happened::Accepted(_) => metrics.open(id, number),
            Happened::Closed(_) | Happened::Reset(_) => metrics.close(id),
            _ => {}
        }
        let group = self.group(client, host);
        self.write(&Record::of_connection(at, Some(&group), &line, endpoint, id));
    }

    fn on_rest(&mut self, onlook: Onlook<'_>) {
        let Onlook { at, client, host, endpoint } = onlook;
        let group = self.group(client, host);
        let Some(metrics) = self.metrics.get_mut(&(client, host)) else { return };
        for id in metrics.connections() {
            let changes = metrics.changes(at, endpoint, id, Some(&group));
            changes.iter().for_each(|record| self.out.extend(text(record)));
        }
    }
}

/// Data segments of a subflow that are not acknowledged, in the order in which they were sent.
#[derive(Default)]
struct Outstanding {
    segments: VecDeque<SentSegment>,
}

struct SentSegment {
    number: u32,
    seq: u32,
    /// Sequence number behind the segment.
    end: u32,
    lost: bool,
}

impl Outstanding {
    fn add(&mut self, number: u32, seq: u32, length: u32) {
        self.segments.push_back(SentSegment { number, seq, end: seq.wrapping_add(length), lost: false });
    }

    /// Marks the last segment that began here as lost, and returns its number.
    fn lose(&mut self, seq: u32) -> Option<u32> {
        let found = self.segments.iter_mut().rev().find(|segment| segment.seq == seq)?;
        found.lost = true;
        Some(found.number)
    }

    /// Forgets segments below `ack`, and returns the numbers of those that were not taken for lost.
    fn acknowledge(&mut self, ack: u32) -> Vec<u32> {
        let mut acked = Vec::new();
        // Retransmissions stand behind newer data, which may not be covered. The first one that is not ends the search
        // for most ACKs: they cover nothing new.
        let is_covered = |segment: &SentSegment| ack.wrapping_sub(segment.end) as i32 >= 0;
        if self.segments.iter().any(is_covered) {
            self.segments.retain(|segment| {
                let covered = is_covered(segment);
                if covered && !segment.lost {
                    acked.push(segment.number);
                }
                !covered
            });
        }
        acked
    }
}

fn text(value: &impl Serialize) -> Vec<u8> {
    let mut out = Vec::new();
    qlog::write(&mut out, value).expect("writing to memory cannot fail, and events are plain JSON");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 32-bit numbers wrap within the flight; 2 is lost and repeated as 4.
    #[test]
    fn acknowledged_segments_are_those_not_taken_for_lost() {
        let mut all = Outstanding::default();
        let first = u32::MAX - 150;
        for (number, seq) in [(1, first), (2, first + 100), (3, first.wrapping_add(200))] {
            all.add(number, seq, 100);
        }
        assert_eq!(all.acknowledge(first + 100), [1]);
        assert_eq!(all.lose(first + 100), Some(2));
        all.add(4, first + 100, 100);
        assert_eq!(all.acknowledge(first + 100), [0u32; 0]);
        assert_eq!(all.acknowledge(first.wrapping_add(300)), [3, 4]);
        assert_eq!(all.lose(first), None);
    }
}
