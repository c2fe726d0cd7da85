//! Runs every script below `conformance/`. Arguments that do not begin with `-` select scripts by a part of their path.

use anabranch_script::{Passed, run_file};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance");
    let root = root.canonicalize().unwrap_or(root);
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let mut scripts = Vec::new();
    collect(&root, &mut scripts);
    scripts.sort();
    let (mut failing, mut total, mut run) = (Vec::new(), Passed::default(), 0);
    for path in &scripts {
        let name = path.strip_prefix(&root).expect("it was found below the root").display().to_string();
        if !wanted.is_empty() && !wanted.iter().any(|part| name.contains(part.as_str())) {
            continue;
        }
        run += 1;
        let text = std::fs::read_to_string(path).unwrap_or_default();
        if let Err(problem) = header(&text) {
            println!("{name}: {problem}");
            failing.push(name);
            continue;
        }
        match run_file(path) {
            Ok(passed) => {
                total.statements += passed.statements;
                total.injected += passed.injected;
                total.expected += passed.expected;
            }
            // As it stands: wrapped lines could not be pasted.
            Err(error) if error.failed().is_some() => {
                println!("{error}\n");
                failing.push(name);
            }
            Err(error) => {
                println!("{:?}", miette::Report::new(error));
                failing.push(name);
            }
        }
    }
    let Passed { injected, expected, .. } = total;
    println!(
        "conformance: {run} scripts, {} failed ({injected} segments injected, {expected} expected)",
        failing.len()
    );
    for name in &failing {
        println!("  failed: {name}");
    }
    if failing.is_empty() && (run > 0 || !wanted.is_empty()) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn collect(folder: &Path, into: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "script") {
            into.push(path);
        }
    }
}

/// A script begins with a sentence that says what must happen, and where that is written.
fn header(text: &str) -> Result<(), &'static str> {
    let comment: String = text.lines().take_while(|line| line.starts_with('#')).collect();
    if comment.is_empty() {
        return Err("it must begin with a comment that says what must happen");
    }
    let cited = comment.contains('§') || comment.contains("Linux");
    if !cited || !(comment.contains("RFC ") || comment.contains("Linux")) {
        return Err("its first comment must cite a clause, such as (RFC 8684 §3.2)");
    }
    if !comment.trim_end().ends_with('.') {
        return Err("its first comment must be a sentence");
    }
    Ok(())
}
