//! Requests of the page, and the function that answers them.

use crate::scenario::{Source, Trouble};
use crate::{lesson, movie, papers, results, scenario, why};
use anabranch_policy::Catalogue;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// Called with the number of runs made and of runs to make.
pub type Progress<'a> = dyn Fn(usize, usize) + Sync + 'a;

/// The page, while a request is answered.
pub trait Listener: Sync {
    /// Tells the number of runs made and of runs to make. Returns true if it is time to show an early form of the
    /// answer.
    fn progress(&self, made: usize, all: usize) -> bool;
    /// Shows an early form of the answer, as JSON.
    fn show(&self, early: &str);
}

/// Counts runs and shows nothing early.
impl<F: Fn(usize, usize) + Sync> Listener for F {
    fn progress(&self, made: usize, all: usize) -> bool {
        self(made, all);
        false
    }

    fn show(&self, _early: &str) {}
}

/// A request.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Version, policies, scenarios, lessons, and the schema of scenario files.
    About,
    /// Checks a scenario without running it.
    Check {
        /// The scenario.
        source: Source,
    },
    /// Runs a scenario once: figures, tables, and a movie of its packets.
    Run {
        /// The scenario.
        source: Source,
        /// Seed; unless given, that of the scenario.
        seed: Option<u64>,
    },
    /// Compares schedulers.
    Compare {
        /// The scenario.
        source: Source,
        /// Schedulers as `--schedulers` takes them; if empty, all.
        schedulers: Vec<String>,
        /// Seed of the first repetition; unless given, that of the scenario.
        seed: Option<u64>,
        /// Number of repetitions; unless given, that of the scenario.
        repeat: Option<usize>,
    },
    /// Says what the time of a scenario's transfers went to.
    Why {
        /// The scenario.
        source: Source,
        /// Seed of the first repetition; unless given, that of the scenario.
        seed: Option<u64>,
        /// Number of repetitions of each run.
        repeat: usize,
    },
    /// Says the same of a transfer in captures, which come beside the request.
    Capture {
        /// Name and length of each file.
        files: Vec<(String, usize)>,
        /// Number of the connection; unless given, the one with most data.
        connection: Option<usize>,
    },
    /// Runs the systems of a lesson.
    Lesson {
        /// Name of the lesson.
        name: String,
        /// Overrides of the scenario, as `--set` takes them.
        sets: Vec<String>,
    },
    /// The papers, each with its studies.
    Papers,
    /// Axes, systems, statements and assumptions of a study.
    Outline {
        /// Name of the study.
        name: String,
    },
    /// Runs a study: figures, which are shown while they grow, tables, and a verdict on each statement.
    Study {
        /// The study.
        study: papers::Chosen,
    },
    /// The scenario of a system at a point of a study, as a text.
    ScenarioAt {
        /// Name of the study.
        name: String,
        /// Overrides of the scenario, as `--set` takes them.
        sets: Vec<String>,
        /// Index of the system.
        system: usize,
        /// Index of the point on each axis.
        point: Vec<usize>,
    },
    /// Digests of all events of runs with these seeds.
    Digests {
        /// The scenario.
        source: Source,
        /// Seeds.
        seeds: Vec<u64>,
    },
}

/// Answers a request. `files` are the bytes of captures, one after the other.
///
/// The answer is an object with `ok`, or with `error`: `problem`, and where they are known `help`, `line`, `column` and
/// `text`, the name of the text that the line is in.
pub fn answer(catalogue: &Arc<Catalogue>, request: &str, files: &[u8], listener: &dyn Listener) -> String {
    let answer = match serde_json::from_str(request) {
        Ok(request) => dispatch(catalogue, request, files, listener),
        Err(error) => Err(Trouble::plain(format!("the page asks for something unknown: {error}"))),
    };
    let answer = match answer {
        Ok(answer) => json!({ "ok": answer }),
        Err(trouble) => json!({ "error": trouble }),
    };
    answer.to_string()
}

