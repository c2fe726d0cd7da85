//! Hand-made situations for the tests of the policies beside this file.

use super::{Buffers, ReceiveWindow, Usage};
use anabranch_units::{Bytes, Duration, Instant, SubflowId};

pub(super) const MSS: u64 = 1400;

/// A subflow of this RTT \[ms\] and window \[segments\], with these bytes in flight and without a DATA_ACK.
pub(super) fn subflow(id: u16, srtt: u64, cwnd: u64, unacked: u64) -> Usage {
    Usage {
        id: SubflowId(id),
        mss: Bytes::new(MSS),
        srtt: Duration::from_millis(srtt),
        cwnd: Bytes::new(cwnd * MSS),
        outstanding: Bytes::new(unacked),
        unacked: Bytes::new(unacked),
        acked: 0,
    }
}

/// The peer admits `window` of a buffer of `receive` bytes; our own holds a megabyte.
pub(super) fn buffers(window: u64, receive: u64) -> Buffers {
    Buffers { window: Bytes::new(window), receive: Bytes::new(receive), send: Bytes::new(1_000_000) }
}

/// Returns the share of each subflow at `ms`.
pub(super) fn shares_at(policy: &mut dyn ReceiveWindow, ms: u64, buffers: &Buffers, usage: &[Usage]) -> Vec<u64> {
    let mut shares = vec![Bytes::ZERO; usage.len()];
    policy.share(Instant::ZERO + Duration::from_millis(ms), buffers, usage, &mut shares);
    shares.into_iter().map(Bytes::get).collect()
}

/// Returns the share of each subflow.
pub(super) fn shares(policy: &mut dyn ReceiveWindow, buffers: &Buffers, usage: &[Usage]) -> Vec<u64> {
    shares_at(policy, 0, buffers, usage)
}
