//! Counters of an endpoint.

use super::{FALLBACKS, RESET_REASONS_RECEIVED, RESETS_SENT};
use crate::FallbackReason;
use anabranch_units::statistics;
use anabranch_wire::ResetReason;
use std::collections::BTreeMap;

statistics! {
    /// Counters of an endpoint, over all its connections.
    #[derive(Clone, PartialEq, Eq, Debug, Default)]
    #[non_exhaustive]
    pub struct Counters as |it: Counters| it => {
        /// Fallbacks to TCP by reason.
        #[statistic(
            "fallbacks", Counter, None, "fallbacks to plain TCP by reason", from FALLBACKS,
            in_column("fallback_reasons")
        )]
        pub fallbacks: BTreeMap<FallbackReason, u64>,
        /// Subflows and connections we reset, by the reason we gave.
        #[statistic(
            "resets-sent", Counter, None, "resets sent by reason (MP_TCPRST)", from RESETS_SENT,
            in_column("reset_reasons")
        )]
        pub resets_sent: BTreeMap<ResetReason, u64>,
        /// RSTs accepted.
        #[statistic("resets-received", Counter, None, "RSTs accepted")]
        pub resets_received: u64,
        /// Resets received with a reason (MP_TCPRST, RFC 8684 §3.6), by reason.
        #[statistic(
            "reset-reasons-received", Counter, None, "RSTs accepted by reason (MP_TCPRST)", from RESET_REASONS_RECEIVED
        )]
        pub reset_reasons_received: BTreeMap<ResetReason, u64>,
        /// ADD_ADDRs ignored because their identifier already denotes another address (RFC 8684 §3.4.1).
        #[statistic("conflicting-add-addr", Counter, None, "ADD_ADDRs whose identifier stands for another address")]
        pub conflicting_add_addr: u64,
        /// Connections begun anew on another path ([`Event::Reopened`](crate::Event::Reopened)).
        #[statistic("reopened", Counter, None, "connections begun anew on another path")]
        pub reopened: u64,
        /// Joins refused: unknown token, bad HMAC, over a limit, or after a fallback.
        #[statistic("joins-refused", Counter, None, "MP_JOINs refused: token, HMAC or limit")]
        pub joins_refused: u64,
        /// SYNs answered with a SYN cookie, because too many handshakes were under way
        /// ([`Config::max_half_open`](crate::Config::max_half_open)).
        #[statistic("cookies-sent", Counter, None, "SYNs answered with a SYN cookie", as_metric("syn_cookies_sent"))]
        pub cookies_sent: u64,
        /// Connections made of the answer to a cookie.
        #[statistic(
            "cookies-received", Counter, None, "connections made of the answer to a SYN cookie",
            as_metric("syn_cookies_received")
        )]
        pub cookies_received: u64,
        /// Segments to a listening port that belonged to no connection and answered no cookie, while some were out;
        /// third ACKs of joins that may have been forgotten for others.
        #[statistic(
            "cookies-invalid", Counter, None, "segments that answered no SYN cookie of ours",
            as_metric("syn_cookies_invalid")
        )]
        pub cookies_invalid: u64,
        /// SYNs not answered because a cookie cannot say what they ask for: an MSS below 536.
        #[statistic("half-open-dropped", Counter, None, "SYNs not answered: no SYN cookie for them")]
        pub half_open_dropped: u64,
        /// Joins answered without a subflow, because too many were under way in their connection.
        #[statistic("joins-deferred", Counter, None, "MP_JOINs answered without a subflow")]
        pub joins_deferred: u64,
        /// Subflows made when such a join was completed.
        #[statistic("deferred-joins-received", Counter, None, "subflows made when a deferred MP_JOIN was completed")]
        pub deferred_joins_received: u64,
        /// Half-open joins that newer ones replaced.
        #[statistic("half-open-joins-dropped", Counter, None, "deferred MP_JOINs forgotten for others")]
        pub half_open_joins_dropped: u64,
        /// Segments that belonged to no connection.
        #[statistic("unknown-flow", Counter, Segments, "segments of no connection")]
        pub unknown_flow: u64,
        /// Segments outside the window, with bad acknowledgments or failing PAWS.
        #[statistic("unacceptable", Counter, Segments, "segments outside the window or failing PAWS")]
        pub unacceptable: u64,
        /// Reports of packets too big that were believed.
        #[statistic("too-big", Counter, None, "reports of packets too big that were believed")]
        pub too_big: u64,
        /// Reports ignored: they fit no segment under way, or would change nothing.
        #[statistic("too-big-ignored", Counter, None, "reports of packets too big that were not believed")]
        pub too_big_ignored: u64,
        /// Paths found to swallow large packets.
        #[statistic("black-holes", Counter, None, "paths found to swallow large packets")]
        pub black_holes: u64,
        /// Bytes refused, or dropped later, because they lay beyond the window or memory limits.
        #[statistic("refused-data", Counter, Bytes, "data beyond the window or memory limits")]
        pub refused_data: u64,
        /// Mappings whose DSS checksum was wrong.
        #[statistic("checksum-failures", Counter, None, "DSS checksums that failed")]
        pub checksum_failures: u64,
        /// MP_FAILs received, those on a RST included.
        #[statistic("fails-received", Counter, None, "MP_FAILs received")]
        pub fails_received: u64,
        /// ADD_ADDRs with a wrong HMAC.
        #[statistic("bad-add-addr", Counter, None, "ADD_ADDRs with a wrong HMAC")]
        pub bad_add_addr: u64,
    }
}
