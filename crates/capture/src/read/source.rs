//! Bytes with a position, for messages that say where.

use super::ReadError;
use std::io::{BufRead, Cursor, ErrorKind, Read};

/// The uncompressed file.
pub(super) struct Source {
    input: Box<dyn BufRead>,
    at: u64,
}

impl Source {
    pub fn new(input: Box<dyn BufRead>) -> Self {
        Source { input, at: 0 }
    }

    /// Bytes read so far.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Fills `buffer` as far as there are bytes.
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<usize, ReadError> {
        let mut have = 0;
        while have < buffer.len() {
            match self.input.read(&mut buffer[have..]) {
                Ok(0) => break,
                Ok(n) => have += n,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // A gzip file that was cut.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => break,
                Err(error) => return Err(error.into()),
            }
        }
        self.at += have as u64;
        Ok(have)
    }

    /// Fills `buffer` or says what was cut; `begin` is where that began.
    pub fn exact(&mut self, buffer: &mut [u8], what: &'static str, begin: u64) -> Result<(), ReadError> {
        let before = self.at - begin;
        let have = self.read(buffer)?;
        if have == buffer.len() {
            return Ok(());
        }
        Err(ReadError::Cut { what, at: begin, have: before + have as u64, need: before + buffer.len() as u64 })
    }

    /// Appends up to `n` bytes; memory grows with what is there, not with `n`.
    pub fn some(&mut self, n: u64, to: &mut Vec<u8>) -> Result<u64, ReadError> {
        let before = to.len();
        let read = self.input.by_ref().take(n).read_to_end(to);
        let have = (to.len() - before) as u64;
        self.at += have;
        match read {
            Err(error) if error.kind() != ErrorKind::UnexpectedEof => Err(error.into()),
            _ => Ok(have),
        }
    }

    /// Reads `n` bytes; an error names the part that is cut.
    pub fn vec(&mut self, n: u32, what: &'static str, begin: u64) -> Result<Vec<u8>, ReadError> {
        let before = self.at - begin;
        let mut bytes = Vec::with_capacity(n.min(64 * 1024) as usize);
        let have = self.some(u64::from(n), &mut bytes)?;
        if have == u64::from(n) {
            return Ok(bytes);
        }
        Err(ReadError::Cut { what, at: begin, have: before + have, need: before + u64::from(n) })
    }

    /// Gives bytes back that were read last.
    pub fn give_back(&mut self, bytes: Vec<u8>) {
        self.at -= bytes.len() as u64;
        let behind = std::mem::replace(&mut self.input, Box::new(std::io::empty()));
        self.input = Box::new(Cursor::new(bytes).chain(behind));
    }

    /// Reads past `n` bytes.
    pub fn skip(&mut self, n: u64, what: &'static str, begin: u64) -> Result<(), ReadError> {
        let before = self.at - begin;
        let mut have = 0;
        let mut buffer = [0; 4096];
        while have < n {
            let want = (n - have).min(buffer.len() as u64) as usize;
            match self.read(&mut buffer[..want])? {
                0 => break,
                some => have += some as u64,
            }
        }
        if have == n {
            return Ok(());
        }
        Err(ReadError::Cut { what, at: begin, have: before + have, need: before + n })
    }
}
