//! Recordings that were read last: each variant of a scenario reads the same files again.

use crate::file::RecordingTable;
use anabranch_recording::Recording;
use std::sync::{Arc, Mutex, PoisonError};

/// Recordings that are kept, the latest last. They depend on nothing but what is beside them.
static LATEST: Mutex<Vec<Read>> = Mutex::new(Vec::new());

/// Number of recordings kept: more than most scenarios have.
const MOST: usize = 8;

struct Read {
    /// SHA-256 of the text.
    digest: String,
    table: RecordingTable,
    recording: Arc<Recording>,
}

/// Returns what the text with this digest holds if it is read as `table` says; `read` reads it if nobody has.
pub(crate) fn recording<E>(
    digest: &str,
    table: &RecordingTable,
    read: impl FnOnce() -> Result<Recording, E>,
) -> Result<Arc<Recording>, E> {
    let is_it = |it: &Read| it.digest == digest && it.table == *table;
    let kept = || LATEST.lock().unwrap_or_else(PoisonError::into_inner);
    let known = kept().iter().find(|it| is_it(it)).map(|it| Arc::clone(&it.recording));
    if let Some(known) = known {
        return Ok(known);
    }
    let recording = Arc::new(read()?);
    let mut kept = kept();
    if kept.len() == MOST {
        kept.remove(0);
    }
    kept.push(Read { digest: digest.to_owned(), table: table.clone(), recording: Arc::clone(&recording) });
    Ok(recording)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A recording is read once for each text and each way to read it, whatever its name.
    #[test]
    fn each_text_is_read_once() {
        let table = |text: &str| toml::from_str::<RecordingTable>(text).unwrap();
        let (plain, later) = (table("file = \"a.csv\""), table("file = \"a.csv\"\nrate-unit = \"kbit\""));
        let text = "time,rate_mbps\n0,5\n1,6\n";
        let mut reads = 0;
        let mut ask = |digest: &str, table: &RecordingTable| {
            let read = || {
                reads += 1;
                anabranch_recording::read(text, &table.options())
            };
            recording(digest, table, read).unwrap();
            reads
        };
        assert_eq!([ask("one", &plain), ask("one", &plain), ask("one", &later), ask("two", &plain)], [1, 1, 2, 3]);
        assert_eq!([ask("one", &plain), ask("two", &plain)], [3, 3]);
    }
}
