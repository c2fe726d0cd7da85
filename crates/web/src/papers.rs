//! Figures of papers: the studies of the program, run in the page.

use crate::request::Listener;
use crate::results::{bounded, shown};
use crate::scenario::Trouble;
use anabranch_lab::Journal;
use anabranch_policy::Catalogue;
use anabranch_report::html::{Page, Section, VerdictShown, tables_of};
use anabranch_scenario::in_shell;
use anabranch_study::study::{Judged, PAPERS, Prepared, Provenance, Study, StudyError};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A study, and the part of it that is to be run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chosen {
    /// Name: `late/fig10`.
    name: String,
    /// True for the points and repetitions of `--quick`.
    quick: bool,
    /// Number of repetitions; the study's own unless given.
    repeat: Option<usize>,
    /// Overrides, as `--set` takes them.
    #[serde(default)]
    sets: Vec<String>,
}

impl Chosen {
    fn load(&self) -> Result<Study, Trouble> {
        let study = load(&self.name)?.overridden(&self.sets);
        let study = if self.quick { study.quick() } else { study };
        Ok(match self.repeat {
            Some(repetitions) => study.repeated(repetitions.max(1)),
            None => study,
        })
    }

    /// Returns the command that gives the same.
    fn command(&self) -> String {
        let mut command = format!("anabranch study {}", self.name);
        if self.quick {
            command += " --quick";
        }
        if let Some(repeat) = self.repeat {
            command += &format!(" --repeat {}", repeat.max(1));
        }
        for set in &self.sets {
            command += &format!(" --set {}", in_shell(set));
        }
        command
    }
}

/// Returns the papers, each with its studies.
pub fn papers() -> Result<Value, Trouble> {
    let studies = Study::names().map(load).collect::<Result<Vec<_>, _>>()?;
    let paper = |paper: &anabranch_study::study::Paper| {
        let own = studies.iter().filter(|study| study.paper() == paper.name);
        let listed = |study: &Study| json!({ "name": study.name, "figure": study.figure(), "title": study.title() });
        json!({
            "name": paper.name,
            "citation": paper.citation,
            "belief": paper.belief,
            "studies": own.map(listed).collect::<Vec<_>>(),
        })
    };
    Ok(PAPERS.iter().map(paper).collect())
}

/// Returns everything that a reader chooses from before the study runs.
pub fn outline(name: &str) -> Result<Value, Trouble> {
    Ok(serde_json::to_value(load(name)?.outline())?)
}

/// Returns the scenario of a system at a point, as a text of its own. `point` has an index for each axis.
pub fn scenario(name: &str, sets: &[String], system: usize, point: &[usize]) -> Result<Value, Trouble> {
    Ok(json!(load(name)?.overridden(sets).scenario_at(system, point)?))
}

/// Runs the study, and shows its figures as they grow. The answer has the statements with their verdicts besides.
pub fn run(catalogue: &Arc<Catalogue>, chosen: &Chosen, listener: &dyn Listener) -> Result<Value, Trouble> {
    let study = Prepared::new(chosen.load()?, catalogue)?;
    bounded(study.runs())?;
    let journal = Journal::in_memory();
    let (done, all) = (AtomicUsize::new(0), study.missing(&journal));
    let systems = study.systems();
    let early = || -> Result<Value, Trouble> {
        let (name, figures) = (study.study.name.clone(), study.figures(&journal)?);
        let section = Section { name, figures, systems: systems.clone(), ..Section::default() };
        shown(&Page { sections: vec![section], ..Page::default() })
    };
    let after_each = || {
        let made = done.fetch_add(1, Ordering::Relaxed) + 1;
        // What cannot be drawn yet cannot be drawn at the end either, and is told then.
        if listener.progress(made, all)
            && made < all
            && let Ok(early) = early()
        {
            listener.show(&early.to_string());
        }
    };
    study.run(&journal, 1, &after_each)?;
    let provenance = Provenance { command: chosen.command(), quick: chosen.quick };
    let result = study.result(&journal, &provenance)?;
    let section = Section { tables: tables_of(&result.figures), ..Section::of_study(&result) };
    let statements = section.statements.iter().map(statement).collect::<Result<Vec<_>, _>>()?;
    let page = Page {
        title: result.title.clone(),
        command: result.command.clone(),
        sections: vec![section],
        ..Page::default()
    };
    let mut value = shown(&page)?;
    value["statements"] = json!(statements);
    value["result"] = serde_json::to_value(&result)?;
    Ok(value)
}

