//! The memory of paths as a text that a driver can keep on disk.
//!
//! ```text
//! anabranch paths 1
//! 192.0.2.7 203.0.113.1 rtt_us=41250 rtt_age_ms=5000 rate_bps=8000000 loss=0.01 capable_ms=3595000
//! ```
//!
//! One line per path: our address, the peer's, and facts in any order. `…_ms` is the time for which a fact will still
//! be kept, `rtt_age_ms` the age of the measurements. A time is counted from the moment of writing: a later reader adds
//! the time since then ([`PathMemory::aged`]). Facts that are too old by then are left out.

use super::{Hole, KEPT, Measured, Memory, Record};
use anabranch_units::{Duration, Instant, Rate};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// Facts about paths, apart from the endpoint that found them.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PathMemory {
    /// Records, in the order of their addresses.
    pub paths: Vec<PathRecord>,
}

/// Facts about one path.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PathRecord {
    /// Our address.
    pub local: IpAddr,
    /// The peer's.
    pub remote: IpAddr,
    /// The shortest round trip.
    pub rtt: Option<Duration>,
    /// Age of the round trip, the rate and the loss.
    pub rtt_age: Duration,
    /// Rate of the path in the busier direction.
    pub rate: Option<Rate>,
    /// Share of our segments that was lost.
    pub loss: f64,
    /// A SYN/ACK came without MP_CAPABLE; remembered for so long.
    pub stripped: Option<Duration>,
    /// Time for which a SYN/ACK with MP_CAPABLE is still remembered.
    pub capable: Option<Duration>,
    /// Time for which the path is still avoided because it did not answer.
    pub silent: Option<Duration>,
    /// SYNs with MP_CAPABLE vanish; none is sent for so long, which may be over. The second is the latest pause.
    pub hole: Option<(Duration, Duration)>,
}

/// A text that is no memory of paths.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// The first line is another.
    #[error("the first line must be `{HEAD}`")]
    Head,
    /// A line does not begin with two addresses.
    #[error("line {0}: it must begin with our address and the peer's, of one family")]
    Addresses(usize),
    /// Something on a line is no fact.
    #[error("line {line}: `{word}` is no fact; accepted: {}", FACTS.join(", "))]
    Fact {
        /// The number of the line, from 1.
        line: usize,
        /// Word that was found.
        word: String,
    },
    /// A fact needs another beside it.
    #[error("line {line}: `{fact}` is missing beside `{beside}`")]
    Missing {
        /// The number of the line, from 1.
        line: usize,
        /// Fact that is missing.
        fact: &'static str,
        /// Fact that needs it.
        beside: &'static str,
    },
}

const HEAD: &str = "anabranch paths 1";
const FACTS: [&str; 9] = [
    "rtt_us=N",
    "rtt_age_ms=N",
    "rate_bps=N",
    "loss=0..1",
    "stripped_ms=N",
    "capable_ms=N",
    "silent_ms=N",
    "hole_ms=N",
    "hole_pause_ms=N",
];
/// Longer times than this are not believed: a year.
const MAX_MS: u64 = 365 * 24 * 3600 * 1000;

impl PathRecord {
    fn new(local: IpAddr, remote: IpAddr) -> Self {
        PathRecord {
            local,
            remote,
            rtt: None,
            rtt_age: Duration::ZERO,
            rate: None,
            loss: 0.0,
            stripped: None,
            capable: None,
            silent: None,
            hole: None,
        }
    }

    fn fact(&mut self, word: &str) -> Option<()> {
        let (name, value) = word.split_once('=')?;
        if name == "loss" {
            self.loss = value.parse().ok().filter(|loss| (0.0..=1.0).contains(loss))?;
            return Some(());
        }
        let number: u64 = value.parse().ok()?;
        if name == "rate_bps" {
            self.rate = Some(Rate::from_bps(number));
            return Some(());
        }
        let in_range = |most: u64| Some(number).filter(|number| *number <= most);
        if name == "rtt_us" {
            self.rtt = Some(Duration::from_micros(in_range(MAX_MS)?));
            return Some(());
        }
        let time = Duration::from_millis(in_range(MAX_MS)?);
        match name {
            "rtt_age_ms" => self.rtt_age = time,
            "stripped_ms" => self.stripped = Some(time),
            "capable_ms" => self.capable = Some(time),
            "silent_ms" => self.silent = Some(time),
            "hole_ms" => self.hole = Some((time, self.hole.map_or(Duration::ZERO, |(_, pause)| pause))),
            "hole_pause_ms" => self.hole = Some((self.hole.map_or(Duration::ZERO, |(left, _)| left), time)),
            _ => return None,
        }
        Some(())
    }

