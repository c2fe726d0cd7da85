//! Field studies as sections of a page.

use super::{Column, Grid, Page, Section};
use crate::field::{COLUMNS, cells, total};
use anabranch_study::field::FieldResult;
use anabranch_study::study::Assumption;

impl Page {
    /// A page about these field studies, made by `command`.
    pub fn of_fields(studies: &[FieldResult], command: &str) -> Page {
        let title = match studies {
            [one] => format!("{}: {}", one.name, one.title),
            many => format!("{} field studies", many.len()),
        };
        let lead = "Results that others measured, beside what is predicted from their inputs. What they did not record \
                    is drawn from stated ranges; nothing is fitted.";
        Page {
            title,
            lead: lead.to_owned(),
            version: anabranch_lab::version_with_build(),
            command: command.to_owned(),
            sections: studies.iter().map(Section::of_field).collect(),
        }
    }
}

impl Section {
    /// Everything that a field study came to.
    fn of_field(study: &FieldResult) -> Section {
        let mut warnings = Vec::new();
        if study.quick {
            warnings.push("Run with --quick: few draws. The verdicts of the full study count.".to_owned());
        }
        if !study.sets.is_empty() {
            warnings.push(format!("Overridden: {}.", study.sets.join(", ")));
        }
        let mut columns: Vec<Column> = COLUMNS.iter().map(|(head, align)| Column::new(*head, *align)).collect();
        columns.push(Column::new("source", crate::Align::Left));
        let row = |it: &anabranch_study::field::FieldRow| [&cells(it)[..], std::slice::from_ref(&it.source)].concat();
        let notes = study.rows.iter().filter_map(|it| Some(format!("{}: {}", it.name, it.note.as_ref()?)));
        let left_out = study.left_out.iter().map(|it| format!("Left out, {}: {}", it.what, it.why));
        let table = Grid {
            caption: "Measured and predicted".to_owned(),
            columns,
            rows: study.rows.iter().map(row).collect(),
            notes: [total(study)].into_iter().chain(notes).chain(left_out).collect(),
            shades: Vec::new(),
        };
        let drawn = study.unrecorded.iter().map(|it| Assumption {
            about: format!("{} (not recorded)", it.name),
            value: it.range.clone(),
            reason: it.reason.clone(),
        });
        Section {
            name: study.name.clone(),
            title: study.title.clone(),
            kicker: "Field study".to_owned(),
            citation: study.source.clone(),
            about: study.about.clone(),
            warnings,
            tables: vec![table],
            facts: facts(study),
            assumptions: drawn.collect(),
            scenario: study.scenario.clone(),
            command: study.command.clone(),
            ..Section::default()
        }
    }
}

fn facts(study: &FieldResult) -> Vec<(String, String)> {
    let fact = |name: &str, value: String| (name.to_owned(), value);
    let mut facts = vec![
        fact("study", study.name.clone()),
        fact("stack", study.stack.clone()),
        fact("runs", study.runs.to_string()),
        fact("digest (SHA-256)", study.digest.clone()),
        fact("Anabranch", format!("{} (build {})", study.version, study.build)),
    ];
    if let Some(data) = &study.data {
        facts.push(fact("recordings", data.fetch.clone()));
        facts.push(fact("licence of the recordings", data.licence.clone()));
    }
    facts
}
