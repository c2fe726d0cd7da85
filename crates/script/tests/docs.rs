//! docs/conformance.md and docs/ecn.md name tests and scripts, and count: all of them are there, and the counts are
//! right.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const BEGIN: &str = "<!-- scripts: begin -->\n";
const END: &str = "<!-- scripts: end -->";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn document() -> String {
    fs::read_to_string(root().join("docs/conformance.md")).unwrap()
}

/// Text between backticks.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Scripts as `topic/name`, in order.
fn scripts() -> BTreeSet<String> {
    let topics = fs::read_dir(root().join("conformance")).unwrap().map(|topic| topic.unwrap().path());
    let files = topics.filter(|topic| topic.is_dir()).flat_map(|topic| fs::read_dir(topic).unwrap());
    let script = |path: PathBuf| {
        let name = path.file_stem()?.to_str()?;
        let topic = path.parent()?.file_name()?.to_str()?;
        (path.extension()? == "script").then(|| format!("{topic}/{name}"))
    };
    files.filter_map(|file| script(file.unwrap().path())).collect()
}

/// One line of a table: id, keyword, requirement, and what covers it.
struct Row<'a> {
    id: &'a str,
    keyword: &'a str,
    cover: &'a str,
}

fn rows(text: &str) -> Vec<Row<'_>> {
    let cells = text.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    let rows = cells.map(|line| line.split(" | ").collect::<Vec<_>>()).filter(|row| row[0] != "Id");
    let row = |row: Vec<_>| match row[..] {
        [id, keyword, _, cover] => Row { id, keyword, cover },
        _ => panic!("four columns: {row:?}"),
    };
    rows.map(row).collect()
}

