//! Profiles of the build: the profiles of packages and measurements optimise what `release` does not, for the sake of a
//! short build. Cargo hands the levels of single packages down to every profile that inherits.

use crate::common::markdown::root;

/// Returns packages of `release` that `profile` does not build at level 3, each with the level it has there.
fn unoptimised(manifest: &toml::Table, profile: &str) -> Vec<String> {
    let packages = |profile: &str| manifest["profile"].get(profile)?.get("package")?.as_table().cloned();
    let level = |of: &toml::Value| of.get("opt-level").and_then(toml::Value::as_integer);
    let (release, own) = (packages("release").unwrap(), packages(profile).unwrap_or_default());
    let kept = release.iter().map(|(name, value)| (name, level(own.get(name).unwrap_or(value))));
    kept.filter(|(_, level)| *level != Some(3)).map(|(name, level)| format!("{name}: {level:?}")).collect()
}

#[test]
fn measurements_and_packages_are_optimised_in_full() {
    let manifest: toml::Table = std::fs::read_to_string(root().join("Cargo.toml")).unwrap().parse().unwrap();
    let dist = &manifest["profile"]["dist"];
    assert_eq!(dist["inherits"].as_str(), Some("bench"));
    let packages = dist["package"].as_table().unwrap();
    assert!(packages.values().all(|it| it.get("opt-level").is_none()), "the levels of `bench` are those of `dist`");
    // The profile's own `strip` does not reach a package that has a level of its own.
    let strip = packages.get("anabranch-cli").and_then(|it| it.get("strip")?.as_bool());
    assert_eq!(strip, Some(true), "[profile.dist.package.anabranch-cli] lacks `strip = true`");
    let left = unoptimised(&manifest, "bench");
    assert!(left.is_empty(), "[profile.bench.package] lacks `opt-level = 3` of {left:?}");
    assert!(!unoptimised(&manifest, "release").is_empty(), "nothing is left out of `release`");
}
