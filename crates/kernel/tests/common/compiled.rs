//! Arithmetic of the BPF programs, compiled for the host, and drawn input for it.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Returns true if there is a C compiler; otherwise says that the test is skipped, and fails with
/// `ANABRANCH_REQUIRE_CC=1`.
pub fn has_compiler() -> bool {
    let found = Command::new("cc").arg("--version").output().is_ok();
    assert!(found || std::env::var_os("ANABRANCH_REQUIRE_CC").is_none(), "there is no C compiler");
    if !found {
        eprintln!("SKIPPED: there is no C compiler");
    }
    found
}

/// Compiles `PROGRAM.c` of the tests with the header of an algorithm, and returns the file.
pub fn compiled(program: &str, algorithm: &str) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{program}-{algorithm}"));
    let status = Command::new("cc")
        .args(["-O2", "-std=gnu11", &format!("-DALGORITHM=\"{algorithm}.h\"")])
        .arg("-I")
        .args([here.join("bpf"), here.join(format!("tests/{program}.c"))])
        .arg("-o")
        .arg(&file)
        .status();
    assert!(status.unwrap().success(), "{algorithm} does not compile");
    file
}

/// Runs it on `input`, and returns the numbers that it prints, one a line.
pub fn run(program: &Path, input: String) -> Vec<u64> {
    let mut child = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap().lines().map(|line| line.parse().unwrap()).collect()
}

/// SplitMix64.
pub struct Chance(pub u64);

impl Chance {
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ (x >> 31)) % limit
    }

    /// Small numbers as often as large ones.
    #[allow(dead_code, reason = "one of the two tests needs it")]
    pub fn up_to(&mut self, limit: u64) -> u64 {
        let limit = limit >> self.below(12);
        self.below(limit.max(1))
    }
}
