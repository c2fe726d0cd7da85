//! Samples and windows of a run.

use crate::error::Problem;
use crate::file::RunTable;
use crate::watch::Watch;
use anabranch_units::Duration;

pub(super) fn watch(run: &RunTable, stop: Duration) -> Result<Watch, Problem> {
    if let Some(at) = &run.sample
        && at.value.0 < (stop / MAX_SAMPLES).max(Duration::from_nanos(1))
    {
        let help = format!("accepted: {} or more, which is {MAX_SAMPLES} times until `stop`", stop / MAX_SAMPLES);
        return Err(Problem::at(&at.span, format!("`sample` is {}", at.value.0), help));
    }
    let mut windows = Vec::new();
    for at in run.windows.iter().flatten() {
        let [from, to] = at.value.map(|unit| unit.0);
        if from >= to || to > stop {
            let help = format!("accepted: [from, to], in this order and up to `stop`, which is {stop}");
            return Err(Problem::at(
                &at.span,
                format!("the window from {from} to {to} is empty, or ends after the run"),
                help,
            ));
        }
        if windows.len() == MAX_WINDOWS {
            let help = format!("accepted: up to {MAX_WINDOWS}; `sample` gives series over time");
            return Err(Problem::at(&at.span, "there are too many windows", help));
        }
        windows.push((from, to));
    }
    Ok(Watch { every: run.sample.as_ref().map(|at| at.value.0), windows })
}

/// Maximum number of samples of a series: more than any figure shows.
const MAX_SAMPLES: u64 = 100_000;
/// Maximum number of windows; each has columns in every row of results.
const MAX_WINDOWS: usize = 100;
