//! Results as one HTML file that opens from disk: figures drawn by Vega-Lite, tables, and what it takes to repeat them.
//!
//! ```text
//! Page > Section   words, statements, tables, figures as data      (study.rs, run.rs, comparison.rs fill them)
//!    │ template    assets/page.html; minijinja escapes what people wrote
//! HTML             assets/page.css inside, scripts and licences compressed (packed.rs); no network
//! ```

mod compact;
mod comparison;
#[cfg(not(target_arch = "wasm32"))]
mod evaluation;
#[cfg(not(target_arch = "wasm32"))]
mod field;
mod leaderboard;
mod packed;
mod recording;
mod run;
mod study;
mod sweep;
mod trace;
mod why;

use crate::{Align, Headline, PaperHead};
use anabranch_study::figure::Figure;
use anabranch_study::study::{Assumption, Judged, Search, Standing, SystemInfo, Tally, Verdict};
use anabranch_units::harmless;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment};
use packed::Pack;
use serde::Serialize;
use std::collections::BTreeSet;

pub use packed::{CHART_SCRIPT, DRAWING_SCRIPTS, LICENCES};
pub use run::{axis, figure, names, series, stack};
pub use study::tables_of;
pub use trace::TraceDrawing;

/// A page.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Page {
    /// Title, one line.
    pub title: String,
    /// A few words below the title.
    pub lead: String,
    /// Version of Anabranch.
    pub version: String,
    /// The command that made the page.
    pub command: String,
    /// Sections: one per study, or a single run or comparison.
    #[serde(skip)]
    pub sections: Vec<Section>,
}

/// A part of a page with everything that belongs together.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Section {
    /// Stands before it: the paper whose first section this is.
    #[serde(skip)]
    pub paper: Option<PaperHead>,
    /// Names the section and the files that are exported from it; for instance `late/fig10`.
    pub name: String,
    /// Title, one line.
    pub title: String,
    /// Stands above the title: `LATE, Fig. 10`.
    pub kicker: String,
    /// The full citation, if it is about a paper.
    pub citation: String,
    /// A few sentences.
    pub about: String,
    /// Warnings shown above the results.
    pub warnings: Vec<String>,
    /// The paper's statements and their verdicts.
    pub statements: Vec<Judged>,
    /// Figures.
    #[serde(skip)]
    pub figures: Vec<Figure>,
    /// Transfers packet by packet.
    pub traces: Vec<TraceDrawing>,
    /// Numbers in rows.
    pub tables: Vec<Grid>,
    /// Facts that identify and repeat the results: seeds, digest and so on.
    pub facts: Vec<(String, String)>,
    /// Assumptions of the study.
    pub assumptions: Vec<Assumption>,
    /// Systems that took part.
    pub systems: Vec<SystemInfo>,
    /// The scenario as TOML.
    pub scenario: String,
    /// The command that repeats it.
    pub command: String,
}

/// A table.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Grid {
    /// Caption above it.
    pub caption: String,
    /// Heads of the columns; numbers stand right.
    pub columns: Vec<Column>,
    /// Cells.
    pub rows: Vec<Vec<String>>,
    /// Words below it.
    pub notes: Vec<String>,
    /// Darkness of each cell, by row; empty where no cell is shaded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shades: Vec<Vec<u8>>,
}

/// The head of a column.
#[derive(Clone, Debug, Serialize)]
pub struct Column {
    /// Heading, with the unit.
    pub head: String,
    /// True if its cells are aligned to the right.
    pub right: bool,
}

impl Section {
    /// Its figures as JSON; `id` begins the names of files.
    fn data(&self, id: &str) -> String {
        let systems: Vec<&str> = self.systems.iter().map(|system| system.name.as_str()).collect();
        compact::data(id, &systems, &self.figures)
    }
}

impl Column {
    /// A column of that head.
    pub fn new(head: impl Into<String>, align: Align) -> Self {
        Column { head: head.into(), right: align == Align::Right }
    }
}

