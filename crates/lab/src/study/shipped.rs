//! The studies that come with the program.

/// A study, or a base of studies, inside the binary.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shipped {
    /// `late/fig10`.
    pub(super) name: &'static str,
    /// Its file.
    pub(super) text: &'static str,
}

macro_rules! shipped {
    ($($name:literal),* $(,)?) => {
        &[$(Shipped { name: $name, text: include_str!(concat!("../../../../studies/", $name, ".toml")) }),*]
    };
}

/// All of them, paper by paper.
pub(super) const STUDIES: &[Shipped] = shipped![];

/// What studies name as their `base`.
pub(super) const BASES: &[Shipped] = shipped![];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn every_file_below_studies_is_shipped() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
        let mut there = BTreeSet::new();
        for paper in std::fs::read_dir(&root).into_iter().flatten().flatten() {
            for file in std::fs::read_dir(paper.path()).into_iter().flatten().flatten() {
                let name = format!("{}/{}", paper.file_name().display(), file.file_name().display());
                there.extend(name.strip_suffix(".toml").map(str::to_owned));
            }
        }
        let shipped: BTreeSet<String> = STUDIES.iter().chain(BASES).map(|it| it.name.to_owned()).collect();
        assert_eq!(shipped, there);
    }
}
