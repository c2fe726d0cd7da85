//! Files that users name: regular ones of a bounded size.
//!
//! A device may have no end, and a named pipe may wait for ever; neither is opened.

use crate::Bytes;
use std::fs::{File, Metadata};
use std::io::{self, Error, ErrorKind, Read};
use std::path::Path;
use std::sync::OnceLock;

/// Largest file that is written by hand: a scenario, study, sweep or script, or settings.
pub const WRITTEN: Bytes = Bytes::new(16 << 20);
/// Largest file of recorded data that is read as a whole: a trace, page or session.
pub const RECORDED: Bytes = Bytes::new(256 << 20);

/// Name of standard input.
pub const STANDARD_INPUT: &str = "-";

/// Reads a text of at most [`WRITTEN`]. The name `-` is standard input, which gives the same text each time.
///
/// # Errors
///
/// If it is not there, is no regular file, is larger, or is no UTF-8; the message says so in words.
pub fn written(path: &Path) -> io::Result<String> {
    static STANDARD: OnceLock<Result<String, String>> = OnceLock::new();
    if path != Path::new(STANDARD_INPUT) {
        return text(path, WRITTEN);
    }
    let read = || text_of(io::stdin().lock(), WRITTEN).map_err(|error| error.to_string());
    STANDARD.get_or_init(read).clone().map_err(Error::other)
}

/// Reads a text file of at most `limit`.
///
/// # Errors
///
/// As for [`written`].
pub fn text(path: &Path, limit: Bytes) -> io::Result<String> {
    text_of(within(path, limit)?, limit)
}

/// Reads the bytes of a file of at most `limit`.
///
/// # Errors
///
/// If it is not there, is no regular file, or is larger.
pub fn bytes(path: &Path, limit: Bytes) -> io::Result<Vec<u8>> {
    bytes_of(within(path, limit)?, limit)
}

/// Opens a regular file of any size, to be read in parts.
///
/// # Errors
///
/// If it is not there, or is no regular file.
pub fn open(path: &Path) -> io::Result<File> {
    // Looked at before it is opened: opening a named pipe waits, and opening some devices has effects.
    check(&std::fs::metadata(path)?)?;
    let file = File::open(path)?;
    // It may have become another meanwhile.
    check(&file.metadata()?)?;
    Ok(file)
}

/// Checks that a file is a regular one or is not there yet.
///
/// # Errors
///
/// If it is something else, or cannot be looked at.
pub fn check_if_there(path: &Path) -> io::Result<()> {
    match std::fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        there => check(&there?),
    }
}

fn within(path: &Path, limit: Bytes) -> io::Result<File> {
    let file = open(path)?;
    match file.metadata()?.len() > limit.get() {
        true => Err(too_large(limit)),
        false => Ok(file),
    }
}

fn text_of(input: impl Read, limit: Bytes) -> io::Result<String> {
    String::from_utf8(bytes_of(input, limit)?).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Error::new(ErrorKind::InvalidData, format!("it is no text: byte {at} is not UTF-8"))
    })
}

/// Reads no more than the limit and a byte, whatever the file says of its size: files of `/proc` say 0.
fn bytes_of(input: impl Read, limit: Bytes) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input.take(limit.get().saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > limit.get() {
        true => Err(too_large(limit)),
        false => Ok(bytes),
    }
}

fn too_large(limit: Bytes) -> Error {
    Error::new(ErrorKind::FileTooLarge, format!("it is larger than {} MiB, the most that is read", limit.get() >> 20))
}

fn check(metadata: &Metadata) -> io::Result<()> {
    if metadata.is_file() {
        return Ok(());
    }
    let kind = if metadata.is_dir() { ErrorKind::IsADirectory } else { ErrorKind::InvalidInput };
    Err(Error::new(kind, format!("it is {}, and only regular files are read", named(metadata))))
}

/// Kind of a file that is not a regular one.
fn named(metadata: &Metadata) -> &'static str {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        let kind = metadata.file_type();
        if kind.is_fifo() {
            return "a pipe";
        } else if kind.is_socket() {
            return "a socket";
        } else if kind.is_char_device() || kind.is_block_device() {
            return "a device";
        }
    }
    if metadata.is_dir() { "a folder" } else { "a special file" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn only_regular_files_are_opened() {
        let said = |path: &str| text(Path::new(path), WRITTEN).expect_err(path).to_string();
        assert!(said("/dev/zero").starts_with("it is a device, and only regular files"), "{}", said("/dev/zero"));
        let folder = std::env::temp_dir();
        let folder = folder.to_str().expect("its name is text");
        assert_eq!(said(folder), "it is a folder, and only regular files are read");
        let socket = format!("{folder}/units-input-{}.socket", std::process::id());
        let listener = std::os::unix::net::UnixListener::bind(&socket).expect("sockets can be made here");
        assert!(said(&socket).starts_with("it is a socket"), "{}", said(&socket));
        drop(listener);
        std::fs::remove_file(&socket).expect("it was just made");
        assert_eq!(text(Path::new("/nowhere/x"), WRITTEN).map_err(|error| error.kind()), Err(ErrorKind::NotFound));
    }

    #[test]
    fn a_text_has_a_largest_size() {
        let limit = Bytes::new(1 << 20);
        let most = vec![b'a'; 1 << 20];
        assert_eq!(text_of(&*most, limit).ok().map(String::into_bytes), Some(most));
        let error = text_of(io::repeat(b'a'), limit).expect_err("it has no end");
        assert_eq!(error.to_string(), "it is larger than 1 MiB, the most that is read");
        let error = text_of(&b"ab\xff"[..], limit).expect_err("it is no text");
        assert_eq!(error.to_string(), "it is no text: byte 2 is not UTF-8");
    }
}
