//! Claims: the testable content of statements.

use super::file::{Lead, StatementTable, TheoryTable, Trend};
use super::load::Study;
use super::scale::{Unit, digits};
use super::theory;
use anabranch_scenario::Problem;
use anabranch_scenario::file::At;
use anabranch_units::suggest;
use std::collections::BTreeMap;

/// Claim of a statement.
pub(super) enum Claim {
    /// Systems by rising metric. Each relation is to the system before; that of the first has no meaning.
    Order(Vec<(Relation, usize)>),
    /// A number in this range.
    Number { low: f64, high: f64, within: f64 },
    /// A number on one side of a bound.
    Bound { side: Side, bound: f64 },
    /// A change along the first axis; for a change against another system, the side of it as well.
    Trend(Trend, Option<Lead>),
    /// The largest number is at one of these values of the first axis.
    Peak(Vec<f64>),
    /// Each point lies on a curve.
    Theory { curve: TheoryCurve, within: f64 },
    /// A text.
    Equals(String),
    /// A claim that no run can show, with the reason.
    Untestable(String),
}

/// Relation of a system to the one before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Relation {
    /// Its metric is larger.
    Less,
    /// Its metric is not smaller.
    NotMore,
    /// Its metric is equal within the margin.
    Alike,
}

/// Side of a bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Side {
    /// Not below the bound.
    AtLeast,
    /// Not above the bound.
    AtMost,
}

/// A curve with its parameters.
pub(super) struct TheoryCurve {
    curve: &'static theory::Curve,
    parameters: BTreeMap<String, f64>,
}

impl TheoryCurve {
    pub(super) fn of(table: &TheoryTable) -> Result<TheoryCurve, Problem> {
        let TheoryTable { curve: at, parameters, .. } = table;
        let curve = theory::curve(&at.value).ok_or_else(|| {
            let names: Vec<&str> = theory::CURVES.iter().map(|curve| curve.name).collect();
            Problem::at(&at.span, format!("there is no curve `{}`", at.value), suggest(&at.value, names))
        })?;
        if let Some(wrong) = theory::unknown_parameter(curve, parameters) {
            let names: Vec<&str> = curve.parameters.iter().map(|(name, _)| *name).collect();
            let problem = format!("the curve `{}` has no parameter `{wrong}`", curve.name);
            return Err(Problem::at(&at.span, problem, suggest(wrong, names)));
        }
        Ok(TheoryCurve { curve, parameters: parameters.clone() })
    }

    /// Returns its value at `x`, if it is defined there.
    pub(super) fn at(&self, x: f64) -> Option<f64> {
        (self.curve.value)(x, &self.parameters).filter(|value| value.is_finite())
    }
}

impl Relation {
    pub(super) const fn symbol(self) -> &'static str {
        match self {
            Relation::Less => "<",
            Relation::NotMore => "<=",
            Relation::Alike => "~",
        }
    }
}

impl Claim {
    /// Returns the one claim of a statement.
    pub(super) fn of(study: &Study, statement: &StatementTable) -> Result<Claim, Problem> {
        let place = &statement.metric.span;
        let StatementTable { value, range, within, at_least, at_most, trend, peak, equals, untestable, .. } = statement;
        let mut claims = Vec::new();
        if let Some(order) = &statement.order {
            claims.push(Claim::Order(chain(study, order)?));
        }
        let tolerance = |x: f64| within.unwrap_or(0.1 * x.abs());
        claims.extend(value.map(|x| Claim::Number { low: x, high: x, within: tolerance(x) }));
        claims.extend(range.map(|[low, high]| Claim::Number { low, high, within: within.unwrap_or(0.0) }));
        claims.extend(at_least.map(|bound| Claim::Bound { side: Side::AtLeast, bound }));
        claims.extend(at_most.map(|bound| Claim::Bound { side: Side::AtMost, bound }));
        if let Some(trend) = *trend {
            match (&statement.over, statement.lead) {
                (Some(over), None) => {
                    let help = "accepted: lead = \"above\" or \"below\": where the paper has the system";
                    return Err(Problem::at(&over.span, "`lead` is missing", help));
                }
                (_, lead) => claims.push(Claim::Trend(trend, lead)),
            }
        }
        claims.extend(peak.clone().map(Claim::Peak));
        if let Some(table) = &statement.theory {
            let help = "accepted: within = the distance that still counts as on the curve";
            let within = within.ok_or_else(|| Problem::at(place, "a claim of theory needs `within`", help))?;
            claims.push(Claim::Theory { curve: TheoryCurve::of(table)?, within });
        }
        claims.extend(equals.clone().map(Claim::Equals));
        claims.extend(untestable.clone().map(Claim::Untestable));
        let about_one = |claim: &Claim| !matches!(claim, Claim::Order(_) | Claim::Trend(..) | Claim::Untestable(_));
        match claims.len() {
            1 if claims.iter().any(about_one) && statement.system.is_none() => {
                Err(Problem::at(place, "`system` is missing", "accepted: system = \"NAME\""))
            }
            1 => Ok(claims.remove(0)),
            count => {
                let help =
                    "accepted: one of order, value, range, at-least, at-most, trend, peak, theory, equals, untestable";
                Err(Problem::at(place, format!("this statement makes {count} claims"), help))
            }
        }
    }

