//! A live connection in words.

use super::answer::{LiveConnection, LiveShare, LiveSubflow};
use super::judge::Look;
use crate::Limit;

/// Share of segments sent again that is worth a word.
const LOSSY: f64 = 0.003;
/// Times that a queue lengthens the round trip before it is worth a word, and the least time \[ms\].
const BLOATED: (f64, f64) = (3.0, 50.0);
/// `TCP_SYN_SENT`.
const SYN_SENT: u8 = 2;
/// Bytes that tell that a connection carries data.
const CARRIES: u64 = 20_000;

/// Puts an interval of a connection into words: faults of the set-up, then the limit that took most of the time.
pub(super) fn sentence(connection: &LiveConnection, now: &Look, length: u64) -> String {
    let mut sentences = faults(connection, now);
    sentences.extend(main(connection, length));
    sentences.join(" ")
}

/// Paths that carried nothing, and MPTCP that did not come about.
fn faults(connection: &LiveConnection, now: &Look) -> Vec<String> {
    let carried = connection.sent + connection.received;
    if carried < CARRIES {
        return Vec::new();
    }
    let Some((info, _)) = &now.mptcp else { return Vec::new() };
    let mut faults = Vec::new();
    let only = || now.subflows.first().map_or(String::new(), |it| it.local.ip().to_string());
    if info.fallback {
        faults.push(format!(
            "Only {} carried data: the connection went on as plain TCP. Start the other host's program with `mptcpize \
             run`, or look for a box on the way that removes options.",
            only()
        ));
    } else if now.subflows.len() == 1 && info.subflows_max == 0 {
        faults.push(format!(
            "Only {} carried data: this host admits no further subflow. Raise `ip mptcp limits set subflows N`.",
            only()
        ));
    } else if now.subflows.len() == 1 {
        faults.push(format!(
            "Only {} carried data: there is no further subflow. Check `ip mptcp endpoint` and `ip mptcp limits` on \
             both hosts, and routes and firewalls for the other addresses.",
            only()
        ));
    }
    for it in connection.subflows.iter().filter(|it| it.sent + it.received == 0 && connection.subflows.len() > 1) {
        let opening = now.subflows.iter().any(|socket| socket.local == it.local && socket.state == SYN_SENT);
        let why = match it.backup {
            _ if opening => ": its join was never answered. Check its route, rp_filter and firewalls.",
            _ if it.segments > 0 || it.in_flight > 0 => {
                ": nothing that was sent there was acknowledged. It is down, or large segments do not pass (MTU)."
            }
            true => ": it is marked as a backup. Make it a regular one: `ip mptcp endpoint change ID nobackup`.",
            false => ": its subflow is there, and was given nothing.",
        };
        faults.push(format!("{} carried nothing{why}", it.path));
    }
    faults
}

fn main(connection: &LiveConnection, length: u64) -> Vec<String> {
    let is_still = connection.sent + connection.received == 0;
    let idle = |it: &LiveShare| matches!(it.limit, None | Some(Limit::ApplicationSends));
    if is_still && connection.shares.first().is_none_or(idle) {
        return vec!["No data moved.".to_owned()];
    }
    let Some(main) = connection.shares.first() else {
        return vec!["It was too short to tell.".to_owned()];
    };
    let share = match main.share {
        share if share >= 0.995 => "All the time".to_owned(),
        share => format!("{:.0} % of the time", 100.0 * share),
    };
    let (clause, remedy) = clause(connection, main, length);
    let mut sentences = vec![format!("{share} {clause}.")];
    sentences.extend(remedy.map(str::to_owned));
    sentences
}

/// A limit as a clause, with the remedy if there is one.
fn clause(connection: &LiveConnection, share: &LiveShare, length: u64) -> (String, Option<&'static str>) {
    let path = share.path.as_deref().unwrap_or("a subflow");
    let on_path = || connection.subflows.iter().filter(|it| share.path.as_ref() == Some(&it.path));
    match share.limit {
        None => ("nothing on this host was waited for: the other host sends, and its side tells more".to_owned(), None),
        Some(Limit::ApplicationReads) => {
            ("the application here did not read what was there, and its window closed".to_owned(), None)
        }
        Some(Limit::ApplicationSends) => ("the application here had written nothing more to send".to_owned(), None),
        Some(Limit::PeerWindow) => {
            let window = connection.subflows.iter().map(|it| it.window).max().unwrap_or(0);
            (
                match window {
                    0 => "the other host's window was closed".to_owned(),
                    window => format!("the other host's window, of {} KiB, was used up", window >> 10),
                },
                Some(
                    "Its application reads too slowly, or a larger receive buffer there would help: net.ipv4.tcp_rmem, \
                     SO_RCVBUF.",
                ),
            )
        }
        Some(Limit::SendBuffer) => (
            "the send buffer here was full of data that was not acknowledged".to_owned(),
            Some("A larger one would help: net.ipv4.tcp_wmem, SO_SNDBUF."),
        ),
        Some(Limit::CongestionWindow) => match on_path().map(losses).find(|share| *share >= LOSSY) {
            Some(losses) => (
                format!(
                    "the congestion window of {path} was full and left it idle, after losses: {:.1} % of its segments \
                     were sent again",
                    100.0 * losses
                ),
                None,
            ),
            None => (format!("the congestion window of {path} was full and left it idle"), None),
        },
        Some(Limit::SlowStart) => (format!("the congestion window of {path} was still growing, and was full"), None),
        Some(Limit::Timeout) => (format!("{path} waited for a retransmission timeout"), None),
        Some(Limit::Pacing) => (format!("segments for {path} were held back, by pacing or TCP Small Queues"), None),
        Some(Limit::Scheduler) => ("there was room, and the scheduler did not use it".to_owned(), None),
        Some(Limit::PathFull) => full(connection, path, length),
        Some(limit) => (format!("it waited: {}", limit.name()), None),
    }
}

/// Share of segments sent again.
fn losses(subflow: &LiveSubflow) -> f64 {
    f64::from(subflow.retransmitted) / f64::from(subflow.segments.max(1))
}

fn full(connection: &LiveConnection, path: &str, length: u64) -> (String, Option<&'static str>) {
    let it = connection.subflows.iter().find(|it| it.path == path);
    let rate = it.map_or(0.0, |it| it.sent as f64 * 8.0 / 1e6 / (length.max(1) as f64 / 1e9));
    let clause = format!("{path} carried all that it can, {rate:.1} Mbit/s");
    let bloated = |it: &&LiveSubflow| {
        let queue = it.rtt_ms - it.min_rtt_ms;
        it.sent > 0 && queue >= BLOATED.0 * it.min_rtt_ms.max(1.0) && queue >= BLOATED.1
    };
    match connection.subflows.iter().find(bloated) {
        Some(it) => (
            format!(
                "{clause}, and the queue of {} holds packets for {:.0} ms beyond its {:.0} ms (bufferbloat)",
                it.path,
                it.rtt_ms - it.min_rtt_ms,
                it.min_rtt_ms
            ),
            Some("A shorter or managed queue there (CoDel, CAKE) would bring the same rate without the delay."),
        ),
        None => (clause, None),
    }
}
