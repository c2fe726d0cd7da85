//! The answer in one or two sentences: what took the time, and what a counterfactual says would have helped.

use crate::answer::{Answer, Measure, Reason, Share, Tried};
use crate::inquiry::{DataBuffers, size_text};
use crate::{Kind, Limit};

/// Smallest gain, as a share of the measure, that is worth a word.
const WORTH_IT: f64 = 0.02;

/// Puts an answer into words. `buffers` are those that the data passes through.
pub(crate) fn sentence(answer: &Answer, buffers: &DataBuffers) -> String {
    let mut sentences: Vec<String> =
        answer.idle_paths.iter().map(|idle| format!("{} carried nothing: {}.", idle.path, idle.because)).collect();
    let main = main_share(answer);
    if answer.transfers.is_empty() {
        sentences.push("There is no transfer to judge.".to_owned());
        return sentences.join(" ");
    }
    if let Some(main) = main {
        let share = match main.share {
            share if share >= 1.0 => "All".to_owned(),
            share if share >= 0.995 => "Nearly all".to_owned(),
            share => format!("{:.0} %", 100.0 * share),
        };
        sentences.push(format!("{share} of the time {}.", clause(main, buffers)));
    }
    if answer.unfinished_runs > 0 {
        let (n, all) = (answer.unfinished_runs, answer.repeat);
        sentences.push(format!("In {n} of {all} runs transfers did not finish."));
    }
    if answer.counterfactuals.is_empty() {
        return sentences.join(" ");
    }
    sentences.push(if answer.unfinished_runs > 0 {
        match rescue(answer) {
            Some(tried) => format!("With {} all of them would have finished.", tried.what),
            None => "No change that was tried lets all of them finish.".to_owned(),
        }
    } else {
        match remedy(answer, main) {
            Some(tried) => helped(answer, tried),
            None => "No change that was tried would clearly have helped.".to_owned(),
        }
    });
    sentences.join(" ")
}

/// Of the counterfactuals in which all transfers finished, the fastest; one that can be set before one without loss.
fn rescue(answer: &Answer) -> Option<&Tried> {
    let finished = answer.counterfactuals.iter().filter(|tried| tried.unfinished_runs == 0);
    finished.min_by(|a, b| {
        let key = |tried: &Tried| tried.kind == Kind::NoLoss;
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
        Limit::PeerWindow | Limit::SendBuffer => &[Kind::Buffers],
        Limit::HeadOfLine => &[Kind::Buffers, Kind::Reinjection, Kind::Scheduler],
        Limit::CongestionWindow => &[Kind::Congestion],
        Limit::Timeout => &[Kind::Reinjection, Kind::Scheduler],
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
/// be brought into use; then, of those that act on the main limit, the best; then the best of all. Without one, a run
/// without loss at least says what loss cost.
fn remedy<'a>(answer: &'a Answer, main: Option<&Share>) -> Option<&'a Tried> {
    let helped = |tried: &&Tried| gain(answer, tried).is_some();
    let best = |kinds: &dyn Fn(Kind) -> bool| {
        let mut of_kind = answer.counterfactuals.iter().filter(|tried| kinds(tried.kind)).filter(helped);
        let amount = |tried: &Tried| gain(answer, tried).map_or(0.0, |gain| gain.mean);
        let best = of_kind.clone().max_by(|a, b| amount(a).total_cmp(&amount(b)))?;
        // Of buffers the smallest that brings nearly as much.
        let sized = |tried: &&Tried| tried.kind == Kind::Buffers && best.kind == Kind::Buffers;
        of_kind.rfind(sized).or(Some(best))
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
    let any = || best(&|kind| kind != Kind::NoLoss && kind != Kind::RegularPath);
    in_use.or_else(direct).or_else(any).or_else(|| best(&|kind| kind == Kind::NoLoss))
}

/// A counterfactual that helped, as a sentence.
fn helped(answer: &Answer, tried: &Tried) -> String {
    let gained = gain(answer, tried);
    let amount = gained.map_or(String::new(), |gain| amount(gain, &answer.unit));
    // One run says nothing about others.
    let once = if gained.is_some_and(|gain| gain.half.is_none()) { ", on this one seed" } else { "" };
    match answer.unit.as_str() {
        "s" => format!("With {} it would have taken {amount} less{once}.", tried.what),
        _ => format!("With {} goodput would have been {amount} higher{once}.", tried.what),
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
