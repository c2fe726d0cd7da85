//! A live connection in words.

use super::answer::{LiveConnection, LiveShare, LiveSubflow};
use super::judge::Look;
use crate::Limit;
use crate::phrases::{self, Ends, LOSSY, SHORTER_QUEUE, is_bloated};

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

/// Both ends of what is told live: only this host is seen.
const HERE: Ends<'_> = Ends { of_sender: "here", on_sender: "here", on_receiver: "here" };

/// A limit as a clause, with the remedy if there is one.
fn clause(connection: &LiveConnection, share: &LiveShare, length: u64) -> (String, Option<&'static str>) {
    let path = share.path.as_deref().unwrap_or("a subflow");
    let on_path = || connection.subflows.iter().filter(|it| share.path.as_ref() == Some(&it.path));
    let common = share.limit.and_then(|limit| phrases::clause(limit, path, &HERE)).unwrap_or_default();
    match share.limit {
        None => ("nothing on this host was waited for: the other host sends, and its side tells more".to_owned(), None),
        Some(Limit::ApplicationReads | Limit::ApplicationSends | Limit::SlowStart) => (common, None),
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
        Some(Limit::SendBuffer) => (common, Some("A larger one would help: net.ipv4.tcp_wmem, SO_SNDBUF.")),
        Some(Limit::CongestionWindow) => match on_path().map(losses).find(|share| *share >= LOSSY) {
            Some(losses) => {
                (format!("{common}, after losses: {:.1} % of its segments were sent again", 100.0 * losses), None)
            }
            None => (common, None),
        },
        Some(Limit::Timeout) => (format!("{path} waited for a retransmission timeout"), None),
        Some(Limit::Pacing) => (format!("segments for {path} were held back, by pacing or TCP Small Queues"), None),
        Some(Limit::Scheduler) => ("there was room, and the scheduler did not use it".to_owned(), None),
        Some(Limit::PathFull) => full(connection, path, length, &common),
        Some(limit) => (format!("it waited: {}", limit.name()), None),
    }
}

/// Share of segments sent again.
fn losses(subflow: &LiveSubflow) -> f64 {
    f64::from(subflow.retransmitted) / f64::from(subflow.segments.max(1))
}

fn full(connection: &LiveConnection, path: &str, length: u64, common: &str) -> (String, Option<&'static str>) {
    let it = connection.subflows.iter().find(|it| it.path == path);
    let rate = it.map_or(0.0, |it| it.sent as f64 * 8.0 / 1e6 / (length.max(1) as f64 / 1e9));
    let clause = format!("{common}, {rate:.1} Mbit/s");
    let bloated = |it: &&LiveSubflow| it.sent > 0 && is_bloated(it.rtt_ms - it.min_rtt_ms, it.min_rtt_ms);
    match connection.subflows.iter().find(bloated) {
        Some(it) => (
            format!(
                "{clause}, and the queue of {} holds packets for {:.0} ms beyond its {:.0} ms (bufferbloat)",
                it.path,
                it.rtt_ms - it.min_rtt_ms,
                it.min_rtt_ms
            ),
            Some(SHORTER_QUEUE),
        ),
        None => (clause, None),
    }
}
