//! The slowest link of a path, as packets show it: its rate, and when it was busy.
//!
//! With `s` the time at which a packet left, `a` at which it arrived, and `p` the shortest delay of any, a link that
//! only delays by its queue was busy with the packet from `s` to `a - p`. Where delays vary by chance as well (jitter),
//! that would call every late packet a queue. There the link is played through at the lowest rate at which no packet
//! would have arrived before it could.

use super::picture::{NEVER, Packet};

/// IP and TCP headers of a data segment with timestamps and a mapping \[B\].
pub(crate) const HEADERS: i64 = 72;
/// Time by which a packet may be early in the game \[ns\].
const TOLERANCE: u64 = 50_000;
/// Share of packets that may be early: some overtake others.
const EARLY: f64 = 0.002;
/// Correlation of the delays of neighbours above which a queue is their cause.
const QUEUE: f64 = 0.3;

/// Behaviour of a link.
#[derive(Clone, Debug, Default)]
pub(crate) struct Link {
    /// Times in which it sent without a pause, in order: from, to \[ns\].
    pub busy: Vec<(u64, u64)>,
    /// Rate \[bit/s\]; 0 if nothing tells.
    pub rate: f64,
    /// Rate at which packets pass that queued one right behind the other; 0 if nothing tells \[bit/s\].
    pub line: f64,
    /// Rate that the packets had in all while the link was busy \[bit/s\].
    pub carried: f64,
    /// Waits up to this are no queue: where a path takes no longer itself, hosts take as long to think \[ns\].
    least: u64,
    /// Delay that chance adds to nine of ten packets at most; 0 if a queue explains all \[ns\].
    pub jitter: u64,
}

/// A packet that arrived: time at which it left, delay, bits on the wire.
#[derive(Clone, Copy)]
struct Carried {
    sent: u64,
    delay: u64,
    bits: f64,
}

impl Link {
    /// Looks at the packets of one direction of a path, of all flows that share it.
    pub(crate) fn of<'a>(packets: impl Iterator<Item = &'a Packet>) -> Self {
        let mut carried: Vec<Carried> = packets
            .filter(|it| it.length > 0 && it.arrived != NEVER)
            .map(|it| Carried {
                sent: it.sent,
                delay: it.arrived.saturating_sub(it.sent),
                bits: ((it.length + HEADERS) * 8) as f64,
            })
            .collect();
        carried.sort_by_key(|it| it.sent);
        let Some(shortest) = carried.iter().map(|it| it.delay).min() else { return Link::default() };
        let lowest = lowest_rate(&carried, shortest);
        let least = if shortest < TOLERANCE { TOLERANCE } else { 0 };
        let mut link = Link { rate: lowest, least, ..Link::default() };
        let mut last = 0;
        if let Some(jitter) = jitter(&carried, lowest, shortest) {
            link.jitter = jitter;
            for it in &carried {
                last = it.sent.max(last) + time(it.bits, lowest);
                link.sends(it.sent, last);
            }
            return link;
        }
        let rates = pair_rates(&carried, shortest);
        link.rate = median_rate(&rates);
        link.line = line_rate(&rates);
        // The shortest delay has the time on the link in it.
        let alone = |it: &Carried| it.delay.saturating_sub(time(it.bits, link.rate));
        let delay = carried.iter().map(alone).min().unwrap_or(shortest);
        for it in &carried {
            let arrived = it.sent + it.delay;
            last = arrived.saturating_sub(delay).max(it.sent).max(last.min(arrived));
            link.sends(it.sent, last);
        }
        let busy: u64 = link.busy.iter().map(|(from, to)| to - from).sum();
        let bits: f64 = carried.iter().map(|it| it.bits).sum();
        link.carried = if busy > 0 { bits * 1e9 / busy as f64 } else { 0.0 };
        link
    }

    fn sends(&mut self, from: u64, to: u64) {
        match self.busy.last_mut() {
            Some((_, end)) if from <= *end => *end = (*end).max(to),
            _ if to > from + self.least => self.busy.push((from, to)),
            _ => {}
        }
    }
}

/// Time that so many bits take \[ns\].
pub(crate) fn time(bits: f64, rate: f64) -> u64 {
    if rate > 0.0 { (bits * 1e9 / rate) as u64 } else { 0 }
}

