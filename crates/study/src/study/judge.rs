//! Verdicts: statements of papers compared with our measurements.
//!
//! Comparisons are paired: seed by seed, at the same point, relative to the mean of the two, so that points of
//! different size have equal weight. Changes against another system are percentages already and are subtracted. Several
//! points are averaged within a seed. A difference counts if its 95 % interval does not contain zero; where nothing is
//! random and repetitions are copies, if it is at least one percent. Two values that are both below a thousandth of the
//! largest mean among the claim's points are equal: otherwise rounding errors beside zero would differ by 100 %. An
//! order is not reproduced against the means that are shown with it. Where the points of a claim or the steps of a
//! trend each have a vote, their p-values are adjusted after Holm.
//!
//! `docs/studies.md` has the table of grades by claim; `grade` has its rules.
//!
//! A statement about a system that is a reconstruction (`unavailable`) has a comparator that is not available. Trends
//! of all systems, and orders of three other systems or more, are judged without it.

mod grade;

use super::claim::{Claim, Relation, Side};
use super::file::{Lead, StatementTable, Statistic, Trend};
use super::grid::{Point, Table};
use super::load::Study;
use super::metric::Metric;
use super::result::{Judged, Verdict};
use super::scale::{Unit, digits};
use anabranch_lab::statistic::Censoring;
use anabranch_lab::stats::{Estimate, Tested};
use anabranch_scenario::ScenarioError;

/// Claim before its runs.
struct Case<'a> {
    study: &'a Study,
    table: &'a Table<'a>,
    statement: &'a StatementTable,
    metric: Metric,
    points: Vec<Point>,
    /// System that the claim is about.
    system: Option<usize>,
    over: Option<usize>,
    /// Values of the metric below this count as zero, in its unit.
    floor: f64,
}

/// Result of a claim.
struct Finding {
    ours: String,
    verdict: Verdict,
    details: Vec<String>,
}

impl Finding {
    fn untested(why: &str) -> Finding {
        Finding { ours: "–".to_owned(), verdict: Verdict::NotTested, details: vec![why.to_owned()] }
    }
}

/// Judges a statement by these results.
pub(super) fn judge(study: &Study, table: &Table<'_>, statement: &StatementTable) -> Result<Judged, ScenarioError> {
    let claim = Claim::of(study, statement).map_err(|problem| study.refuse(problem))?;
    let named = |at: &Option<anabranch_scenario::file::At<String>>| {
        at.as_ref().map(|at| study.system(at)).transpose().map_err(|problem| study.refuse(problem))
    };
    let mut unfinished_runs = 0;
    let finding = match &claim {
        Claim::Untestable(why) => Finding::untested(why),
        claim => {
            let metric = study.metric(&statement.metric, table.grid)?;
            let points = study.points(&study.chosen(statement));
            let case = Case {
                floor: floor(study, table, &metric, &points),
                study,
                table,
                statement,
                metric,
                points,
                system: named(&statement.system)?,
                over: named(&statement.over)?,
            };
            match case.points.is_empty() {
                true => Finding::untested("its points are not among those that were run"),
                false => {
                    let mut finding = case.decide_without_reconstructions(claim);
                    if let Some((unfinished, words)) = case.unfinished(claim) {
                        unfinished_runs = unfinished;
                        finding.details.insert(0, words);
                    }
                    finding
                }
            }
        }
    };
    Ok(Judged {
        text: statement.text.clone(),
        source: statement.source.clone(),
        sentence: statement.sentence.clone(),
        claim: claim.shown(study, statement),
        ours: finding.ours,
        verdict: finding.verdict,
        unfinished_runs,
        details: finding.details,
        own: statement.own,
        headline: statement.headline,
        cause: statement.cause.clone().filter(|_| finding.verdict != Verdict::Reproduced),
        search: None,
    })
}

