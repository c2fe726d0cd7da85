//! The carrier of each path as the client's interface shows it.

use anabranch_net::Change;
use std::collections::BTreeSet;

/// Paths whose carrier the client has seen go and not come back.
#[derive(Clone, Debug, Default)]
pub struct Carriers {
    gone: BTreeSet<usize>,
}

impl Carriers {
    /// The news that `change` is to the interface on `path`: whether its carrier comes or goes; `None` where the change
    /// does not concern it. [`Change::Restore`] brings back a carrier that has gone, and says nothing of one that is
    /// there.
    pub fn after(&mut self, path: usize, change: &Change) -> Option<bool> {
        match change {
            Change::Down => {
                self.gone.insert(path);
                Some(false)
            }
            Change::Up => {
                self.gone.remove(&path);
                Some(true)
            }
            Change::Restore => self.gone.remove(&path).then_some(true),
            Change::Rate(_)
            | Change::Trace(_)
            | Change::Delay(_)
            | Change::Jitter(_)
            | Change::Loss(_)
            | Change::Blackhole => None,
        }
    }

    /// The paths whose interface shows no carrier.
    pub fn gone(&self) -> impl Iterator<Item = usize> {
        self.gone.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restore_is_news_only_where_the_carrier_had_gone() {
        let mut carriers = Carriers::default();
        for (path, change, news) in [
            (0, Change::Restore, None),
            (0, Change::Blackhole, None),
            (0, Change::Restore, None),
            (0, Change::Down, Some(false)),
            (1, Change::Restore, None),
            (0, Change::Restore, Some(true)),
            (0, Change::Restore, None),
            (0, Change::Down, Some(false)),
            (0, Change::Up, Some(true)),
            (0, Change::Restore, None),
        ] {
            assert_eq!(carriers.after(path, &change), news, "{change:?} of path {path}");
        }
    }
}
