//! One path: delay, rate, queue, loss, jitter, outages.

use super::super::link;
use super::super::picture::{FlowPicture, NEVER, Packet};
use super::super::verdict::PathTraffic;
use super::estimate::{Estimate, rate, share, text, time};
use super::passage::Passage;
use super::rates;
use crate::Confidence;

/// A path of a connection, in the direction of most data.
pub(super) struct PathSeen<'a> {
    /// Table in the scenario.
    pub table: String,
    /// Name in the scenario.
    pub name: String,
    /// Side that sends most data.
    pub side: usize,
    pub flows: Vec<&'a FlowPicture>,
    pub traffic: &'a PathTraffic,
    /// First instant of the connection, and the time that the data took \[ns\].
    pub begin: u64,
    pub time: u64,
    /// Bytes before the payload of a packet.
    pub headers: i64,
    /// True if the data goes from server to client.
    pub down: bool,
}

/// A path as a scenario has it.
#[derive(Default)]
pub(super) struct PathTwin {
    pub estimates: Vec<Estimate>,
    pub changes: Vec<Estimate>,
    /// Rate \[bit/s\].
    pub rate: f64,
    /// True if nothing was sent on it that tells its rate.
    pub unused: bool,
}

/// Packets below which nothing is sure.
const FEW: u64 = 50;
/// Packets that have to wait for one another before the rate of a link shows.
const PAIR: usize = 2;
/// The same, for a rate that is sure.
const TRAIN: usize = 5;
/// Chance adds less than this on any network \[ns\].
const LEAST_JITTER: u64 = 500_000;
/// Size of a full packet \[B\].
const FULL: i64 = 1500;
/// Size of a packet without payload \[B\].
const BARE: i64 = 80;
/// An outage that is shorter is a matter of single losses \[ns\].
const LEAST_OUTAGE: u64 = 400_000_000;
/// Queue of a path of which none was seen, in packets: the default of scenarios.
const DEFAULT_QUEUE: usize = 100;

