//! Studies inside the program.

/// Study, or base of studies, inside the program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shipped {
    /// Name: `late/fig10`.
    pub(super) name: &'static str,
    /// Text of its file.
    pub(super) text: &'static str,
}

macro_rules! shipped {
    ($($name:literal),* $(,)?) => {
        &[$(Shipped { name: $name, text: include_str!(concat!("../../../../studies/", $name, ".toml")) }),*]
    };
}

/// All studies, paper by paper.
pub(super) const STUDIES: &[Shipped] = shipped![
    "late/fig02",
    "late/fig03",
    "late/fig08",
    "late/fig09",
    "late/fig10",
    "late/fig11",
    "late/fig12",
    "late/fig13",
    "late/fig14",
    "late/fig15",
    "late/fig16",
    "lowlat/fig03",
    "lowlat/fig04",
    "lowlat/fig05",
    "lowlat/fig06",
    "lowlat/fig08",
    "lowlat/fig09",
    "lowlat/fig10",
    "lowlat/fig11",
    "lowlat/fig12",
    "lowlat/fig13",
    "lowlat/table1",
    "f2p/fig05",
    "f2p/fig06",
    "f2p/fig07",
    "f2p/fig08",
    "f2p/fig09",
    "f2p/fig10",
    "f2p/fig11",
    "acksp/fig02",
    "acksp/fig04",
    "acksp/fig05",
    "acksp/fig06",
    "rbp/fig04",
    "rbp/fig05",
    "rbp/fig06",
    "rbp/fig07",
    "rbp/fig08",
    "rbp/fig09",
];

/// Bases that studies name as `base`.
pub(super) const BASES: &[Shipped] =
    shipped!["late/common", "lowlat/common", "f2p/common", "acksp/common", "rbp/common",];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::Study;
    use std::collections::{BTreeMap, BTreeSet};
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
        let fields = crate::field::Field::names().map(str::to_owned);
        let shipped: BTreeSet<String> =
            STUDIES.iter().chain(BASES).map(|it| it.name.to_owned()).chain(fields).collect();
        assert_eq!(shipped, there);
    }
    /// Tallies treat statements with the same sentence as parts of one, in whatever study they are.
    #[test]
    fn a_sentence_that_is_judged_in_parts_is_that_of_one_paper() {
        let mut parts: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for name in STUDIES.iter().map(|it| it.name) {
            let study = Study::load(name).unwrap_or_else(|error| panic!("{name}: {error}"));
            for claim in study.claims() {
                let Some(sentence) = &claim.sentence else { continue };
                parts.entry(sentence.clone()).or_default().push(study.paper().to_owned());
            }
        }
        assert!(parts.len() > 30, "{parts:?}");
        for (sentence, papers) in parts {
            assert!(papers.len() > 1, "nothing else judges “{sentence}”");
            assert!(papers.iter().all(|paper| *paper == papers[0]), "“{sentence}” is of {papers:?}");
        }
    }
}