impl Case<'_> {
    /// Decides without the systems that are reconstructions.
    fn decide_without_reconstructions(&self, claim: &Claim) -> Finding {
        let reconstructed = |system: usize| self.study.systems().nth(system)?.unavailable.as_deref();
        let about = [self.system, self.over].into_iter().flatten().find_map(reconstructed);
        let (claim, why) = match claim {
            Claim::Order(chain) => {
                let of_paper: Vec<_> = chain.iter().filter(|(_, it)| reconstructed(*it).is_none()).copied().collect();
                let why = chain.iter().find_map(|(_, system)| reconstructed(*system));
                let enough = of_paper.len() >= ORDER_WITHOUT;
                (&Claim::Order(if enough { of_paper } else { chain.clone() }), why.filter(|_| !enough))
            }
            claim => (claim, about),
        };
        let mut finding = self.decide(claim);
        if let Some(why) = why {
            finding.details.insert(0, format!("{} against our reconstruction: {why}", finding.verdict.name()));
            finding.verdict = Verdict::ComparatorUnavailable;
        }
        finding
    }

    fn decide(&self, claim: &Claim) -> Finding {
        let found = match claim {
            Claim::Order(chain) => self.order(chain),
            Claim::Number { low, high, within } => self.number(*low, *high, *within),
            Claim::Bound { side, bound } => self.bound(*side, *bound),
            Claim::Trend(trend, lead) => self.trend(*trend, *lead),
            Claim::Peak(places) => self.peak(places),
            Claim::Theory { curve, within } => self.theory(curve, *within),
            Claim::Equals(text) => Some(self.equals(text)),
            Claim::Untestable(_) => None,
        };
        found.unwrap_or_else(|| Finding::untested("a run does not have this number"))
    }

    /// Returns the number of runs behind a claim that did not finish, and a note on them; `None` if all did or it does
    /// not matter.
    fn unfinished(&self, claim: &Claim) -> Option<(usize, String)> {
        let mut systems: Vec<usize> = match (claim, self.system) {
            (Claim::Order(chain), _) => chain.iter().map(|(_, system)| *system).collect(),
            (_, Some(system)) => vec![system],
            (_, None) => (0..self.study.systems().count()).collect(),
        };
        systems.extend(self.over);
        systems.sort_unstable();
        systems.dedup();
        let cells = || systems.iter().flat_map(|system| self.points.iter().map(move |point| (*system, point)));
        let unfinished: usize = cells().map(|(system, point)| self.table.unfinished(system, point, &self.metric)).sum();
        let runs: usize = cells().map(|(system, point)| self.table.runs(system, point).len()).sum();
        let meaning = match self.metric.censoring() {
            Censoring::LowerBound => "their times are lower bounds",
            _ => "their numbers are those of the part that was run",
        };
        (unfinished > 0).then(|| (unfinished, format!("{unfinished} of {runs} runs did not finish: {meaning}")))
    }

    // Numbers of a claim.

    /// Returns the metric of the system at a point, or its excess over that of `over` \[%\], seed by seed.
    fn values(&self, system: usize, point: &Point) -> Option<Vec<f64>> {
        match self.over {
            None => self.table.values(system, point, &self.metric),
            Some(base) => self.table.change(system, base, point, &self.metric),
        }
    }

    fn unit(&self, largest: f64) -> Unit {
        match self.over {
            Some(_) => Unit { name: "%", size: 1.0 },
            None => Unit::suited(self.metric.unit(), largest),
        }
    }

    fn show(&self, estimate: &Estimate) -> String {
        let unit = self.unit(estimate.mean);
        let half = estimate.half.map(|half| format!(" ± {}", unit.show(half))).unwrap_or_default();
        let sign = if self.over.is_some() && estimate.mean > 0.0 { "+" } else { "" };
        format!("{sign}{}{half} {}", unit.show(estimate.mean), unit.name).trim_end().to_owned()
    }

    /// Returns the mean over points, or that of the point which the statement names.
    fn estimate(&self, system: usize) -> Option<(Estimate, String)> {
        let each: Vec<Vec<f64>> = self.points.iter().map(|point| self.values(system, point)).collect::<Option<_>>()?;
        let of_points: Vec<Estimate> = each.iter().map(|values| Estimate::of(values)).collect::<Option<_>>()?;
        let by_mean = |a: &usize, b: &usize| of_points[*a].mean.total_cmp(&of_points[*b].mean);
        let chosen = match self.statement.statistic {
            Statistic::Mean => {
                let place = match self.points.as_slice() {
                    [only] => self.study.place(only),
                    points => format!("mean of {} points", points.len()),
                };
                return Some((Estimate::of(&mean_within_seeds(&each))?, place));
            }
            Statistic::Max => (0..each.len()).max_by(by_mean)?,
            Statistic::Min => (0..each.len()).min_by(by_mean)?,
        };
        Some((of_points[chosen], self.study.place(&self.points[chosen])))
    }

    /// Returns the excess of `b` over `a` at these points, relative to their mean \[%\].
    fn difference(&self, a: usize, b: usize, points: &[Point]) -> Option<Estimate> {
        let of_point = |point: &Point| Some(self.apart(&self.values(a, point)?, &self.values(b, point)?));
        let each: Vec<Vec<f64>> = points.iter().map(of_point).collect::<Option<_>>()?;
        Estimate::of(&mean_within_seeds(&each))
    }

    /// Returns the excess of `b` over `a`, seed by seed: relative to the mean of the two \[%\], or for changes in
    /// percentage points.
    fn apart(&self, a: &[f64], b: &[f64]) -> Vec<f64> {
        match self.over {
            None => relative(a, b, self.floor),
            Some(_) => a.iter().zip(b).map(|(a, b)| b - a).collect(),
        }
    }

    fn name(&self, system: usize) -> &str {
        self.study.systems().nth(system).map_or("", |system| &system.name)
    }

    fn margin(&self, default: f64) -> f64 {
        self.statement.margin.unwrap_or(default)
    }

    // Kinds of claims, one function each.

    fn order(&self, chain: &[(Relation, usize)]) -> Option<Finding> {
        let mut details = Vec::new();
        let groups: Vec<Vec<Point>> = match self.statement.each {
            true => self.points.iter().map(|point| vec![point.clone()]).collect(),
            false => vec![self.points.clone()],
        };
        let (mut verdict, mut contrary) = (Verdict::Reproduced, 0);
        for group in &groups {
            let place =
                if self.statement.each { format!(" at {}", self.study.place(&group[0])) } else { String::new() };
            for pair in chain.windows(2) {
                let [(_, a), (relation, b)] = pair else { continue };
                let difference = self.difference(*a, *b, group)?;
                let mut of_pair = grade::relation(*relation, &difference, self.statement.margin);
                let reversed = if *relation == Relation::Less { self.reversed(*a, *b, group)? } else { Vec::new() };
                let leads = *relation == Relation::Less && difference.mean > 0.0;
                let contradicted = leads && !self.is_shown_above(*b, *a, group)?;
                if !reversed.is_empty() || contradicted {
                    of_pair = of_pair.max(Verdict::SignOnly);
                }
                verdict = verdict.max(of_pair);
                contrary += usize::from(of_pair == Verdict::Opposite);
                let sign = if of_pair == Verdict::Reproduced { "" } else { "NOT " };
                details.push(format!(
                    "{sign}{} {} {}{place}: {} is {}",
                    self.name(*a),
                    relation.symbol(),
                    self.name(*b),
                    self.name(*b),
                    above(&difference)
                ));
                details.extend(reversed);
                if contradicted {
                    details.push(format!("the means are the other way{place}, since they weigh large values more"));
                }
            }
        }
        if let [(_, first), .., (_, last)] = chain
            && (chain.len() > 2 || groups.len() > 1)
            && chain.iter().skip(1).any(|(relation, _)| *relation == Relation::Less)
            && grade::sign(&self.difference(*first, *last, &self.points)?, self.margin(WORTH_A_WORD))
                == Verdict::Reproduced
        {
            // A contrary difference between neighbours is not compensated by the ends, nor one at half of the points by
            // the average.
            let made_good = verdict == Verdict::NotSignificant || (chain.len() == 2 && 2 * contrary < groups.len());
            verdict = if made_good { verdict.min(Verdict::SignOnly) } else { verdict };
        }
        let shown = |(_, system): &(Relation, usize)| {
            let each: Option<Vec<Vec<f64>>> = self.points.iter().map(|point| self.values(*system, point)).collect();
            Some(format!("{} {}", self.name(*system), self.show(&Estimate::of(&mean_within_seeds(&each?))?)))
        };
        let ours = match (chain, self.over) {
            ([(_, a), (_, b)], None) if self.statement.headline && self.statement.each => self.gains(*a, *b)?,
            _ => chain.iter().map(shown).collect::<Option<Vec<String>>>()?.join(", "),
        };
        Some(Finding { ours, verdict, details })
    }

    /// Describes the excess of `b` over `a` at each point: `FPS over RR: +74 ± 12 % at loss 1 %, …`.
    fn gains(&self, a: usize, b: usize) -> Option<String> {
        let gain = |point: &Point| {
            let gain = Estimate::of(&self.table.change(b, a, point, &self.metric)?)?;
            Some(format!("{} at {}", signed(&gain), self.study.place(point)))
        };
        let gains: Vec<String> = self.points.iter().map(gain).collect::<Option<_>>()?;
        Some(format!("{} over {}: {}", self.name(b), self.name(a), gains.join(", ")))
    }

    /// Returns true if the displayed mean of `a` at these points is above that of `b`.
    fn is_shown_above(&self, a: usize, b: usize, points: &[Point]) -> Option<bool> {
        let mean = |system: usize| {
            let each: Option<Vec<Vec<f64>>> = points.iter().map(|point| self.values(system, point)).collect();
            Estimate::of(&mean_within_seeds(&each?)).map(|estimate| estimate.mean)
        };
        Some(mean(a)? > mean(b)?)
    }

    /// Returns the points of a group of several at which `b` is significantly below `a` among that many tests: an
    /// average must not hide them.
    fn reversed(&self, a: usize, b: usize, group: &[Point]) -> Option<Vec<String>> {
        if group.len() == 1 {
            return Some(Vec::new());
        }
        let one = |point: &Point| self.difference(a, b, std::slice::from_ref(point)).map(Some);
        let tested = Tested::family(&group.iter().map(one).collect::<Option<Vec<_>>>()?);
        let against = group.iter().zip(tested).filter_map(|(point, tested)| {
            let difference = tested.filter(|it| is_against(it, -self.margin(WORTH_A_WORD)))?.difference;
            let place = self.study.place(point);
            Some(format!("the other way at {place}: {} is {}", self.name(b), above(&difference)))
        });
        Some(against.collect())
    }

    fn number(&self, low: f64, high: f64, within: f64) -> Option<Finding> {
        let (estimate, place) = self.estimate(self.system?)?;
        let verdict = grade::number(&estimate, [low, high], within, self.over.is_some());
        let unit = self.unit(high.abs().max(low.abs()));
        let accepted = format!("accepted: {} to {} {}", unit.show(low - within), unit.show(high + within), unit.name);
        Some(Finding { ours: self.show(&estimate), verdict, details: vec![place, accepted] })
    }

    fn bound(&self, side: Side, bound: f64) -> Option<Finding> {
        let (estimate, place) = self.estimate(self.system?)?;
        let verdict = grade::bound(&estimate, side, bound);
        Some(Finding { ours: self.show(&estimate), verdict, details: vec![place] })
    }

    fn trend(&self, trend: Trend, lead: Option<Lead>) -> Option<Finding> {
        let systems: Vec<usize> = match self.system {
            Some(system) => vec![system],
            None => self.all_of_paper().filter(|system| Some(*system) != self.over).collect(),
        };
        let (mut details, mut worst, mut ours) = (Vec::new(), Verdict::Reproduced, Vec::new());
        for system in systems {
            let columns = self.columns(system)?;
            let [first, .., last] = columns.as_slice() else {
                return Some(Finding::untested("it takes two values of the first axis"));
            };
            let overall = Estimate::of(&self.apart(first, last))?;
            let mut verdict = self.change(trend, &overall, &columns)?;
            if let Some(lead) = lead {
                // The gap is widest where it begins to shrink, or ends growing: there it must be on the paper's side.
                let widest = if (trend == Trend::Falls) == (lead == Lead::Above) { first } else { last };
                let gap = Estimate::of(widest)?;
                let sign = if lead == Lead::Above { 1.0 } else { -1.0 };
                let on_its_side = grade::sign(&Estimate { mean: sign * gap.mean, ..gap }, WORTH_A_WORD);
                verdict = verdict.max(on_its_side);
                if on_its_side != Verdict::Reproduced {
                    details.push(format!(
                        "{}: the gap is {} where it should be widest",
                        self.name(system),
                        self.show(&gap)
                    ));
                }
            }
            worst = worst.max(verdict);
            let means: Option<Vec<Estimate>> = columns.iter().map(|column| Estimate::of(column)).collect();
            let means: Vec<String> = means?.iter().map(|estimate| self.show(estimate)).collect();
            let ends = [means.first(), means.last()].map(|end| end.cloned().unwrap_or_default());
            ours.push(format!("{} {} to {}", self.name(system), ends[0], ends[1]));
            details.push(format!("{}: {}; from end to end {}", self.name(system), means.join(", "), signed(&overall)));
        }
        Some(Finding { ours: ours.join("; "), verdict: worst, details })
    }

    /// Judges a change from end to end, together with those from column to column.
    fn change(&self, trend: Trend, overall: &Estimate, columns: &[Vec<f64>]) -> Option<Verdict> {
        let steps = columns.windows(2).map(|pair| Estimate::of(&self.apart(&pair[0], &pair[1])).map(Some));
        let steps: Vec<Option<Estimate>> = steps.collect::<Option<_>>()?;
        let sign = match trend {
            Trend::Rises => 1.0,
            Trend::Falls => -1.0,
            Trend::Flat => {
                let changes = steps.iter().flatten().chain([overall]);
                return changes.map(|change| grade::flat(change, self.statement.margin)).max();
            }
        };
        let along = |change: Estimate| Estimate { mean: sign * change.mean, ..change };
        let margin = self.margin(WORTH_A_WORD);
        let steps: Vec<Option<Estimate>> = steps.into_iter().map(|step| step.map(along)).collect();
        let against = Tested::family(&steps).iter().flatten().any(|step| is_against(step, -margin));
        let verdict = grade::sign(&along(*overall), margin);
        Some(if against { verdict.max(Verdict::SignOnly) } else { verdict })
    }

    /// Returns the systems that are the paper's own.
    fn all_of_paper(&self) -> impl Iterator<Item = usize> {
        self.study.systems().enumerate().filter(|(_, system)| system.unavailable.is_none()).map(|(n, _)| n)
    }

    /// Returns for each value of the first axis the mean over its points, seed by seed.
    fn columns(&self, system: usize) -> Option<Vec<Vec<f64>>> {
        let column = |n: &usize| {
            let here = self.points.iter().filter(|point| point.first() == Some(n));
            let each: Vec<Vec<f64>> = here.map(|point| self.values(system, point)).collect::<Option<_>>()?;
            Some(mean_within_seeds(&each))
        };
        self.indices().iter().map(column).collect()
    }

    fn peak(&self, places: &[f64]) -> Option<Finding> {
        let (system, axis) = (self.system?, self.study.axes.first()?);
        let columns = self.columns(system)?;
        let indices: Vec<usize> = self.indices();
        let estimates: Vec<Estimate> = columns.iter().map(|column| Estimate::of(column)).collect::<Option<_>>()?;
        let top = (0..estimates.len()).max_by(|a, b| estimates[*a].mean.total_cmp(&estimates[*b].mean))?;
        if estimates.iter().all(|estimate| estimate.mean == estimates[0].mean) {
            return Some(Finding::untested("it is the same at every value"));
        }
        let is_claimed = |n: usize| places.contains(&axis.points[indices[n]].x);
        let claimed = (0..estimates.len()).filter(|n| is_claimed(*n));
        let Some(best) = claimed.max_by(|a, b| estimates[*a].mean.total_cmp(&estimates[*b].mean)) else {
            return Some(Finding::untested("the value where the peak should be was not run"));
        };
        let lead = Estimate::of(&self.apart(&columns[best], &columns[top]))?;
        let verdict = match (is_claimed(top), counts(&lead)) {
            (true, _) => Verdict::Reproduced,
            (_, false) => Verdict::NotSignificant,
            _ => Verdict::Opposite,
        };
        let at = |n: usize| format!("{} at {} {}", self.show(&estimates[n]), axis.name, axis.shown(indices[n]));
        let details = (0..estimates.len()).map(at).collect();
        Some(Finding { ours: at(top), verdict, details })
    }

    /// Returns the points of the first axis in the order of their values, whatever the order in the file.
    fn indices(&self) -> Vec<usize> {
        let mut indices: Vec<usize> = self.points.iter().filter_map(|point| point.first().copied()).collect();
        if let Some(axis) = self.study.axes.first() {
            indices.sort_by(|a, b| axis.points[*a].x.total_cmp(&axis.points[*b].x));
        }
        indices.dedup();
        indices
    }

    fn theory(&self, curve: &super::claim::TheoryCurve, within: f64) -> Option<Finding> {
        let (system, axis) = (self.system?, self.study.axes.first()?);
        let (mut details, mut farthest, mut all_near) = (Vec::new(), 0.0f64, true);
        // Only a change has a direction.
        let mut same_way = self.over.is_some();
        for point in &self.points {
            let at = &axis.points[*point.first()?];
            let Some(theory) = curve.at(at.x) else { continue };
            let ours = Estimate::of(&self.values(system, point)?)?;
            let gap = ours.mean - theory;
            all_near &= gap.abs() <= within;
            same_way &= (ours.mean > 0.0) == (theory > 0.0);
            if gap.abs() > farthest.abs() {
                farthest = gap;
            }
            let unit = self.unit(theory);
            details.push(format!("{}: {}, theory {}", self.study.place(point), self.show(&ours), unit.show(theory)));
        }
        let unit = self.unit(farthest);
        let verdict = match (details.is_empty(), all_near, same_way) {
            (true, ..) => Verdict::NotTested,
            (_, true, _) => Verdict::Reproduced,
            (_, _, true) => Verdict::SignOnly,
            _ => Verdict::Opposite,
        };
        let sign = if farthest > 0.0 { "+" } else { "" };
        let ours = format!("at most {sign}{} {} from theory", unit.show(farthest), unit.name);
        Some(Finding { ours, verdict, details })
    }

    fn equals(&self, text: &str) -> Finding {
        let Some(system) = self.system else { return Finding::untested("no system is named") };
        let mut seen: Vec<(String, usize)> = Vec::new();
        for run in self.points.iter().flat_map(|point| self.table.runs(system, point)) {
            let found = self.metric.text(run).unwrap_or_else(|| "nothing".to_owned());
            match seen.iter_mut().find(|(known, _)| *known == found) {
                Some((_, count)) => *count += 1,
                None => seen.push((found, 1)),
            }
        }
        let verdict = match seen.as_slice() {
            [(only, _)] if only == text => Verdict::Reproduced,
            [] => Verdict::NotTested,
            _ => Verdict::Opposite,
        };
        let details = seen.iter().map(|(text, count)| format!("{count} runs: {text}")).collect();
        Finding { ours: seen.first().map(|(text, _)| text.clone()).unwrap_or_default(), verdict, details }
    }
}

