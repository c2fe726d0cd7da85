//! Identity of the program that makes runs.

use anabranch_units::hex;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::OnceLock;

/// Version of the source.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Build of a program whose file cannot be read.
pub const UNKNOWN_BUILD: &str = "unknown";

/// Returns the digest of the running program: 16 hexadecimal digits of the SHA-256 of its file, or [`UNKNOWN_BUILD`].
///
/// Build, scenario and seed identify a run: a program with other policies, or another commit of the same version, has
/// another digest. The file is read at the first call.
pub fn build() -> &'static str {
    static BUILD: OnceLock<String> = OnceLock::new();
    BUILD.get_or_init(|| digest_of_program().unwrap_or_else(|_| UNKNOWN_BUILD.to_owned()))
}

/// Sets `file` as the program whose digest [`build`] returns: for a library inside another program. Must come before
/// the first [`build`]; later calls have no effect.
pub fn build_is_of(file: PathBuf) {
    let _ = LIBRARY.set(file);
}

/// File that replaces the program's own.
static LIBRARY: OnceLock<PathBuf> = OnceLock::new();

/// Returns version and build: `0.1.0 (build 9ee84d7f362d2eca)`.
pub fn version_with_build() -> String {
    format!("{VERSION} (build {})", build())
}

fn digest_of_program() -> io::Result<String> {
    let mut program = match LIBRARY.get() {
        Some(library) => File::open(library)?,
        // The link in /proc leads to the running program even if its file has been replaced since.
        None => File::open("/proc/self/exe").or_else(|_| File::open(std::env::current_exe()?))?,
    };
    let (mut digest, mut part) = (Sha256::new(), vec![0; 1 << 20]);
    loop {
        match program.read(&mut part) {
            Ok(0) => break,
            Ok(read) => digest.update(&part[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(hex(&digest.finalize())[..16].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_is_the_digest_of_its_program() {
        let program = std::env::current_exe().and_then(std::fs::read).expect("a test can read itself");
        assert!(hex(&Sha256::digest(program)).starts_with(build()));
        assert_eq!(build().len(), 16);
    }
}
