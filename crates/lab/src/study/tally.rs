//! Tallies: statements by verdict.

use super::result::{Judged, Standing, Verdict};
use std::collections::BTreeMap;
use std::fmt;

/// Numbers of statements by verdict. Sentences of our own are counted apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    verdicts: BTreeMap<Verdict, usize>,
    /// Those of them that rest on runs in which transfers did not complete.
    unfinished: BTreeMap<Verdict, usize>,
    /// Sentences of our own.
    pub own: usize,
}

impl Tally {
    /// Of these statements.
    pub fn of<'a>(statements: impl IntoIterator<Item = &'a Judged>) -> Tally {
        let mut tally = Tally::default();
        for judged in statements {
            match judged.own {
                true => tally.own += 1,
                false => {
                    *tally.verdicts.entry(judged.verdict).or_default() += 1;
                    *tally.unfinished.entry(judged.verdict).or_default() += usize::from(judged.unfinished_runs > 0);
                }
            }
        }
        tally
    }

    /// The statements of papers.
    pub fn all(&self) -> usize {
        self.verdicts.values().sum()
    }

    /// Those with this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.verdicts.get(&verdict).copied().unwrap_or(0)
    }

    /// Those of this class.
    pub fn standing(&self, standing: Standing) -> usize {
        self.verdicts.iter().filter(|(verdict, _)| verdict.standing() == standing).map(|(_, count)| count).sum()
    }

    /// The verdicts that there are, from the best to the worst.
    pub fn verdicts(&self) -> impl Iterator<Item = (Verdict, usize)> {
        self.verdicts.iter().map(|(verdict, count)| (*verdict, *count))
    }
}

impl fmt::Display for Tally {
    /// `12 reproduced (1 with unfinished runs), 3 sign only`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |(verdict, count): (Verdict, usize)| match self.unfinished.get(&verdict).copied().unwrap_or(0) {
            0 => format!("{count} {}", verdict.name()),
            unfinished => format!("{count} {} ({unfinished} with unfinished runs)", verdict.name()),
        };
        let parts: Vec<String> = self.verdicts().map(part).collect();
        f.write_str(&parts.join(", "))
    }
}
