//! The answer in one or two sentences: what took the time, and what a counterfactual says would have helped.

use crate::answer::{Answer, Measure, Reason, Share, Tried};
use crate::inquiry::{DataBuffers, size_text};
use crate::{Kind, Limit};

/// Smallest gain, as a share of the measure, that is worth a word.
const WORTH_IT: f64 = 0.02;
/// Smallest gain, as a share of the measure, of a fault that is named first.
const FAULT: f64 = 0.05;
/// Least gain of a fault that is named first, as a share of what another policy or size would give: where a fault is
/// there, policies differ mostly in how well they bear it.
const BEFORE_POLICIES: f64 = 0.6;
/// Share of the gain without all faults of a kind that one of them has to bring, to be named alone.
const NEARLY_ALL: f64 = 0.9;
/// Share of the time without any transfer from which on the application is named first, unless a fault or another
/// policy takes a good part of the transfers' time.
const MOSTLY_PAUSES: f64 = 0.5;
/// That part.
const GOOD_PART: f64 = 0.3;

/// Puts an answer into words. `buffers` are those that the data passes through.
pub(crate) fn sentence(answer: &Answer, buffers: &DataBuffers) -> String {
    let mut sentences = idle_paths(answer, |reason| !is_weak(reason));
    if answer.transfers.is_empty() {
        sentences.push("There is no transfer to judge.".to_owned());
        return sentences.join(" ");
    }
    let named = answer.fault.map(|index| &answer.counterfactuals[index]);
    match (named, paused_first(answer)) {
        (_, Some(pauses)) => sentences.push(pauses),
        (Some(tried), None) => sentences.push(without(answer, tried)),
        (None, None) => {}
    }
    sentences.extend(idle_paths(answer, is_weak));
    let main = main_share(answer);
    if let Some(main) = main {
        let share = match main.share {
            share if share >= 1.0 => "All".to_owned(),
            share if share >= 0.995 => "Nearly all".to_owned(),
            share => format!("{:.0} %", 100.0 * share),
        };
        let of = if answer.pauses.is_some() { "of the transfers' time" } else { "of the time" };
        sentences.push(format!("{share} {of} {}.", clause(main, buffers)));
    }
    if answer.unfinished_runs > 0 {
        let (n, all) = (answer.unfinished_runs, answer.repeat);
        sentences.push(format!("In {n} of {all} runs transfers did not finish."));
    }
    if answer.counterfactuals.is_empty() {
        return sentences.join(" ");
    }
    sentences.extend(if answer.unfinished_runs > 0 {
        Some(match rescue(answer) {
            Some(tried) => format!("With {} all of them would have finished{}.", tried.what, command(tried)),
            None => "No change that was tried lets all of them finish.".to_owned(),
        })
    } else {
        match remedy(answer, main) {
            Some(tried) => Some(helped(answer, tried)),
            None if named.is_some() => None,
            None => Some("No change that was tried would clearly have helped.".to_owned()),
        }
    });
    sentences.join(" ")
}

/// The sentences of paths that carried nothing.
fn idle_paths(answer: &Answer, which: impl Fn(Reason) -> bool) -> Vec<String> {
    let idle = answer.idle_paths.iter().filter(|idle| which(idle.reason));
    idle.map(|idle| format!("{} carried nothing: {}.", idle.path, idle.because)).collect()
}

/// Returns true for a reason that is itself an effect, so that a fault is named before it.
fn is_weak(reason: Reason) -> bool {
    !matches!(reason, Reason::PlainTcp | Reason::Backup | Reason::SubflowLimit | Reason::JoinFailed)
}

