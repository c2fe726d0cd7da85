//! Recordings that were read or drawn last: each variant of a scenario reads the same files and meets the same draws.

use crate::file::RecordingTable;
use crate::model::Model;
use anabranch_net::Trace;
use anabranch_recording::Recording;
use anabranch_units::{Duration, Seed};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

/// Things that were made last, the latest last, each beside all that it depends on.
struct Latest<K, V>(Mutex<Vec<(K, Arc<V>)>>);

/// Number of things kept: more than most scenarios have recordings.
const MOST: usize = 8;

impl<K: PartialEq, V> Latest<K, V> {
    const fn none() -> Self {
        Latest(Mutex::new(Vec::new()))
    }

    /// Returns what belongs to this key; `make` makes it if nobody has.
    fn of<E>(&self, key: K, make: impl FnOnce() -> Result<V, E>) -> Result<Arc<V>, E> {
        let kept = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = kept().iter().find(|(known, _)| *known == key).map(|(_, made)| Arc::clone(made));
        if let Some(known) = known {
            return Ok(known);
        }
        let made = Arc::new(make()?);
        let mut kept = kept();
        if kept.len() == MOST {
            kept.remove(0);
        }
        kept.push((key, Arc::clone(&made)));
        Ok(made)
    }
}

/// Recordings by the SHA-256 of their texts, and how they were read.
static READ: Latest<(String, RecordingTable), Recording> = Latest::none();
/// Draws by model, seed, path and length.
static DRAWN: Latest<(Model, Seed, String, Duration), Drawn> = Latest::none();

/// Draw of a model.
pub(crate) struct Drawn {
    pub(crate) recording: Arc<Recording>,
    /// Service of a link; `None` if nothing passes.
    pub(crate) trace: Option<Arc<Trace>>,
}

/// Returns what the text with this digest holds if it is read as `table` says; `read` reads it if nobody has.
pub(crate) fn recording<E>(
    digest: &str,
    table: &RecordingTable,
    read: impl FnOnce() -> Result<Recording, E>,
) -> Result<Arc<Recording>, E> {
    READ.of((digest.to_owned(), table.clone()), read)
}

/// Returns what the path of this name meets in the run with this seed, by a model.
pub(crate) fn draw(model: &Model, seed: Seed, path: &str, length: Duration) -> Arc<Drawn> {
    let made = DRAWN.of((model.clone(), seed, path.to_owned(), length), || {
        let recording = model.draw(seed, path, length);
        let trace = recording.trace().map(Arc::new);
        Ok::<_, Infallible>(Drawn { recording: Arc::new(recording), trace })
    });
    match made {
        Ok(made) => made,
        Err(never) => match never {},
    }
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

    /// A draw is kept, and another seed, path, length or parameter is another one.
    #[test]
    fn each_draw_is_made_once() {
        let model = |name: &str| Model::named(name).unwrap();
        let of =
            |name: &str, seed, path: &str, seconds| draw(&model(name), Seed(seed), path, Duration::from_secs(seconds));
        let first = of("wifi", 901, "a", 3);
        assert!(Arc::ptr_eq(&first, &of("wifi", 901, "a", 3)));
        assert_eq!(*first.recording, model("wifi").draw(Seed(901), "a", Duration::from_secs(3)));
        for other in [of("wifi", 902, "a", 3), of("wifi", 901, "b", 3), of("wifi", 901, "a", 4), of("lte", 901, "a", 3)]
        {
            assert_ne!(first.recording, other.recording);
        }
    }
}
