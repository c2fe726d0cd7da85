//! One run as a movie: every packet of the connection with the times at which it left and arrived, and the state of
//! paths and receiver over time.

use crate::request::Progress;
use crate::results::shown;
use crate::scenario::Trouble;
use anabranch_engine::Purpose;
use anabranch_lab::timeline::{Copied, Timeline};
use anabranch_lab::{Keep, Run};
use anabranch_paths::{End, PacketId};
use anabranch_report::Header;
use anabranch_report::html::Page;
use anabranch_scenario::Scenario;
use anabranch_sim::{Condition, Content, Host, Loss, Observer, Sample, Sight};
use anabranch_units::Instant;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Most packets in a movie; the rest of the run is told by its curves.
const MOST_PACKETS: usize = 40_000;
/// Most samples in a movie.
const MOST_SAMPLES: usize = 2_000;

/// Packets, one column for each property. Times count from the beginning of the hosts \[s\].
#[derive(Debug, Default, Serialize)]
struct Packets {
    /// Time of sending.
    sent: Vec<f64>,
    /// Time of arrival; `None` if it did not arrive.
    arrived: Vec<Option<f64>>,
    /// Index of the path.
    path: Vec<usize>,
    /// 0: new data, 1: retransmitted, 2: reinjected, 3: without data, from the receiver.
    kind: Vec<u8>,
    /// First byte of its data in the connection.
    from: Vec<u64>,
    /// Bytes of data.
    length: Vec<u64>,
}

/// A packet from the receiver of data.
struct Answered {
    sent: Instant,
    arrived: Option<Instant>,
    path: usize,
}

/// Watches packets that go against the data: ACKs, and handshakes.
struct AnswerObserver {
    receiver: Host,
    packets: Vec<Answered>,
    under_way: BTreeMap<PacketId, usize>,
}

impl Observer for AnswerObserver {
    fn on_sent(&mut self, sight: Sight<'_>, _purpose: Option<Purpose>) {
        let Content::Segment(_) = sight.content else { return };
        if sight.host == self.receiver && self.packets.len() < MOST_PACKETS {
            self.under_way.insert(sight.id, self.packets.len());
            self.packets.push(Answered { sent: sight.at, arrived: None, path: sight.path });
        }
    }

    fn on_received(&mut self, sight: Sight<'_>, condition: Condition) {
        if let Some(place) = self.under_way.remove(&sight.id).filter(|_| condition == Condition::Intact) {
            self.packets[place].arrived = Some(sight.at);
        }
    }

    fn on_lost(&mut self, id: PacketId, _loss: Loss<'_>) {
        self.under_way.remove(&id);
    }

    fn on_kept(&mut self, id: PacketId, _path: usize, _end: End) {
        self.under_way.remove(&id);
    }
}

/// Runs the scenario once.
pub fn run(scenario: &Scenario, seed: Option<u64>, progress: &Progress<'_>) -> Result<Value, Trouble> {
    let seed = seed.unwrap_or(scenario.seed);
    let receiver = if scenario.client_sends() { Host::Server } else { Host::Client };
    let mut answers = AnswerObserver { receiver, packets: Vec::new(), under_way: BTreeMap::new() };
    let keep = Keep { timeline: true, ..Keep::default() };
    let run = anabranch_lab::run_watched(scenario, seed, &keep, Some(&mut answers))?;
    progress(1, 1);
    let begin = Instant::ZERO + scenario.late(seed);
    let movie = movie(scenario, &run, &answers.packets, begin);
    let digest = run.measured.events_digest.clone();
    let header = Header::new(scenario, seed, 1);
    let all = [run.measured.clone()];
    let mut value = shown(&Page::of_runs(scenario, &header, &run, &all, &run.command))?;
    value["movie"] = movie;
    value["digest"] = digest.into();
    Ok(value)
}