/// The lowest rate at which no packet arrives before the link has sent it, but for a few.
fn lowest_rate(carried: &[Carried], shortest: u64) -> f64 {
    let most = (carried.len() as f64 * EARLY) as usize;
    let possible = |rate: f64| {
        let (mut last, mut early) = (0, 0);
        for it in carried {
            let on_link = time(it.bits, rate);
            last = it.sent.max(last) + on_link;
            let beyond = shortest.saturating_sub(on_link);
            if last + beyond > it.sent + it.delay + TOLERANCE {
                early += 1;
                // What was early does not hold up the others.
                last = (it.sent + it.delay).saturating_sub(beyond).max(it.sent);
            }
        }
        early <= most
    };
    let (mut low, mut high) = (1e4_f64, 1e11_f64);
    for _ in 0..24 {
        let middle = (low * high).sqrt();
        if possible(middle) { high = middle } else { low = middle }
    }
    high
}

/// Returns the delay that nine of ten packets stay below where delays vary and no queue explains it: what is left of
/// them when the link is played through at this rate is not like that of the packet before.
fn jitter(carried: &[Carried], rate: f64, shortest: u64) -> Option<u64> {
    let mut rest: Vec<(u64, f64)> = Vec::new();
    let mut last = 0;
    for it in carried {
        let begins = it.sent >= last;
        last = it.sent.max(last) + time(it.bits, rate);
        if begins {
            rest.push((it.sent, it.delay.saturating_sub(shortest) as f64));
        }
    }
    if rest.len() < 8 {
        return None;
    }
    let mut sorted: Vec<f64> = rest.iter().map(|(_, rest)| *rest).collect();
    sorted.sort_by(f64::total_cmp);
    let spread = sorted[sorted.len() * 9 / 10];
    // Chance adds less than the way itself takes; a queue may add many times that.
    if spread < 2.0 * TOLERANCE as f64 || spread > shortest as f64 {
        return None;
    }
    // Packets do not overtake each other on most links, so one that is late holds up those right behind it: neighbours
    // are taken as far apart as delays vary.
    let mut pairs: Vec<(f64, f64)> = Vec::new();
    let mut next = 0;
    for (index, (sent, delay)) in rest.iter().enumerate() {
        next = next.max(index + 1);
        while rest.get(next).is_some_and(|it| ((it.0 - sent) as f64) < spread) {
            next += 1;
        }
        match rest.get(next) {
            Some(it) if ((it.0 - sent) as f64) < 4.0 * spread => pairs.push((*delay, it.1)),
            _ => {}
        }
    }
    let by_chance = match correlation(&pairs) {
        Some(correlation) => correlation < QUEUE,
        // Packets far apart that are late: half of them late tells of chance rather than of a queue.
        None => sorted[sorted.len() / 2] > spread / 4.0,
    };
    by_chance.then_some(spread as u64)
}

fn correlation(pairs: &[(f64, f64)]) -> Option<f64> {
    (pairs.len() >= 8).then_some(())?;
    let n = pairs.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / n;
    let (a, b) = (mean(|it| it.0), mean(|it| it.1));
    let (mut both, mut first, mut second) = (0.0, 0.0, 0.0);
    for (x, y) in pairs {
        both += (x - a) * (y - b);
        first += (x - a) * (x - a);
        second += (y - b) * (y - b);
    }
    (first > 0.0 && second > 0.0).then(|| both / (first * second).sqrt())
}

/// Rates of pairs, in order, each with its time: bits over the time between arrivals, where the later packet waited for
/// the earlier one.
fn pair_rates(carried: &[Carried], shortest: u64) -> Vec<(f64, u64)> {
    let mut pairs: Vec<(f64, u64)> = Vec::new();
    for pair in carried.windows(2) {
        let (before, it) = (pair[0], pair[1]);
        let (first, second) = (before.sent + before.delay, it.sent + it.delay);
        if it.sent <= first.saturating_sub(shortest) && second > first {
            pairs.push((it.bits * 1e9 / (second - first) as f64, second - first));
        }
    }
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
    pairs
}

/// The rate that a tenth of the pairs exceed; 0 if they are few.
fn line_rate(pairs: &[(f64, u64)]) -> f64 {
    if pairs.len() < MANY_PAIRS { 0.0 } else { pairs[pairs.len() * 9 / 10].0 }
}

/// Pairs of packets that tell a rate.
const MANY_PAIRS: usize = 50;

/// The median of the rates of pairs by their time; 0 if there are none.
fn median_rate(pairs: &[(f64, u64)]) -> f64 {
    let half = pairs.iter().map(|(_, apart)| apart).sum::<u64>() / 2;
    let mut sum = 0;
    for (rate, apart) in pairs {
        sum += apart;
        if sum >= half {
            return *rate;
        }
    }
    0.0
}