    fn aged(mut self, by: Duration) -> Self {
        if self.rtt.is_some() {
            self.rtt_age += by;
        }
        for fact in [&mut self.stripped, &mut self.capable, &mut self.silent] {
            *fact = fact.map(|left| left.saturating_sub(by));
        }
        self.hole = self.hole.map(|(left, pause)| (left.saturating_sub(by), pause));
        self
    }
}

impl PathMemory {
    /// The same after so much time.
    #[must_use]
    pub fn aged(self, by: Duration) -> Self {
        PathMemory { paths: self.paths.into_iter().map(|record| record.aged(by)).collect() }
    }

    /// Adds what `other` has of further paths. Facts that are too old are left out, as are paths beyond those that an
    /// endpoint would remember.
    #[must_use]
    pub fn over(&self, other: &PathMemory) -> Self {
        let mut memory = Memory::default();
        memory.read(Instant::ZERO, other);
        memory.read(Instant::ZERO, self);
        memory.write(Instant::ZERO)
    }
}

impl fmt::Display for PathMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{HEAD}")?;
        for record in &self.paths {
            write!(f, "{} {}", record.local, record.remote)?;
            if let Some(rtt) = record.rtt {
                write!(f, " rtt_us={} rtt_age_ms={}", rtt.as_micros(), record.rtt_age.as_millis())?;
                if let Some(rate) = record.rate {
                    write!(f, " rate_bps={}", rate.as_bps())?;
                }
                if record.loss > 0.0 {
                    write!(f, " loss={}", record.loss)?;
                }
            }
            for (name, left) in [("stripped", record.stripped), ("capable", record.capable), ("silent", record.silent)]
            {
                if let Some(left) = left {
                    write!(f, " {name}_ms={}", left.as_millis())?;
                }
            }
            if let Some((left, pause)) = record.hole {
                write!(f, " hole_ms={} hole_pause_ms={}", left.as_millis(), pause.as_millis())?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

impl FromStr for PathMemory {
    type Err = MemoryError;

    fn from_str(text: &str) -> Result<Self, MemoryError> {
        let mut lines = text.lines().zip(1..);
        if lines.next().is_none_or(|(head, _)| head.trim_end() != HEAD) {
            return Err(MemoryError::Head);
        }
        let mut paths = Vec::new();
        for (text, line) in lines {
            let mut words = text.split_whitespace();
            let Some(first) = words.next() else { continue };
            let local: Option<IpAddr> = first.parse().ok();
            let remote: Option<IpAddr> = words.next().and_then(|word| word.parse().ok());
            let same_family = |(local, remote): &(IpAddr, IpAddr)| local.is_ipv4() == remote.is_ipv4();
            let (local, remote) = local.zip(remote).filter(same_family).ok_or(MemoryError::Addresses(line))?;
            let mut record = PathRecord::new(local, remote);
            for word in words {
                record.fact(word).ok_or_else(|| MemoryError::Fact { line, word: word.to_owned() })?;
            }
            if record.rtt.is_none() && (record.rate.is_some() || record.loss > 0.0 || !record.rtt_age.is_zero()) {
                return Err(MemoryError::Missing { line, fact: "rtt_us", beside: "rtt_age_ms, rate_bps or loss" });
            }
            if record.hole.is_some_and(|(_, pause)| pause.is_zero()) {
                return Err(MemoryError::Missing { line, fact: "hole_pause_ms", beside: "hole_ms" });
            }
            paths.push(record);
        }
        Ok(PathMemory { paths })
    }
}

impl Memory {
    /// All that is known and not too old.
    pub(crate) fn write(&self, now: Instant) -> PathMemory {
        let left = |until: Option<Instant>| until.filter(|until| now < *until).map(|until| until.since(now));
        let record = |(path, record): (&super::Path, &Record)| {
            let measured = record.measured.filter(|measured| now < measured.until);
            PathRecord {
                rtt: measured.map(|measured| measured.rtt),
                rtt_age: measured.map_or(Duration::ZERO, |m| KEPT.saturating_sub(m.until.since(now))),
                rate: measured.and_then(|measured| measured.rate),
                loss: measured.map_or(0.0, |measured| measured.loss),
                stripped: left(record.stripped),
                capable: left(record.capable),
                silent: left(record.silent),
                hole: record.hole.map(|hole| (left(Some(hole.until)).unwrap_or_default(), hole.pause)),
                ..PathRecord::new(path.0, path.1)
            }
        };
        let said = |record: &PathRecord| *record != PathRecord::new(record.local, record.remote);
        PathMemory { paths: self.paths.iter().map(record).filter(said).collect() }
    }

    /// Takes in what is not too old, in the place of what was known of the same paths.
    pub(crate) fn read(&mut self, now: Instant, memory: &PathMemory) {
        let until = |left: Option<Duration>| left.filter(|left| !left.is_zero()).map(|left| now + left.min(KEPT));
        for given in &memory.paths {
            let fresh = given.rtt.filter(|_| given.rtt_age < KEPT);
            let record = Record {
                measured: fresh.map(|rtt| Measured {
                    rtt,
                    rate: given.rate,
                    loss: given.loss,
                    until: now + KEPT.saturating_sub(given.rtt_age),
                }),
                stripped: until(given.stripped),
                capable: until(given.capable),
                silent: until(given.silent),
                hole: given.hole.map(|(left, pause)| Hole { until: now + left.min(pause), pause }),
            };
            if record != Record::default() {
                *self.entry((given.local, given.remote)) = record;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use anabranch_wire::FlowKey;
    use proptest::prelude::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn flow(path: u8) -> FlowKey {
        FlowKey::new(([192, 0, 2, path], 4000).into(), ([203, 0, 113, 1], 80).into())
    }

    const TEXT: &str = "\
anabranch paths 1
192.0.2.7 203.0.113.1 rtt_us=41250 rtt_age_ms=5000 rate_bps=8000000 loss=0.01 capable_ms=3590000
192.0.2.8 203.0.113.1 stripped_ms=3599000 hole_ms=59000 hole_pause_ms=60000
192.0.2.9 203.0.113.1 silent_ms=59500
";

    #[test]
    fn a_memory_is_written_and_read() {
        let mut memory = Memory::default();
        memory.on_offer_taken(at(0), &flow(7));
        memory.on_measured(at(5), &flow(7), Duration::from_micros(41_250), Some(Rate::from_mbps(8)), 0.01);
        memory.on_offer_stripped(at(9), &flow(8));
        memory.on_offer_lost(at(9), &flow(8), Duration::from_secs(3600));
        memory.on_silence(at(9) + Duration::from_millis(500), &flow(9));
        let written = memory.write(at(10));
        assert_eq!(written.to_string(), TEXT);
        assert_eq!(TEXT.parse(), Ok(written.clone()));
        let mut other = Memory::default();
        // A clock that begins anew.
        other.read(at(0), &written);
        assert_eq!(other.write(at(0)), written);
        // 59 s later the silence is forgiven, and the measurements have gone on ageing.
        let later = other.write(at(60));
        assert_eq!(later, PathMemory { paths: written.clone().aged(Duration::from_secs(60)).paths[..2].to_vec() });
        let mut late = Memory::default();
        late.read(at(0), &written.aged(Duration::from_secs(4000)));
        assert_eq!(
            late.write(at(0)).to_string(),
            "anabranch paths 1\n192.0.2.8 203.0.113.1 hole_ms=0 hole_pause_ms=60000\n"
        );
    }

    #[test]
    fn bad_texts_are_refused() {
        let said = |text: &str| text.parse::<PathMemory>().unwrap_err().to_string();
        assert_eq!(said(""), "the first line must be `anabranch paths 1`");
        assert_eq!(said("anabranch paths 2\n"), "the first line must be `anabranch paths 1`");
        let line = |text: &str| said(&format!("{HEAD}\n\n{text}\n"));
        let addresses = "line 3: it must begin with our address and the peer's, of one family";
        assert_eq!(line("10.0.0.1"), addresses);
        assert_eq!(line("10.0.0.1 fd00::1"), addresses);
        assert_eq!(line("wlan 10.0.0.1"), addresses);
        for word in
            ["rtt_us", "rtt_us=-1", "rtt_us=1e3", "colour=1", "loss=1.5", "loss=NaN", "silent_ms=99999999999999"]
        {
            assert!(line(&format!("10.0.0.1 10.0.0.2 {word}")).starts_with(&format!("line 3: `{word}` is no fact")));
        }
        assert!(line("10.0.0.1 10.0.0.2 loss=0.5").contains("`rtt_us` is missing"));
        assert!(line("10.0.0.1 10.0.0.2 hole_ms=5").contains("`hole_pause_ms` is missing"));
    }

    proptest! {
        /// No text panics, and what is accepted is written as it was understood.
        #[test]
        fn any_text_is_read_or_refused(
            addresses in "((10.0.0.[12]|fd00::1) ){0,3}",
            facts in "((rtt_us|rtt_age_ms|rate_bps|loss|hole_ms|hole_pause_ms|x)=[0-9.]{1,20} ){0,4}",
        ) {
            let whole = format!("{HEAD}\n{addresses}{facts}");
            if let Ok(memory) = whole.parse::<PathMemory>() {
                prop_assert_eq!(memory.to_string().parse(), Ok(memory.clone()));
                let mut kept = Memory::default();
                kept.read(at(1), &memory.aged(Duration::from_secs(1)));
                kept.write(at(2));
            }
        }
    }
}
