//! Formatting of modules that a macro names, such as `policies!`: `cargo fmt` does not find those files.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Macros that declare modules, at the beginning of a line.
const MACROS: [&str; 2] = ["policies! {", "kinds! {"];

#[test]
fn modules_that_macros_name_are_formatted() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let mut files = Vec::new();
    super::sources(&root.join("crates"), &mut files);
    let names = |path: &&PathBuf| {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().any(|line| MACROS.iter().any(|name| line.starts_with(name)))
    };
    let folders: Vec<&Path> = files.iter().filter(names).filter_map(|path| path.parent()).collect();
    assert!(folders.len() >= 7, "{folders:?}");
    let files = files.iter().filter(|path| folders.iter().any(|folder| path.starts_with(folder)));
    let files: Vec<&Path> = files.map(|path| path.strip_prefix(&root).unwrap()).collect();

    let output = match Command::new("rustfmt").args(["--check", "-l"]).args(&files).current_dir(&root).output() {
        Ok(output) => output,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "SKIPPED: rustfmt cannot be run: {error}");
            return;
        }
    };
    let found = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "not formatted; remedy: rustfmt FILE\n{found}{errors}");
}
