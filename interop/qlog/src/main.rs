//! Checks files of `--qlog` against the CDDL of draft-ietf-quic-qlog-main-schema and of docs/qlog.cddl, with the crate
//! `cddl`.
//!
//! ```sh
//! cargo run -- draft-ietf-quic-qlog-main-schema.md ../../docs/qlog.cddl FILE…
//! ```
//!
//! The first file is the source of the draft, in `quicwg/qlog`. Events of one shape, with the same fields and types,
//! are checked once.
#![forbid(unsafe_code)]

use cddl::cddl_from_str;
use cddl::validator::Validator;
use cddl::validator::json::JSONValidator;
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::ExitCode;
use std::{env, fs};

fn main() -> ExitCode {
    let names: Vec<String> = env::args().skip(1).collect();
    let [draft, ours, files @ ..] = names.as_slice() else {
        eprintln!("accepted: the draft, docs/qlog.cddl, and files of qlog");
        return ExitCode::from(2);
    };
    let checked = Schemas::read(draft, ours).and_then(|schemas| files.iter().try_for_each(|file| schemas.check(file)));
    match checked {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Rules of the CDDL as texts for the validator, which checks a value against the first rule of a text.
struct Schemas {
    head: String,
    event: String,
}

impl Schemas {
    fn read(draft: &str, ours: &str) -> Result<Self, String> {
        let text = |file: &str| fs::read_to_string(file).map_err(|error| format!("cannot read {file}: {error}"));
        let (draft, ours) = (text(draft)?, text(ours)?);
        let blocks = draft.split("~~~ cddl\n").skip(1).filter_map(|rest| rest.split("~~~").next());
        // The validator takes a field `time` for the type of that name unless it is quoted, and cannot unwrap a group.
        let log_file = "file_schema: text\nserialization_format: text\n? title: text\n? description: text";
        let main = blocks.collect::<String>();
        let rules = format!("{main}\n{ours}").replace("\n    time: ", "\n    \"time\": ").replace("~LogFile", log_file);
        let schema = |first: &str| {
            let text = format!("first = {first}\n{rules}");
            cddl_from_str(&text, true).map(drop)?;
            Ok::<_, String>(text)
        };
        Ok(Schemas { head: schema("QlogFileSeq")?, event: schema("Event")? })
    }

    /// Checks a file, and says how many of its texts were looked at.
    fn check(&self, file: &str) -> Result<(), String> {
        let text = fs::read_to_string(file).map_err(|error| format!("cannot read {file}: {error}"))?;
        let (head, event) = (cddl_from_str(&self.head, true)?, cddl_from_str(&self.event, true)?);
        let (mut seen, mut count) = (BTreeSet::new(), 0);
        for (number, piece) in text.split('\u{1e}').skip(1).enumerate() {
            let value: Value =
                serde_json::from_str(piece).map_err(|error| format!("{file}, text {number}: {error}"))?;
            count += 1;
            if number == 0 || seen.insert((value["name"].to_string(), shape(&value))) {
                let schema = if number == 0 { &head } else { &event };
                let valid = JSONValidator::new(schema, value.clone(), None).validate();
                valid.map_err(|error| format!("{file}, text {number}: {error}: {value}"))?;
            }
        }
        if count == 0 {
            return Err(format!("{file} has no text; accepted: a JSON text sequence"));
        }
        println!("{file}: the head and {} shapes of {} events are valid", seen.len(), count - 1);
        Ok(())
    }
}

/// Names of fields and types of values, at every depth.
fn shape(value: &Value) -> String {
    match value {
        Value::Object(fields) => fields.iter().map(|(name, value)| format!("{name}({}) ", shape(value))).collect(),
        Value::Array(items) => items.iter().map(shape).collect::<BTreeSet<_>>().into_iter().collect(),
        Value::String(_) => "text".to_owned(),
        Value::Number(number) => format!("number {}", number.is_f64()),
        Value::Bool(_) => "bool".to_owned(),
        Value::Null => "null".to_owned(),
    }
}
