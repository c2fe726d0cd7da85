//! The leaderboard on the terminal.

use crate::number::percent;
use crate::policies::candidates;
use crate::table::{Align, Table};
use crate::wrap::wrap;
use anabranch_lab::pairwise::Ratio;
use anabranch_study::rank::{Leaderboard, Slower, Split, Standing, Worst};

/// Number of splits shown on the terminal; a page has all.
const SPLITS: usize = 4;
/// Number of conditions listed in which a scheduler is slower than plain TCP; JSON has all.
pub const LISTED: usize = 10;

/// The tables and how to read them, in lines of at most `width` characters. `made` says which conditions they are,
/// `worst` of which scheduler the worst conditions are listed; of the first unless given.
pub fn leaderboard(board: &Leaderboard, made: &str, worst: Option<&str>, width: usize) -> String {
    let mut text = format!("{made}\n{}\n\n{}", size(board), ranking(board));
    text.push('\n');
    for note in notes(board) {
        text += &(wrap(&note, width).join("\n") + "\n");
    }
    for split in board.splits.iter().take(SPLITS) {
        text += &format!("\nTo the best of all others, by {}\n\n{}", split.by, parts(board, split));
    }
    let listed = board.standings.iter().find(|it| worst.is_none_or(|name| it.scheduler.name == name));
    if let Some(standing) = listed {
        text += &format!("\nThe worst conditions of {}\n\n", standing.scheduler.name);
        for it in &standing.worst {
            text += &worst_in_words(it, width);
        }
        if !standing.slower.is_empty() {
            text += &format!("\n{}\n\n", slower_title(board, standing));
        }
        for it in standing.slower.iter().take(LISTED) {
            text += &slower_in_words(it, width);
        }
    }
    let schedulers: Vec<_> = board.standings.iter().map(|it| it.scheduler.clone()).collect();
    text + "\nSchedulers, with all their parameters:\n" + &candidates(&schedulers)
}

/// Numbers of conditions and runs.
pub(crate) fn size(board: &Leaderboard) -> String {
    let random = board.conditions - board.deterministic;
    let sets = match board.sets.as_slice() {
        [] => String::new(),
        sets => format!("; with {}", sets.join(" ")),
    };
    format!(
        "{} conditions ({}): {random} with {} seeds, {} in which seeds make no difference{sets}",
        board.conditions,
        &board.digest[..12.min(board.digest.len())],
        board.repeat,
        board.deterministic
    )
}

fn worst_in_words(it: &Worst, width: usize) -> String {
    format!("  {} times {}: {}\n", ratio(it.ratio), it.best, it.condition)
        + &indented(&it.about, width)
        + &format!("      {}\n", it.command)
}

/// Title of the list of conditions in which a scheduler is slower than plain TCP.
pub(crate) fn slower_title(board: &Leaderboard, standing: &Standing) -> String {
    let (name, count, of) = (&standing.scheduler.name, standing.slower.len(), board.conditions);
    let shown = if count > LISTED { format!("; the {LISTED} slowest") } else { String::new() };
    format!("Where {name} is slower than plain TCP on the best single path: {count} of {of}{shown}")
}

fn slower_in_words(it: &Slower, width: usize) -> String {
    let cause = it.cause.as_ref().map(|cause| indented(cause, width)).unwrap_or_default();
    format!("  {} times plain TCP on {}: {}\n", ratio(it.ratio), it.path, it.condition)
        + &indented(&it.about, width)
        + &cause
        + &format!("      {}\n", it.command)
}

fn indented(text: &str, width: usize) -> String {
    wrap(text, width.saturating_sub(6)).iter().map(|line| format!("      {line}\n")).collect()
}

/// A ranking against the best of all others: the columns that each has, and `further` ones behind them.
pub(crate) fn against_best(named: &str, further: &[&str]) -> Table {
    let each = ["to best", "≤2 %", "≤5 %", "≤20 %", "p95", "most", "to TCP", "slower"];
    let numbers = each.iter().chain(further).map(|name| (*name, Align::Right));
    Table::new([("#", Align::Right), (named, Align::Left)].into_iter().chain(numbers))
}