/// The fault that is named first: of those whose removal helps much the one that gives most, unless another policy or
/// size gives much more.
pub(crate) fn fault(answer: &Answer, bloated: &[String]) -> Option<usize> {
    let faults = || answer.counterfactuals.iter().enumerate().filter(|(_, tried)| is_fault(tried));
    if answer.unfinished_runs > 0 {
        let finished = faults().filter(|(_, tried)| tried.unfinished_runs == 0);
        return finished.min_by(|(_, a), (_, b)| a.value.mean.total_cmp(&b.value.mean)).map(|(index, _)| index);
    }
    let amount = |tried: &Tried| gain(answer, tried).map_or(0.0, |gain| gain.mean);
    let best = faults().map(|(_, tried)| amount(tried)).fold(0.0, f64::max);
    if best < FAULT * answer.value.mean || best < BEFORE_POLICIES * of_policies(answer) {
        return standing_queue(answer, bloated).filter(|_| of_policies(answer) < GOOD_PART * answer.value.mean);
    }
    // The first of equals; but one link in place of all, if it is the one.
    let (index, first) = faults().find(|(_, tried)| amount(tried) >= best)?;
    let same =
        faults().filter(|(at, tried)| *at > index && tried.kind == first.kind && tried.sets.len() < first.sets.len());
    let one = same.filter(|(_, tried)| amount(tried) >= NEARLY_ALL * best);
    Some(one.max_by(|(_, a), (_, b)| amount(a).total_cmp(&amount(b))).map_or(index, |(index, _)| index))
}

/// A long queue that filled while the paths carried all they can: it delays, though the transfer takes no longer.
fn standing_queue(answer: &Answer, bloated: &[String]) -> Option<usize> {
    main_share(answer).filter(|main| main.limit == Limit::PathFull)?;
    let fills = |tried: &Tried| tried.sets.iter().any(|set| bloated.iter().any(|link| set.starts_with(link)));
    answer.counterfactuals.iter().position(|tried| tried.kind == Kind::ShorterQueue && fills(tried))
}

fn is_fault(tried: &Tried) -> bool {
    tried.cause.is_some() && tried.kind != Kind::MtuProbing
}

/// The most that another policy or size gives. Plain TCP on one path is no policy: it tells of the others.
fn of_policies(answer: &Answer) -> f64 {
    let policies = answer.counterfactuals.iter().filter(|it| it.cause.is_none() && it.kind != Kind::SinglePath);
    policies.filter_map(|tried| gain(answer, tried)).map(|gain| gain.mean).fold(0.0, f64::max)
}

/// The application, where it is what the time went to.
fn paused_first(answer: &Answer) -> Option<String> {
    let pauses = answer.pauses.as_ref().filter(|pauses| pauses.share >= MOSTLY_PAUSES)?;
    let of_fault =
        answer.fault.and_then(|index| gain(answer, &answer.counterfactuals[index])).map_or(0.0, |it| it.mean);
    if of_fault.max(of_policies(answer)) >= GOOD_PART * answer.value.mean || answer.unfinished_runs > 0 {
        return None;
    }
    let share = 100.0 * pauses.share;
    Some(format!("{share:.0} % of the time the application had nothing to send: {}.", pauses.because))
}

/// A fault, and what the run would have been without it.
fn without(answer: &Answer, tried: &Tried) -> String {
    let begin = tried.cause.as_deref().unwrap_or(&tried.what);
    let Some(gain) = gain(answer, tried) else {
        let unfinished = answer.unfinished_runs > 0;
        let end = if unfinished { "" } else { ": it delays what is sent, and this took no longer for it" };
        return format!("{begin}{end}.");
    };
    let much = difference(answer, gain);
    format!("{begin}. Without that {much}{}.", command(tried))
}

/// The assignments of a counterfactual, to be copied.
fn command(tried: &Tried) -> String {
    if tried.sets.is_empty() || tried.sets.len() > MOST_SETS {
        return String::new();
    }
    // Quotes only where a shell or TOML needs them: `--set` takes a bare word for a text.
    let bare = |set: &String| match set.split_once("=\"").and_then(|(key, rest)| Some((key, rest.strip_suffix('"')?))) {
        Some((key, value)) if !value.contains([' ', '"', '$', '%']) => format!("{key}={value}"),
        _ => format!("'{set}'"),
    };
    let plain = |set: &String| if set.contains(['"', '[']) { bare(set) } else { set.clone() };
    let words: Vec<String> = tried.sets.iter().map(|set| format!("--set {}", plain(set))).collect();
    format!(" ({})", words.join(" "))
}

