//! The answer in one or two sentences: what took the time, and what a counterfactual says would have helped.

use crate::answer::{Answer, Measure, Reason, Share, Tried};
use crate::buffers::{DataBuffers, size_text};
use crate::{Kind, Limit};

/// Smallest gain, as a share of the measure, that is worth a word.
const WORTH_IT: f64 = 0.02;
/// Smallest gain, as a share of the measure, of a fault that is named first.
pub(crate) const FAULT: f64 = 0.05;
/// Least gain of a fault that is named first, as a share of what another policy or size would give: where a fault is
/// there, policies differ mostly in how well they bear it.
const BEFORE_POLICIES: f64 = 0.6;
/// Share of the gain without all faults of a kind that one of them has to bring, to be named alone.
const NEARLY_ALL: f64 = 0.9;
/// Share of the time without any transfer from which on the application is named first, unless a fault or another
/// policy takes a good part of the transfers' time.
const MOSTLY_PAUSES: f64 = 0.5;
/// Share of the transfers' time from which on a fault, and from which on another policy, is named before pauses.
const GOOD_PART: (f64, f64) = (0.15, 0.5);
/// Smallest gain of another policy or first path, as a share of the measure, for which the present one is named first.
const MUCH: f64 = 0.15;

/// Puts an answer into words. `buffers` are those that the data passes through.
pub(crate) fn sentence(answer: &Answer, buffers: &DataBuffers) -> String {
    let sentence = of_runs(answer, buffers);
    let until = if answer.stopped { " It was stopped: this is of the runs made until then." } else { "" };
    sentence + until
}

/// The same of the runs that there are.
fn of_runs(answer: &Answer, buffers: &DataBuffers) -> String {
    if answer.transfers.is_empty() {
        let mut sentences = idle_paths(answer, |_| true);
        sentences.push("There is no transfer to judge.".to_owned());
        return sentences.join(" ");
    }
    let main = main_share(answer);
    let named = answer.fault.map(|index| &answer.counterfactuals[index]);
    let choice = choice(answer).map(|index| &answer.counterfactuals[index]);
    let mut sentences = Vec::new();
    let before = is_path_first(answer);
    if before {
        sentences.extend(idle_paths(answer, |reason| !is_weak(reason)));
    }
    sentences.extend(paused_first(answer).or_else(|| named.map(|tried| without(answer, tried))));
    sentences.extend(choice.map(|tried| instead(answer, tried)));
    sentences.extend(idle_paths(answer, |reason| is_weak(reason) || !before));
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
        match answer.remedy.map(|index| &answer.counterfactuals[index]) {
            Some(_) if choice.is_some() => None,
            Some(tried) => Some(helped(answer, tried)),
            None if named.is_some() => None,
            None => Some("No change that was tried would clearly have helped.".to_owned()),
        }
    });
    sentences.join(" ")
}

/// True if a path that carried nothing is named before all else: unless a fault costs more than what would bring the
/// path into use, or else may be why it carried nothing.
fn is_path_first(answer: &Answer) -> bool {
    if paused_first(answer).is_some() {
        return false;
    }
    let amount = |tried: &Tried| gain(answer, tried).map_or(0.0, |gain| gain.mean);
    let in_use = in_use(answer).map(amount);
    match (answer.fault.map(|index| &answer.counterfactuals[index]), choice(answer)) {
        (Some(fault), _) => answer.unfinished_runs == 0 && in_use.is_some_and(|in_use| in_use > amount(fault)),
        (None, Some(choice)) => in_use.is_some_and(|in_use| in_use > amount(&answer.counterfactuals[choice])),
        (None, None) => true,
    }
}