impl PathSeen<'_> {
    /// Estimates all of it. `other` is the rate of the other paths, for one that carried nothing.
    pub(super) fn twin(&self, other: f64) -> PathTwin {
        let data = self.data();
        let (own, far) = self.seen();
        let exact = own && far;
        let link = &self.traffic.link;
        let arrived = data.iter().filter(|it| it.arrived != NEVER).count();
        let mut twin = PathTwin { unused: arrived < PAIR, ..PathTwin::default() };
        let carried = rate_carried(&data, self.headers);
        let mut guess = if link.rate > 0.0 { link.rate } else { carried };
        let mut delay = shortest(&data, guess, self.headers);
        let mut jitter = link.jitter;
        let bits = |it: &Packet| bits(it, self.headers);
        // A rate that explains all arrivals leaves nothing to chance.
        if let Some(mean) = rates::mean(&data, delay + on_link_bytes(FULL, guess), exact, &bits) {
            let rest = self.rest(&data, mean);
            if jitter == 0 || rest < LEAST_JITTER.max(jitter / 2) {
                (jitter, guess, delay) = (0, mean, shortest(&data, mean, self.headers));
            }
        }
        let leaves = self.leaves(&data, guess, delay, jitter);
        let passage = Passage::of(&data, &leaves, exact);
        twin.rate = if guess > 0.0 { guess } else { other };
        twin.estimates.push(self.rate(&passage, arrived, twin.rate, carried, exact));
        twin.estimates.push(self.rtt(twin.rate, exact));
        twin.estimates.extend(self.jitter(&data, jitter, exact));
        twin.estimates.push(self.queue(&passage, twin.rate, exact));
        twin.estimates.extend(self.loss(&data, &passage));
        if self.flows.iter().any(|flow| flow.backup) {
            let seen = "a side marked its subflow as a backup";
            twin.estimates.push(Estimate::new(&self.table, "backup", "true", Confidence::High, seen));
        }
        twin.changes = self.changes(&data, &passage, delay, exact && jitter == 0);
        twin
    }

    /// Data packets of the path, in the order in which they left.
    fn data(&self) -> Vec<&Packet> {
        let all = self.flows.iter().flat_map(|flow| &flow.packets[self.side]);
        let mut data: Vec<&Packet> = all.filter(|it| it.length > 0).collect();
        data.sort_by_key(|it| it.sent);
        data
    }

    /// True for each end of the data that was captured: where it left, where it arrived.
    fn seen(&self) -> (bool, bool) {
        let own = |flow: &&FlowPicture| if self.side == 0 { flow.seen.own } else { flow.seen.other };
        let far = |flow: &&FlowPicture| if self.side == 0 { flow.seen.other } else { flow.seen.own };
        (self.flows.iter().all(own), self.flows.iter().all(far))
    }

    /// Time at which the link has sent each packet.
    fn leaves(&self, data: &[&Packet], rate: f64, delay: u64, jitter: u64) -> Vec<u64> {
        let mut last = 0;
        let plays = jitter > 0;
        let leave = |it: &&Packet| {
            if plays && it.arrived != NEVER {
                last = it.sent.max(last).saturating_add(on_link(it, rate, self.headers));
                return last;
            }
            if it.arrived == NEVER { NEVER } else { it.arrived.saturating_sub(delay).max(it.sent) }
        };
        data.iter().map(leave).collect()
    }

    /// Delay of nine of ten packets that a link of this rate does not explain, at most \[ns\].
    fn rest(&self, data: &[&Packet], rate: f64) -> u64 {
        let mut last = 0;
        let arrived = data.iter().filter(|it| it.arrived != NEVER);
        let rest = arrived.map(|it| {
            last = it.sent.max(last).saturating_add(on_link(it, rate, self.headers));
            it.arrived.cast_signed() - last.cast_signed()
        });
        let mut rest: Vec<i64> = rest.collect();
        rest.sort_unstable();
        let part = |share: usize| rest.get(rest.len() * share / 100).copied().unwrap_or(0);
        (part(95) - part(5)).unsigned_abs()
    }

    fn estimate(&self, key: &str, value: String, confidence: Confidence, seen: String) -> Estimate {
        Estimate::new(&self.table, key, value, confidence, seen)
    }

    fn rate(&self, passage: &Passage, arrived: usize, bps: f64, carried: f64, exact: bool) -> Estimate {
        let make = |confidence, seen: String| self.estimate("rate", rate(bps), confidence, seen);
        match passage.longest {
            _ if arrived < PAIR => {
                make(Confidence::Low, "it carried no data that tells: taken to be that of the other paths".to_owned())
            }
            0..PAIR => make(Confidence::Low, "never full: the highest rate that it carried".to_owned())
                .within(Some(rate(carried)), None),
            PAIR..TRAIN => make(Confidence::Medium, "packets that waited for the one before".to_owned())
                .within(Some(rate(carried.min(bps))), None),
            _ => {
                let confidence = if exact && passage.packets >= FEW { Confidence::High } else { Confidence::Medium };
                let margin = if exact { 0.03 } else { 0.1 };
                let seen = format!("a queue of up to {} packets went out at it", passage.longest);
                make(confidence, seen).within(Some(rate(bps * (1.0 - margin))), Some(rate(bps * (1.0 + margin))))
            }
        }
    }

    fn rtt(&self, bps: f64, exact: bool) -> Estimate {
        let bare = on_link_bytes(BARE, bps);
        let rtt = self.flows.iter().map(|flow| flow.rtt).filter(|rtt| *rtt > 0).min().unwrap_or(0);
        let one_way = |side: usize| {
            let all = self.flows.iter().flat_map(|flow| &flow.packets[side]).filter(|it| it.arrived != NEVER);
            let headers = |it: &Packet| if it.length > 0 { it.length + self.headers } else { BARE };
            all.map(|it| it.arrived.saturating_sub(it.sent).saturating_sub(on_link_bytes(headers(it), bps))).min()
        };
        match (exact, one_way(0), one_way(1)) {
            (true, Some(there), Some(back)) => {
                let seen = "shortest delays of the two directions, less the time on the link".to_owned();
                self.estimate("rtt", time((there + back) as f64), Confidence::High, seen)
            }
            _ => {
                let seen = "shortest round trip, less the time on the link".to_owned();
                let shortest = time(rtt.saturating_sub(2 * bare) as f64);
                self.estimate("rtt", shortest, Confidence::Medium, seen).within(None, Some(time(rtt as f64)))
            }
        }
    }

    fn jitter(&self, data: &[&Packet], jitter: u64, exact: bool) -> Vec<Estimate> {
        let mut estimates = Vec::new();
        let late = if exact { overtaken(data) } else { Vec::new() };
        let often = late.len() as f64 / data.len().max(1) as f64;
        if jitter > 0 {
            let most = jitter as f64 / SPREAD;
            let seen = "delays that vary where no queue explains it".to_owned();
            estimates.push(self.estimate("jitter", time(most), Confidence::Medium, seen));
            if often > REORDERS {
                let seen = format!("{} packets arrived after later ones", late.len());
                estimates.push(self.estimate("jitter-reorders", "true".to_owned(), Confidence::High, seen));
            }
        } else if often > REORDERS && late.len() >= 5 {
            let (probability, delay) = (share(often), time(late[late.len() / 2] as f64));
            let value = format!("{{ probability = {probability}, delay = {delay} }}");
            let seen = format!("{} packets arrived after later ones", late.len());
            estimates.push(self.estimate("reorder", value, Confidence::Medium, seen));
        }
        estimates
    }

    fn queue(&self, passage: &Passage, bps: f64, exact: bool) -> Estimate {
        let packets = |count: usize| format!("\"{count}p\"");
        if passage.overflowed {
            let seen = format!("{} packets were lost as it was full", passage.lost_when_full);
            let confidence = if exact { Confidence::High } else { Confidence::Medium };
            let (least, most) = (passage.longest * 9 / 10, passage.longest * 11 / 10 + 2);
            return self
                .estimate("queue", packets(passage.longest.max(2)), confidence, seen)
                .within(Some(packets(least.max(1))), Some(packets(most)));
        }
        let rtt = self.flows.iter().map(|flow| flow.rtt).filter(|rtt| *rtt > 0).min().unwrap_or(0);
        let product = (bps * rtt as f64 / 8e9 / 1500.0).ceil() as usize;
        let value = (2 * passage.longest).max(product).max(DEFAULT_QUEUE);
        let seen = format!("never seen full; {} packets waited at most", passage.longest);
        self.estimate("queue", packets(value), Confidence::Low, seen).within(Some(packets(passage.longest)), None)
    }

    /// Loss in the direction of the data, then in the other one.
    fn loss(&self, data: &[&Packet], passage: &Passage) -> Vec<Estimate> {
        let (own, far) = self.seen();
        let [there, back] = if self.down { ["loss", "loss-up"] } else { ["loss-up", "loss"] };
        let (lost, all) = match own {
            true => (passage.lost_with_room, passage.with_room),
            // Where arrivals alone were seen, late repairs tell of losses.
            false => {
                let repaired = self.flows.iter().map(|flow| super::super::repaired(flow, self.side).1);
                (repaired.sum(), data.len() as u64)
            }
        };
        let chance = lost as f64 / all.max(1) as f64;
        let seen = format!("{lost} of {all} packets that found room in the queue were lost");
        let confidence = match (all >= 10 * FEW, own) {
            (true, true) => Confidence::High,
            (true, false) => Confidence::Medium,
            (false, _) => Confidence::Low,
        };
        let root = 2.0 * (lost as f64).sqrt();
        let part = |count: f64| Some(share(count.max(0.0) / all.max(1) as f64));
        let value = match passage.run() {
            run if own && far && run >= BURSTS && lost >= 8 => {
                let again = 1.0 / run;
                let begins = share(chance * again / (1.0 - chance).max(0.01));
                format!(
                    "{{ model = \"gilbert-elliott\", p-good-bad = {begins}, p-bad-good = {}, loss-good = \"0%\", \
                     loss-bad = \"100%\" }}",
                    share(again)
                )
            }
            _ => share(chance),
        };
        let first = self
            .estimate(there, value, confidence, seen)
            .within(part(lost as f64 - root), part(lost as f64 + root + 3.0));
        let others: Vec<&Packet> = self.flows.iter().flat_map(|flow| &flow.packets[1 - self.side]).collect();
        let latest = others.iter().filter(|it| it.arrived != NEVER).map(|it| it.sent).max().unwrap_or(0);
        let gone = others.iter().filter(|it| it.arrived == NEVER && it.sent < latest).count();
        let second = match own && far {
            true => {
                let seen = format!("{gone} of {} packets back were lost", others.len());
                self.estimate(back, share(gone as f64 / others.len().max(1) as f64), confidence, seen)
            }
            false => {
                let seen = "not told: lost acknowledgments do not show at one end".to_owned();
                self.estimate(back, share(0.0), Confidence::Low, seen)
            }
        };
        vec![first, second]
    }

    /// Outages, and rates that change.
    fn changes(&self, data: &[&Packet], passage: &Passage, delay: u64, exact: bool) -> Vec<Estimate> {
        let mut changes: Vec<(u64, &str, String, String)> = Vec::new();
        for (from, to) in self.traffic.down.iter().copied().filter(|(from, to)| to - from >= LEAST_OUTAGE) {
            let seen = "from here nothing arrived that was sent on it".to_owned();
            changes.push((from.saturating_sub(1_000_000), "state", text("blackhole"), seen));
            if to != NEVER {
                changes.push((to, "state", text("restore"), "from here packets arrived again".to_owned()));
            }
        }
        if exact && passage.longest >= TRAIN {
            let rtt = self.flows.iter().map(|flow| flow.rtt).max().unwrap_or(0);
            let bits = |it: &Packet| bits(it, self.headers);
            let steps = rates::steps(data, delay, (2 * rtt).max(SHORTEST_WINDOW), &bits);
            // The packets left the link a delay before they arrived.
            let at = |step: &rates::Step| step.at.saturating_sub(delay);
            let seen = "queued packets went out at it".to_owned();
            changes.extend(steps.iter().map(|step| (at(step), "rate", rate(step.rate), seen.clone())));
        }
        // A change after the end of the data changes nothing, and its time may be that of a clock that was set.
        changes.retain(|(at, ..)| at.saturating_sub(self.begin) <= self.time.min(LONGEST));
        changes.sort_by_key(|(at, ..)| *at);
        let one = |(at, key, value, seen): (u64, &str, String, String)| {
            let confidence = Confidence::Medium;
            let at = time(at.saturating_sub(self.begin) as f64);
            [
                Estimate::new("change", "at", at, confidence, seen.clone()),
                Estimate::new("change", "path", text(&self.name), confidence, ""),
                Estimate::new("change", key, value, confidence, ""),
            ]
        };
        changes.into_iter().flat_map(one).collect()
    }
}

