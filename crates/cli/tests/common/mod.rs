//! The program, documents, and a directory for each test.
#![allow(clippy::unwrap_used, dead_code)]

pub mod markdown;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// An empty directory of one test.
pub fn directory(test: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    if directory.exists() {
        fs::remove_dir_all(&directory).unwrap();
    }
    fs::create_dir_all(&directory).unwrap();
    directory
}

/// Names in a directory, sorted.
pub fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> = entries.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The digest of the program, as `--version` says it.
pub fn build() -> String {
    let text = succeed(Path::new("."), &["--version"]);
    let build = text.trim().strip_prefix(concat!("anabranch ", env!("CARGO_PKG_VERSION"), " (build "));
    build.and_then(|rest| rest.strip_suffix(')')).expect("the version names its build").to_owned()
}

/// The text as every build prints it.
pub fn without_build(text: &str) -> String {
    text.replace(&format!(" (build {})", build()), "")
}

pub fn anabranch(directory: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_anabranch")).current_dir(directory).args(args).output().unwrap()
}

/// Runs the program, requires success, and returns its standard output.
pub fn succeed(directory: &Path, args: &[&str]) -> String {
    let output = anabranch(directory, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
