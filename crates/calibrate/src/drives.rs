//! Windows of recorded drives as cases: two paths at one moment, in all worlds.

use crate::suite::{Case, scenario_with};
use anabranch_policy::Catalogue;
use anabranch_recording::{Options, Recording, align, clock_text, table_text, window};
use anabranch_scenario::ScenarioError;
use anabranch_units::{Duration, Seed, input};
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
    let recordings = read(folder)?;
    let pairs = pairs(&recordings, draw.length);
    if pairs.is_empty() {
        let problem = format!("no two recordings in {} cover {} at one time", folder.display(), draw.length);
        return Err(refused(&problem, "accepted: recordings with clocks of one time, or a shorter --length"));
    }
    let mut stream = Seed(draw.seed).stream("drives");
    let mut cases = Vec::new();
    for _ in 0..draw.windows * TRIES {
        if cases.len() == draw.windows * 3 {
            break;
        }
        let pair = &pairs[usize::try_from(stream.below(pairs.len() as u64)).unwrap_or(0)];
        let shorter = if pair.contents[0].length() <= pair.contents[1].length() { 0 } else { 1 };
        let at = window(&pair.contents[shorter], draw.length, &mut stream);
        let held = [0, 1].map(|n| pair.contents[n].cut(&[(at, at + draw.length)]));
        // A path that carries nothing is no path.
        if held.iter().any(|content| content.trace().is_none()) {
            continue;
        }
        for of in [&[0, 1][..], &[0], &[1]] {
            cases.push(case(catalogue, pair, at, (&held, of), draw.length)?);
        }
    }
    Ok(cases)
}

/// Two recordings of one time.
struct Pair {
    names: [String; 2],
    contents: [Recording; 2],
}

/// Reads every file of a folder, in the order of their names.
fn read(folder: &Path) -> Result<Vec<(String, Recording)>, ScenarioError> {
    let help = "accepted: a folder with recordings alone; `anabranch trace FILE` shows what one holds";
    let unreadable = |path: &Path, error: Error| refused(&format!("cannot read {}: {error}", path.display()), help);
    let entries = std::fs::read_dir(folder).map_err(|error| unreadable(folder, error))?;
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| unreadable(folder, error))?.path();
        if path.is_file() {
            paths.push(path);
        }
    }
    paths.sort();
    let mut all = Vec::new();
    for path in paths {
        let text = input::text(&path, input::RECORDED).map_err(|error| unreadable(&path, error))?;
        let content = anabranch_recording::read(&text, &Options::default())
            .map_err(|error| refused(&format!("{}: {error}", path.display()), error.help.as_deref().unwrap_or(help)))?;
        let name: String = path.file_stem().unwrap_or_default().to_string_lossy().chars().map(plain).collect();
        // A recording of delays alone is no path.
        if content.trace().is_some() {
            all.push((name, content));
        }
    }
    Ok(all)
}

/// Names of paths stand in a scenario.
fn plain(c: char) -> char {
    if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' }
}

fn pairs(recordings: &[(String, Recording)], length: Duration) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for (n, (a, one)) in recordings.iter().enumerate() {
        for (b, other) in &recordings[n + 1..] {
            let contents = match (one.has_clock(), other.has_clock()) {
                (true, true) => align(&[one.clone(), other.clone()]),
                (false, false) => Some(vec![one.clone(), other.clone()]),
                _ => None,
            };
            let holds = |content: &Recording| content.stretches.iter().any(|stretch| stretch.length >= length);
            if let Some([one, other]) = contents.and_then(|both| <[Recording; 2]>::try_from(both).ok())
                && a != b
                && holds(&one)
                && holds(&other)
            {
                pairs.push(Pair { names: [a.clone(), b.clone()], contents: [one, other] });
            }
        }
    }
    pairs
}

fn case(
    catalogue: &Arc<Catalogue>,
    pair: &Pair,
    at: Duration,
    (held, of): (&[Recording; 2], &[usize]),
    length: Duration,
) -> Result<Case, ScenarioError> {
    let names: Vec<&str> = of.iter().map(|n| pair.names[*n].as_str()).collect();
    let clock = held[0].stretches.first().and_then(|stretch| stretch.clock).map(clock_text);
    let moment = clock.unwrap_or_else(|| format!("{}s", at.as_secs_f64()));
    let name = format!("{} {moment}", names.join("+"));
    let mut text = String::new();
    for (name, content) in names.iter().zip(of.iter().map(|n| &held[*n])) {
        let delay = if content.delay.is_some() { String::new() } else { format!("delay = \"{DELAY}\"\n") };
        text +=
            &format!("[path.{name}]\ntrace = {{ file = \"{name}\", offset = \"0s\" }}\n{delay}queue = \"{QUEUE}\"\n");
    }
    // What is not over a while after its time has stalled.
    let stop = length + PATIENCE;
    text += &format!("[[workload]]\nkind = \"bulk\"\nduration = \"{length}\"\n[run]\nstop = \"{stop}\"\n");
    let tables = [0, 1].map(|n| (&pair.names[n], table_text(&held[n])));
    let read = |wanted: &str, _: bool| {
        let found = tables.iter().find(|(name, _)| name.as_str() == wanted);
        found.map(|(_, text)| text.clone()).ok_or_else(|| Error::from(ErrorKind::NotFound))
    };
    let scenario = scenario_with(catalogue, &name, &text, &[], &read)?;
    Ok(Case { name, scenario, claim: None })
}

fn refused(problem: &str, help: &str) -> ScenarioError {
    ScenarioError::plain(problem.to_owned(), Some(help.to_owned()))
}

/// One-way delay of a path whose recording has none.
const DELAY: &str = "25ms";
/// Time after the end of a window at which a run is given up.
const PATIENCE: Duration = Duration::from_secs(10);
/// Queue of each path.
const QUEUE: &str = "500p";
/// Draws for each window before one with a dead path counts as none.
const TRIES: usize = 20;

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
