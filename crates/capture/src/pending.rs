//! A file that appears under its name only when it is whole.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Writes to `NAME.part`; [`PendingFile::commit`] gives it its name, dropping it removes it.
#[derive(Debug)]
pub(crate) struct PendingFile {
    /// `None` once committed.
    out: Option<BufWriter<File>>,
    part: PathBuf,
    path: PathBuf,
}

/// Large enough that a run does not spend its time in system calls.
const BUFFER: usize = 256 * 1024;

impl PendingFile {
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let mut part = path.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        let out = BufWriter::with_capacity(BUFFER, File::create(&part)?);
        Ok(PendingFile { out: Some(out), part, path: path.to_owned() })
    }

    pub(crate) fn commit(mut self) -> io::Result<()> {
        if let Some(mut out) = self.out.take() {
            let written = out.flush().and_then(|()| fs::rename(&self.part, &self.path));
            if written.is_err() {
                self.out = Some(out);
            }
            return written;
        }
        Ok(())
    }
}

impl Write for PendingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.as_mut().map_or_else(|| Err(io::ErrorKind::NotConnected.into()), |out| out.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.as_mut().map_or(Ok(()), BufWriter::flush)
    }
}

impl Drop for PendingFile {
    fn drop(&mut self) {
        if let Some(out) = self.out.take() {
            // The file is discarded, so it need not be complete.
            drop(out.into_parts());
            // If even this fails there is nothing left to try; `.part` says what the file is.
            let _ = fs::remove_file(&self.part);
        }
    }
}
