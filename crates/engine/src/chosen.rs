//! Keys and initial data sequence numbers that a test chooses (feature `test-hooks`), so that a wrap lies where it can
//! be seen. No key is known whose hash ends a few bytes below 2⁶⁴, so the number itself can be chosen too.

use anabranch_units::{Dsn, Key};
use std::collections::VecDeque;

#[derive(Default)]
pub(crate) struct Chosen {
    keys: VecDeque<Key>,
    idsns: Vec<(Key, Dsn)>,
}

impl Chosen {
    /// Queues `key` for the next connection, in place of a random one.
    #[cfg(any(test, feature = "test-hooks"))]
    pub(crate) fn add_key(&mut self, key: Key) {
        self.keys.push_back(key);
    }

    pub(crate) fn next_key(&mut self) -> Option<Key> {
        self.keys.pop_front()
    }

    /// Makes the stream of the host with this key begin after `idsn`.
    #[cfg(any(test, feature = "test-hooks"))]
    pub(crate) fn pin(&mut self, key: Key, idsn: Dsn) {
        self.idsns.retain(|(known, _)| *known != key);
        self.idsns.push((key, idsn));
    }

    /// The initial data sequence number of a key (RFC 8684 §3.1) unless a test chose another.
    pub(crate) fn idsn(&self, key: Key) -> Dsn {
        let pinned = self.idsns.iter().find(|(known, _)| *known == key);
        pinned.map_or_else(|| key.idsn(), |(_, idsn)| *idsn)
    }
}