fn statement(judged: &Judged) -> Result<Value, Trouble> {
    let mut value = serde_json::to_value(judged)?;
    value["verdict"] = serde_json::to_value(VerdictShown::from(judged))?;
    Ok(value)
}

/// Loads a study of the program: the page reads no files.
fn load(name: &str) -> Result<Study, Trouble> {
    if Study::names().any(|known| known == name) {
        return Ok(Study::load(name)?);
    }
    let names: Vec<&str> = Study::names().collect();
    let help = Some(format!("accepted: {}", names.join(", ")));
    Err(Trouble { help, ..Trouble::plain(format!("there is no study `{name}`")) })
}

impl From<StudyError> for Trouble {
    fn from(error: StudyError) -> Self {
        match error {
            StudyError::Refused(error) => error.into(),
            StudyError::Keep(error) => error.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::request::answer;
    use std::sync::Mutex;

    /// Takes every early form.
    struct Eager(Mutex<Vec<Value>>);

    impl Listener for Eager {
        fn progress(&self, made: usize, all: usize) -> bool {
            assert!((1..=all).contains(&made));
            true
        }

        fn show(&self, early: &str) {
            self.0.lock().unwrap().push(serde_json::from_str(early).unwrap());
        }
    }

    fn ask(request: &Value, listener: &dyn Listener) -> Value {
        let text = answer(&Arc::new(Catalogue::default()), &request.to_string(), &[], listener);
        serde_json::from_str(&text).unwrap()
    }

    fn quiet(request: &Value) -> Value {
        ask(request, &|_: usize, _: usize| ())
    }

    fn study(repeat: usize, sets: &[&str]) -> Value {
        json!({ "do": "study", "study": { "name": STUDY, "quick": true, "repeat": repeat, "sets": sets } })
    }

    /// One whose runs are short.
    const STUDY: &str = "lowlat/fig03";

    /// Returns the number of places of all figures that have a number.
    fn drawn(shown: &Value) -> usize {
        let figures = shown["charts"]["figures"].as_array().unwrap();
        let series = figures.iter().flat_map(|figure| figure["series"].as_array().unwrap());
        let of = |series: &Value| match &series["y"] {
            Value::Array(all) => all.iter().filter(|y| y.is_number()).count(),
            one if one.is_number() => series["length"].as_u64().unwrap() as usize,
            _ => 0,
        };
        series.filter(|series| series["origin"] == "measured").map(of).sum()
    }

    #[test]
    fn figures_grow_run_by_run_and_end_as_those_of_the_command() {
        let eager = Eager(Mutex::new(Vec::new()));
        let found = ask(&study(2, &[]), &eager)["ok"].take();
        let early = eager.0.into_inner().unwrap();
        let counts: Vec<usize> = early.iter().map(drawn).collect();
        assert!(counts.is_sorted() && counts[0] >= 1 && counts[0] < counts[counts.len() / 2], "{counts:?}");
        // With the second seed no place is new: half of the runs have drawn all.
        assert_eq!(counts[early.len() / 2], *counts.last().unwrap(), "{counts:?}");

        let catalogue = Arc::new(Catalogue::default());
        let prepared = Prepared::new(Study::load(STUDY).unwrap().quick().repeated(2), &catalogue).unwrap();
        let journal = Journal::in_memory();
        prepared.run(&journal, 2, &|| ()).unwrap();
        let command = format!("anabranch study {STUDY} --quick --repeat 2");
        assert_eq!(found["command"], *command);
        let result = prepared.result(&journal, &Provenance { command, quick: true }).unwrap();
        assert_eq!(found["result"].to_string(), serde_json::to_value(&result).unwrap().to_string());
        assert_eq!(early.len() + 1, result.runs);
        let verdicts: Vec<&str> =
            found["statements"].as_array().unwrap().iter().map(|it| it["verdict"]["word"].as_str().unwrap()).collect();
        assert_eq!(verdicts, result.statements.iter().map(Judged::outcome).collect::<Vec<_>>());
        assert!(found["tables"].as_array().unwrap().len() == result.figures.len(), "{}", found["tables"]);
    }

    #[test]
    fn overrides_change_the_result_and_are_in_its_command() {
        let (plain, changed) = (quiet(&study(1, &[])), quiet(&study(1, &["host.mss=1000"])));
        assert_ne!(plain["ok"]["charts"], changed["ok"]["charts"]);
        let command = format!("anabranch study {STUDY} --quick --repeat 1 --set host.mss=1000");
        assert_eq!(changed["ok"]["command"], *command);
        assert!(changed["ok"]["warnings"].to_string().contains("Overridden: host.mss=1000."), "{changed}");
        let wrong = quiet(&study(1, &["host.congestoin=reno"]));
        assert_eq!((&wrong["error"]["text"], &wrong["error"]["line"]), (&json!("--set"), &json!(1)), "{wrong}");
    }

    #[test]
    fn a_system_at_a_point_is_a_scenario() {
        let asked =
            json!({ "do": "scenario-at", "name": "late/fig10", "sets": ["run.stop=7s"], "system": 3, "point": [4] });
        let text = quiet(&asked)["ok"].as_str().unwrap().to_owned();
        assert!(text.starts_with("# late/fig10: LATE, size 500 kB\n") && text.contains("stop = \"7s\""), "{text}");
        let checked = quiet(&json!({ "do": "check", "source": { "text": text } }));
        let scheduler = checked["ok"]["scheduler"].as_str().unwrap();
        assert!(scheduler.starts_with("late (") && scheduler.contains("phase_aware=true"), "{checked}");
    }

    #[test]
    fn the_scenario_of_a_system_at_a_point_gives_its_run() {
        let study = load(STUDY).unwrap();
        let first: Vec<usize> = study.outline().axes.iter().map(|axis| axis.quick[0]).collect();
        let prepared = Prepared::new(study.quick().repeated(1), &Arc::new(Catalogue::default())).unwrap();
        let journal = Journal::in_memory();
        prepared.run(&journal, 2, &|| ()).unwrap();
        let rows = prepared.rows(&journal);
        let asked = json!({ "do": "scenario-at", "name": STUDY, "sets": [], "system": 0, "point": first });
        let source = json!({ "name": "alone", "text": quiet(&asked)["ok"] });
        let digests = quiet(&json!({ "do": "digests", "source": source, "seeds": [1] }));
        assert_eq!(digests["ok"]["scenario"], rows[0].digest);
        assert_eq!(digests["ok"]["events"], json!([rows[0].measured.events_digest]));
    }

    #[test]
    fn papers_are_listed_with_their_studies_and_others_are_refused() {
        let papers = quiet(&json!({ "do": "papers" }));
        let studies: Vec<&Value> =
            papers["ok"].as_array().unwrap().iter().flat_map(|it| it["studies"].as_array().unwrap()).collect();
        assert_eq!(studies.len(), Study::names().count());
        for study in studies {
            let outline = quiet(&json!({ "do": "outline", "name": study["name"] }));
            assert_eq!(outline["ok"]["title"], study["title"], "{outline}");
        }
        for name in ["late/fig99", "Cargo.toml", ""] {
            let answer = quiet(&json!({ "do": "outline", "name": name }));
            assert_eq!(answer["error"]["problem"], format!("there is no study `{name}`"));
        }
    }
}
