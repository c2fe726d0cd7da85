//! The answer about a capture in a few sentences, and the list of what the capture does not show.

use super::answer::{CaptureAnswer, Confidence, Fault, FaultKind, JudgedConnection, JudgedDirection, PathMeasured};
use super::beside;
use crate::phrases::{self, Ends, LOSSY, SHORTER_QUEUE, is_bloated};
use crate::{Limit, Share};

/// A window up to this is small \[B\].
const SMALL_WINDOW: u64 = 256 << 10;

/// Puts an answer into words.
pub(crate) fn sentence(answer: &CaptureAnswer) -> String {
    let Some(connection) = &answer.connection else { return nothing(answer) };
    // That a sound subflow carried nothing follows from the limit, where that binds all paths.
    let binds_all = connection.directions.first().and_then(chief).is_some_and(|share| binds_all(share.limit));
    let (mut first, mut later): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    for fault in &connection.faults {
        let costs_nothing = binds_all && (ONE_MORE_PATH.contains(&fault.kind) || fault.kind == FaultKind::Unused);
        let follows = costs_nothing || fault.kind == FaultKind::JoinLate;
        if follows { &mut later } else { &mut first }.push(fault_words(connection, fault));
    }
    let mut sentences = first;
    match connection.directions.first() {
        Some(direction) => sentences.extend(main(connection, direction)),
        None if connection.one_sided => sentences.push(
            "Packets of one side only are in the capture: without those of the other nothing tells what was waited for."
                .to_owned(),
        ),
        None => sentences.push("The capture has no data of this connection: there is nothing to judge.".to_owned()),
    }
    if !connection.orphan_options.is_empty() {
        let options = connection.orphan_options.join("; ");
        sentences.push(format!("Its MPTCP handshake is not in the capture, and its options say: {options}."));
    }
    sentences.extend(later);
    sentences.join(" ")
}

/// Faults that cost a further path, and nothing else.
const ONE_MORE_PATH: [FaultKind; 3] = [FaultKind::NoJoin, FaultKind::AddressUnused, FaultKind::PlainClient];

/// True if a limit leaves nothing for any path to carry.
fn binds_all(limit: Limit) -> bool {
    use Limit as L;
    matches!(
        limit,
        L::ApplicationSends | L::ApplicationReads | L::PeerWindow | L::SendBuffer | L::InFlight | L::Request
    )
}

/// The limit that took most of the time, with its whole share. Data that is on its way before the application writes
/// more is a part of its silence; a buffer or an end that binds all is one, whatever path is missed.
fn chief(direction: &JudgedDirection) -> Option<Share> {
    let merged = |limit: Limit| {
        let share: f64 = direction.shares.iter().filter(|it| it.limit == limit).map(|it| it.share).sum();
        let first = direction.shares.iter().find(|it| it.limit == limit)?;
        Some(Share { share, path: None, ..first.clone() })
    };
    let mut all: Vec<Share> = direction.shares.clone();
    all.extend([Limit::SendBuffer, Limit::InFlight].into_iter().filter_map(merged));
    if let (Some(silent), Some(flight)) = (merged(Limit::ApplicationSends), merged(Limit::InFlight))
        && silent.share >= SILENT * flight.share
    {
        all.push(Share { share: silent.share + flight.share, ..silent });
    }
    all.into_iter().reduce(|best, it| if it.share > best.share { it } else { best })
}

/// Why nothing can be judged.
fn nothing(answer: &CaptureAnswer) -> String {
    let captures: Vec<_> = answer.files.iter().filter(|file| file.is_capture).collect();
    let packets: u64 = captures.iter().map(|file| file.packets).sum();
    match packets {
        0 => "The capture holds no packet.".to_owned(),
        1 => "The capture holds 1 packet and no TCP connection: there is nothing to judge.".to_owned(),
        n => format!("The capture holds {n} packets and no TCP connection: there is nothing to judge."),
    }
}

/// Faults of paths that do carry data.
const OF_A_PATH_IN_USE: [FaultKind; 5] =
    [FaultKind::MtuBlackHole, FaultKind::WrongRoute, FaultKind::Nagle, FaultKind::DelayedAck, FaultKind::Reordering];

