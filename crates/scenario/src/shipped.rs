//! Scenarios inside the program, which needs no files for them.

/// Scenario inside the program.
#[derive(Clone, Copy, Debug)]
pub struct Shipped {
    /// Name for `anabranch run` and `compare`.
    pub name: &'static str,
    /// Text of its file.
    pub text: &'static str,
}

/// Scenario that `compare` runs if none is named.
pub const DEFAULT: &str = "drive";

/// All shipped scenarios.
pub const SHIPPED: &[Shipped] = &[
    Shipped { name: "wlan-lte", text: include_str!("../../../scenarios/wlan-lte.toml") },
    Shipped { name: "symmetric", text: include_str!("../../../scenarios/symmetric.toml") },
    Shipped { name: "asymmetric-10-100", text: include_str!("../../../scenarios/asymmetric-10-100.toml") },
    Shipped { name: "lossy", text: include_str!("../../../scenarios/lossy.toml") },
    Shipped { name: "shared-bottleneck", text: include_str!("../../../scenarios/shared-bottleneck.toml") },
    Shipped { name: "path-failure", text: include_str!("../../../scenarios/path-failure.toml") },
    Shipped { name: "web", text: include_str!("../../../scenarios/web.toml") },
    Shipped { name: "map-session", text: include_str!("../../../scenarios/map-session.toml") },
    Shipped { name: "drive", text: include_str!("../../../scenarios/drive.toml") },
];

/// Traces by the name that scenario files use.
const TRACES: &[(&str, &str)] = &[("traces/lte.down", include_str!("../../../scenarios/traces/lte.down"))];

/// Returns the shipped scenario of that name.
pub fn find(name: &str) -> Option<&'static Shipped> {
    SHIPPED.iter().find(|shipped| shipped.name == name)
}

/// Returns the text of the shipped trace of that name.
pub fn trace(name: &str) -> Option<&'static str> {
    TRACES.iter().find(|(trace, _)| *trace == name).map(|(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn every_file_below_scenarios_is_shipped() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
        let files = std::fs::read_dir(&root).into_iter().flatten().flatten();
        let names = files.filter_map(|file| file.file_name().to_str()?.strip_suffix(".toml").map(str::to_owned));
        let there: BTreeSet<String> = names.collect();
        let shipped: BTreeSet<String> = SHIPPED.iter().map(|it| it.name.to_owned()).collect();
        assert_eq!(shipped, there);
    }
}
