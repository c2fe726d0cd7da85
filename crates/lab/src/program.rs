//! Identity of the program that makes runs.

mod build_id;

use anabranch_units::hex;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::PathBuf;
use std::sync::OnceLock;

/// Version of the source.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Build of a program whose file cannot be read.
pub const UNKNOWN_BUILD: &str = "unknown";

/// Hexadecimal digits of a build.
const DIGITS: usize = 16;

/// Returns the build of the running program, 16 hexadecimal digits, or [`UNKNOWN_BUILD`].
///
/// Build, scenario and seed identify a run: a program with other policies, or another commit of the same version, is
/// another build. The digits are the first of the linker's build id, which it computes from the whole program; in a
/// file without one, of the SHA-256 of the file. The file is read at the first call.
pub fn build() -> &'static str {
    BUILD.get_or_init(|| build_of_program().unwrap_or_else(|_| UNKNOWN_BUILD.to_owned()))
}

/// Sets `file` as the program whose build [`build`] returns: for a library inside another program. Must come before the
/// first [`build`]; later calls have no effect.
pub fn build_is_of(file: PathBuf) {
    let _ = LIBRARY.set(file);
}

/// Sets the build: for a program that is no file, as in a browser. Must come before the first [`build`]; later calls
/// have no effect.
pub fn build_is(build: String) {
    let _ = BUILD.set(build);
}

static BUILD: OnceLock<String> = OnceLock::new();
/// File that replaces the program's own.
static LIBRARY: OnceLock<PathBuf> = OnceLock::new();

/// Returns version and build: `0.1.0 (build 9ee84d7f362d2eca)`.
pub fn version_with_build() -> String {
    format!("{VERSION} (build {})", build())
}

fn build_of_program() -> io::Result<String> {
    let mut program = match LIBRARY.get() {
        Some(library) => File::open(library)?,
        // The link in /proc leads to the running program even if its file has been replaced since.
        None => File::open("/proc/self/exe").or_else(|_| File::open(std::env::current_exe()?))?,
    };
    let id = match build_id::read(&mut program)? {
        Some(id) => hex(&id),
        None => hex(&digest(&mut program)?),
    };
    Ok(id[..DIGITS].to_owned())
}

/// Computes the SHA-256 of a whole file.
fn digest(file: &mut File) -> io::Result<[u8; 32]> {
    file.rewind()?;
    let (mut digest, mut part) = (Sha256::new(), vec![0; 1 << 20]);
    loop {
        match file.read(&mut part) {
            Ok(0) => break,
            Ok(read) => digest.update(&part[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(digest.finalize().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_is_the_linkers_or_the_digest_of_the_file() {
        let mut program = std::env::current_exe().and_then(File::open).expect("a test can read itself");
        let linked = build_id::read(&mut program).expect("a test can read itself").map(|id| hex(&id));
        let id = linked.unwrap_or_else(|| hex(&digest(&mut program).expect("a test can read itself")));
        assert!(id.starts_with(build()), "{id} and {}", build());
        assert_eq!(build().len(), DIGITS);
    }
}
