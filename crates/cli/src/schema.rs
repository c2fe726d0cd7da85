//! `anabranch schema`: JSON schemas of scenario files, of what `--json` prints, and of lines of events and logs.

use crate::failure::Failure;
use crate::{evaluate, field, host, list, output, rank, script, study};
use anabranch_lab::format::{self, Document, Format};
use anabranch_lab::{Flows, JournalLine, Measured, PacketEvent, RunHead, pairwise::Standings};
use anabranch_policy::Catalogue;
use anabranch_report::Results;
use anabranch_study::field::FieldResult;
use anabranch_study::study::StudyResult;
use anabranch_study::sweep::{Manifest, Summary};
use anabranch_units::nearest;
use clap::Args as ClapArgs;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// Arguments of `schema`.
#[derive(ClapArgs, Debug)]
#[command(after_help = "Examples:
  anabranch schema > scenario.schema.json
  anabranch schema leaderboard > leaderboard.schema.json
  anabranch schema --list")]
pub struct SchemaArgs {
    /// Format of JSON that a command writes, the `format` of its document; that of scenario files unless given.
    pub format: Option<String>,
    /// List the formats with their versions and the commands that write them.
    #[arg(long, conflicts_with = "format")]
    pub list: bool,
}

/// Makes the schema of a format.
type Made = fn(&Format) -> Value;
/// Pairs a format with the maker of its schema.
pub type Row = (&'static Format, Made);

/// Formats, each with the type that is printed, or those of the first and the other lines; [`host::SCHEMAS`] has more.
static SCHEMAS: [Row; 23] = [
    (&format::RUNS, runs),
    (&format::COMPARISON, comparison),
    (&format::PAIRWISE, document::<Standings>),
    (&format::LEADERBOARD, built::<rank::Drawn<'_>>),
    (&format::ADVERSARY, built::<rank::Found<'_>>),
    (&format::SWEEP, built::<Summary>),
    (&format::CAMPAIGN, tagged::<Manifest>),
    (&format::RUN_JOURNAL, tagged::<JournalLine<Measured>>),
    (&format::STUDY, document::<StudyResult>),
    (&format::STUDIES, built::<study::Studies<'_>>),
    (&format::STUDY_LIST, built::<study::StudyList<'_>>),
    (&format::FIELD_STUDY, document::<FieldResult>),
    (&format::FIELD_STUDIES, built::<field::Fields<'_>>),
    (&format::EVALUATION, built::<evaluate::Evaluations<'_>>),
    (&format::FLOW_JOURNAL, tagged::<JournalLine<Flows>>),
    (&format::WHY, built::<anabranch_why::Answer>),
    (&format::WHY_CAPTURE, built::<anabranch_why::CaptureAnswer>),
    (&format::TWIN, built::<anabranch_why::Twin>),
    (&format::INSPECTION, built::<anabranch_inspect::Report>),
    (&format::RECORDINGS, built::<anabranch_report::Recordings>),
    (&format::LIST, built::<list::List<'_>>),
    (&format::SCRIPTS, built::<script::Scripts>),
    (&format::PACKET_EVENTS, lines::<RunHead, PacketEvent>),
];

fn schemas() -> impl Iterator<Item = &'static Row> {
    SCHEMAS.iter().chain(host::SCHEMAS)
}

/// Prints a schema, or the formats that have one.
pub fn schema(catalogue: &Catalogue, args: &SchemaArgs) -> Result<(), Failure> {
    if args.list {
        let line = |it: &Format| format!("{:<17} {}: {} ({})\n", it.name, it.version, it.about, it.written_by);
        let here = Format::all().filter(|it| schemas().any(|(format, _)| format.name == it.name));
        return output::print(&here.map(line).collect::<String>());
    }
    let Some(name) = &args.format else {
        return output::print(&format!("{}\n", anabranch_scenario::schema(catalogue)));
    };
    let Some((format, made)) = schemas().find(|(format, _)| format.name == name) else {
        if let Some(format) = Format::all().find(|format| format.name == name) {
            let (what, by) = (format.name, format.written_by);
            return Err(Failure::Refused(miette::miette!("`{what}` is written by {by}, which needs Linux")));
        }
        let names: Vec<&str> = schemas().map(|(format, _)| format.name).collect();
        let near = nearest(name, names.iter().copied());
        let near = near.map_or_else(String::new, |near| format!("did you mean `{near}`? "));
        let help = format!("{near}accepted: {}; without a name it is the schema of scenario files", names.join(", "));
        return Err(Failure::Refused(miette::miette!(help = help, "there is no schema of a format `{name}`")));
    };
    output::print(&format!("{:#}\n", made(format)))
}

/// Fields of [`Results`] that comparisons have and runs do not.
const COMPARED: [&str; 3] = ["schedulers", "summary", "why"];

fn runs(format: &Format) -> Value {
    let mut schema = document::<Results<'_>>(format);
    if let Some(properties) = schema["properties"].as_object_mut() {
        properties.retain(|name, _| name != "why" && !COMPARED.contains(&name.as_str()));
    }
    schema
}

fn comparison(format: &Format) -> Value {
    let mut schema = document::<Results<'_>>(format);
    if let Some(required) = schema["required"].as_array_mut() {
        required.extend(COMPARED.map(Value::from));
    }
    schema
}

/// Returns the schema of a document of this type.
pub fn document<T: JsonSchema>(format: &Format) -> Value {
    tagged::<Document<T>>(format)
}

/// Returns the schema of a document that [`output::json`] makes.
pub fn built<T: JsonSchema>(format: &Format) -> Value {
    document::<format::Made<T>>(format)
}

/// Returns the schema of a type that has `format` and `format_version` among its fields.
fn tagged<T: JsonSchema>(format: &Format) -> Value {
    let mut schema = titled::<T>(format);
    tag(&mut schema, format);
    schema
}

/// One line of a file.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is of use")]
enum Line<H, T> {
    Head(Document<H>),
    Other(T),
}

/// Returns the schema of each line of a file, whose heads have `format` and `format_version`.
pub fn lines<H: JsonSchema, T: JsonSchema>(format: &Format) -> Value {
    let mut schema = titled::<Line<H, T>>(format);
    let definitions = schema["$defs"].as_object_mut().into_iter().flatten().map(|(_, definition)| definition);
    definitions.filter(|it| it["properties"].get("format_version").is_some()).for_each(|head| tag(head, format));
    schema
}

/// Returns the schema of a type, with the name of its format.
fn titled<T: JsonSchema>(format: &Format) -> Value {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut schema = generator.into_root_schema_for::<T>().to_value();
    schema["$id"] = format!("{}/schema/{}/{}.json", env!("CARGO_PKG_HOMEPAGE"), format.name, format.version).into();
    schema["title"] = format.name.into();
    schema["description"] = format.about.into();
    close(&mut schema);
    schema
}

/// Fixes the values of `format` and `format_version`.
fn tag(schema: &mut Value, format: &Format) {
    schema["properties"]["format"]["const"] = format.name.into();
    schema["properties"]["format_version"]["const"] = format.version.into();
}

/// Forbids fields that a schema does not name, so that one that is new shows.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(keywords) => {
            // An alternative beside fields names further fields of the same object.
            let alternatives = keywords.contains_key("oneOf") && keywords.contains_key("properties");
            for (name, value) in keywords.iter_mut() {
                // Below `oneOf` of a flattened enumeration the fields around it are not known.
                if !(alternatives && name == "oneOf") {
                    close(value);
                }
            }
            if keywords.contains_key("properties") && !keywords.contains_key("additionalProperties") {
                let keyword = if alternatives { "unevaluatedProperties" } else { "additionalProperties" };
                keywords.insert(keyword.to_owned(), false.into());
            }
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Args;
    use clap::CommandFactory;

    #[test]
    fn every_format_has_a_schema() {
        let mut names: Vec<_> = schemas().map(|(format, _)| format.name).collect();
        let mut all: Vec<_> = Format::all().map(|format| format.name).collect();
        names.sort_unstable();
        all.sort_unstable();
        assert_eq!(names, all);
    }

    /// An absolute address, as JSON Schema wants it, and each of one schema.
    #[test]
    fn every_schema_has_an_identifier_of_its_own() {
        let scenario = serde_json::from_str(&anabranch_scenario::schema(&Catalogue::default())).expect("it is JSON");
        let all = SCHEMAS.iter().map(|(format, made)| made(format)).chain([scenario]);
        let id = |schema: Value| schema["$id"].as_str().map(str::to_owned);
        let ids: std::collections::BTreeSet<_> = all.map(id).collect();
        assert_eq!(ids.len(), SCHEMAS.len() + 1, "{ids:?}");
        let is_address = |id: &Option<String>| id.as_ref().is_some_and(|id| id.starts_with("https://"));
        assert!(ids.iter().all(is_address), "{ids:?}");
    }

    /// Commands and an option of each, as `written_by` of all formats names them.
    fn named() -> Vec<(String, String)> {
        // Between backticks.
        let quoted = Format::all().flat_map(|format| format.written_by.split('`').skip(1).step_by(2));
        let words = quoted.filter(|it| !it.contains(".json")).flat_map(|it| {
            let (command, options) = it.split_once(" --").unwrap_or((it, ""));
            // A word in capitals stands for an argument.
            let words = command.split(' ').filter(|word| !word.chars().all(char::is_uppercase));
            let command = words.collect::<Vec<_>>().join(" ");
            let options = options.split(" --").filter_map(|option| option.split(' ').next());
            let options = options.filter(|option| !option.is_empty());
            options.map(|option| (command.clone(), option.to_owned())).collect::<Vec<_>>()
        });
        words.collect()
    }

    #[test]
    fn every_option_for_json_has_a_format_and_every_format_is_that_of_an_option() {
        fn options(command: &clap::Command, name: &str) -> Vec<(String, String)> {
            let own = command.get_arguments().filter_map(|it| it.get_long());
            let own = own.map(|option| (name.to_owned(), option.to_owned()));
            let below = command.get_subcommands();
            own.chain(below.flat_map(|it| options(it, format!("{name} {}", it.get_name()).trim()))).collect()
        }
        let (all, named) = (options(&Args::command(), ""), named());
        for it in all.iter().filter(|(_, option)| option == "json" || option == "events") {
            assert!(named.contains(it), "`{} --{}` writes no format in lab::format", it.0, it.1);
        }
        for it in &named {
            assert!(all.contains(it), "lab::format names `{} --{}`", it.0, it.1);
        }
    }
}
