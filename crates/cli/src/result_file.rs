//! Files of results that options name.

use crate::failure::Failure;
use crate::output;
use anabranch_report::plot::{self, Form};
use anabranch_study::figure::Figure;
use anabranch_units::input;
use clap::ArgMatches;
use std::ffi::OsString;
use std::ops::Deref;
use std::path::{Path, PathBuf};

/// A file to write results to.
///
/// An option of this type is checked before its command begins ([`check`]): the file can be written, no other option
/// names it as well, and it is none that the command reads.
#[derive(Clone, Debug)]
pub struct ResultFile(PathBuf);

impl From<OsString> for ResultFile {
    fn from(path: OsString) -> Self {
        ResultFile(path.into())
    }
}

impl Deref for ResultFile {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

/// Refuses files of results that cannot be written, of the options in `matches` and of its subcommand.
pub fn check(matches: &ArgMatches) -> Result<(), Failure> {
    let (mut files, mut others) = (Vec::new(), Vec::new());
    for id in matches.ids() {
        // Identifiers of groups are among them, and options of other types.
        match matches.try_get_many::<ResultFile>(id.as_str()) {
            Ok(Some(named)) => files.extend(named.map(|file| (format!("--{id}"), &file.0))),
            // What a command that is started reads is not ours to say.
            _ if id.as_str() == STARTED => {}
            _ => others.extend(matches.try_get_raw(id.as_str()).ok().flatten().into_iter().flatten()),
        }
    }
    output::check(files.iter().map(|(option, path)| (option.as_str(), Some(*path))))?;
    let mut read = others.into_iter().flat_map(|name| files_of(Path::new(name)));
    if let Some((option, path)) = read.find_map(|read| files.iter().find(|(_, file)| is_at(file, &read))) {
        let (path, help) = (path.display(), "accepted: another file; this one would be lost");
        return Err(Failure::Refused(miette::miette!(help = help, "{option} names {path}, which is read")));
    }
    matches.subcommand().map_or(Ok(()), |(_, matches)| check(matches))
}

/// Returns the file that an argument names, those that a scenario names in turn, and that of an override such as
/// `path.lte.down=drive.trace`.
fn files_of(argument: &Path) -> Vec<PathBuf> {
    let file = |path: &Path| std::fs::canonicalize(path).ok().filter(|path| path.is_file());
    let Some(path) = file(argument) else {
        let value = argument.to_str().and_then(|text| text.split_once('=')).map(|(_, value)| value.trim_matches('"'));
        return value.and_then(|value| file(Path::new(value))).into_iter().collect();
    };
    let mut found = vec![path];
    let mut looked_into = 0;
    while let Some(path) = found.get(looked_into) {
        looked_into += 1;
        let folder = path.parent().unwrap_or(Path::new(".")).to_owned();
        let table = input::text(path, input::WRITTEN).ok().and_then(|text| text.parse::<toml::Table>().ok());
        let mut values: Vec<toml::Value> = table.into_iter().map(toml::Value::Table).collect();
        while let Some(value) = values.pop() {
            match value {
                toml::Value::String(name) => {
                    found.extend(file(&folder.join(name)).filter(|named| !found.contains(named)));
                }
                toml::Value::Array(items) => values.extend(items),
                toml::Value::Table(table) => values.extend(table.into_iter().map(|(_, value)| value)),
                _ => {}
            }
        }
    }
    found
}

/// Identifier of the words behind `--`.
const STARTED: &str = "command";

/// True if the file is this one, by whatever name.
fn is_at(file: &Path, read: &Path) -> bool {
    std::fs::canonicalize(file).is_ok_and(|file| file == read)
}

/// Reads the name of a file for figures, whose ending says the form.
pub fn figure_file(name: &str) -> Result<ResultFile, String> {
    match Form::of(Path::new(name)) {
        Some(_) => Ok(ResultFile(name.into())),
        None => Err("accepted: a file that ends in .svg, .pdf or .pgf".to_owned()),
    }
}

/// Draws figures into the file that `--figure` names, if it does.
pub fn draw(file: Option<&ResultFile>, figures: &[Figure]) -> Result<(), Failure> {
    let Some((file, form)) = file.and_then(|file| Some((file, Form::of(file)?))) else { return Ok(()) };
    output::write(file, &plot::plot(figures, form))
}