/// Part of the largest jitter that nine of ten packets stay below.
const SPREAD: f64 = 0.9;
/// Share of packets that arrive after later ones, above which a path reorders.
const REORDERS: f64 = 0.002;
/// Time of a change, at most \[ns\].
const LONGEST: u64 = 500_000_000_000_000;
/// Losses in a row on average, from which on they come in bursts.
const BURSTS: f64 = 1.5;
/// Windows in which a rate is measured are at least this long \[ns\].
const SHORTEST_WINDOW: u64 = 100_000_000;

/// Time that so many bytes take \[ns\].
fn on_link_bytes(bytes: i64, bps: f64) -> u64 {
    link::time((bytes * 8) as f64, bps)
}

/// Bits of a data packet on the wire.
fn bits(it: &Packet, headers: i64) -> f64 {
    ((it.length + headers) * 8) as f64
}

fn on_link(it: &Packet, bps: f64, headers: i64) -> u64 {
    on_link_bytes(it.length + headers, bps)
}

/// The shortest delay of any packet, without its time on the link \[ns\].
fn shortest(data: &[&Packet], bps: f64, headers: i64) -> u64 {
    let arrived = data.iter().filter(|it| it.arrived != NEVER);
    let alone = |it: &&Packet| it.arrived.saturating_sub(it.sent).saturating_sub(on_link(it, bps, headers));
    arrived.map(alone).min().unwrap_or(0)
}