/// Returns the mean over points, seed by seed.
fn mean_within_seeds(points: &[Vec<f64>]) -> Vec<f64> {
    let seeds = points.iter().map(Vec::len).min().unwrap_or(0);
    (0..seeds).map(|seed| points.iter().map(|values| values[seed]).sum::<f64>() / points.len() as f64).collect()
}

/// Returns the excess of `b` over `a`, relative to the mean of their sizes, seed by seed \[%\]; values up to `floor`
/// are equal.
fn relative(a: &[f64], b: &[f64], floor: f64) -> Vec<f64> {
    let one = |(a, b): (&f64, &f64)| match (a.abs() + b.abs()) / 2.0 {
        _ if a.abs() <= floor && b.abs() <= floor => 0.0,
        size => 100.0 * (b - a) / size,
    };
    a.iter().zip(b).map(one).collect()
}

/// Returns the value of a metric up to which it counts as zero: a thousandth of the largest mean at these points, and
/// at least the rounding error of the arithmetic.
fn floor(study: &Study, table: &Table<'_>, metric: &Metric, points: &[Point]) -> f64 {
    let systems = 0..study.systems().count();
    let values = systems.flat_map(|system| points.iter().filter_map(move |point| table.values(system, point, metric)));
    let means = values.filter_map(|values| Estimate::of(&values)).map(|estimate| estimate.mean.abs());
    NEGLIGIBLE * means.fold(ROUNDING / NEGLIGIBLE, f64::max)
}