/// The policy or first path that is named as the cause, by what would take its place: where no fault is, and another
/// gives much more. Of several it is the profile's own, or the one that acts on the main limit, if that gives nearly as
/// much as the best.
pub(crate) fn choice(answer: &Answer) -> Option<usize> {
    if answer.fault.is_some() || answer.unfinished_runs > 0 || paused_first(answer).is_some() {
        return None;
    }
    let direct = main_share(answer).map_or(&[][..], |main| acts_on(main.limit));
    // The main limit tells of a buffer by itself, and of a path that carried nothing its reason does.
    let counts = |tried: &Tried| tried.instead.is_some() && !(is_buffer(tried.kind) && direct.contains(&tried.kind));
    let all = || answer.counterfactuals.iter().enumerate().filter(|(_, tried)| counts(tried));
    let amount = |tried: &Tried| gain(answer, tried).map_or(0.0, |gain| gain.mean);
    let most = of_policies(answer);
    let in_use = in_use(answer).map_or(0.0, amount);
    let best = |share: f64, counts: &dyn Fn(&Tried) -> bool| {
        let counted = all().filter(|(_, tried)| counts(tried) && amount(tried) >= share * most);
        counted.max_by(|(_, a), (_, b)| amount(a).total_cmp(&amount(b))).map(|(index, _)| index)
    };
    if most < MUCH * answer.value.mean || in_use >= BEFORE_POLICIES * most {
        return None;
    }
    let found = best(BEFORE_POLICIES, &|tried| tried.usual)
        .or_else(|| best(NEARLY_ALL, &|tried| direct.contains(&tried.kind)))
        .or_else(|| best(NEARLY_ALL, &|tried| is_buffer(tried.kind)))
        .or_else(|| best(1.0, &|_| true))?;
    let kind = answer.counterfactuals[found].kind;
    // Of buffers the smallest that brings nearly as much.
    let sized = answer.counterfactuals.iter().rposition(|tried| tried.kind == kind && gain(answer, tried).is_some());
    sized.filter(|_| is_buffer(kind)).or(Some(found))
}

/// The counterfactual that brings a path into use that a setting keeps from it: of several the best.
fn in_use(answer: &Answer) -> Option<&Tried> {
    let kinds = || answer.idle_paths.iter().filter_map(|idle| brings(idle.reason));
    let all = answer.counterfactuals.iter().filter(|tried| kinds().any(|kind| kind == tried.kind));
    let amount = |tried: &Tried| gain(answer, tried).map(|gain| gain.mean);
    all.filter(|tried| amount(tried).is_some())
        .max_by(|a, b| amount(a).unwrap_or(0.0).total_cmp(&amount(b).unwrap_or(0.0)))
}

