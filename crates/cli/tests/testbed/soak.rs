//! `interop/soak.py` for as long as a test can afford: connections of the kernel while paths fail, and everything of
//! ours gone afterwards. Half an hour of it is run by hand.

use super::kernel::has_features;
use super::{lacks, missing, stderr};
use std::path::Path;
use std::process::{Command, Stdio};

/// The script takes the turn of the tests itself.
#[test]
fn no_byte_is_lost_while_paths_fail_and_nothing_is_left() {
    let features = ["btf", "struct-ops", "kernel-functions", "capabilities", "tcx", "mptcp", "tracepoints"];
    if missing().is_some() || !has_features("soak", &features) {
        return eprintln!("SKIPPED: soak: no testbed can be made here, or the kernel lacks something");
    }
    // It is no package of those that CI installs.
    let has_bpftool = Command::new("bpftool").arg("version").stdout(Stdio::null()).status().is_ok();
    if !has_bpftool || ["python3", "unshare", "ss"].into_iter().any(lacks) {
        return eprintln!("SKIPPED: soak: it takes bpftool, python3, unshare and ss");
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop/soak.py");
    let mut command = Command::new("python3");
    command.env("PYTHONDONTWRITEBYTECODE", "1").arg(script).arg(env!("CARGO_BIN_EXE_anabranch"));
    let output = command.args(["--minutes", "0.25", "--round", "15", "--no-reload"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", stderr(&output));
    assert!(said.contains("\nnothing is left, and no byte was lost\n"), "{said}");
    let count = |name: &str| -> u64 {
        let line = said.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("no {name}: {said}"));
        line[name.len()..].trim().replace(',', "").parse().unwrap()
    };
    assert_eq!(count("rounds"), 1, "{said}");
    assert!(count("connections") > 10 && count("bytes up") > 1_000_000 && count("failures of paths") > 0, "{said}");
}