fn dispatch(
    catalogue: &Arc<Catalogue>,
    request: Request,
    files: &[u8],
    listener: &dyn Listener,
) -> Result<Value, Trouble> {
    let progress: &Progress<'_> = &|made, all| {
        listener.progress(made, all);
    };
    match request {
        Request::About => about(catalogue),
        Request::Check { source } => scenario::check(&source.load(catalogue)?),
        Request::Run { source, seed } => movie::run(&source.load(catalogue)?, seed, progress),
        Request::Compare { source, schedulers, seed, repeat } => {
            results::compare(source.load(catalogue)?, &schedulers, seed, repeat, progress)
        }
        Request::Why { source, seed, repeat } => why::of_scenario(catalogue, &source, seed, repeat, progress),
        Request::Capture { files: names, connection } => why::of_captures(&names, files, connection),
        Request::Lesson { name, sets } => lesson::play(catalogue, &name, &sets, progress),
        Request::Papers => papers::papers(),
        Request::Outline { name } => papers::outline(&name),
        Request::Study { study } => papers::run(catalogue, &study, listener),
        Request::ScenarioAt { name, sets, system, point } => papers::scenario(&name, &sets, system, &point),
        Request::Digests { source, seeds } => scenario::digests(&source.load(catalogue)?, &seeds, progress),
    }
}

fn about(catalogue: &Arc<Catalogue>) -> Result<Value, Trouble> {
    let schedulers: Vec<Value> = (catalogue.schedulers.entries().iter())
        .map(|entry| json!({ "name": entry.name, "about": entry.about, "paper": entry.paper }))
        .collect();
    let scenarios: Vec<Value> = (anabranch_scenario::shipped::SHIPPED.iter())
        .map(|shipped| json!({ "name": shipped.name, "text": shipped.text }))
        .collect();
    let schema: Value = serde_json::from_str(&anabranch_scenario::schema(catalogue))?;
    let limits: Vec<Value> = (anabranch_why::LIMITS.iter())
        .map(|entry| json!({ "name": entry.name, "letter": entry.letter, "meaning": entry.meaning }))
        .collect();
    Ok(json!({
        "version": anabranch_lab::VERSION,
        "build": anabranch_lab::build(),
        "schedulers": schedulers,
        "scenarios": scenarios,
        "schema": schema,
        "limits": limits,
        "lessons": lesson::lessons()?,
        "fields": crate::own::fields(),
    }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn ask(request: &Value) -> Value {
        let text = answer(&Arc::new(Catalogue::default()), &request.to_string(), &[], &|_, _| ());
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_mistake_is_shown_in_its_place() {
        let text = "[path.a]\nrate = \"1mbit\"\nrat = \"2mbit\"\n[[workload]]\nkind = \"bulk\"\n";
        let answer = ask(&json!({ "do": "check", "source": { "text": text, "sets": [] } }));
        assert_eq!(answer["error"]["problem"], "unknown key `rat`");
        assert_eq!((&answer["error"]["line"], &answer["error"]["column"]), (&json!(3), &json!(1)));
        assert!(answer["error"]["help"].as_str().unwrap().starts_with("did you mean `rate`?"), "{answer}");
        let answer =
            ask(&json!({ "do": "check", "source": { "text": text.replace("rat = ", "delay = "), "sets": [] } }));
        assert_eq!(answer["error"]["line"], 3, "a unit that does not fit: {answer}");
    }

    #[test]
    fn files_of_the_reader_cannot_be_named() {
        let text = "[path.a]\ndown = \"/etc/passwd\"\nup = \"1mbit\"\n[[workload]]\nkind = \"bulk\"\n";
        let answer = ask(&json!({ "do": "check", "source": { "text": text, "sets": [] } }));
        let problem = answer["error"]["problem"].as_str().unwrap();
        assert!(problem.contains("/etc/passwd") && !problem.contains("root"), "{problem}");
    }

    #[test]
    fn nonsense_is_refused() {
        for request in [json!({}), json!({ "do": "fly" }), json!({ "do": "check" }), json!([])] {
            assert!(ask(&request)["error"]["problem"].is_string(), "{request}");
        }
        let seeds = json!({ "do": "lesson", "name": "none", "sets": [] });
        assert_eq!(ask(&seeds)["error"]["problem"], "there is no lesson `none`");
    }
}
