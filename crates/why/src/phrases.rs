//! Thresholds and words that the judges of captures and of live connections share, so that they cannot say different
//! things of the same.

use crate::Limit;

/// Share of packets lost that is worth a word.
pub(crate) const LOSSY: f64 = 0.003;
/// Times that a queue lengthens the round trip before it is worth a word, and the least time \[ms\].
const BLOATED: (f64, f64) = (3.0, 50.0);

/// Remedy for a queue that holds packets for long.
pub(crate) const SHORTER_QUEUE: &str =
    "A shorter or managed queue there (CoDel, CAKE) would bring the same rate without the delay.";

/// True if a queue holds packets for so long beside the round trip of its path \[ms\] that it is worth a word.
pub(crate) fn is_bloated(queue: f64, rtt: f64) -> bool {
    queue >= BLOATED.0 * rtt.max(1.0) && queue >= BLOATED.1
}

/// The two ends in a sentence: `of the server` and `on the server`, or `here`.
pub(crate) struct Ends<'a> {
    pub of_sender: &'a str,
    pub on_sender: &'a str,
    pub on_receiver: &'a str,
}

/// A limit as a clause that follows "of the time", where it reads the same for everybody. `path` is the one that is
/// meant.
pub(crate) fn clause(limit: Limit, path: &str, ends: &Ends<'_>) -> Option<String> {
    let Ends { of_sender, on_sender, on_receiver } = ends;
    Some(match limit {
        Limit::SlowStart => format!("the congestion window of {path} was still growing, and was full"),
        Limit::CongestionWindow => format!("the congestion window of {path} was full and left it idle"),
        Limit::SendBuffer => format!("the send buffer {of_sender} was full of data that was not acknowledged"),
        Limit::ApplicationSends => format!("the application {on_sender} had written nothing more to send"),
        Limit::ApplicationReads => {
            format!("the application {on_receiver} did not read what was there, and its window closed")
        }
        Limit::PathFull => format!("{path} carried all that it can"),
        _ => return None,
    })
}
