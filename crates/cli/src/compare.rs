//! `anabranch compare`.

use crate::args::CompareArgs;
use crate::failure::Failure;
use crate::output;
use anabranch_lab::Scenario;
use anabranch_lab::compare::Plan;
use anabranch_lab::stats::Estimate;
use anabranch_report::{Header, comparison_rows};

/// Runs all schedulers and the baselines, and ranks them.
pub fn compare(args: &CompareArgs) -> Result<(), Failure> {
    let scenario = Scenario::load(&args.scenario, &args.common.sets)?;
    let seed = args.common.seed.unwrap_or(scenario.seed);
    let repeat = args.common.repeat.map_or(scenario.repeat, |n| n as usize);
    let header = Header::new(&scenario, seed, repeat);
    let schedulers = match args.schedulers.as_slice() {
        [] => Scenario::default_schedulers(),
        named => named.to_vec(),
    };
    let plan = Plan::new(scenario, &schedulers, seed, repeat)?;
    let bar = output::progress(plan.len());
    let comparison = plan.run(args.common.jobs, &|| bar.inc(1));
    bar.finish_and_clear();
    let comparison = comparison?;

    let rows = comparison_rows(&comparison);
    if let Some(path) = &args.common.csv {
        let csv = anabranch_report::csv(&header, &rows);
        output::write(path, &csv.map_err(|error| Failure::writing("CSV", error))?)?;
    }
    let summary = comparison.summary();
    if args.common.json {
        let json = anabranch_report::json(&header, summary.as_ref(), &rows);
        return output::print(&format!("{}\n", json.map_err(|error| Failure::writing("JSON", error))?));
    }
    let Some(summary) = summary else { return Ok(()) };
    let singles: Vec<(String, Estimate)> = comparison
        .singles
        .iter()
        .filter_map(|group| Some((group.name.clone(), Estimate::of(&group.values(comparison.measure))?)))
        .collect();
    let files = match &args.common.csv {
        Some(path) => format!("\nOne row per run: {}\n", path.display()),
        None => "\nOne row per run in a file: --csv compare.csv\n".to_owned(),
    };
    output::print(&format!("{}{files}", anabranch_report::comparison(&header, &summary, &singles)))
}
