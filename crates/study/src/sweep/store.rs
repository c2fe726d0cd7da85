//! Directory of results: a manifest, and parts that each hold the rows of a range of conditions.
//!
//! `manifest.json` describes the campaign. A part is a Parquet file, `CAMPAIGN-FIRST-END.parquet`; it is written under
//! another name, synced and renamed, so that a file of that name is complete. There are no locks: workers may run
//! beside each other, and if two have run the same conditions, one of the two parts counts.

use super::axis::AxisInfo;
use super::row::{Layout, Row, RowDigest};
use anabranch_lab::columnar::Reader;
use anabranch_lab::format::CAMPAIGN as CAMPAIGN_FORMAT;
use anabranch_lab::statistic::{Cell, Kind};
use anabranch_units::input;
use parquet::errors::ParquetError;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::ops::Range;
#[cfg(unix)]
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Directory of results.
#[derive(Debug)]
pub struct Store {
    directory: PathBuf,
}

/// Description of a campaign, beside its results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Manifest {
    /// Name of this format.
    pub format: String,
    /// Version of this format.
    pub format_version: u32,
    /// Version of Anabranch.
    pub version: String,
    /// Build of the program that makes the runs.
    pub build: String,
    /// Kind of campaign: `sweep`, `rank` or `search`.
    pub kind: String,
    /// Digest of all that affects the rows.
    pub digest: String,
    /// Purpose in one line.
    pub about: Option<String>,
    /// Command that began it.
    pub command: String,
    /// Number of conditions.
    pub conditions: u64,
    /// Settings that vary.
    pub axes: Vec<AxisInfo>,
    /// Systems that are compared.
    pub systems: Vec<SystemInfo>,
    /// True if plain TCP runs on each path as well.
    pub baselines: bool,
    /// Metrics that are columns.
    pub metrics: Vec<String>,
    /// Text of the sweep file.
    pub text: String,
}

/// Description of a system in a manifest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SystemInfo {
    /// Name of the system.
    pub name: String,
    /// The policy with its parameters, or its settings.
    pub about: String,
}

/// Part that is complete.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Part {
    /// First of its conditions.
    pub first: u64,
    /// End of its conditions, exclusive.
    pub end: u64,
    /// Path of the file.
    pub path: PathBuf,
}

/// Contents of a directory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parts {
    /// Parts of one campaign, in the order of conditions.
    pub whole: Vec<Part>,
    /// Other files, each with the reason why it does not count.
    pub set_aside: Vec<(PathBuf, String)>,
}

/// Error: a directory cannot be used.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum StoreError {
    /// A file cannot be read or written.
    #[error("cannot use {}: {error}", path.display())]
    File {
        /// Path of the file or directory.
        path: PathBuf,
        /// Cause.
        error: io::Error,
    },
    /// The directory holds results of another campaign.
    #[error("{} holds other results: {differs}", path.display())]
    #[diagnostic(help("name another directory with --out, or run what made it: {command}"))]
    Foreign {
        /// Path of the directory.
        path: PathBuf,
        /// Fields that differ, in words.
        differs: String,
        /// Command that made it.
        command: String,
    },
    /// The directory holds no results.
    #[error("{} is no directory of results: {problem}", path.display())]
    #[diagnostic(help("accepted: a directory that `anabranch sweep --out` made, with its manifest.json"))]
    NoResults {
        /// Path of the directory.
        path: PathBuf,
        /// The problem.
        problem: String,
    },
    /// Bytes from another process are not the expected part.
    #[error("the results {name} of a worker are refused: {problem}")]
    #[diagnostic(help("nothing of them is kept; run the sweep again, with the same build on every machine"))]
    Received {
        /// Name of the file for the part.
        name: String,
        /// The problem.
        problem: String,
    },
    /// A part cannot be read.
    #[error("{} cannot be read: {problem}", path.display())]
    #[diagnostic(help("remove it and run the sweep again: only its conditions are run"))]
    Part {
        /// Path of the part.
        path: PathBuf,
        /// The problem.
        problem: String,
    },
}

const MANIFEST: &str = "manifest.json";
/// Prefix of the names of incomplete files.
const UNFINISHED: &str = ".unfinished-";
/// Number of digits of the campaign's digest in the names of parts.
const SHORT: usize = 16;

