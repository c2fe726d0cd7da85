//! Profiles of the build: the profiles of packages and measurements optimise what `release` keeps small. Cargo hands
//! the levels of single packages down to every profile that inherits.

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
    let profile = |name: &str| manifest["profile"][name].as_table().unwrap();
    assert_eq!(profile("dist")["inherits"].as_str(), Some("bench"));
    assert!(profile("dist").get("package").is_none(), "the levels of `bench` are those of `dist`");
    assert_eq!(profile("bench")["opt-level"].as_integer(), Some(3));
    let left = unoptimised(&manifest, "bench");
    assert!(left.is_empty(), "[profile.bench.package] lacks `opt-level = 3` of {left:?}");
}

/// A profile's own `strip` does not reach a package that has a level of its own.
#[test]
fn programs_for_users_are_stripped() {
    let manifest: toml::Table = std::fs::read_to_string(root().join("Cargo.toml")).unwrap().parse().unwrap();
    for name in ["release", "dist"] {
        let strip = manifest["profile"][name].get("strip").and_then(toml::Value::as_bool);
        assert_eq!(strip, Some(true), "[profile.{name}] lacks `strip = true`");
    }
    for name in ["release", "bench"] {
        let of_cli = manifest["profile"][name].get("package").and_then(|packages| packages.get("anabranch-cli"));
        assert!(of_cli.is_none(), "[profile.{name}.package] names anabranch-cli, which then keeps its symbols");
    }
}