/// Rows that are covered, not covered, not followed.
fn counts(rows: &[Row<'_>]) -> [usize; 3] {
    let begins = |row: &&Row<'_>, word: &str| row.cover.starts_with(word);
    let not_covered = rows.iter().filter(|row| begins(row, "Not covered: ")).count();
    let not_followed = rows.iter().filter(|row| begins(row, "Not followed: ")).count();
    [rows.len() - not_covered - not_followed, not_covered, not_followed]
}

/// True if `name` is a test in one of the files that `place` may mean.
fn is_test(place: &str, name: &str) -> bool {
    let Some((package, file)) = place.split_once('/') else { return false };
    let folder = if file.starts_with("src/") { "" } else { "tests/" };
    let path = root().join(format!("crates/{package}/{folder}{file}.rs"));
    let source = fs::read_to_string(path).unwrap_or_default();
    let Some(at) = source.find(&format!("fn {name}(")) else { return false };
    // The attribute stands before the function, with nothing but other attributes and space between.
    let before = source[..at].trim_end();
    before.ends_with("#[test]")
        || before.lines().rev().take_while(|l| l.trim().starts_with("#[")).any(|l| l.contains("#[test]"))
}

#[test]
fn every_test_and_script_named_exists() {
    let (document, scripts) = (document(), scripts());
    let tables = &document[document.find("## Requirements").unwrap()..document.find(BEGIN).unwrap()];
    let (mut checked, mut missing) = (0, Vec::new());
    for row in rows(tables) {
        for name in names(row.cover) {
            match name.split_once("::") {
                // A type or a function of ours.
                Some((place, _)) if !place.contains('/') => {}
                Some((place, test)) => {
                    checked += 1;
                    if !is_test(place, test) {
                        missing.push(format!("{}: there is no test `{name}`", row.id));
                    }
                }
                None if name.contains('/') => {
                    checked += 1;
                    if !scripts.contains(name) {
                        missing.push(format!("{}: there is no script `{name}`", row.id));
                    }
                }
                None => {}
            }
        }
        let excused = row.cover.starts_with("Not ");
        assert!(excused || names(row.cover).any(|name| name.contains('/')), "{}: nothing covers it", row.id);
    }
    assert!(missing.is_empty(), "{missing:#?}");
    assert!(checked > 150, "{checked}");
}

/// Each of Linux' cases has a script that is there, or a reason.
#[test]
fn the_scripts_for_the_cases_of_linux_are_there() {
    let (document, scripts) = (fs::read_to_string(root().join("docs/ecn.md")).unwrap(), scripts());
    let (_, cases) = document.split_once("## Linux' own cases").unwrap();
    let rows: Vec<_> = cases.lines().filter_map(|line| line.strip_prefix("| `")?.split_once(" | ")).collect();
    for (case, cover) in &rows {
        let missing: Vec<_> = names(cover).filter(|name| name.contains('/') && !scripts.contains(*name)).collect();
        assert!(missing.is_empty(), "{case}: {missing:?}");
        assert!(cover.contains("`ecn/") || cover.starts_with("no script: "), "{case}");
    }
    assert_eq!(rows.iter().map(|(case, _)| case.split("`, `").count()).sum::<usize>(), 59);
}

#[test]
fn ids_run_and_keywords_are_those_of_the_table() {
    let document = document();
    let (strong, weak) = document.split_once("## SHOULDs").unwrap();
    let mut last = (String::new(), 0);
    for (rows, prefix, keywords) in [
        (rows(strong), "", &["MUST", "MUST NOT", "SHALL", "REQUIRED"][..]),
        (rows(weak.split_once(BEGIN).unwrap().0), "S", &["SHOULD", "SHOULD NOT", "RECOMMENDED", "Rule"]),
    ] {
        for row in rows {
            let (section, number) = row.id.strip_prefix(prefix).and_then(|id| id.rsplit_once('-')).unwrap();
            let expected = if last.0 == section { last.1 + 1 } else { 1 };
            assert_eq!(number.parse(), Ok(expected), "{}", row.id);
            assert!(keywords.contains(&row.keyword), "{}: {}", row.id, row.keyword);
            last = (section.to_owned(), expected);
        }
        last = (String::new(), 0);
    }
}

#[test]
fn the_counts_are_right() {
    let document = document();
    let (strong, weak) = document.split_once("## SHOULDs").unwrap();
    let sum = |counts: [usize; 3]| counts.iter().sum::<usize>();
    let line = |counts: [usize; 3]| {
        let [covered, not_covered, not_followed] = counts;
        (format!("{covered} covered, {not_covered} not covered, {not_followed} not followed."), sum(counts))
    };
    let (told, all) = line(counts(&rows(strong)));
    let wanted = format!("**{all} requirements: {told}**");
    assert!(document.contains(&wanted), "the introduction should say: {wanted}");
    let (told, all) = line(counts(&rows(weak.split_once(BEGIN).unwrap().0)));
    let wanted = format!("[{all} weaker rules](#shoulds-and-rules-without-a-keyword):\n{told}");
    assert!(document.contains(&wanted), "the introduction should say: {wanted}");
}

/// The list at the end has every script with its first line; `BLESS=1` writes it anew.
#[test]
fn every_script_is_named() {
    let document = document();
    let (before, rest) = document.split_once(BEGIN).unwrap();
    let (list, after) = rest.split_once(END).unwrap();
    let line = |script: String| {
        let text = fs::read_to_string(root().join("conformance").join(format!("{script}.script"))).unwrap();
        let first = text.lines().next().and_then(|line| line.strip_prefix("# "));
        format!("- `{script}`: {}\n", first.unwrap_or_else(|| panic!("{script} begins with what it shows")))
    };
    let wanted: String = scripts().into_iter().map(line).collect();
    if std::env::var_os("BLESS").is_some() {
        // In one step: the other tests read it meanwhile.
        let (path, new) = (root().join("docs/conformance.md"), root().join("docs/conformance.md.new"));
        fs::write(&new, [before, BEGIN, &wanted, END, after].concat()).unwrap();
        fs::rename(new, path).unwrap();
    } else {
        assert!(
            list == wanted,
            "the list of scripts is out of date: BLESS=1 cargo test -p anabranch-script --test docs"
        );
    }
}