/// Keys of a part's metadata.
const FORMAT: &str = "anabranch.format";
const CAMPAIGN: &str = "anabranch.campaign";
const BUILD: &str = "anabranch.build";
const FIRST: &str = "anabranch.first";
const END: &str = "anabranch.end";
const ROWS: &str = "anabranch.rows";

impl Manifest {
    /// Version of directories that this program writes and reads.
    pub const FORMAT: u32 = CAMPAIGN_FORMAT.version;

    /// Returns the metadata of a part of the campaign; `rows` is the digest of its rows.
    pub(super) fn of_part(campaign: &str, range: &Range<u64>, rows: String) -> [(&'static str, String); 6] {
        [
            (FORMAT, Self::FORMAT.to_string()),
            (CAMPAIGN, campaign.to_owned()),
            (BUILD, format!("{} {}", anabranch_lab::VERSION, anabranch_lab::build())),
            (FIRST, range.start.to_string()),
            (END, range.end.to_string()),
            (ROWS, rows),
        ]
    }

    /// Describes the fields in which the two differ, with both values if they are short.
    fn differences(&self, wanted: &Manifest) -> String {
        let list = |all: &[String]| if all.is_empty() { "none".to_owned() } else { all.join(", ") };
        let names = |all: &Manifest| list(&all.systems.iter().map(|it| it.name.clone()).collect::<Vec<_>>());
        let axes = |all: &Manifest| {
            list(&all.axes.iter().map(|axis| format!("{} {}", axis.name, axis.values)).collect::<Vec<_>>())
        };
        let fields = [
            ("its build is", self.build.clone(), wanted.build.clone()),
            ("it is made by", self.kind.clone(), wanted.kind.clone()),
            ("its conditions are", self.conditions.to_string(), wanted.conditions.to_string()),
            ("its axes are", axes(self), axes(wanted)),
            ("its systems are", names(self), names(wanted)),
            ("its metrics are", list(&self.metrics), list(&wanted.metrics)),
            ("its baselines are", self.baselines.to_string(), wanted.baselines.to_string()),
        ];
        let differ = fields.iter().filter(|(_, held, asked)| held != asked);
        let words: Vec<String> = differ.map(|(what, held, asked)| format!("{what} {held}, not {asked}")).collect();
        match words.is_empty() {
            true => "its scenario, settings, seeds or repetitions are others".to_owned(),
            false => words.join("; "),
        }
    }
}

impl Store {
    /// Opens the directory for the campaign of the manifest, or creates it.
    ///
    /// # Errors
    ///
    /// If it cannot be written, or holds results of another campaign.
    pub fn open(directory: &Path, manifest: &Manifest) -> Result<Store, StoreError> {
        let broken = |error| StoreError::File { path: directory.to_owned(), error };
        fs::create_dir_all(directory).map_err(broken)?;
        let store = Store { directory: directory.to_owned() };
        if !directory.join(MANIFEST).exists() {
            let mut text = serde_json::to_vec_pretty(manifest).expect("numbers and texts have a form in JSON");
            text.push(b'\n');
            // Another worker may do this at the same time: the first manifest stays.
            store.persist(store.staged(MANIFEST, &text)?, MANIFEST, false)?;
        }
        let held = store.manifest()?;
        match held.digest == manifest.digest && held.kind == manifest.kind {
            true => Ok(store),
            false => Err(StoreError::Foreign {
                path: directory.to_owned(),
                differs: held.differences(manifest),
                command: held.command,
            }),
        }
    }

    /// Opens an existing directory, and returns its manifest.
    ///
    /// # Errors
    ///
    /// If it holds no results, or has a format that this program does not know.
    pub fn existing(directory: &Path) -> Result<(Store, Manifest), StoreError> {
        let store = Store { directory: directory.to_owned() };
        let manifest = store.manifest()?;
        Ok((store, manifest))
    }

