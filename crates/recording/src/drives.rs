//! Windows of the recordings in a folder, two at a time.

use crate::error::RecordingError;
use crate::recording::Recording;
use crate::{Options, align, window};
use anabranch_units::{Duration, Stream, input};
use std::io::Error;
use std::path::Path;

/// The recordings of a folder, in pairs that can be two paths of one host.
#[derive(Clone, Debug)]
pub struct Drives {
    recordings: Vec<(String, Recording)>,
    pairs: Vec<[usize; 2]>,
    length: Duration,
}

/// A stretch of two recordings that begins at one moment.
#[derive(Clone, Debug)]
pub struct Window {
    /// Names of the files without their ends, with `-` for what cannot stand in the name of a path.
    pub names: [String; 2],
    /// The stretch of each.
    pub contents: [Recording; 2],
    /// Time from the beginning of the part that both cover to that of the window, without pauses.
    pub at: Duration,
    /// Clock time at which the window begins, in nanoseconds since 1970, if the recordings have clocks.
    pub clock: Option<i64>,
}

impl Drives {
    /// Reads every file of a folder, in the order of their names, and pairs those that cover `length` of one moment by
    /// their clocks, or, of recordings without clocks, all. A recording of delays alone is no path.
    ///
    /// # Errors
    ///
    /// If a file is no recording, if two have one name, or if no two have a time in common that holds a window.
    pub fn read(folder: &Path, length: Duration) -> Result<Drives, RecordingError> {
        let recordings = all(folder)?;
        let numbers = 0..recordings.len();
        let all = numbers.clone().flat_map(|a| (a + 1..recordings.len()).map(move |b| [a, b]));
        let pairs: Vec<[usize; 2]> = all.filter(|pair| aligned(&recordings, *pair, length).is_some()).collect();
        if pairs.is_empty() {
            let problem = format!("no two recordings in {} cover {length} at one time", folder.display());
            return Err(RecordingError::plain(problem).help(
                "accepted: two recordings or more with clocks of one time, or without clocks, that last so long",
            ));
        }
        Ok(Drives { recordings, pairs, length })
    }

    /// Draws a window: first its pair, then its beginning. A window in which a path carries nothing at all is drawn
    /// anew, up to 20 times; `None` if there is none even so.
    pub fn draw(&self, stream: &mut Stream) -> Option<Window> {
        (0..TRIES).find_map(|_| {
            let pair = self.pairs[usize::try_from(stream.below(self.pairs.len() as u64)).unwrap_or(0)];
            let whole = aligned(&self.recordings, pair, self.length)?;
            let shorter = if whole[0].length() <= whole[1].length() { 0 } else { 1 };
            let at = window(&whole[shorter], self.length, stream);
            let contents = [0, 1].map(|n| whole[n].cut(&[(at, at + self.length)]));
            let clock = contents[0].stretches.first().and_then(|stretch| stretch.clock);
            let carries = contents.iter().all(|content| content.trace().is_some());
            carries.then(|| Window { names: pair.map(|n| self.recordings[n].0.clone()), contents, at, clock })
        })
    }
}

fn all(folder: &Path) -> Result<Vec<(String, Recording)>, RecordingError> {
    let unreadable = |path: &Path, error: Error| {
        RecordingError::plain(format!("cannot read {}: {error}", path.display())).help(HELP)
    };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|error| unreadable(folder, error))? {
        let path = entry.map_err(|error| unreadable(folder, error))?.path();
        if path.is_file() {
            paths.push(path);
        }
    }
    paths.sort();
    let mut all: Vec<(String, Recording)> = Vec::new();
    for path in paths {
        let text = input::text(&path, input::RECORDED).map_err(|error| unreadable(&path, error))?;
        let content = crate::read(&text, &Options::default()).map_err(|error| {
            let problem = format!("{}: {error}", path.display());
            RecordingError::plain(problem).help(error.help.unwrap_or_else(|| HELP.to_owned()))
        })?;
        let name: String = path.file_stem().unwrap_or_default().to_string_lossy().chars().map(plain).collect();
        if all.iter().any(|(known, _)| *known == name) {
            let problem = format!("two files in {} are called `{name}` without their ends", folder.display());
            return Err(RecordingError::plain(problem).help("accepted: names of which letters, digits, - and _ differ"));
        }
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

/// Two recordings, cut to the times that both cover if they have clocks; `None` if no window of this length is in both.
fn aligned(recordings: &[(String, Recording)], [a, b]: [usize; 2], length: Duration) -> Option<[Recording; 2]> {
    let both = [&recordings[a].1, &recordings[b].1];
    let contents = match both.map(Recording::has_clock) {
        [true, true] => <[Recording; 2]>::try_from(align(&both.map(Recording::clone))?).ok()?,
        [false, false] => both.map(Recording::clone),
        _ => return None,
    };
    let holds = |content: &Recording| content.stretches.iter().any(|stretch| stretch.length >= length);
    contents.iter().all(holds).then_some(contents)
}

const HELP: &str = "accepted: a folder with recordings alone; `anabranch trace FILE` shows what one holds";
/// Draws of a window before a dead path counts as none.
const TRIES: usize = 20;