/// The highest rate at which packets arrived for a while \[bit/s\].
fn rate_carried(data: &[&Packet], headers: i64) -> f64 {
    let mut arrived: Vec<(u64, f64)> =
        data.iter().filter(|it| it.arrived != NEVER).map(|it| (it.arrived, bits(it, headers))).collect();
    arrived.sort_by_key(|(at, _)| *at);
    let (mut first, mut bits, mut most) = (0, 0.0, 0.0_f64);
    for (at, more) in &arrived {
        bits += more;
        while at - arrived[first].0 > WHILE {
            bits -= arrived[first].1;
            first += 1;
        }
        // The first of them was under way before.
        most = most.max((bits - arrived[first].1) * 1e9 / WHILE as f64);
    }
    most
}

/// Time over which a rate is taken \[ns\].
const WHILE: u64 = 100_000_000;

/// Times by which packets arrived after later ones, in order \[ns\].
fn overtaken(data: &[&Packet]) -> Vec<u64> {
    let mut late = Vec::new();
    let mut earliest = NEVER;
    for it in data.iter().rev().filter(|it| it.arrived != NEVER) {
        if it.arrived > earliest {
            late.push(it.arrived - earliest);
        }
        earliest = earliest.min(it.arrived);
    }
    late.sort_unstable();
    late
}