/// Share of the largest mean below which values count as zero.
const NEGLIGIBLE: f64 = 1e-3;
/// Rounding error in any unit: a nanosecond, which is the tick of the simulator's clock, a billionth of a bit per
/// second or of a segment.
const ROUNDING: f64 = 1e-9;

/// Minimum difference for an order, and for any comparison of runs without randomness, in percent or percentage points.
const WORTH_A_WORD: f64 = 1.0;

/// Minimum number of the paper's own systems for which an order is judged without the others.
const ORDER_WITHOUT: usize = 3;

/// Returns true for a difference below `most` that is significant among all that were tested with it.
fn is_against(tested: &Tested, most: f64) -> bool {
    tested.difference.mean < most && (tested.is_significant() || tested.difference.is_one_sample())
}

/// Returns true if the difference is significant. A single run is never significant; without randomness, a minimum
/// difference is required.
fn counts(difference: &Estimate) -> bool {
    match difference.half {
        Some(half) => difference.mean.abs() > half,
        None => difference.is_one_sample() && difference.mean.abs() > WORTH_A_WORD,
    }
}

fn above(difference: &Estimate) -> String {
    let word = if difference.mean < 0.0 { "lower" } else { "higher" };
    let half = difference.half.map(|half| format!(" ± {}", digits(half))).unwrap_or_default();
    format!("{word} by {}{half} %", digits(difference.mean.abs()))
}

fn signed(difference: &Estimate) -> String {
    let half = difference.half.map(|half| format!(" ± {}", digits(half))).unwrap_or_default();
    let sign = if difference.mean > 0.0 { "+" } else { "" };
    format!("{sign}{}{half} %", digits(difference.mean))
}

#[cfg(test)]
mod tests;
