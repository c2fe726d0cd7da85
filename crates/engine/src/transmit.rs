//! Segments on their way from an endpoint to its driver.

use crate::Purpose;
use anabranch_units::Bytes;
use anabranch_wire::Segment;

/// A segment to be sent.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Transmit {
    /// The segment; its source address says from where it leaves. [`Endpoint::reuse`] of this or another endpoint takes
    /// its memory back.
    ///
    /// [`Endpoint::reuse`]: crate::Endpoint::reuse
    pub segment: Box<Segment>,
    /// Size of its IP packet, as [`Endpoint::handle_departure`] expects it; valid until options or payload are changed.
    ///
    /// [`Endpoint::handle_departure`]: crate::Endpoint::handle_departure
    pub size: Bytes,
    /// Tag for [`Endpoint::handle_departure`], to be called when the first hop has sent the segment.
    ///
    /// [`Endpoint::handle_departure`]: crate::Endpoint::handle_departure
    pub tag: u64,
    /// Reason for which it is sent; informational only.
    pub purpose: Purpose,
}
