//! Family of recorded drives: conditions whose two paths are windows of the user's own recordings.
//!
//! The distribution is defined in `docs/leaderboard.md`. Work and the rest are drawn as for drives.

use super::condition::{Condition, DrawnPath, Family, NAMES, round};
use super::drive::Network;
use super::point::Draw;
use anabranch_recording::{Drives, Recording, table_text};
use anabranch_units::{Duration, Seed};
use std::sync::Arc;

/// Window of a recording that a path follows.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// Name of the recording.
    pub name: String,
    /// The window as a table.
    pub text: String,
    /// True if it holds delays.
    pub has_delay: bool,
}

/// Length of a window; what lasts longer meets it again from its beginning.
pub const WINDOW: Duration = Duration::from_secs(60);

impl Condition {
    /// Returns condition `number` of `seed` over windows of these recordings, which are [`WINDOW`] long. `None` if in
    /// every window that was tried a path carries nothing.
    pub fn recorded(drives: &Drives, seed: u64, number: u64) -> Option<Condition> {
        let stream = |name: &str| Seed(seed).stream(&format!("recorded/{number}/{name}"));
        let draw = |name: &str| Draw::of(stream(name).unit());
        let window = drives.draw(&mut stream("window"))?;
        let parts = NAMES.into_iter().zip(window.names.iter().zip(&window.contents));
        let paths = parts.map(|(path, (name, content))| follow(path, name, content, &draw)).collect();
        Some(Condition::over(paths, (Family::Recorded, seed, number), &draw))
    }
}

/// The path called `path` over a window of the recording `name`.
fn follow(path: &'static str, name: &str, content: &Recording, draw: &dyn Fn(&str) -> Draw) -> DrawnPath {
    let of = |what: &str| draw(&format!("path/{path}/{what}"));
    let rate = content.trace().map_or(0.0, |trace| trace.mean_rate().as_bps() as f64 / 1e6);
    let recorded = Recorded { name: name.to_owned(), text: table_text(content), has_delay: content.delay.is_some() };
    DrawnPath {
        name: path,
        rate: round(rate.max(0.001), 3),
        up: round((rate * of("up").uniform(0.05, 0.5)).max(0.25), 3),
        rtt: round(of("rtt").log_uniform(24.0, 100.0), 2),
        jitter: None,
        queue: of("queue").any(&[50, 100, 200, 500, 1000]),
        loss: 0.0,
        burst: None,
        network: Some(Network::Recorded(Arc::new(recorded))),
    }
}
