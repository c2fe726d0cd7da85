//! `anabranch study field/…`: results that others measured, beside predictions.

use crate::failure::Failure;
use crate::output;
use crate::study::{StudyArgs, file, stem};
use anabranch_lab::Journal;
use anabranch_lab::format::{FIELD_STUDIES, FIELD_STUDY};
use anabranch_policy::Catalogue;
use anabranch_report::html::{Page, page};
use anabranch_scenario::in_shell;
use anabranch_study::field::{Field, FieldResult, Trial};
use indicatif::ProgressBar;
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::Arc;

/// Contents of the JSON of several field studies.
#[derive(Serialize, JsonSchema)]
pub struct Fields<'a> {
    studies: &'a [FieldResult],
    /// Number of rows of all studies whose measured number is inside the predicted range.
    inside: usize,
    /// Number of rows of all studies.
    rows: usize,
}

/// Name that stands for all field studies.
pub const ALL: &str = "field";

/// Returns true if the command is about field studies.
pub fn is_asked_for(args: &StudyArgs) -> bool {
    args.paper.as_deref() == Some(ALL) || args.names.iter().any(|name| name == ALL || Field::is_one(name))
}

/// Runs field studies.
pub fn field(catalogue: &Arc<Catalogue>, args: &StudyArgs) -> Result<(), Failure> {
    if args.sensitivity || args.figure.is_some() {
        let help = "accepted with them: --data, --quick, --repeat, --set, --json, --report and --reproduction";
        return Err(Failure::Refused(miette::miette!(
            help = help,
            "field studies have no figures and no sensitivities"
        )));
    }
    let fields = chosen(args)?;
    // All are read before the first runs: what is wrong shows at once.
    let trials = fields.into_iter().map(|it| Trial::new(it, catalogue)).collect::<Result<Vec<_>, _>>()?;
    let journal = output::journal(&args.out)?;
    let missing = trials.iter().map(|trial| trial.missing(&journal)).sum();
    let jobs = output::threads(args.jobs, missing);
    let bar = output::progress(missing);
    let results = trials.iter().map(|trial| one(trial, &journal, args, jobs, &bar)).collect::<Result<Vec<_>, _>>();
    bar.finish_and_clear();
    let results = results?;
    if let Some(path) = &args.report {
        output::write(path, page(&Page::of_fields(&results, &command(args, &args.names))).as_bytes())?;
    }
    if let Some(path) = &args.reproduction {
        let text = anabranch_report::field_document(&results, &command(args, &args.names));
        output::write(path, text.as_bytes())?;
    }
    let (inside, rows) = results.iter().fold((0, 0), |(inside, rows), it| (inside + it.inside, rows + it.rows.len()));
    if args.json {
        return output::print(&output::json(&FIELD_STUDIES, &Fields { studies: &results, inside, rows })?);
    }
    let each: Vec<String> = results.iter().map(|it| anabranch_report::field(it, output::width())).collect();
    let mut text = each.join("\n");
    if results.len() > 1 {
        text += &format!("\nAll studies: measured inside the predicted range in {inside} of {rows} rows.\n");
    }
    output::print(&text)
}

/// Runs one study and writes its file.
fn one(
    trial: &Trial,
    journal: &Journal,
    args: &StudyArgs,
    jobs: usize,
    bar: &ProgressBar,
) -> Result<FieldResult, Failure> {
    let name = &trial.field.name;
    bar.set_message(format!(" ({name})"));
    trial.run(journal, jobs, &|| bar.inc(1)).map_err(Failure::study)?;
    let result = trial.result(journal, &command(args, std::slice::from_ref(name)), args.quick)?;
    file(args, &stem(name), "json", output::document(&FIELD_STUDY, &result)?.as_bytes())?;
    Ok(result)
}

/// The studies that are asked for, in order.
fn chosen(args: &StudyArgs) -> Result<Vec<Field>, Failure> {
    let mut names: Vec<&str> = args.names.iter().map(String::as_str).collect();
    if names.is_empty() {
        names.push(ALL);
    }
    let names = names.into_iter().flat_map(|name| if name == ALL { Field::names().collect() } else { vec![name] });
    let mut fields: Vec<Field> = Vec::new();
    for name in names {
        if !Field::is_one(name) {
            let help = "accepted: field studies alone, or studies of papers alone (`anabranch study --list`)";
            return Err(Failure::Refused(miette::miette!(help = help, "`{name}` is no field study")));
        }
        let mut field = Field::load(name)?.overridden(&args.overrides.sets());
        if let Some(directory) = &args.data {
            field = field.with_data(directory);
        }
        field = if args.quick { field.quick() } else { field };
        if let Some(draws) = args.repeat {
            field = field.drawn(draws as usize);
        }
        if fields.iter().all(|known| known.name != field.name) {
            fields.push(field);
        }
    }
    Ok(fields)
}

/// A field study in a list.
#[derive(Serialize, JsonSchema)]
pub struct ListedField {
    name: String,
    title: String,
    rows: usize,
}

/// Returns the field studies for a list.
pub fn listed() -> Result<Vec<ListedField>, Failure> {
    let one = |name: &str| {
        let field = Field::load(name)?;
        Ok(ListedField { name: name.to_owned(), title: field.title().to_owned(), rows: field.rows() })
    };
    Field::names().map(one).collect()
}

/// Lists the field studies.
pub fn list() -> Result<String, Failure> {
    let mut text =
        anabranch_report::hang("FIELD  ", "Results that others measured, beside predictions.", output::width());
    for ListedField { name, title, rows } in listed()? {
        let label = format!("  {name:<21}{:<9}", format!("{rows} rows"));
        text += &anabranch_report::hang(&label, &title, output::width());
    }
    Ok(text)
}

/// The command line again, as far as results depend on it.
fn command(args: &StudyArgs, names: &[String]) -> String {
    let mut command = "anabranch study".to_owned();
    if names.is_empty() {
        command += &format!(" {ALL}");
    }
    names.iter().for_each(|name| command += &format!(" {}", in_shell(name)));
    if let Some(directory) = &args.data {
        command += &format!(" --data {}", in_shell(&directory.display().to_string()));
    }
    if args.quick {
        command += " --quick";
    }
    if let Some(draws) = args.repeat {
        command += &format!(" --repeat {draws}");
    }
    args.overrides.sets().iter().for_each(|set| command += &format!(" --set {}", in_shell(set)));
    command
}
