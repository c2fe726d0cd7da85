//! The send buffer that Linux gives a subflow, and when a writer that met a full one goes on.
//!
//! From Linux 6.18: `tcp_sndbuf_expand` (`net/ipv4/tcp_input.c`), `__mptcp_sync_sndbuf` (`net/mptcp/protocol.h`) and
//! `sk_stream_is_writeable` (`include/net/sock.h`).
//! ```text
//! subflow     min(expand · max(10, cwnd) · memory of a segment, largest), at least what it ever was
//! connection  the sum of its subflows' and 4 KiB
//! full        until a third of it is free
//! ```

use anabranch_units::Bytes;

/// The send buffer of a subflow with a window of so many segments, which was `before`. It holds `expand` windows of
/// segments of `segment` bytes of memory each, and at most `largest`.
pub fn grown(before: Bytes, expand: f64, window_segments: u32, segment: u64, largest: Bytes) -> Bytes {
    let segments = u64::from(window_segments.max(INITIAL_WINDOW));
    before.max(Bytes::new((expand * (segments * segment) as f64) as u64).min(largest))
}

/// True if a buffer of this size, which was full, takes data again with `held` bytes in it.
pub fn is_writable(size: Bytes, held: u64) -> bool {
    3 * held <= 2 * size.get()
}

/// The connection's buffer without a subflow: the first value of `tcp_wmem`.
pub const SMALLEST: Bytes = Bytes::new(4096);
/// The largest buffer of a subflow: the third value of `tcp_wmem`.
pub const LARGEST: Bytes = Bytes::new(4 << 20);
/// Memory that a buffer provides for each segment of its window.
pub const SEGMENT_MEMORY: u64 = 2304;
/// Windows that a buffer holds.
pub const EXPAND: f64 = 2.0;
/// The least window that a buffer is made for (`TCP_INIT_CWND`).
const INITIAL_WINDOW: u32 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_holds_two_windows_and_never_shrinks() {
        let of = |before: u64, cwnd| grown(Bytes::new(before), EXPAND, cwnd, SEGMENT_MEMORY, LARGEST).get();
        // 2 · 10 · 2304, 2 · 100 · 2304, and from 911 segments on 4 MiB.
        assert_eq!([1, 10, 100, 910, 911].map(|cwnd| of(0, cwnd)), [46_080, 46_080, 460_800, 4_193_280, 4 << 20]);
        assert_eq!(of(460_800, 20), 460_800);
    }

    #[test]
    fn a_writer_goes_on_when_a_third_is_free() {
        assert_eq!([0, 600, 601, 900].map(|held| is_writable(Bytes::new(900), held)), [true, true, false, false]);
    }
}
