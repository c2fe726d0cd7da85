//! Asks the linker for a build id, which names the build in results (`anabranch_lab::build`).
//!
//! Most compilers of Linux ask for one themselves; those of Alpine and of rustup's targets with `rust-lld` do not.
//! Without it the program finds its build by reading the whole of its file.

use std::env;
use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let of = |name: &str| env::var(name).unwrap_or_default();
    // Other systems have other formats: Mach-O always has an id, PE has none. A linker that is named in flags is not
    // known here.
    if of("CARGO_CFG_TARGET_OS") != "linux" || of("CARGO_ENCODED_RUSTFLAGS").contains("linker") {
        return;
    }
    let linker = of("RUSTC_LINKER");
    let name = Path::new(&linker).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    // `x86_64-linux-gnu-ld` as well.
    let is_bare = name.rsplit(['-', '.']).next().is_some_and(|last| ["ld", "lld", "mold"].contains(&last));
    println!("cargo::rustc-link-arg-bins={}", if is_bare { "--build-id" } else { "-Wl,--build-id" });
}
