//! Search for the fewest of a study's alternative assumptions that reproduce a failed statement: each alone, then
//! pairs, then triples.
//!
//! All statements of a study share the search. A set of alternatives is run at the points of every statement that is
//! still open and judges them all. The journal keeps the runs, so an interrupted search continues where it stopped. A
//! statement leaves the search with the first set that reproduces it, which is one of the smallest. Alternatives that
//! set the same key exclude each other, and so do those that are not valid together in a scenario; two sets with the
//! same scenarios are tried once.
//!
//! Pairs and triples begin with the alternatives under which a statement came nearest on its own. A search over many
//! sets finds some by chance: a set that reproduces a statement with the few repetitions of a try must do so with all
//! of them.

use super::file::SensitivityTable;
use super::grid::{Grid, StudyError};
use super::judge::judge;
use super::result::{Judged, Search, Standing, StudyResult, Tried, Verdict};
use super::run::Prepared;
use anabranch_lab::Journal;
use anabranch_scenario::file::At;
use std::collections::BTreeSet;

/// Set of alternatives by their numbers, rising.
type Set = Vec<usize>;

/// Maximum number of alternatives that are applied together.
const LARGEST: usize = 3;

/// Journal, threads and progress of the runs.
struct Runner<'a> {
    journal: &'a Journal,
    jobs: usize,
    progress: &'a (dyn Fn(usize, &str) + Sync),
    done: &'a (dyn Fn() + Sync),
}

impl Runner<'_> {
    fn run(&self, grid: &Grid, name: &str) -> Result<(), StudyError> {
        (self.progress)(grid.missing(self.journal).len(), name);
        grid.run(self.journal, self.jobs, self.done)
    }
}

impl Prepared {
    /// Searches for the smallest set of the study's alternatives under which each failed statement is reproduced, and
    /// adds the sets that were tried.
    ///
    /// # Errors
    ///
    /// As [`Prepared::run`].
    pub fn search(
        &self,
        result: &mut StudyResult,
        journal: &Journal,
        jobs: usize,
        progress: &(dyn Fn(usize, &str) + Sync),
        done: &(dyn Fn() + Sync),
    ) -> Result<(), StudyError> {
        let (study, runner) = (&self.study, Runner { journal, jobs, progress, done });
        let alternatives = &study.sensitivities;
        let (tries, limit) = (study.repeat().tries, study.repeat().combinations);
        let failed = |judged: &Judged| matches!(judged.verdict.standing(), Standing::InPart | Standing::Fails);
        let sets: Vec<Vec<Set>> = (1..=LARGEST).map(|size| compatible(alternatives, size)).collect();
        if tries == 0 || alternatives.is_empty() {
            return Ok(());
        }
        for judged in result.statements.iter_mut().filter(|judged| failed(judged)) {
            judged.search = Some(Search { possible: sets.iter().map(Vec::len).sum(), tried: Vec::new() });
        }
        let skip = |statements: &mut [Judged]| {
            statements.iter_mut().filter_map(|judged| judged.search.as_mut()).for_each(|search| search.possible -= 1);
        };
        let (mut seen, mut count) = (BTreeSet::new(), 0);
        for mut of_size in sets {
            let alone = of_size.first().is_some_and(|set| set.len() == 1);
            if !alone {
                sort_by_promise(&mut of_size, alternatives, &result.statements);
            }
            for set in of_size {
                // Each alternative is tried alone, whichever reproduces a statement first.
                let is_open = |judged: &Judged| {
                    judged.search.as_ref().is_some_and(|search| alone || search.reproduced().next().is_none())
                };
                let open: Vec<usize> =
                    (0..result.statements.len()).filter(|n| is_open(&result.statements[*n])).collect();
                if open.is_empty() || (!alone && count >= limit) {
                    return Ok(());
                }
                let extra: Vec<At<String>> = set.iter().flat_map(|n| alternatives[*n].set.iter().cloned()).collect();
                let grid = match Grid::new(study, self.catalogue(), &extra) {
                    Ok(grid) => grid,
                    Err(refused) if alone => return Err(refused.into()),
                    Err(_) => {
                        skip(&mut result.statements); // A scenario takes each of them, but not all together.
                        continue;
                    }
                };
                if !seen.insert(grid.digests()) {
                    skip(&mut result.statements);
                    continue;
                }
                count += 1;
                let names: Vec<String> = set.iter().map(|n| alternatives[*n].name.clone()).collect();
                for (n, tried) in self.try_set(&grid, &names, &open, tries, &runner)? {
                    result.statements[n].search.iter_mut().for_each(|search| search.tried.push(tried.clone()));
                }
            }
        }
        Ok(())
    }