fn fault_words(connection: &JudgedConnection, fault: &Fault) -> String {
    let remedy = fault.remedy.as_ref().map_or(String::new(), |remedy| format!(" {remedy}"));
    match (&fault.path, fault.kind) {
        (_, FaultKind::SlowFirstPath) => format!("{}.{remedy}", fault.text),
        (Some(path), kind) if OF_A_PATH_IN_USE.contains(&kind) => format!("On {path} {}.{remedy}", fault.text),
        (Some(path), _) => format!("{path} carried nothing: {}.{remedy}", fault.text),
        (None, _) => match connection.paths.first() {
            Some(only) => format!("Only {} carried data: {}.{remedy}", only.name, fault.text),
            None => format!("{}.{remedy}", fault.text),
        },
    }
}

/// Names the limit that took most of the time, and its remedy.
fn main(connection: &JudgedConnection, direction: &JudgedDirection) -> Vec<String> {
    let Some(main) = &chief(direction) else {
        return vec!["All packets of this transfer have one time: nothing tells what was waited for.".to_owned()];
    };
    let share = match main.share {
        share if share >= 1.0 => "All".to_owned(),
        share if share >= 0.995 => "Nearly all".to_owned(),
        share => format!("{:.0} %", 100.0 * share),
    };
    let (clause, remedy) = clause(connection, direction, main);
    let mut sentences = vec![format!("{share} of the time {clause}{}.", troubles(connection, direction, main))];
    sentences.extend(remedy);
    if !direction.finished {
        sentences.push("The capture ends before the last of the data arrived.".to_owned());
    }
    sentences
}

/// Paths that lose packets by chance or hold them in long queues, where that is not said already: a path that has to
/// repeat, or is late, holds up the others.
fn troubles(connection: &JudgedConnection, direction: &JudgedDirection, main: &Share) -> String {
    if matches!(main.limit, Limit::ApplicationSends | Limit::ApplicationReads | Limit::PathDown | Limit::Request) {
        return String::new();
    }
    let said = (main.limit == Limit::CongestionWindow).then_some(main.path.as_ref()).flatten();
    let share = |it: &PathMeasured| it.lost_by_chance as f64 / it.packets.max(1) as f64;
    let lossy = |it: &&PathMeasured| Some(&it.path) != said && it.packets >= MEANINGFUL && share(it) >= CHANCE;
    let words = direction.measured.iter().filter(lossy).map(|it| format!("{} lost {}", it.path, percent(share(it))));
    let words: Vec<String> = words.collect();
    let mut text = String::new();
    if !words.is_empty() {
        text = format!(", and {} of its packets by chance", words.join(" and "));
    }
    if main.limit != Limit::PathFull {
        text += &bloat(connection, direction).unwrap_or_default();
    }
    text
}

/// The path whose queue lengthens its round trip most, if that is worth a word.
fn bloat(connection: &JudgedConnection, direction: &JudgedDirection) -> Option<String> {
    let bloated = direction.measured.iter().filter_map(|it| {
        let rtt = connection.paths.iter().find(|path| path.name == it.path)?.rtt_ms?;
        let queue = it.queue_ms?;
        is_bloated(queue, rtt).then_some((it, queue, rtt))
    });
    let (it, queue, rtt) = bloated.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let queue = format!("the queue of {} held packets for {queue:.0} ms beyond its {rtt:.0} ms", it.path);
    Some(format!(", and {queue} (bufferbloat)"))
}

/// Packets of which a share of losses says something.
const MEANINGFUL: u64 = 50;
/// Share of packets lost by chance that holds up the other paths.
const CHANCE: f64 = 0.01;
/// Silence of an application beside the time that its data is on its way, as a share of it.
const SILENT: f64 = 0.3;

