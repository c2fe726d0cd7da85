//! One window for all: any subflow may use as much of it as it can (RFC 8684 §3.3.4).

use super::{ReceiveWindow, Usage};
use anabranch_units::{Bytes, Instant};

/// Narrows nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shared;

impl ReceiveWindow for Shared {
    fn share(&mut self, _now: Instant, _window: Bytes, _buffer: Bytes, _usage: &[Usage], limits: &mut [Bytes]) {
        limits.fill(Bytes::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_limit_binds() {
        let mut limits = [Bytes::ZERO; 3];
        Shared.share(Instant::ZERO, Bytes::new(1), Bytes::new(2), &[], &mut limits);
        assert_eq!(limits, [Bytes::MAX; 3]);
    }
}