    /// Judges these statements under one set: with a few repetitions, and again with all for those that are reproduced
    /// then.
    fn try_set(
        &self,
        grid: &Grid,
        names: &[String],
        open: &[usize],
        tries: usize,
        runner: &Runner<'_>,
    ) -> Result<Vec<(usize, Tried)>, StudyError> {
        let claims: Vec<_> = self.study.claims().collect();
        let of = |chosen: &[usize], repetitions: usize| -> Result<Vec<Judged>, StudyError> {
            let of_open: Vec<_> = chosen.iter().map(|n| claims[*n]).collect();
            let part = grid.only(&self.study, &of_open).at_most(repetitions);
            runner.run(&part, &names.join(", "))?;
            let table = part.table(runner.journal);
            Ok(of_open.iter().map(|claim| judge(&self.study, &table, claim)).collect::<Result<_, _>>()?)
        };
        let mut verdicts = of(open, tries)?;
        let is_found = |n: &usize| verdicts[*n].verdict == Verdict::Reproduced;
        let found: Vec<usize> = (0..open.len()).filter(is_found).collect();
        if tries < grid.seeds.len() && !found.is_empty() {
            let chosen: Vec<usize> = found.iter().map(|n| open[*n]).collect();
            for (n, again) in found.iter().zip(of(&chosen, grid.seeds.len())?) {
                verdicts[*n] = again;
            }
        }
        let tried = |judged: Judged| Tried {
            names: names.to_vec(),
            ours: judged.ours,
            verdict: judged.verdict,
            unfinished_runs: judged.unfinished_runs,
        };
        Ok(open.iter().copied().zip(verdicts.into_iter().map(tried)).collect())
    }
}

/// Returns all sets of this size whose members do not exclude each other, in the order in which the study names them.
fn compatible(alternatives: &[SensitivityTable], size: usize) -> Vec<Set> {
    if size == 0 {
        return vec![Set::new()];
    }
    let grow = |set: Set| -> Vec<Set> {
        let first = set.last().map_or(0, |last| last + 1);
        let fits = |n: &usize| set.iter().all(|other| !exclude(&alternatives[*other], &alternatives[*n]));
        (first..alternatives.len()).filter(fits).map(|n| set.iter().copied().chain([n]).collect()).collect()
    };
    compatible(alternatives, size - 1).into_iter().flat_map(grow).collect()
}

/// Returns true if both set the same key, or one a table in which the other sets a key.
fn exclude(a: &SensitivityTable, b: &SensitivityTable) -> bool {
    let keys = |table: &SensitivityTable| -> Vec<Vec<String>> {
        let key = |set: &At<String>| set.value.split('=').next().unwrap_or("").trim().to_owned();
        table.set.iter().map(|set| key(set).split('.').map(str::to_owned).collect()).collect()
    };
    let (a, b) = (keys(a), keys(b));
    a.iter().any(|a| b.iter().any(|b| a.starts_with(b) || b.starts_with(a)))
}

/// Sorts sets by the verdicts of their members alone on open statements, nearest to reproduced first.
fn sort_by_promise(sets: &mut [Set], alternatives: &[SensitivityTable], statements: &[Judged]) {
    let searches = statements.iter().filter_map(|judged| judged.search.as_ref());
    let open: Vec<&Search> = searches.filter(|search| search.reproduced().next().is_none()).collect();
    let distance = |search: &Search, n: usize| {
        let alone = search.tried.iter().find(|tried| tried.names == [alternatives[n].name.as_str()]);
        alone.map_or(Verdict::NotTested, |tried| tried.verdict) as usize
    };
    let of_statement = |search: &Search, set: &Set| set.iter().map(|n| distance(search, *n)).sum::<usize>();
    sets.sort_by_cached_key(|set| open.iter().map(|search| of_statement(search, set)).min());
}

#[cfg(test)]
mod tests;