/// The schedulers in order.
pub(crate) fn ranking(board: &Leaderboard) -> Table {
    let families = [("drives", board.drives), ("recorded", board.recorded)];
    let families = families.into_iter().filter(|(_, count)| *count > 0).map(|(name, _)| name);
    let further: Vec<&str> =
        ["TCP most", "to backups", "worse", "repeated", "twice", "unfinished"].into_iter().chain(families).collect();
    let mut table = against_best("scheduler", &further);
    for it in &board.standings {
        let star = if it.to_first.is_some_and(|tested| tested.is_significant()) { " *" } else { "" };
        let oracle = if it.oracle { " (oracle)" } else { "" };
        let row = [
            it.rank.to_string(),
            format!("{}{oracle}", it.scheduler.name),
            format!("{}{star}", with_interval(it.to_best)),
            percent(it.within_2.share),
            percent(it.within_5.share),
            percent(it.within_20.share),
            ratio(it.p95),
            ratio(it.most),
            it.to_single.map(|it| ratio(it.mean)).unwrap_or_default(),
            it.slower_than_single.map(|it| percent(it.share)).unwrap_or_default(),
            it.most_to_single.map(ratio).unwrap_or_default(),
            it.to_backups.map(|it| ratio(it.mean.mean)).unwrap_or_default(),
            it.to_backups.map(|it| percent(it.slower.share)).unwrap_or_default(),
            percent(it.repeated),
            percent(it.duplicates),
            if it.unfinished > 0 { it.unfinished.to_string() } else { String::new() },
        ];
        table.row(row.into_iter().chain([it.drives, it.recorded].into_iter().flatten().map(with_interval)));
    }
    for it in &board.references {
        let slower = it.slower_than_single.map(|it| percent(it.share)).unwrap_or_default();
        let mut row = vec![String::new(), it.name.to_owned(), with_interval(it.to_best)];
        row.extend(vec![String::new(); 6]);
        row.push(slower);
        table.row(row);
    }
    table
}

/// Legend of the ranking.
pub(crate) fn notes(board: &Leaderboard) -> Vec<String> {
    let interval = if board.conditions > 1 { " ± its 95 % interval" } else { "" };
    let mut notes = vec![format!(
        "To best: time over that of the best of all other schedulers, geometric mean over conditions{interval}; ≤2 %: \
         share of conditions in which it is at most 2 % slower than that. To TCP: the same to plain TCP on the best \
         single path; slower: share of conditions in which it is more than 5 % slower. To backups: the same to the \
         best path with all others as its backups; worse: share of conditions in which it is more than 3 % slower. \
         Repeated: bytes sent again on another subflow, twice: bytes that arrived more than once, of those sent. A run \
         that does not finish counts until it is stopped."
    )];
    // Families that count in columns of their own.
    if board.drives > 0 {
        notes.push(format!(
            "Drives: to best over {} further conditions, whose paths follow models of today's networks. They count in \
             no other column.",
            board.drives
        ));
    }
    if board.recorded > 0 {
        notes.push(format!(
            "Recorded: to best over {} further conditions, whose paths follow recordings. They count in no other \
             column.",
            board.recorded
        ));
    }
    notes.push(match board.repeat {
        1 => "With one seed the best is chosen on the seed that it is judged on: partly it is the luckiest. \
              --repeat 2 or more chooses on other seeds."
            .to_owned(),
        _ => "The best is chosen on one half of the seeds and judged on the other, both ways.".to_owned(),
    });
    match (board.conditions, board.one_sample) {
        (1, _) => {
            notes.push("One condition is one sample: it has no interval, and no difference has a star.".to_owned())
        }
        (_, 0) => {}
        (all, some) => notes.push(format!(
            "{some} of {all} conditions are one sample each: one seed, or seeds that all give the same. Intervals and \
             stars are over conditions, which are drawn."
        )),
    }
    if let [first, _, ..] = board.standings.as_slice()
        && board.conditions > 1
    {
        let name = &first.scheduler.name;
        notes.push(format!(
            "*: slower than {name}, which is first; paired t-tests over conditions at 5 % for all {} together (Holm).",
            board.standings.len() - 1
        ));
    }
    notes
}

/// The schedulers over the parts of a split.
pub(crate) fn parts(board: &Leaderboard, split: &Split) -> Table {
    let heads: Vec<String> =
        split.parts.iter().zip(&split.conditions).map(|(part, conditions)| format!("{part} ({conditions})")).collect();
    let numbers = heads.iter().map(|head| (head.as_str(), Align::Right));
    let mut table = Table::new([("scheduler", Align::Left)].into_iter().chain(numbers));
    for (standing, cells) in board.standings.iter().zip(&split.cells) {
        let name = standing.scheduler.name.clone();
        table.row([name].into_iter().chain(cells.iter().map(|cell| ratio(cell.to_best))));
    }
    table
}

/// `1.094 ± 0.018`: the interval of a ratio is not quite even to both sides; the wider side is shown.
pub(crate) fn with_interval(it: Ratio) -> String {
    match (it.low, it.high) {
        (Some(low), Some(high)) => format!("{:.3} ± {:.3}", it.mean, (it.mean - low).max(high - it.mean)),
        _ => format!("{:.3}", it.mean),
    }
}

/// A ratio of times.
pub(crate) fn ratio(x: f64) -> String {
    match x {
        x if x >= 99.5 => format!("{x:.0}"),
        x if x >= 9.95 => format!("{x:.1}"),
        x => format!("{x:.2}"),
    }
}

/// The leader, in one line, for the head of a page.
pub(crate) fn leader(board: &Leaderboard) -> Option<String> {
    let first: &Standing = board.standings.first()?;
    Some(format!(
        "{} is first with {} times the best of all others.",
        first.scheduler.name,
        with_interval(first.to_best)
    ))
}
