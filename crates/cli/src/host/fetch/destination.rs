//! Destinations of a body: standard output, none, or a file that gets its name only when it is complete.

use crate::failure::Failure;
use anabranch_service::{Target, WriterSink};
use miette::miette;
use std::fs::{OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::TempPath;

/// Destination of a body.
#[derive(Debug)]
pub enum Destination {
    /// Standard output.
    Stdout,
    /// The body is discarded.
    Nowhere,
    /// A device, a pipe: there is nothing to be put in its place.
    Special(PathBuf),
    /// A file.
    File(PathBuf),
    /// A file that must not be there yet.
    NewFile(PathBuf),
}

/// A body that is not whole.
pub enum Pending {
    /// The URL has no part that could name a file.
    Nameless,
    /// A file beside the one it will be; gone when this is dropped.
    File(TempPath, PathBuf, bool),
}

impl Destination {
    /// Returns the destination requested, or a file named after the URL; by default, replies to uploads are discarded.
    pub fn choose(output: Option<&Path>, target: &Target, uploads: bool) -> Result<Self, Failure> {
        match output {
            Some(path) if path == Path::new("-") => Ok(Destination::Stdout),
            Some(path) => match std::fs::metadata(path) {
                Ok(metadata) if metadata.is_dir() => {
                    let help = "add the name of a file in it";
                    Err(Failure::Refused(miette!(help = help, "--output {} is a directory", path.display())))
                }
                Ok(metadata) if !metadata.is_file() => Ok(Destination::Special(path.to_owned())),
                _ => Ok(Destination::File(path.to_owned())),
            },
            None if uploads => Ok(Destination::Nowhere),
            None => {
                let help = "name it with --output FILE; --output - is standard output, --output /dev/null discards it";
                let name = target.file_name();
                let name =
                    name.ok_or_else(|| Failure::Refused(miette!(help = help, "the URL ends in no name for the file")))?;
                let path = PathBuf::from(name);
                if path.exists() {
                    return Err(Failure::Refused(miette!(help = help, "`{name}` exists already")));
                }
                Ok(Destination::NewFile(path))
            }
        }
    }

    /// Path written, for the result.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Destination::Stdout | Destination::Nowhere => None,
            Destination::Special(path) | Destination::File(path) | Destination::NewFile(path) => Some(path),
        }
    }

    /// The file to be made, if one is.
    pub fn file(&self) -> Option<&PathBuf> {
        match self {
            Destination::File(path) | Destination::NewFile(path) => Some(path),
            Destination::Stdout | Destination::Nowhere | Destination::Special(_) => None,
        }
    }

    /// Begins to write.
    pub fn open(&self) -> Result<(Pending, WriterSink), Failure> {
        let opened = match self {
            Destination::Stdout => WriterSink::new(io::stdout()).map(|sink| (Pending::Nameless, sink)),
            Destination::Nowhere => WriterSink::new(io::sink()).map(|sink| (Pending::Nameless, sink)),
            Destination::Special(path) => {
                let file = OpenOptions::new().write(true).open(path);
                file.and_then(WriterSink::new).map(|sink| (Pending::Nameless, sink))
            }
            Destination::File(path) => beside(path, true),
            Destination::NewFile(path) => beside(path, false),
        };
        let path = self.path().unwrap_or(Path::new("the output"));
        opened.map_err(|error| Failure::writing_to(path, &error))
    }
}

/// A file in the same directory, so that it can be renamed.
fn beside(path: &Path, replace: bool) -> io::Result<(Pending, WriterSink)> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "it is no file name"))?;
    let prefix = format!(".{}.", name.to_string_lossy());
    let mut builder = tempfile::Builder::new();
    // Permissions of a new file; the process's mask applies.
    builder.prefix(&prefix).suffix(".part").permissions(Permissions::from_mode(0o666));
    let (file, temporary) = builder.tempfile_in(directory)?.into_parts();
    Ok((Pending::File(temporary, path.to_owned(), replace), WriterSink::new(file)?))
}

impl Pending {
    /// All of it is there.
    pub fn save(self) -> Result<(), Failure> {
        let Pending::File(temporary, path, replace) = self else { return Ok(()) };
        let saved = if replace { temporary.persist(&path) } else { temporary.persist_noclobber(&path) };
        saved.map_err(|error| Failure::writing_to(&path, &error.error))
    }
}