    /// Formats the claim for a table.
    pub(super) fn shown(&self, study: &Study, statement: &StatementTable) -> String {
        let over = statement.over.is_some();
        let basic = super::metric::unit_of(&statement.metric.value);
        let unit = |x: f64| if over { Unit { name: "%", size: 1.0 } } else { Unit::suited(basic, x) };
        let number = |x: f64| {
            let sign = if over && x > 0.0 { "+" } else { "" };
            format!("{sign}{} {}", unit(x).show(x), unit(x).name).trim_end().to_owned()
        };
        let metric = &statement.metric.value;
        let about = match (&statement.system, &statement.over) {
            (Some(system), Some(over)) => format!("{metric} of {} over {}: ", system.value, over.value),
            (Some(system), None) => format!("{metric} of {}: ", system.value),
            (None, Some(over)) => format!("{metric} over {}: ", over.value),
            (None, None) => format!("{metric}: "),
        };
        let what = match self {
            Claim::Order(chain) => {
                let name = |system: usize| study.systems().nth(system).map_or("", |system| system.name.as_str());
                let link = |(n, (relation, system)): (usize, &(Relation, usize))| match n {
                    0 => name(*system).to_owned(),
                    _ => format!(" {} {}", relation.symbol(), name(*system)),
                };
                chain.iter().enumerate().map(link).collect()
            }
            Claim::Number { low, high, .. } if low == high => number(*low),
            Claim::Number { low, high, .. } => format!("{} to {}", number(*low), number(*high)),
            Claim::Bound { side: Side::AtLeast, bound } => format!("at least {}", number(*bound)),
            Claim::Bound { side: Side::AtMost, bound } => format!("at most {}", number(*bound)),
            Claim::Trend(trend, lead) => {
                let change = match trend {
                    Trend::Rises => "rises",
                    Trend::Falls => "falls",
                    Trend::Flat => "stays",
                };
                let side = match lead {
                    None => "",
                    Some(Lead::Above) => ", above zero",
                    Some(Lead::Below) => ", below zero",
                };
                format!("{change}{side}")
            }
            Claim::Peak(places) => {
                let places: Vec<String> = places.iter().map(|x| digits(*x)).collect();
                let axis = study.axes.first().map_or("x", |axis| axis.name.as_str());
                format!("largest at {axis} {}", places.join(" or "))
            }
            Claim::Theory { curve, within } => format!("{} within {}", curve.curve.about, number(*within)),
            Claim::Equals(text) => text.clone(),
            Claim::Untestable(_) => return "–".to_owned(),
        };
        about + &what
    }
}

/// Parses an order: `LATE < DPSAF <= minRTT ~ RR`.
fn chain(study: &Study, at: &At<String>) -> Result<Vec<(Relation, usize)>, Problem> {
    let (mut all, mut relation) = (Vec::new(), Relation::Less);
    let mut rest = at.value.as_str();
    loop {
        let signs = [(" <= ", Relation::NotMore), (" < ", Relation::Less), (" ~ ", Relation::Alike)];
        let next =
            signs.iter().filter_map(|(sign, it)| Some((rest.find(sign)?, sign.len(), *it))).min_by_key(|it| it.0);
        let name = next.map_or(rest, |(end, ..)| &rest[..end]).trim();
        all.push((relation, study.system(&At { span: at.span.clone(), value: name.to_owned() })?));
        match next {
            Some((end, length, found)) => (rest, relation) = (&rest[end + length..], found),
            None => break,
        }
    }
    match all.len() {
        0 | 1 => Err(Problem::at(&at.span, "an order has two systems or more", "accepted: \"A < B <= C ~ D\"")),
        _ => Ok(all),
    }
}
