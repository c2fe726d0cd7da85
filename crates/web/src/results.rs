//! Comparisons, and results in the form that the page shows: the sections of a report.

use crate::request::Progress;
use crate::scenario::Trouble;
use anabranch_lab::compare::Plan;
use anabranch_report::Header;
use anabranch_report::html::{Charts, Page, Section};
use anabranch_scenario::{Scenario, in_shell};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Most runs of one request: a page that is asked for more would seem to hang.
const MOST_RUNS: usize = 100_000;

/// Compares schedulers, all of them if none is named.
pub fn compare(
    scenario: Scenario,
    schedulers: &[String],
    seed: Option<u64>,
    repeat: Option<usize>,
    progress: &Progress<'_>,
) -> Result<Value, Trouble> {
    let (seed, repeat) = (seed.unwrap_or(scenario.seed), repeat.unwrap_or(scenario.repeat).max(1));
    let mut command =
        format!("anabranch compare {} --seed {seed} --repeat {repeat}", in_shell(&scenario.origin.scenario));
    for set in &scenario.origin.sets {
        command += &format!(" --set {}", in_shell(set));
    }
    let all = scenario.default_schedulers();
    let named = if schedulers.is_empty() { &all } else { schedulers };
    if !schedulers.is_empty() {
        command += &format!(" --schedulers {}", in_shell(&schedulers.join(",")));
    }
    let plan = Plan::new(scenario, named, seed, repeat)?;
    bounded(plan.len())?;
    let (done, runs) = (AtomicUsize::new(0), plan.len());
    let comparison = plan.run(None, 1, &|| progress(done.fetch_add(1, Ordering::Relaxed) + 1, runs))?;
    let summary =
        comparison.summary().ok_or_else(|| Trouble::plain("there is nothing to compare: name a scheduler"))?;
    let header = Header::new(&plan.scenario, seed, repeat).comparing(plan.described());
    let page = Page::of_comparison(&plan.scenario, &header, &comparison, &summary, &command);
    let mut value = shown(&page)?;
    value["summary"] = serde_json::to_value(&summary)?;
    Ok(value)
}

/// Refuses a request of too many runs.
pub fn bounded(runs: usize) -> Result<(), Trouble> {
    if runs <= MOST_RUNS {
        return Ok(());
    }
    let problem = format!("{runs} runs are more than the {MOST_RUNS} that a page makes at once");
    Err(Trouble { help: Some("accepted: fewer repetitions or schedulers".to_owned()), ..Trouble::plain(problem) })
}

/// Returns the first section of a page of results.
pub fn shown(page: &Page) -> Result<Value, Trouble> {
    let charts = Charts::of(page);
    let section = page.sections.first().cloned().unwrap_or_default();
    let notes: Vec<Value> = section.figures.iter().map(|figure| json!(figure.notes)).collect();
    let Section { about, warnings, tables, facts, systems, .. } = &section;
    Ok(json!({
        "title": page.title,
        "about": about,
        "warnings": warnings,
        "tables": tables,
        "facts": facts,
        "systems": systems,
        "command": page.command,
        "figures": charts.names.iter().zip(notes)
            .map(|((id, title), notes)| json!({ "id": id, "title": title, "notes": notes })).collect::<Vec<_>>(),
        "charts": serde_json::from_str::<Value>(&charts.data)?,
    }))
}