/// Returns the packets and the curves of a run.
fn movie(scenario: &Scenario, run: &Run, answers: &[Answered], begin: Instant) -> Value {
    let seconds = |at: Instant| at.since(begin).as_secs_f64();
    let (packets, all) = packets(run.timeline.as_ref(), answers, &seconds);
    let within = |sample: &&Sample| sample.at >= begin && sample.at <= run.outcome.end;
    let samples: Vec<&Sample> = run.outcome.samples.iter().filter(within).collect();
    // The last one is the state in the end.
    let every = samples.len().div_ceil(MOST_SAMPLES).max(1);
    let kept: Vec<&Sample> = samples.iter().rev().step_by(every).rev().copied().collect();
    let column = |value: &dyn Fn(&Sample) -> u64| kept.iter().map(|sample| value(sample)).collect::<Vec<u64>>();
    let paths = scenario.paths();
    let of_path = |value: fn(&anabranch_sim::PathSample) -> u64| -> Vec<Vec<u64>> {
        (0..paths.len()).map(|path| column(&|sample| value(&sample.paths[path]))).collect()
    };
    let transfers: Vec<Value> = (run.outcome.transfers.iter())
        .map(|it| {
            json!({
                "label": it.label, "from": seconds(it.started), "to": it.finished.map(seconds), "bytes": it.bytes,
            })
        })
        .collect();
    json!({
        "paths": paths,
        "client_sends": scenario.client_sends(),
        "end": seconds(run.outcome.end),
        "finished": run.measured.finished,
        "packets": packets,
        "packets_in_run": all,
        "time": kept.iter().map(|sample| seconds(sample.at)).collect::<Vec<f64>>(),
        "read": column(&|sample| sample.read),
        "data_acked": column(&|sample| sample.data_acked),
        "out_of_order": column(&|sample| sample.ofo_segments),
        "buffered": column(&|sample| sample.buffered),
        "received": of_path(|path| path.received),
        "cwnd": of_path(|path| path.cwnd),
        "queued": of_path(|path| path.queued),
        "transfers": transfers,
    })
}

/// Returns the first packets in the order of time, and the number of all.
fn packets(timeline: Option<&Timeline>, answers: &[Answered], seconds: &dyn Fn(Instant) -> f64) -> (Packets, usize) {
    struct Row {
        sent: Instant,
        arrived: Option<Instant>,
        path: usize,
        kind: u8,
        from: u64,
        length: u64,
    }
    // Two lists in the order of time become one: data that the timeline has, and what goes against it.
    let data = timeline.iter().flat_map(|it| &it.connections).flat_map(|it| &it.sent).map(|it| Row {
        sent: it.at,
        arrived: it.arrived,
        path: it.path,
        kind: match it.copy {
            Copied::New => 0,
            Copied::Retransmitted => 1,
            Copied::Reinjected => 2,
        },
        from: it.from,
        length: it.length,
    });
    let back =
        answers.iter().map(|it| Row { sent: it.sent, arrived: it.arrived, path: it.path, kind: 3, from: 0, length: 0 });
    let mut rows: Vec<Row> = data.chain(back).collect();
    rows.sort_by_key(|row| row.sent);
    let all = rows.len();
    let mut packets = Packets::default();
    for row in rows.into_iter().take(MOST_PACKETS) {
        packets.sent.push(seconds(row.sent));
        packets.arrived.push(row.arrived.map(seconds));
        packets.path.push(row.path);
        packets.kind.push(row.kind);
        packets.from.push(row.from);
        packets.length.push(row.length);
    }
    (packets, all)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::scenario::Source;
    use anabranch_policy::Catalogue;
    use std::sync::Arc;

    /// The movie's packets carry the transfer: what arrived of the data, counted once, is what the application read.
    #[test]
    fn a_movie_has_every_byte() {
        let shipped = anabranch_scenario::shipped::find("wlan-lte").unwrap();
        let source = Source { name: shipped.name.to_owned(), text: shipped.text.to_owned(), sets: Vec::new() };
        let scenario = source.load(&Arc::new(Catalogue::default())).unwrap();
        let value = run(&scenario, Some(3), &|_, _| ()).unwrap();
        let packets = &value["movie"]["packets"];
        let column = |name: &str| packets[name].as_array().unwrap().clone();
        let (kinds, arrived, from, length) = (column("kind"), column("arrived"), column("from"), column("length"));
        let mut seen = BTreeMap::new();
        for n in 0..kinds.len() {
            if kinds[n] != 3 && !arrived[n].is_null() {
                seen.insert(from[n].as_u64().unwrap(), length[n].as_u64().unwrap());
            }
        }
        assert_eq!(seen.values().sum::<u64>(), 2 << 20);
        assert!(kinds.iter().filter(|kind| **kind == 3).count() > 100, "ACKs are there");
        assert!(arrived.iter().any(Value::is_null), "the Wi-Fi loses packets");
        let read = value["movie"]["read"].as_array().unwrap().last().unwrap().as_u64();
        assert_eq!(read, Some(2 << 20), "the last sample is the end");
        let plain = anabranch_lab::run(&scenario, 3, &Keep::default()).unwrap();
        assert_eq!(value["digest"], plain.measured.events_digest, "watching changes nothing");
    }
}
