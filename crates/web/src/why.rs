//! The time of a transfer by limit: of a scenario, and of captures.

use crate::request::Progress;
use crate::results::bounded;
use crate::scenario::{Source, Trouble};
use anabranch_policy::Catalogue;
use anabranch_why::{Alternatives, CaptureInquiry, Inquiry, Others};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Width of the text that goes with an answer, in characters.
const WIDTH: usize = 80;

/// Runs the scenario and its counterfactuals.
pub fn of_scenario(
    catalogue: &Arc<Catalogue>,
    source: &Source,
    seed: Option<u64>,
    repeat: usize,
    progress: &Progress<'_>,
) -> Result<Value, Trouble> {
    let scenario = source.load(catalogue)?;
    let load = |more: &[String]| source.load_with(catalogue, more);
    let alternatives = Alternatives::of(&scenario, catalogue, &Others::default(), &load);
    let inquiry = Inquiry::new(&scenario, alternatives, seed.unwrap_or(scenario.seed), repeat.max(1));
    let (done, runs) = (AtomicUsize::new(0), inquiry.len());
    bounded(runs)?;
    let answer = inquiry.run(1, &load, &|| progress(done.fetch_add(1, Ordering::Relaxed) + 1, runs))?;
    Ok(json!({ "text": anabranch_report::why(&answer, WIDTH), "answer": answer }))
}

/// Judges a connection of captures, whose bytes are one after the other.
pub fn of_captures(names: &[(String, usize)], bytes: &[u8], connection: Option<usize>) -> Result<Value, Trouble> {
    let mut rest = bytes;
    let mut captures = Vec::new();
    for (name, length) in names {
        let Some((file, behind)) = rest.split_at_checked(*length) else {
            return Err(Trouble::plain(format!("{name} did not arrive whole: choose it again")));
        };
        captures.push((name.clone(), file.to_vec()));
        rest = behind;
    }
    let inquiry = CaptureInquiry::read_bytes(captures);
    let count = inquiry.connections();
    if let Some(wanted) = connection.filter(|wanted| !(1..=count).contains(wanted)) {
        return Err(Trouble::plain(format!("no connection {wanted}: there are {count}")));
    }
    let answer = inquiry.answer(connection);
    Ok(json!({
        "is_capture": inquiry.is_capture(),
        "connections": count,
        "text": anabranch_report::why_capture(&answer, WIDTH),
        "answer": answer,
    }))
}