    fn manifest(&self) -> Result<Manifest, StoreError> {
        let path = self.directory.join(MANIFEST);
        let none = |problem: String| StoreError::NoResults { path: self.directory.clone(), problem };
        let text = input::text(&path, input::RECORDED).map_err(|error| match error.kind() {
            ErrorKind::NotFound => none(format!("there is no {MANIFEST}")),
            _ => StoreError::File { path: path.clone(), error },
        })?;
        let value: serde_json::Value =
            serde_json::from_str(&text).map_err(|error| none(format!("{MANIFEST} is no JSON: {error}")))?;
        let known = &CAMPAIGN_FORMAT;
        let problem = match (&value["format"], value["format_version"].as_u64()) {
            (serde_json::Value::String(format), Some(version)) => known.problem(format, version),
            // Before formats had names, `format` was the version.
            (serde_json::Value::Number(version), None) => known.problem(known.name, version.as_u64().unwrap_or(0)),
            _ => return Err(none(format!("{MANIFEST} has no `format` and `format_version`"))),
        };
        match problem {
            None => serde_json::from_str(&text).map_err(|error| none(format!("{MANIFEST}: {error}"))),
            Some(problem) => Err(none(format!("{MANIFEST} cannot be read: {problem}"))),
        }
    }

    /// Returns the parts of the campaign with this digest.
    ///
    /// # Errors
    ///
    /// If the directory cannot be read.
    pub fn parts(&self, campaign: &str) -> Result<Parts, StoreError> {
        let broken = |error| StoreError::File { path: self.directory.clone(), error };
        let mut parts = Parts::default();
        for entry in fs::read_dir(&self.directory).map_err(broken)? {
            let path = entry.map_err(broken)?.path();
            if path.extension().is_none_or(|it| it != "parquet") || is_unfinished(&path) {
                continue;
            }
            let own = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&campaign[..SHORT]));
            let read = match own {
                true => open(&path).and_then(|reader| of_part(&reader, campaign)),
                false => Err("it belongs to another sweep".to_owned()),
            };
            match read {
                Ok(Range { start, end }) => parts.whole.push(Part { first: start, end, path }),
                Err(why) => parts.set_aside.push((path, why)),
            }
        }
        parts.whole.sort();
        parts.set_aside.sort();
        Ok(parts)
    }

    /// Keeps a part under its name.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn keep(&self, campaign: &str, range: &Range<u64>, bytes: &[u8]) -> Result<(), StoreError> {
        let name = part_name(campaign, range);
        self.persist(self.staged(&name, bytes)?, &name, true)
    }

    /// Keeps the bytes of a part from another process after a check: all rows of these conditions, unchanged, of this
    /// campaign.
    ///
    /// # Errors
    ///
    /// If they are not that part, or cannot be written. They are then not kept.
    pub fn receive(&self, campaign: &str, range: &Range<u64>, bytes: &[u8]) -> Result<(), StoreError> {
        let name = part_name(campaign, range);
        let file = self.staged(&name, bytes)?;
        let check = || {
            let said = of_part(&open(file.path())?, campaign)?;
            if said != *range {
                return Err(format!("it has conditions {} to {}", said.start, said.end));
            }
            let rows = rows(file.path())?;
            let conditions: Vec<u64> =
                rows.chunk_by(|a, b| a.condition == b.condition).map(|it| it[0].condition).collect();
            match conditions.iter().copied().eq(range.clone()) {
                true => Ok(()),
                false => Err("its conditions are not those that it names".to_owned()),
            }
        };
        check().map_err(|problem| StoreError::Received { name: name.clone(), problem })?;
        self.persist(file, &name, true)
    }

    /// Writes a temporary file of these bytes, which is deleted with the value.
    fn staged(&self, name: &str, bytes: &[u8]) -> Result<NamedTempFile, StoreError> {
        let broken = |error| StoreError::File { path: self.directory.join(name), error };
        let mut builder = tempfile::Builder::new();
        builder.prefix(UNFINISHED);
        // The process's umask applies: others may be there to read it.
        #[cfg(unix)]
        builder.permissions(fs::Permissions::from_mode(0o666));
        let mut file = builder.tempfile_in(&self.directory).map_err(broken)?;
        file.as_file_mut().write_all(bytes).and_then(|()| file.as_file().sync_all()).map_err(broken)?;
        Ok(file)
    }

    fn persist(&self, file: NamedTempFile, name: &str, replace: bool) -> Result<(), StoreError> {
        let path = self.directory.join(name);
        let broken = |error| StoreError::File { path: path.clone(), error };
        match replace {
            true => drop(file.persist(&path).map_err(|error| broken(error.error))?),
            false => match file.persist_noclobber(&path) {
                Err(error) if error.error.kind() != ErrorKind::AlreadyExists => return Err(broken(error.error)),
                _ => {}
            },
        }
        // Syncing the directory makes the name durable; some file systems do not support it.
        let _ = File::open(&self.directory).and_then(|directory| directory.sync_all());
        Ok(())
    }

    /// Calls `each` with the rows of every condition in the parts, in order, each condition once.
    ///
    /// # Errors
    ///
    /// If a part cannot be read.
    pub fn read(&self, parts: &Parts, each: &mut dyn FnMut(&[Row])) -> Result<(), StoreError> {
        let mut next = 0;
        for part in parts.whole.iter().filter(|part| part.end > part.first) {
            if part.end <= next {
                continue;
            }
            let rows = rows(&part.path).map_err(|problem| StoreError::Part { path: part.path.clone(), problem })?;
            for condition in rows.chunk_by(|a, b| a.condition == b.condition) {
                if condition[0].condition >= next {
                    each(condition);
                }
            }
            next = part.end;
        }
        Ok(())
    }

    /// Returns the columns of its parts, as described in the manifest.
    pub fn layout(manifest: &Manifest) -> Layout {
        let kind = |axis: &AxisInfo| if axis.unit.is_some() { Kind::Number } else { Kind::Text };
        Layout {
            version: manifest.version.clone(),
            build: manifest.build.clone(),
            axes: manifest.axes.iter().map(|axis| (axis.name.clone(), kind(axis))).collect(),
            metrics: manifest.metrics.clone(),
        }
    }
}