/// A policy, and what another would have given.
fn instead(answer: &Answer, tried: &Tried) -> String {
    format!("{}. {}", tried.instead.as_deref().unwrap_or(&tried.what), helped(answer, tried))
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
        return standing_queue(answer, bloated).filter(|_| of_policies(answer) < GOOD_PART.1 * answer.value.mean);
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

/// The fault that would be named if its interval were smaller: the one with the largest difference.
pub(crate) fn might_be_fault(answer: &Answer) -> Option<usize> {
    let sign = if answer.unit == "s" { -1.0 } else { 1.0 };
    let amount = |tried: &Tried| tried.difference.map_or(0.0, |it| sign * it.mean);
    let faults = answer.counterfactuals.iter().enumerate().filter(|(_, tried)| is_fault(tried));
    let (index, most) = faults.max_by(|(_, a), (_, b)| amount(a).total_cmp(&amount(b)))?;
    (amount(most) >= FAULT * answer.value.mean).then_some(index)
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
    let much = of_fault >= GOOD_PART.0 * answer.value.mean || of_policies(answer) >= GOOD_PART.1 * answer.value.mean;
    if much || answer.unfinished_runs > 0 {
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
    let much = difference(answer, tried, gain);
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

/// Gain of a counterfactual, as a positive number: if its interval lies above zero, or so many pairs of runs do that it
/// is no chance. The latter tells of rare long waits, which make intervals wide.
fn gain(answer: &Answer, tried: &Tried) -> Option<Measure> {
    let in_time = answer.unit == "s";
    let (sign, better, worse) =
        if in_time { (-1.0, tried.smaller, tried.larger) } else { (1.0, tried.larger, tried.smaller) };
    let gain = tried.difference.map(|it| Measure { mean: sign * it.mean, ..it })?;
    let is_sure = gain.is_above_zero() || is_no_chance(better, worse);
    (is_sure && gain.mean >= WORTH_IT * answer.value.mean).then_some(gain)
}

/// True if so many of all pairs are better with a probability of at most 5 % where either is as likely (sign test,
/// two-sided).
fn is_no_chance(better: usize, worse: usize) -> bool {
    let pairs = better + worse;
    let (mut ways, mut tail) = (1.0, 0.0);
    for n in 0..=worse {
        tail += ways;
        ways *= (pairs - n) as f64 / (n + 1) as f64;
    }
    better > worse && 2.0 * tail <= 0.05 * (0..pairs).fold(1.0, |all, _| 2.0 * all)
}

/// The counterfactual to be named: one that helped, was run, and is something that can be set. First a path that could
/// be brought into use; then, of those that act on the main limit, the best; then the best of all.
pub(crate) fn remedy(answer: &Answer) -> Option<usize> {
    let main = main_share(answer);
    let amount = |tried: &Tried| gain(answer, tried).map_or(0.0, |gain| gain.mean);
    let best = |kinds: &dyn Fn(Kind) -> bool| {
        let settable = answer.counterfactuals.iter().filter(|tried| !is_fault(tried) && kinds(tried.kind));
        let mut helped = settable.filter(|tried| gain(answer, tried).is_some());
        let best = helped.clone().max_by(|a, b| amount(a).total_cmp(&amount(b)))?;
        // Of buffers the smallest that brings nearly as much.
        let sized = |tried: &&Tried| tried.kind == best.kind && is_buffer(best.kind);
        helped.rfind(sized).or(Some(best))
    };
    let direct = || main.and_then(|main| acts_on(main.limit).iter().find_map(|kind| best(&|it| it == *kind)));
    let any = || best(&|kind| kind != Kind::RegularPath);
    let found = in_use(answer).or_else(direct).or_else(any)?;
    answer.counterfactuals.iter().position(|tried| std::ptr::eq(tried, found))
}

/// Kind of counterfactual that brings a path into use.
pub(crate) fn brings(reason: Reason) -> Option<Kind> {
    match reason {
        Reason::Backup => Some(Kind::RegularPath),
        Reason::PlainTcp => Some(Kind::Multipath),
        Reason::SubflowLimit => Some(Kind::MoreSubflows),
        _ => None,
    }
}

fn is_buffer(kind: Kind) -> bool {
    matches!(kind, Kind::Buffers | Kind::ReceiveBuffer | Kind::SendBuffer)
}

/// A counterfactual that helped, as a sentence.
fn helped(answer: &Answer, tried: &Tried) -> String {
    let gained = gain(answer, tried);
    let much = gained.map_or(String::new(), |gain| difference(answer, tried, gain));
    format!("With {} {much}{}.", tried.what, command(tried))
}

/// A gain as a clause.
fn difference(answer: &Answer, tried: &Tried, gain: Measure) -> String {
    let amount = amount(gain, &answer.unit);
    let amount = if tried.at_least { format!("at least {amount}") } else { amount };
    // One run says nothing about others.
    let once = if gain.n < 2 { ", on this one seed" } else { "" };
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

#[cfg(test)]
mod tests {
    use super::is_no_chance;

    /// Two-sided: 6 of 6 has 2/64, 5 of 5 has 2/32, 8 of 9 has 20/512, 7 of 8 has 18/256.
    #[test]
    fn the_sign_test_is_that_of_the_tables() {
        assert!(is_no_chance(6, 0) && is_no_chance(8, 1) && is_no_chance(40, 0));
        assert!(!is_no_chance(5, 0) && !is_no_chance(7, 1) && !is_no_chance(0, 6) && !is_no_chance(0, 0));
    }
}
