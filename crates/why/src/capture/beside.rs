//! Traffic that passes the links of a connection beside its own packets, as their spacing tells.
//!
//! Packets that queue right behind each other pass a link at its own rate (packet pairs; Keshav, SIGCOMM 1991). Where
//! they have less in all while the link is busy, others pass between them: those of the other path, if the rates of
//! both are the same and both together have it, or else other traffic. A link that serves in bursts, as Wi-Fi does,
//! looks alike, and the words say so.

use super::answer::{JudgedDirection, PathMeasured};

/// Rate of a link above that of the packets, as a ratio, from which on others take a part of it.
const TAKEN: f64 = 1.4;
/// A ratio above this tells of hosts that hand packets over in batches rather than of a link.
const BATCHES: f64 = 20.0;
/// Difference of rates, as a share, up to which they are the same.
const ALIKE: f64 = 0.15;
/// Median wait in the queue of a link that is full: less may be the time that acknowledgments are held back \[ms\].
const QUEUE: f64 = 2.0;
/// Packets of which their spacing tells something.
const ENOUGH: u64 = 200;

/// Returns in words what else passes links that are full: all of them, or that of one path.
pub(crate) fn beside(direction: &JudgedDirection, path: Option<&String>) -> Option<String> {
    let used: Vec<&PathMeasured> =
        direction.measured.iter().filter(|it| it.packets >= ENOUGH && it.queue_ms >= Some(QUEUE)).collect();
    shared(&used).or_else(|| {
        let mine = used.into_iter().filter(|it| path.is_none_or(|path| it.path == *path));
        let (it, [line, carried]) =
            mine.filter_map(|it| Some((it, taken(it)?))).max_by(|a, b| ratio(a.1).total_cmp(&ratio(b.1)))?;
        Some(format!(
            "{} let them pass at {:.1} Mbit/s each and had {:.1} for them in all; other traffic takes the rest, or the \
             link serves in bursts",
            it.path,
            line / 1e6,
            carried / 1e6
        ))
    })
}

fn ratio([line, carried]: [f64; 2]) -> f64 {
    line / carried
}

/// Rate of a link and that of the packets, if others take a part of it.
fn taken(it: &PathMeasured) -> Option<[f64; 2]> {
    let rates = [it.line_bps?, it.carried_bps?];
    (TAKEN..BATCHES).contains(&ratio(rates)).then_some(rates)
}

/// Two paths whose packets pass one link.
fn shared(used: &[&PathMeasured]) -> Option<String> {
    let [one, other] = used else { return None };
    let ([line, carried], [line_of_other, carried_of_other]) = (both(one)?, both(other)?);
    let alike = |a: f64, b: f64| (a - b).abs() <= ALIKE * a.max(b);
    let sum = carried + carried_of_other;
    // Acknowledgments that tell of two packets at once halve the rate of a pair.
    let is_one_link =
        alike(line, line_of_other) || alike(line, 2.0 * line_of_other) || alike(2.0 * line, line_of_other);
    (is_one_link
        && alike(sum, line.max(line_of_other))
        && carried.max(carried_of_other) * 1.1 < line.max(line_of_other))
    .then(|| {
        format!(
            "{} and {} share one link of {:.1} Mbit/s, which what either carries takes from the other",
            one.path,
            other.path,
            line.max(line_of_other) / 1e6
        )
    })
}

fn both(it: &PathMeasured) -> Option<[f64; 2]> {
    Some([it.line_bps?, it.carried_bps?])
}