/// A limit as a clause that follows "of the time", with the remedy if there is one.
fn clause(connection: &JudgedConnection, direction: &JudgedDirection, share: &Share) -> (String, Option<String>) {
    let path = share.path.clone().unwrap_or_else(|| "a path".to_owned());
    let receiver = article(&connection.sides[1 - direction.from]);
    let sender = article(&connection.sides[direction.from]);
    let window = match direction.widest_window {
        Some(bytes) => format!("{receiver}'s window, of {} at most,", size(bytes)),
        None => format!("{receiver}'s window"),
    };
    let small = direction.widest_window.is_some_and(|bytes| bytes <= SMALL_WINDOW);
    let larger =
        small.then(|| format!("A larger receive buffer there would help: net.ipv4.tcp_rmem, SO_RCVBUF of {receiver}."));
    let measured = direction.measured.iter().find(|it| Some(&it.path) == share.path.as_ref());
    let losses = measured.filter(|it| it.packets > 0).map(|it| it.lost as f64 / it.packets as f64);
    let lossy = losses.filter(|share| *share >= LOSSY);
    let [of_sender, on_sender] = ["of", "on"].map(|word| format!("{word} {sender}"));
    let ends = Ends { of_sender: &of_sender, on_sender: &on_sender, on_receiver: &format!("on {receiver}") };
    let common = phrases::clause(share.limit, &path, &ends).unwrap_or_default();
    match share.limit {
        Limit::Handshake => ("the connection was being set up".to_owned(), None),
        Limit::Request => (format!("the request was on its way to {sender}"), None),
        Limit::Join => (format!("{path} was still being joined, and the paths there were could carry no more"), None),
        Limit::SlowStart | Limit::ApplicationSends | Limit::ApplicationReads => (common, None),
        Limit::CongestionWindow => match lossy {
            Some(share) => (format!("{common}, after losses: {} of its packets were lost", percent(share)), None),
            None => settled(connection, direction, &path, common),
        },
        Limit::PeerWindow => (format!("{window} was used up by data on its way"), larger),
        Limit::HeadOfLine => (format!("{receiver} held data behind a hole on {path}"), larger),
        Limit::Scheduler => (format!("{path} had room, and the scheduler of {sender} did not use it"), None),
        Limit::Pacing => (format!("{sender} held segments for {path} back, by pacing or TCP Small Queues"), None),
        Limit::Nagle => (format!("Nagle's algorithm held a short segment back on {path} until an ACK came"), None),
        Limit::Timeout => (format!("{sender} waited for a retransmission timeout on {path}"), None),
        Limit::SendBuffer => {
            (common, Some(format!("A larger one would help: net.ipv4.tcp_wmem, SO_SNDBUF of {sender}.")))
        }
        Limit::PathFull => full(connection, direction, share, common),
        Limit::PathDown => (format!("nothing that was sent on {path} arrived, as if it were down"), None),
        Limit::InFlight => ("all data was sent, and the last of it was on its way".to_owned(), None),
        Limit::Unused => ("no path could carry data".to_owned(), None),
    }
}

/// A congestion window that is full though nothing was lost: most often it left slow start too early.
fn settled(
    connection: &JudgedConnection,
    direction: &JudgedDirection,
    path: &str,
    clause: String,
) -> (String, Option<String>) {
    let it = direction.measured.iter().find(|it| it.path == path);
    let rtt = connection.paths.iter().find(|it| it.name == path).and_then(|it| it.rtt_ms);
    let early = it.zip(rtt).and_then(|(it, rtt)| {
        let carries = it.rate_bps? / 8.0 * rtt / 1000.0;
        it.settled_window.filter(|window| (*window as f64) < EARLY * carries)
    });
    match early {
        Some(window) => (
            format!("{clause}: it left slow start at {} though nothing was lost", size(window)),
            Some(
                "Look for a threshold that is remembered: `ip tcp_metrics flush`, net.ipv4.tcp_no_metrics_save, \
                 `ssthresh` of `ip route`."
                    .to_owned(),
            ),
        ),
        None => (clause, None),
    }
}

/// Share of what a round trip carries, below which a slow start that ends is no answer to a queue.
const EARLY: f64 = 0.5;

fn full(
    connection: &JudgedConnection,
    direction: &JudgedDirection,
    share: &Share,
    of_one: String,
) -> (String, Option<String>) {
    let of_all = || "all paths in use carried all that they can".to_owned();
    let clause = if share.path.is_some() { of_one } else { of_all() };
    let clause = match beside::beside(direction, share.path.as_ref()) {
        Some(beside) => format!("{clause}: {beside}"),
        None => clause,
    };
    match bloat(connection, direction) {
        Some(bloat) => (clause + &bloat, Some(SHORTER_QUEUE.to_owned())),
        None => (clause, None),
    }
}

