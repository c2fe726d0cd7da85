//! Measured numbers: the middle one of several, with the extremes, because the machine is never alone.

use serde_json::{Value, json};
use std::time::Instant;

/// Several measurements of one thing.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    /// The smallest.
    pub low: f64,
    /// The one in the middle.
    pub median: f64,
    /// The largest.
    pub high: f64,
}

impl Spread {
    /// Summarises measurements, of which there must be at least one.
    pub fn of(mut measured: Vec<f64>) -> Self {
        measured.sort_by(f64::total_cmp);
        Spread { low: measured[0], median: measured[measured.len() / 2], high: measured[measured.len() - 1] }
    }

    /// A number that is the same every time.
    pub fn exactly(value: f64) -> Self {
        Spread { low: value, median: value, high: value }
    }

    /// Nanoseconds per call, over batches of a few milliseconds, each a multiple of `unit` calls.
    pub fn per_call(unit: u64, mut call: impl FnMut()) -> Self {
        let (mut calls, mut batches) = (unit, Vec::new());
        while batches.len() < BATCHES {
            let start = Instant::now();
            (0..calls).for_each(|_| call());
            let took = start.elapsed().as_nanos() as f64;
            if took < BATCH_NANOS {
                calls *= 2;
            } else {
                batches.push(took / calls as f64);
            }
        }
        Spread::of(batches)
    }

    /// `scale` divided by each of these: rates from times.
    pub fn inverse(self, scale: f64) -> Self {
        Spread { low: scale / self.high, median: scale / self.median, high: scale / self.low }
    }
}

/// Goal for a number.
#[derive(Clone, Copy, Debug)]
pub enum Goal {
    /// At least this value.
    AtLeast(f64),
    /// At most this value.
    AtMost(f64),
}

/// A number with its name, unit and goal.
pub struct Figure {
    /// Table in which it appears.
    pub table: &'static str,
    /// Name of the measurement.
    pub name: String,
    /// Unit of the numbers.
    pub unit: &'static str,
    /// The numbers.
    pub spread: Spread,
    /// Target of the values.
    pub goal: Option<Goal>,
}

impl Figure {
    /// A number without a goal.
    pub fn new(table: &'static str, name: impl Into<String>, unit: &'static str, spread: Spread) -> Self {
        Figure { table, name: name.into(), unit, spread, goal: None }
    }

    /// The same with a goal.
    pub fn with(self, goal: Goal) -> Self {
        Figure { goal: Some(goal), ..self }
    }

    /// Prints it as a line of a table.
    pub fn print(&self) {
        let Spread { low, median, high } = self.spread;
        let goal = match self.goal {
            Some(Goal::AtLeast(goal)) => format!("goal >= {goal} {}", met(median >= goal)),
            Some(Goal::AtMost(goal)) => format!("goal <= {goal} {}", met(median <= goal)),
            None => String::new(),
        };
        let extremes = if low == high { String::new() } else { format!("{}..{}", short(low), short(high)) };
        let line = format!("  {:52}{:>9} {:12}{extremes:>18}  {goal}", self.name, short(median), self.unit);
        println!("{}", line.trim_end());
    }

    /// Returns it as JSON.
    pub fn json(&self) -> Value {
        let Spread { low, median, high } = self.spread;
        let (goal, met) = match self.goal {
            Some(Goal::AtLeast(goal)) => (Some(goal), Some(median >= goal)),
            Some(Goal::AtMost(goal)) => (Some(goal), Some(median <= goal)),
            None => (None, None),
        };
        json!({
            "table": self.table, "name": self.name, "unit": self.unit, "median": median, "low": low, "high": high,
            "goal": goal, "met": met,
        })
    }
}

fn met(is_met: bool) -> &'static str {
    if is_met { "(met)" } else { "(MISSED)" }
}

/// Three digits are as many as these measurements have.
fn short(value: f64) -> String {
    let decimals = match value.abs() {
        0.0 => 0,
        v if v < 0.1 => 4,
        v if v < 10.0 => 2,
        v if v < 100.0 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

const BATCHES: usize = 15;
const BATCH_NANOS: f64 = 2e6;
