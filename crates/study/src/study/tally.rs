//! Tallies: statements of papers by verdict. A sentence that several statements judge counts once.

use super::result::{Judged, Standing, Verdict};
use std::collections::BTreeMap;
use std::fmt;

/// Numbers of statements of papers by verdict. Sentences of our own are counted separately.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    verdicts: BTreeMap<Verdict, usize>,
    /// Numbers of those that rest on runs in which transfers did not complete.
    unfinished: BTreeMap<Verdict, usize>,
    /// Number of verdicts on parts of these statements, such as on one system each.
    pub parts: usize,
    /// Number of sentences of our own.
    pub own: usize,
}

impl Tally {
    /// Counts these statements.
    pub fn of<'a>(statements: impl IntoIterator<Item = &'a Judged>) -> Tally {
        let mut tally = Tally::default();
        let mut sentences: BTreeMap<&str, Vec<&Judged>> = BTreeMap::new();
        for judged in statements {
            match (judged.own, &judged.sentence) {
                (true, _) => tally.own += 1,
                (false, None) => tally.count_in(&[judged]),
                (false, Some(sentence)) => sentences.entry(sentence).or_default().push(judged),
            }
        }
        sentences.values().for_each(|parts| tally.count_in(parts));
        tally
    }

    /// Counts one sentence: it holds if all its parts do, as far as they can be decided.
    fn count_in(&mut self, parts: &[&Judged]) {
        let verdicts = || parts.iter().map(|judged| judged.verdict);
        let decided = verdicts().filter(|verdict| verdict.standing() != Standing::Open).max();
        let Some(verdict) = decided.or_else(|| verdicts().min()) else { return };
        self.parts += parts.len();
        *self.verdicts.entry(verdict).or_default() += 1;
        let unfinished = parts.iter().any(|judged| judged.unfinished_runs > 0);
        *self.unfinished.entry(verdict).or_default() += usize::from(unfinished);
    }

    /// Returns the number of statements of papers.
    pub fn all(&self) -> usize {
        self.verdicts.values().sum()
    }

    /// Returns the number of statements with this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.verdicts.get(&verdict).copied().unwrap_or(0)
    }

    /// Returns the number of statements in this class.
    pub fn standing(&self, standing: Standing) -> usize {
        self.verdicts.iter().filter(|(verdict, _)| verdict.standing() == standing).map(|(_, count)| count).sum()
    }

    /// Returns the verdicts that occur with their numbers, from the best to the worst.
    pub fn verdicts(&self) -> impl Iterator<Item = (Verdict, usize)> {
        self.verdicts.iter().map(|(verdict, count)| (*verdict, *count))
    }
}

impl fmt::Display for Tally {
    /// Formats the numbers: `12 reproduced (1 with unfinished runs), 3 sign only`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |(verdict, count): (Verdict, usize)| match self.unfinished.get(&verdict).copied().unwrap_or(0) {
            0 => format!("{count} {}", verdict.name()),
            unfinished => format!("{count} {} ({unfinished} with unfinished runs)", verdict.name()),
        };
        let parts: Vec<String> = self.verdicts().map(part).collect();
        f.write_str(&parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(sentence: Option<&str>, verdict: Verdict) -> Judged {
        Judged {
            text: String::new(),
            source: String::new(),
            sentence: sentence.map(str::to_owned),
            claim: String::new(),
            ours: String::new(),
            verdict,
            unfinished_runs: 0,
            details: Vec::new(),
            own: false,
            headline: false,
            cause: None,
            search: None,
        }
    }

    #[test]
    fn a_sentence_counts_once_and_holds_if_all_its_parts_do() {
        let tally = Tally::of(&[
            judged(None, Verdict::Reproduced),
            judged(Some("all fall"), Verdict::Reproduced),
            judged(Some("LATE is best"), Verdict::Reproduced),
            judged(Some("all fall"), Verdict::Reproduced),
            judged(Some("LATE is best"), Verdict::NotSignificant),
            judged(Some("LATE is best"), Verdict::ComparatorUnavailable),
            Judged { own: true, ..judged(Some("all fall"), Verdict::Opposite) },
        ]);
        assert_eq!((tally.all(), tally.parts, tally.own), (3, 6, 1));
        assert_eq!(tally.to_string(), "2 reproduced, 1 not significant");
        let open = Tally::of(&[
            judged(Some("it cannot be seen"), Verdict::NotTested),
            judged(Some("it cannot be seen"), Verdict::ComparatorUnavailable),
        ]);
        assert_eq!(open.to_string(), "1 comparator unavailable");
    }

    #[test]
    fn unfinished_runs_of_one_part_are_those_of_the_sentence() {
        let part = Judged { unfinished_runs: 2, ..judged(Some("s"), Verdict::Reproduced) };
        let tally = Tally::of(&[judged(Some("s"), Verdict::Reproduced), part]);
        assert_eq!(tally.to_string(), "1 reproduced (1 with unfinished runs)");
    }
}
