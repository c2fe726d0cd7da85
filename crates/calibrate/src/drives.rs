//! Windows of recorded drives as cases: two paths at one moment, in all worlds.

use crate::suite::{Case, scenario_with};
use anabranch_policy::Catalogue;
use anabranch_recording::{Drives, Window, clock_text, table_text};
use anabranch_scenario::ScenarioError;
use anabranch_units::{Duration, Seed};
use std::io::{Error, ErrorKind};
use std::path::Path;
use std::sync::Arc;

/// Windows to draw.
#[derive(Clone, Copy, Debug)]
pub struct Draw {
    /// Number of windows.
    pub windows: usize,
    /// Length of each.
    pub length: Duration,
    /// Seed of pairs and moments.
    pub seed: u64,
}

/// Draws windows of the recordings in a folder. Each is of two recordings that cover one moment by their clocks, or, of
/// recordings without clocks, one place. A path without a recorded delay has 25 ms, and queues hold 500 packets.
/// Windows in which a path carries nothing at all are drawn anew. Each window has three cases: both paths, and each
/// alone.
///
/// # Errors
///
/// If a file is no recording, or no two have a time in common that holds a window.
pub fn drives(catalogue: &Arc<Catalogue>, folder: &Path, draw: &Draw) -> Result<Vec<Case>, ScenarioError> {
    let drives = Drives::read(folder, draw.length)
        .map_err(|error| ScenarioError::plain(error.to_string(), error.help.clone()))?;
    let mut stream = Seed(draw.seed).stream("drives");
    let mut cases = Vec::new();
    for _ in 0..draw.windows {
        let Some(window) = drives.draw(&mut stream) else { break };
        for of in [&[0, 1][..], &[0], &[1]] {
            cases.push(case(catalogue, &window, of, draw.length)?);
        }
    }
    Ok(cases)
}

fn case(catalogue: &Arc<Catalogue>, window: &Window, of: &[usize], length: Duration) -> Result<Case, ScenarioError> {
    let names: Vec<&str> = of.iter().map(|n| window.names[*n].as_str()).collect();
    let moment = window.clock.map_or_else(|| format!("{}s", window.at.as_secs_f64()), clock_text);
    let name = format!("{} {moment}", names.join("+"));
    let mut text = String::new();
    for (name, content) in names.iter().zip(of.iter().map(|n| &window.contents[*n])) {
        let delay = if content.delay.is_some() { String::new() } else { format!("delay = \"{DELAY}\"\n") };
        text +=
            &format!("[path.{name}]\ntrace = {{ file = \"{name}\", offset = \"0s\" }}\n{delay}queue = \"{QUEUE}\"\n");
    }
    // What is not over a while after its time has stalled.
    let stop = length + PATIENCE;
    text += &format!("[[workload]]\nkind = \"bulk\"\nduration = \"{length}\"\n[run]\nstop = \"{stop}\"\n");
    let tables = [0, 1].map(|n| (&window.names[n], table_text(&window.contents[n])));
    let read = |wanted: &str, _: bool| {
        let found = tables.iter().find(|(name, _)| name.as_str() == wanted);
        found.map(|(_, text)| text.clone()).ok_or_else(|| Error::from(ErrorKind::NotFound))
    };
    let scenario = scenario_with(catalogue, &name, &text, &[], &read)?;
    Ok(Case { name, scenario, claim: None })
}

/// One-way delay of a path whose recording has none.
const DELAY: &str = "25ms";
/// Time after the end of a window at which a run is given up.
const PATIENCE: Duration = Duration::from_secs(10);
/// Queue of each path.
const QUEUE: &str = "500p";

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fmt::Write;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        folder
    }

    fn drive(from: u64, seconds: u64, mbps: u64) -> String {
        let mut text = String::from("time,mbps\n");
        for second in from..from + seconds {
            writeln!(text, "{},{}", 1_900_000_000 + second, mbps + second % 7).unwrap();
        }
        text
    }

    #[test]
    fn windows_are_of_two_recordings_at_one_moment() {
        let catalogue = Arc::new(Catalogue::default());
        let (sky, cell, late) = (drive(0, 300, 80), drive(100, 300, 20), drive(9000, 300, 30));
        let folder = folder(&[("sky.csv", &sky), ("my cell.csv", &cell), ("late.csv", &late)]);
        let draw = Draw { windows: 5, length: Duration::from_secs(20), seed: 3 };
        let cases = drives(&catalogue, folder.path(), &draw).unwrap();
        let names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
        assert_eq!(names.len(), 15);
        for case in &cases {
            let paths = case.scenario.paths();
            assert!(case.name.starts_with(&format!("{} 2030-03-17T17:", paths.join("+"))), "{names:?}");
            assert_eq!(case.scenario.stop(), Duration::from_secs(30));
            assert!(!case.scenario.is_random(), "a window is one stretch");
        }
        let again = drives(&catalogue, folder.path(), &draw).unwrap();
        assert!(cases.iter().zip(&again).all(|(a, b)| a.scenario.digest == b.scenario.digest));
        let other = drives(&catalogue, folder.path(), &Draw { seed: 4, ..draw }).unwrap();
        assert!(cases.iter().zip(&other).any(|(a, b)| a.name != b.name));
    }

    #[test]
    fn what_gives_no_window_is_refused() {
        let catalogue = Arc::new(Catalogue::default());
        let draw = Draw { windows: 1, length: Duration::from_secs(20), seed: 1 };
        let said = |files: &[(&str, &str)]| drives(&catalogue, folder(files).path(), &draw).err().unwrap().to_string();
        let (early, late) = (drive(0, 60, 5), drive(500, 60, 5));
        assert!(said(&[("a.csv", &early), ("b.csv", &late)]).starts_with("no two recordings in"));
        let said = said(&[("a.csv", &early), ("b.csv", "t,mbps\n0,x\n1,5\n")]);
        assert!(said.contains("line 2, column `mbps`: `x` is no number"), "{said}");
        assert!(drives(&catalogue, Path::new("nowhere"), &draw).err().unwrap().to_string().contains("cannot read"));
    }
}