/// The page as HTML. The same page gives the same bytes.
pub fn page(page: &Page) -> String {
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    let syntax = syntax.expect("the default delimiters do not contradict each other");
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_syntax(syntax);
    environment.add_template("page.html", TEMPLATE).expect("the template is well written: a test renders it");
    let template = environment.get_template("page.html").expect("it was added just now");

    let ids = ids(&page.sections);
    let sections: Vec<Shown<'_>> = page.sections.iter().zip(ids).map(|(section, id)| Shown::new(section, id)).collect();
    let has_figures = page.sections.iter().any(|section| !section.figures.is_empty());
    let has_traces = page.sections.iter().any(|section| !section.traces.is_empty());
    let packs: Vec<&Pack> = [(&packed::FIGURES, has_figures), (&packed::TRACES, has_traces), (&packed::PAGE, true)]
        .into_iter()
        .filter(|(_, wanted)| *wanted)
        .map(|(pack, _)| &**pack)
        .collect();
    let hashes = packs.iter().flat_map(|pack| &pack.hashes).chain(&packed::UNPACKER.hashes);
    let context = Context {
        counts: Counts::of(page.sections.iter().flat_map(|section| &section.statements)),
        page,
        sections,
        style: if has_traces { vec![STYLE, TRACE_STYLE] } else { vec![STYLE] },
        has_figures,
        hashes: hashes.map(String::as_str).collect::<Vec<_>>().join(" "),
        packs: packs.iter().map(|pack| pack.block.as_str()).collect(),
        licences: &packed::LICENCES_PACK.block,
        unpacker: &packed::UNPACKER.scripts,
    };
    let html =
        template.render(Serde(context)).expect("the template names only what the context has: a test renders it");
    // Names and commands of others are in the page, and its source is shown by terminals as well.
    harmless(&html).into_owned()
}

/// The figures of a page, for who draws them elsewhere.
pub struct Charts {
    /// Id and title of each, in order.
    pub names: Vec<(String, String)>,
    /// The figures as JSON, in that order, as [`CHART_SCRIPT`] takes them.
    pub data: String,
}

impl Charts {
    /// Those of the first section of `page`.
    pub fn of(page: &Page) -> Charts {
        let Some(section) = page.sections.first() else {
            return Charts { names: Vec::new(), data: compact::data("", &[], &[]) };
        };
        let names = section.figures.iter().map(|figure| (figure.id.clone(), figure.title.clone())).collect();
        Charts { names, data: section.data(&slug(&section.name)) }
    }
}

/// Data that the template renders.
#[derive(Serialize)]
struct Context<'a> {
    page: &'a Page,
    counts: Counts,
    sections: Vec<Shown<'a>>,
    style: Vec<&'static str>,
    has_figures: bool,
    /// Hashes of the scripts, as a Content-Security-Policy names those that may run.
    hashes: String,
    /// Scripts, compressed, in the order in which they run.
    packs: Vec<&'static str>,
    /// Texts of licences, compressed.
    licences: &'static str,
    /// Scripts that unpack the others.
    unpacker: &'static [String],
}

/// A section with what the template needs besides.
#[derive(Serialize)]
struct Shown<'a> {
    id: String,
    paper: Option<PaperShown<'a>>,
    #[serde(flatten)]
    section: &'a Section,
    judged: Vec<JudgedShown<'a>>,
    counts: Counts,
    figures: Vec<FigureShown<'a>>,
    /// The figures as JSON that may stand inside a script element.
    data: String,
}

/// The head of a paper.
#[derive(Serialize)]
struct PaperShown<'a> {
    id: String,
    name: &'a str,
    citation: &'a str,
    belief: &'a str,
    quick: bool,
    counts: Counts,
    headlines: Vec<HeadlineShown<'a>>,
}

#[derive(Serialize)]
struct HeadlineShown<'a> {
    /// Name of its section.
    section: String,
    figure: &'a str,
    stack: &'a str,
    judged: &'a Judged,
    verdict: VerdictShown,
}

impl<'a> PaperShown<'a> {
    fn new(head: &'a PaperHead) -> Self {
        let headline = |it: &'a Headline| HeadlineShown {
            section: slug(&it.study),
            figure: &it.figure,
            stack: &it.stack,
            verdict: VerdictShown::from(&it.judged),
            judged: &it.judged,
        };
        PaperShown {
            id: format!("paper-{}", slug(&head.name)),
            name: &head.name,
            citation: &head.citation,
            belief: &head.belief,
            quick: head.quick,
            counts: Counts::new(&head.tally),
            headlines: head.headlines.iter().map(headline).collect(),
        }
    }
}

