//! Heads of papers: the few statements by which each is known, ours beside the paper's, and our judgement.

use anabranch_study::study::{Judged, Paper, StudyResult, Tally};

/// A paper with its headlines.
#[derive(Clone, Debug)]
pub struct PaperHead {
    /// `LATE`.
    pub name: String,
    /// Authors, title, where it was published.
    pub citation: String,
    /// Our judgement, in one paragraph.
    pub belief: String,
    /// Some of its runs have few points and repetitions.
    pub quick: bool,
    /// All of its statements.
    pub tally: Tally,
    /// Its studies among the results.
    pub studies: usize,
    /// Headlines, at least one.
    pub headlines: Vec<Headline>,
}

/// A statement by which a paper is known.
#[derive(Clone, Debug)]
pub struct Headline {
    /// `late/fig10`.
    pub study: String,
    /// `Fig. 10`.
    pub figure: String,
    /// The profile of the stack on which it was measured: `linux-3.14`.
    pub stack: String,
    /// The statement and our measurement.
    pub judged: Judged,
}

/// The heads of all papers that have headlines among these results, in the order of the results. A single study needs
/// none.
pub fn paper_heads(results: &[StudyResult]) -> Vec<PaperHead> {
    let names = if results.len() > 1 { paper_names(results) } else { Vec::new() };
    let head = |name: &str| {
        let of_paper: Vec<&StudyResult> = results.iter().filter(|result| result.paper == name).collect();
        let headlines: Vec<Headline> = of_paper.iter().flat_map(|result| headlines(result)).collect();
        let known = Paper::named(name);
        (!headlines.is_empty()).then(|| PaperHead {
            name: name.to_owned(),
            citation: known.map(|paper| paper.citation).unwrap_or_default().to_owned(),
            // A number and its percent sign stay on one line.
            belief: known.map(|it| it.belief.trim().replace('\n', " ").replace(" %", "\u{a0}%")).unwrap_or_default(),
            quick: of_paper.iter().any(|result| result.quick),
            tally: Tally::of(of_paper.iter().flat_map(|result| &result.statements)),
            studies: of_paper.len(),
            headlines,
        })
    };
    names.into_iter().filter_map(head).collect()
}

/// Each paper once, in the order of the results.
pub(crate) fn paper_names(results: &[StudyResult]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for result in results {
        if !names.contains(&result.paper.as_str()) {
            names.push(&result.paper);
        }
    }
    names
}

fn headlines(result: &StudyResult) -> impl Iterator<Item = Headline> {
    let mut stacks: Vec<&str> = Vec::new();
    for (seam, name) in result.systems.iter().flat_map(|system| &system.policies) {
        if seam == "profile" && !stacks.contains(&name.as_str()) {
            stacks.push(name);
        }
    }
    let headline = |judged: &Judged| Headline {
        study: result.name.clone(),
        figure: result.figure.clone(),
        stack: stacks.join(", "),
        judged: judged.clone(),
    };
    result.statements.iter().filter(|judged| judged.headline).map(headline).collect::<Vec<_>>().into_iter()
}
