//! Features that tests of the running kernel need.

use anabranch_kernel::features;

/// True if the kernel has these features of [`features`]; otherwise says what is missing, and fails with
/// `ANABRANCH_REQUIRE_BPF=1`.
pub fn has(needed: &[&str]) -> bool {
    let missing: Vec<_> = features().into_iter().filter(|it| needed.contains(&it.name) && !it.available).collect();
    for feature in &missing {
        assert!(std::env::var_os("ANABRANCH_REQUIRE_BPF").is_none(), "{}: {}", feature.name, feature.note);
        eprintln!("SKIPPED: {}: {}", feature.name, feature.note);
    }
    missing.is_empty()
}