/// Most assignments that a sentence quotes.
const MOST_SETS: usize = 4;

/// Of the counterfactuals in which all transfers finished, the fastest; one that can be set before one without loss.
fn rescue(answer: &Answer) -> Option<&Tried> {
    let finished = answer.counterfactuals.iter().filter(|tried| tried.unfinished_runs == 0);
    finished.min_by(|a, b| {
        let key = |tried: &Tried| is_fault(tried);
        key(a).cmp(&key(b)).then(a.value.mean.total_cmp(&b.value.mean))
    })
}

/// The limit that took most of the time.
fn main_share(answer: &Answer) -> Option<&Share> {
    answer.shares.first()
}

/// A limit as a clause that follows "of the time".
fn clause(share: &Share, buffers: &DataBuffers) -> String {
    let on = |text: &str| match &share.path {
        Some(path) => format!("{text} {path}"),
        None => format!("{text} a path"),
    };
    let receive = match buffers.receive {
        (first, last) if first < last => format!("{} that grows to {}", size_text(first), size_text(last)),
        (_, size) => size_text(size),
    };
    match share.limit {
        Limit::Handshake => "the connection was being set up".to_owned(),
        Limit::Request => "the request was on its way to the sender".to_owned(),
        Limit::Join => {
            format!("{} was still being joined, and the paths there were could carry no more", path_of(share))
        }
        Limit::SlowStart => format!("{} was still growing, and was full", on("the congestion window of")),
        Limit::CongestionWindow => format!("{} was full and left it idle", on("the congestion window of")),
        Limit::PeerWindow => {
            format!("the receiver's window, from a buffer of {receive}, was used up by data on its way")
        }
        Limit::HeadOfLine => {
            format!("the receiver held data behind a hole {} (its buffer: {receive})", on("on"))
        }
        Limit::Scheduler => format!("{} had room, and the scheduler did not use it", path_of(share)),
        Limit::Pacing => format!("{} waited for pacing or TCP Small Queues", path_of(share)),
        Limit::Nagle => format!("Nagle's algorithm held a short segment back {} until an ACK came", on("on")),
        Limit::Timeout => format!("the sender waited for a retransmission timeout {}", on("on")),
        Limit::SendBuffer => {
            format!("the send buffer of {} was full of data that was not acknowledged", size_text(buffers.send))
        }
        Limit::ApplicationSends => "the sending application had written nothing more to send".to_owned(),
        Limit::ApplicationReads => "the receiving application did not read what was there".to_owned(),
        Limit::PathFull => match &share.path {
            Some(path) => format!("{path} carried all that it can"),
            None => "all paths in use carried all that they can".to_owned(),
        },
        Limit::PathDown => format!("{} was down, and the paths left could carry no more", path_of(share)),
        Limit::InFlight => "all data was sent, and the last of it was on its way".to_owned(),
        Limit::Unused => "no path could carry data".to_owned(),
    }
}

fn path_of(share: &Share) -> String {
    share.path.clone().unwrap_or_else(|| "a path".to_owned())
}

/// Kinds of counterfactuals that act on a limit, the most direct first.
fn acts_on(limit: Limit) -> &'static [Kind] {
    match limit {
        Limit::PeerWindow => &[Kind::ReceiveBuffer, Kind::Buffers],
        Limit::SendBuffer => &[Kind::SendBuffer, Kind::Buffers],
        Limit::HeadOfLine => &[Kind::ReceiveBuffer, Kind::Buffers, Kind::Reinjection, Kind::Scheduler],
        Limit::CongestionWindow => &[Kind::Congestion],
        Limit::Timeout => &[Kind::MtuProbing, Kind::Reinjection, Kind::Scheduler],
        Limit::Scheduler | Limit::InFlight => &[Kind::Scheduler, Kind::Reinjection],
        Limit::SlowStart | Limit::Join | Limit::Handshake | Limit::Request => &[Kind::FirstPath],
        _ => &[],
    }
}

