//! One window for all: any subflow may use as much of it as it can (RFC 8684 §3.3.4).

use super::{Buffers, Capabilities, Entry, ReceiveWindow, Usage};
use anabranch_units::{Bytes, Instant};

/// Entry in the table of its kind.
pub const ENTRY: Entry =
    Entry::new("shared", "one window for all subflows, first come first served", include_str!("shared.rs"), |_| {
        Box::new(Shared)
    })
    .paper("RFC 8684 §3.3.4")
    .capabilities(|_| Capabilities { unlimited: true });

/// Narrows nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shared;

impl ReceiveWindow for Shared {
    fn share(&mut self, _now: Instant, _buffers: &Buffers, _usage: &[Usage], shares: &mut [Bytes]) {
        shares.fill(Bytes::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::receive_window::testing::{buffers, shares, subflow};

    #[test]
    fn no_share_binds() {
        let usage = [subflow(0, 10, 10, 50_000), subflow(1, 100, 10, 0)];
        assert_eq!(shares(&mut Shared, &buffers(1, 2), &usage), [u64::MAX; 2]);
    }
}