#[derive(Serialize)]
struct FigureShown<'a> {
    id: String,
    title: &'a str,
    notes: &'a [String],
}

#[derive(Serialize)]
struct JudgedShown<'a> {
    verdict: VerdictShown,
    /// `reproduced if …`, where other assumptions were tried.
    search: Option<String>,
    tried: Vec<(String, &'a str, VerdictShown)>,
}

/// A verdict as symbol and word; the class gives the colour.
#[derive(Serialize)]
pub struct VerdictShown {
    symbol: &'static str,
    word: String,
    class: &'static str,
}

impl From<&Judged> for VerdictShown {
    fn from(judged: &Judged) -> Self {
        VerdictShown::new(judged.verdict, judged.outcome())
    }
}

impl VerdictShown {
    fn new(verdict: Verdict, word: String) -> Self {
        let (symbol, class) = match verdict.standing() {
            Standing::Holds => ("✓", "good"),
            Standing::InPart => ("◐", "part"),
            Standing::Fails => ("✗", "bad"),
            Standing::Open => ("○", "open"),
        };
        VerdictShown { symbol, word, class }
    }
}

/// Counts by verdict, and by class of verdicts.
#[derive(Serialize, Default)]
struct Counts {
    all: usize,
    parts: usize,
    own: usize,
    holds: usize,
    in_part: usize,
    fails: usize,
    open: usize,
    verdicts: Vec<(VerdictShown, usize)>,
}

impl Counts {
    fn of<'a>(statements: impl Iterator<Item = &'a Judged>) -> Self {
        Counts::new(&Tally::of(statements))
    }

    fn new(tally: &Tally) -> Self {
        Counts {
            all: tally.all(),
            parts: tally.parts,
            own: tally.own,
            holds: tally.standing(Standing::Holds),
            in_part: tally.standing(Standing::InPart),
            fails: tally.standing(Standing::Fails),
            open: tally.standing(Standing::Open),
            verdicts: tally
                .verdicts()
                .map(|(verdict, count)| (VerdictShown::new(verdict, verdict.name().to_owned()), count))
                .collect(),
        }
    }
}

impl<'a> Shown<'a> {
    fn new(section: &'a Section, id: String) -> Self {
        let tried = |search: &'a Search| {
            let all = search.tried.iter();
            all.map(|it| (it.name(), &*it.ours, VerdictShown::new(it.verdict, it.outcome()))).collect()
        };
        let judged = |judged: &'a Judged| JudgedShown {
            verdict: VerdictShown::from(judged),
            search: judged.search.as_ref().map(Search::to_string),
            tried: judged.search.as_ref().map(tried).unwrap_or_default(),
        };
        let figures = section.figures.iter().enumerate().map(|(n, figure)| FigureShown {
            id: format!("{id}-figure-{n}"),
            title: &figure.title,
            notes: &figure.notes,
        });
        Shown {
            paper: section.paper.as_ref().map(PaperShown::new),
            judged: section.statements.iter().map(judged).collect(),
            counts: Counts::of(section.statements.iter()),
            figures: figures.collect(),
            data: section.data(&id),
            section,
            id,
        }
    }
}

/// A name for each section that an address can hold, each only once.
fn ids(sections: &[Section]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let mut unique = |section: &Section| {
        let base = slug(&section.name);
        let mut id = base.clone();
        let mut n = 2;
        while !seen.insert(id.clone()) {
            id = format!("{base}-{n}");
            n += 1;
        }
        id
    };
    sections.iter().map(&mut unique).collect()
}

/// Lower-case letters, digits and `-`.
fn slug(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let words: String = name.chars().map(plain).collect();
    let words: Vec<&str> = words.split('-').filter(|word| !word.is_empty()).collect();
    // Not to be taken for an element of the page itself.
    format!("s-{}", words.join("-"))
}

const TEMPLATE: &str = include_str!("../../assets/page.html");
const STYLE: &str = include_str!("../../assets/page.css");
const TRACE_STYLE: &str = include_str!("../../assets/vendor/uPlot.min.css");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_in_a_page_commands_the_terminal_that_shows_it() {
        let html = page(&Page { title: "a\u{1b}[31m\u{202e}b".to_owned(), ..Page::default() });
        assert!(html.contains("a\\u001b[31m\\u202eb") && harmless(&html) == html);
    }
}