/// Facts that the capture does not show.
pub(crate) fn unknown(about: &About) -> Vec<String> {
    let mut unknown = vec![
        "The congestion window is not on the wire. It is taken for what was in flight when the sender had to wait for \
         an acknowledgment."
            .to_owned(),
        "The names of scheduler and congestion control are not on the wire.".to_owned(),
    ];
    match (about.sender_seen, about.receiver_seen) {
        (true, true) if about.one_host => {}
        (true, true) => unknown.push(match about.apart {
            None => {
                "The clocks of the two captures are taken to agree: what they differ by is taken for delay.".to_owned()
            }
            Some((seconds, within)) => format!(
                "The clocks of the two captures are {seconds:.3} s apart, which was taken out; up to {:.1} ms of what \
                 is taken for delay in one direction may be delay in the other.",
                within * 1e3
            ),
        }),
        (true, false) => unknown.push(
            "Captured near the sender: when data arrived is estimated from acknowledgments, and so are holes at the \
             receiver and whether its application reads."
                .to_owned(),
        ),
        (false, true) => unknown.push(
            "Captured near the receiver: when data left is estimated from timestamps and half a round trip. Slow \
             start, congestion window, pacing, scheduler and send buffer are told apart less surely, and losses before \
             the capture show only as holes."
                .to_owned(),
        ),
        (false, false) => {}
    }
    if about.between {
        unknown.push("Captured between the hosts: times at both ends are estimates.".to_owned());
    }
    if !about.handshake {
        unknown.push(
            "The capture misses a handshake: the scale of windows is not known, so no window of the receiver is named."
                .to_owned(),
        );
    }
    if about.cut > 0 {
        unknown.push(format!("{} packets were cut short by the capture.", about.cut));
    }
    if about.options_cut {
        unknown.push("Options of packets were cut: what MPTCP said in them is not known.".to_owned());
    }
    if about.joined > 0 {
        unknown.push("The capture is long: packets of one burst were taken together.".to_owned());
    }
    if about.left_out > 0 {
        unknown.push(format!("The capture is too long: its last {} packets were left out.", about.left_out));
    }
    if about.unfit {
        unknown.push(
            "The captures are not of the two ends, or do not fit together: segmentation offload cuts packets \
             differently at each (`ethtool -K DEV gro off gso off tso off`), or a clock was set meanwhile. Only one of \
             them is judged."
                .to_owned(),
        );
    }
    if about.missing {
        unknown.push(
            "Bytes were acknowledged that are not in the capture: its losses look like those of the path.".to_owned(),
        );
    }
    if about.backwards {
        unknown.push("Packets are not in the order of time: what set off what is told less surely.".to_owned());
    }
    unknown
}

/// Facts about a capture.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct About {
    /// Both ends are the same host.
    pub one_host: bool,
    /// Packets tell where the capture was made.
    pub placed: bool,
    pub sender_seen: bool,
    pub receiver_seen: bool,
    pub between: bool,
    pub handshake: bool,
    pub cut: u64,
    pub options_cut: bool,
    pub joined: u64,
    pub left_out: u64,
    /// Two captures do not fit together.
    pub unfit: bool,
    /// Difference of the clocks of two captures, and its uncertainty \[s\]; `None` if they may agree.
    pub apart: Option<(f64, f64)>,
    pub missing: bool,
    pub backwards: bool,
}

impl About {
    pub(crate) fn confidence(&self) -> Confidence {
        let cut = self.options_cut || self.missing || self.left_out > 0;
        let broken = self.between || !self.handshake || cut || self.unfit || self.backwards;
        match self.sender_seen && self.receiver_seen {
            _ if broken => Confidence::Low,
            true => Confidence::High,
            false => Confidence::Medium,
        }
    }
}

/// A side in a sentence: `the client`, but `A`.
fn article(side: &str) -> String {
    anabranch_inspect::article(side)
}

fn size(bytes: u64) -> String {
    match bytes {
        n if n >= 10 << 20 => format!("{} MiB", n >> 20),
        n if n >= 10 << 10 => format!("{} KiB", n >> 10),
        n => format!("{n} B"),
    }
}

fn percent(share: f64) -> String {
    if share < 0.1 { format!("{:.1} %", 100.0 * share) } else { format!("{:.0} %", 100.0 * share) }
}