impl Parts {
    /// Returns the parts of the range that are missing.
    pub fn missing(&self, range: &Range<u64>) -> Vec<Range<u64>> {
        let mut missing = Vec::new();
        let mut next = range.start;
        for part in &self.whole {
            if part.first.min(range.end) > next {
                missing.push(next..part.first.min(range.end));
            }
            next = next.max(part.end);
        }
        if next < range.end {
            missing.push(next..range.end);
        }
        missing
    }
}

fn part_name(campaign: &str, range: &Range<u64>) -> String {
    format!("{}-{}-{}.parquet", &campaign[..SHORT], range.start, range.end)
}

fn is_unfinished(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(UNFINISHED))
}

fn open(path: &Path) -> Result<Reader, String> {
    let file = input::open(path).map_err(|error| error.to_string())?;
    Reader::open(file).map_err(|error| format!("it is cut off or no Parquet file ({error})"))
}

/// Returns the range of a part of this campaign.
fn of_part(reader: &Reader, campaign: &str) -> Result<Range<u64>, String> {
    let said = |key| reader.said(key).ok_or_else(|| "it is no part of a sweep".to_owned());
    if said(FORMAT)? != Manifest::FORMAT.to_string() {
        return Err(format!("it has format {}, and this program reads {}", said(FORMAT)?, Manifest::FORMAT));
    }
    if said(CAMPAIGN)? != campaign {
        return Err(format!("it belongs to another sweep, made by {}", said(BUILD)?));
    }
    let number = |key| said(key)?.parse::<u64>().map_err(|_| "its range is not two numbers".to_owned());
    match number(FIRST)?..number(END)? {
        range if range.start < range.end => Ok(range),
        _ => Err("its range is empty".to_owned()),
    }
}

/// Reads all rows of a part, and checks their digest.
fn rows(path: &Path) -> Result<Vec<Row>, String> {
    let reader = open(path)?;
    let in_words = |error: ParquetError| error.to_string();
    let cells: Vec<Vec<Cell>> = reader.rows().map_err(in_words)?;
    let mut digest = RowDigest::default();
    cells.iter().for_each(|row| digest.add(row));
    if reader.said(ROWS) != Some(&digest.finish()) {
        return Err("its rows are not those that were written".to_owned());
    }
    let columns = reader.columns();
    let kind = columns.iter().position(|name| name == "kind").unwrap_or_default();
    let axes = kind.saturating_sub(Layout::default().columns().iter().take_while(|(name, _)| name != "kind").count());
    let rows: Option<Vec<Row>> = cells.into_iter().map(|row| Row::of_cells(row, axes)).collect();
    rows.ok_or_else(|| "a row lacks what every row has".to_owned())
}
