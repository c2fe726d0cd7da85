//! Studies as sections of a page.

use super::{Grid, Page, Section};
use crate::paper_heads;
use anabranch_study::figure::Figure;
use anabranch_study::study::StudyResult;

impl Page {
    /// A page about these studies, made by `command`.
    pub fn of_studies(studies: &[StudyResult], command: &str) -> Page {
        let (title, lead) = match studies {
            [one] => (format!("{}: {}", one.name, one.title), String::new()),
            many => {
                let lead = "What papers on Multipath TCP report, run again. Each section is a figure or table of a \
                            paper: what the paper states, what we measured, and a verdict on each statement.";
                (format!("{} studies", many.len()), lead.to_owned())
            }
        };
        let mut sections: Vec<Section> = studies.iter().map(Section::of_study).collect();
        for head in paper_heads(studies) {
            let first = studies.iter().position(|study| study.paper == head.name);
            if let Some(section) = first.and_then(|n| sections.get_mut(n)) {
                section.paper = Some(head);
            }
        }
        Page {
            title,
            lead,
            version: studies.first().map_or_else(anabranch_lab::version_with_build, version),
            command: command.to_owned(),
            sections,
        }
    }
}

impl Section {
    /// Everything that a study came to.
    pub fn of_study(study: &StudyResult) -> Section {
        let mut warnings = Vec::new();
        if study.quick {
            let few = "Run with --quick: few points and few repetitions. The verdicts of the full study count.";
            warnings.push(few.to_owned());
        }
        if !study.sets.is_empty() {
            let sets = study.sets.join(", ");
            warnings
                .push(format!("Overridden: {sets}. The paper's statements are judged under this assumption of ours."));
        }
        if study.unfinished_runs > 0 {
            warnings.push(format!(
                "In {} of {} runs not all transfers completed; what they left undone counts until the run was stopped.",
                study.unfinished_runs, study.runs
            ));
        }
        Section {
            paper: None,
            name: study.name.clone(),
            title: study.title.clone(),
            kicker: format!("{}, {}", study.paper, study.figure),
            citation: study.citation.clone(),
            about: study.about.clone(),
            warnings,
            statements: study.statements.clone(),
            figures: study.figures.iter().flat_map(|it| [it.clone()].into_iter().chain(distribution(it))).collect(),
            traces: Vec::new(),
            tables: Vec::new(),
            facts: facts(study),
            assumptions: study.assumptions.clone(),
            systems: study.systems.clone(),
            scenario: study.scenario.clone(),
            command: study.command.clone(),
        }
    }
}

fn facts(study: &StudyResult) -> Vec<(String, String)> {
    let fact = |name: &str, value: String| (name.to_owned(), value);
    let overrides = (!study.sets.is_empty()).then(|| fact("overrides", study.sets.join(", ")));
    let first = [fact("study", study.name.clone())].into_iter().chain(overrides);
    let rest = [
        fact("runs", study.runs.to_string()),
        fact("seeds", seeds(&study.seeds)),
        fact("digest (SHA-256)", study.digest.clone()),
        fact("Anabranch", version(study)),
    ];
    first.chain(rest).collect()
}

/// The numbers of figures as tables, without those that are for the eye.
pub fn tables_of(figures: &[Figure]) -> Vec<Grid> {
    figures.iter().filter_map(crate::study::numbers).map(|(heading, table)| Grid::of(table, heading)).collect()
}

/// The distributions behind the means of a figure, unless they are too many for one diagram.
fn distribution(figure: &Figure) -> Option<Figure> {
    figure.distribution(&[]).filter(|it| it.series.len() <= MOST_CURVES)
}

/// Most curves that can be told apart: colours are as many.
const MOST_CURVES: usize = 8;

fn version(study: &StudyResult) -> String {
    format!("{} (build {})", study.version, study.build)
}

/// `1 to 30`, or one by one where they have gaps.
pub(super) fn seeds(seeds: &[u64]) -> String {
    match seeds {
        [first, .., last] if seeds.windows(2).all(|pair| pair[1] == pair[0].wrapping_add(1)) => {
            format!("{first} to {last} ({} repetitions)", seeds.len())
        }
        _ => seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", "),
    }
}
