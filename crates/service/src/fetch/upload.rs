//! Data sent to the server.

use anabranch_wire::pattern;
use bytes::Bytes;
use std::fs::File;
use std::io::{self, Read};

/// A body for a PUT, or the bytes of a plain connection.
#[derive(Debug)]
pub struct Upload {
    content: Content,
    length: u64,
    next: u64,
}

#[derive(Debug)]
enum Content {
    None,
    Pattern,
    File(File),
}

/// Bytes read from a file at once.
const PIECE: u64 = 64 << 10;

impl Upload {
    /// Sends no data.
    pub fn none() -> Self {
        Upload { content: Content::None, length: 0, next: 0 }
    }

    /// Sends `length` bytes of the test pattern.
    pub fn pattern(length: u64) -> Self {
        Upload { content: Content::Pattern, length, next: 0 }
    }

    /// Sends the content of a regular file.
    ///
    /// # Errors
    /// If its length cannot be known beforehand.
    pub fn file(file: File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "it is not a regular file, so its length is unknown",
            ));
        }
        Ok(Upload { length: metadata.len(), content: Content::File(file), next: 0 })
    }

    /// Something is sent, if only zero bytes.
    pub fn is_some(&self) -> bool {
        !matches!(self.content, Content::None)
    }

    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// The next piece; `None` at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<Bytes>> {
        let missing = self.length - self.next;
        if missing == 0 {
            return Ok(None);
        }
        let piece = match &mut self.content {
            Content::None => return Ok(None),
            Content::Pattern => pattern::slice(self.next, missing),
            Content::File(file) => {
                let mut piece = vec![0; missing.min(PIECE) as usize];
                let length = file.read(&mut piece)?;
                if length == 0 {
                    return Err(io::Error::new(
                        io::ErrorKind::UnexpectedEof,
                        "the file became shorter during the upload",
                    ));
                }
                piece.truncate(length);
                piece.into()
            }
        };
        self.next += piece.len() as u64;
        Ok(Some(piece))
    }
}