/// Gain of a counterfactual, as a positive number.
fn gain(answer: &Answer, tried: &Tried) -> Option<Measure> {
    let sign = if answer.unit == "s" { -1.0 } else { 1.0 };
    let gain = tried.difference.map(|it| Measure { mean: sign * it.mean, ..it })?;
    (gain.is_above_zero() && gain.mean >= WORTH_IT * answer.value.mean).then_some(gain)
}

/// The counterfactual to be named: one that helped, was run, and is something that can be set. First a path that could
/// be brought into use; then, of those that act on the main limit, the best; then the best of all.
fn remedy<'a>(answer: &'a Answer, main: Option<&Share>) -> Option<&'a Tried> {
    let amount = |tried: &Tried| gain(answer, tried).map_or(0.0, |gain| gain.mean);
    let best = |kinds: &dyn Fn(Kind) -> bool| {
        let settable = answer.counterfactuals.iter().filter(|tried| !is_fault(tried) && kinds(tried.kind));
        let mut helped = settable.filter(|tried| gain(answer, tried).is_some());
        let best = helped.clone().max_by(|a, b| amount(a).total_cmp(&amount(b)))?;
        // Of buffers the smallest that brings nearly as much.
        let sized = |tried: &&Tried| tried.kind == best.kind && is_buffer(best.kind);
        helped.rfind(sized).or(Some(best))
    };
    let brings = |reason: Reason| match reason {
        Reason::Backup => Some(Kind::RegularPath),
        Reason::PlainTcp => Some(Kind::Multipath),
        Reason::SubflowLimit => Some(Kind::MoreSubflows),
        _ => None,
    };
    let in_use =
        answer.idle_paths.iter().filter_map(|idle| brings(idle.reason)).find_map(|by| best(&|kind| kind == by));
    let direct = || main.and_then(|main| acts_on(main.limit).iter().find_map(|kind| best(&|it| it == *kind)));
    let any = || best(&|kind| kind != Kind::RegularPath);
    in_use.or_else(direct).or_else(any)
}

fn is_buffer(kind: Kind) -> bool {
    matches!(kind, Kind::Buffers | Kind::ReceiveBuffer | Kind::SendBuffer)
}

/// A counterfactual that helped, as a sentence.
fn helped(answer: &Answer, tried: &Tried) -> String {
    let gained = gain(answer, tried);
    let much = gained.map_or(String::new(), |gain| difference(answer, gain));
    format!("With {} {much}{}.", tried.what, command(tried))
}

/// A gain as a clause.
fn difference(answer: &Answer, gain: Measure) -> String {
    let amount = amount(gain, &answer.unit);
    // One run says nothing about others.
    let once = if gain.half.is_none() { ", on this one seed" } else { "" };
    match answer.unit.as_str() {
        "s" => format!("it would have taken {amount} less{once}"),
        _ => format!("goodput would have been {amount} higher{once}"),
    }
}

/// An amount with its interval, in the digits that it is worth: two of the interval's. Equal runs have no interval.
fn amount(gain: Measure, unit: &str) -> String {
    let (scale, name) = match unit {
        "s" if gain.mean < 1.0 => (1e-3, "ms"),
        "s" => (1.0, "s"),
        _ => (1e6, "Mbit/s"),
    };
    let half = gain.half.filter(|half| *half > 1e-9 * gain.mean);
    let worth = half.unwrap_or(gain.mean / 10.0) / scale;
    let places = (0..4).find(|places| worth * [1.0, 10.0, 100.0, 1000.0][*places] >= 9.5).unwrap_or(3);
    let mean = format!("{:.places$}", gain.mean / scale);
    match half {
        Some(half) => format!("{mean} ± {:.places$} {name}", half / scale),
        None => format!("{mean} {name}"),
    }
}
