//! The time of a transfer by limit: of a scenario, and of captures.

use crate::request::Progress;
use crate::results::bounded;
use crate::scenario::{Source, Trouble};
use crate::strangers;
use anabranch_policy::Catalogue;
use anabranch_why::{Alternatives, CaptureInquiry, Inquiry, Others};
use serde_json::{Value, json};
use std::sync::Arc;

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
    bounded(inquiry.len())?;
    let answer = inquiry.run(1, &load, progress)?;
    Ok(json!({ "text": anabranch_report::why(&answer, WIDTH), "answer": answer }))
}

/// Judges a connection of captures, whose bytes are one after the other.
pub fn of_captures(names: &[(String, usize)], bytes: &[u8], connection: Option<usize>) -> Result<Value, Trouble> {
    let mut rest = bytes;
    let mut files = Vec::new();
    for (name, length) in names {
        let Some((file, behind)) = rest.split_at_checked(*length) else {
            return Err(Trouble::plain(format!("{name} did not arrive whole: choose it again")));
        };
        files.push((name.as_str(), file));
        rest = behind;
    }
    let inquiry =
        CaptureInquiry::read_bytes(files.iter().map(|(name, file)| ((*name).to_owned(), file.to_vec())).collect());
    strangers::check(inquiry.files(), &files)?;
    let count = inquiry.connections();
    if let Some(wanted) = connection.filter(|wanted| !(1..=count).contains(wanted)) {
        return Err(Trouble::plain(format!("no connection {wanted}: there are {count}")));
    }
    let answer = inquiry.answer(connection);
    Ok(json!({
        "connections": count,
        "text": anabranch_report::why_capture(&answer, WIDTH),
        "answer": answer,
    }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const SCENARIO: &[u8] = b"[path.a]\nrate = \"1mbit\"\n[[workload]]\nkind = \"bulk\"\n";

    /// Problem and help of files that are taken for captures.
    fn refused(files: &[(&str, &[u8])]) -> (String, String) {
        let names: Vec<(String, usize)> = files.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.len())).collect();
        let bytes: Vec<u8> = files.iter().flat_map(|(_, bytes)| bytes.iter().copied()).collect();
        let trouble = of_captures(&names, &bytes, None).unwrap_err();
        (trouble.problem, trouble.help.unwrap())
    }

    #[test]
    fn a_file_that_is_no_capture_is_named() {
        let empty_capture: Vec<u8> =
            [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65535, 1].iter().flat_map(|word| word.to_le_bytes()).collect();
        for (files, problem, help) in [
            (&[("x.toml", SCENARIO)][..], "x.toml is a scenario, not a capture", "Open file"),
            (&[("x", SCENARIO)], "x is a scenario, not a capture", "Open file"),
            (
                &[("good.pcap", &empty_capture), ("x.toml", SCENARIO)],
                "x.toml is a scenario, not a capture",
                "Open file",
            ),
            (&[("x.toml", b"path = [")], "x.toml is a TOML file, as scenarios are, not a capture", "Open file"),
            (
                &[("s.toml", b"scenario = \"symmetric\"\n[[axis]]\n")],
                "s.toml is a sweep, not a capture",
                "anabranch sweep",
            ),
            (&[("s.toml", b"[scenario.path.a]\n[[plot]]\n")], "s.toml is a study, not a capture", "anabranch study"),
            (&[("x.txt", b"#!/bin/sh")], "x.txt: this is neither pcap nor pcapng: it begins with the text", "pcapng"),
            (&[("x.png", b"\x89PNG\r\n")], "x.png: this is neither pcap nor pcapng", "pcapng"),
        ] {
            let (said, helped) = refused(files);
            assert!(said.starts_with(problem) && helped.contains(help), "{files:?}: {said}; {helped}");
        }
        let (said, _) = refused(&[("a.toml", SCENARIO), ("b.txt", b"text")]);
        assert!(said.contains("a.toml is a scenario") && said.contains("; b.txt: this is neither"), "{said}");
        assert!(of_captures(&[("good.pcap".to_owned(), 24)], &empty_capture, None).is_ok());
    }
}
