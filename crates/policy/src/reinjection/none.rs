//! No reinjection: data stay with the subflow that carries them, for as long as that lives.

use super::Reinjection;
use anabranch_units::{Instant, SubflowId};

/// Never repeats anything elsewhere.
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
