//! No reinjection: data stay with the subflow that carries them, for as long as that lives.

use super::{Entry, Reinjection};
use anabranch_units::{Instant, SubflowId};

/// Entry in the table of its kind.
pub const ENTRY: Entry =
    Entry::new("none", "never: each subflow repairs its own losses", include_str!("none.rs"), |_| Box::new(Never));

/// Reinjection policy that repeats no data on another subflow.
#[derive(Clone, Copy, Debug, Default)]
pub struct Never;

impl Reinjection for Never {
    fn on_rto(&mut self, _now: Instant, _on: SubflowId) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_repeats_nothing() {
        assert!(!Never.on_rto(Instant::ZERO, SubflowId(0)));
    }
}
