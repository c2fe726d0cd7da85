//! Outputs that documents show in part or rearranged, against those of today; the test `commands` compares all others.
//! `BLESS=1 cargo test -p anabranch-cli --test docs` writes them anew.
#![allow(clippy::unwrap_used)]

mod common;

use common::{build, directory, succeed};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A document, and outputs in it that have changed.
struct Document {
    path: PathBuf,
    text: String,
    changed: Vec<String>,
}

impl Document {
    fn open(name: &str) -> Document {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
        Document { text: fs::read_to_string(&path).unwrap(), path, changed: Vec::new() }
    }

    /// Holds the first block of text behind these words against an output.
    fn hold(&mut self, behind: &str, output: &str) {
        const FENCE: &str = "```text\n";
        let words = self.text.find(behind).unwrap_or_else(|| panic!("`{behind}` is not in {}", self.path.display()));
        let begin = words + self.text[words..].find(FENCE).expect("a block follows") + FENCE.len();
        let end = begin + self.text[begin..].find("```").expect("a block ends");
        if self.text[begin..end] != *output {
            self.changed
                .push(format!("behind `{behind}` stands\n{}where today comes\n{output}", &self.text[begin..end]));
            self.text.replace_range(begin..end, output);
        }
    }

    fn settle(self) {
        if std::env::var_os("BLESS").is_some() {
            return fs::write(self.path, self.text).unwrap();
        }
        assert!(
            self.changed.is_empty(),
            "{}: outputs changed; if that is meant: BLESS=1 cargo test -p anabranch-cli --test docs\n{}",
            self.path.display(),
            self.changed.join("\n")
        );
    }
}

/// tshark and capinfos at the example of docs/wireshark.md. Without them nothing is looked at.
#[test]
fn what_wireshark_shows_is_that_of_today() {
    let here = directory("docs-wireshark");
    let tool = |program: &str, args: &[&str]| {
        let output = Command::new(program).current_dir(&here).args(args).output().ok()?;
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
    };
    if tool("tshark", &["--version"]).is_none() || tool("capinfos", &["--version"]).is_none() {
        return eprintln!("SKIPPED: tshark and capinfos are not installed");
    }
    succeed(&here, &["run", "path-failure", "--pcap", "captures"]);
    let mut document = Document::open("wireshark.md");

    let said = tool("capinfos", &["captures/server.pcapng"]).unwrap().replace(&build(), "9ee84d7f362d2eca");
    let kept = [
        "File encapsulation:",
        "File timestamp precision:",
        "Capture application:",
        "Capture comment:",
        "Name =",
        "Description =",
    ];
    let lines = said.lines().filter(|line| kept.iter().any(|it| line.trim_start().starts_with(it)));
    let shortened: Vec<String> = lines.map(|line| line.trim_end().to_owned()).collect();
    document.hold("(`capinfos captures/server.pcapng`, shortened)", &(shortened.join("\n") + "\n"));

    let fields = |filter: &str, names: &[&str]| {
        let mptcp = ["-o", "mptcp.analyze_mappings:TRUE", "-o", "mptcp.intersubflows_retransmission:TRUE"];
        let mut args = [&mptcp[..], &["-r", "captures/server.pcapng", "-T", "fields"]].concat();
        names.iter().for_each(|name| args.extend(["-e", name]));
        if !filter.is_empty() {
            args.extend(["-Y", filter]);
        }
        let said = tool("tshark", &args).unwrap();
        said.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect::<Vec<Vec<String>>>()
    };
    let packets = fields(
        "",
        &[
            "frame.number",
            "frame.time_relative",
            "frame.interface_name",
            "tcp.seq",
            "mptcp.dsn",
            "tcp.len",
            "mptcp.ack",
            "frame.comment",
        ],
    );
    let hole = packets.iter().position(|packet| packet[7].contains("black hole")).unwrap();
    document.hold("turns into a black hole:", &aligned(&packets[hole - 3..hole + 2]));

    let said = tool("tshark", &["-r", "captures/server.pcapng", "-q", "-z", "expert"]).unwrap();
    let comments: Vec<&str> = said.lines().filter(|line| line.contains("  Comment  ")).map(str::trim_end).collect();
    document.hold("-q -z expert`):", &(comments.join("\n") + "\n"));

    let filter = format!("mptcp.dsn == {} && tcp.srcport == 5001", packets[hole][4]);
    let names = [
        "frame.number",
        "frame.time_relative",
        "frame.interface_name",
        "tcp.seq",
        "mptcp.reinjection_of",
        "frame.comment",
    ];
    document.hold("sequence space:", &aligned(&fields(&filter, &names)));
    let told = format!("mptcp.dsn == {}", packets[hole][4]);
    assert!(document.text.contains(&told), "docs/wireshark.md: the filters are to name this segment: {told}");
    document.settle();
}

/// Columns with three spaces between.
fn aligned(rows: &[Vec<String>]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let line = |row: &Vec<String>| {
        let cells = row.iter().enumerate().map(|(n, cell)| format!("{cell:<0$}", width(n)));
        format!("{}\n", cells.collect::<Vec<_>>().join("   ").trim_end())
    };
    rows.iter().map(line).collect()
}

/// The comparison at the head of the README: 3,100 runs to write, 400 to look whether it still holds.
#[test]
fn the_comparison_of_the_readme_is_that_of_today() {
    let here = directory("docs-readme");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let text = fs::read_to_string(&path).unwrap();
    let begin = text.find("```text\n").unwrap() + "```text\n".len();
    let end = begin + text[begin..].find("```").unwrap();
    if std::env::var_os("BLESS").is_some() {
        let whole = shortened(&succeed(&here, &["compare"]));
        return fs::write(path, format!("{}{whole}{}", &text[..begin], &text[end..])).unwrap();
    }
    // The first that has a row of its own, beside the one that stands for all that decide alike.
    let alone = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ranked = words.first()?.parse::<u32>().is_ok() && words.get(2) != Some(&"and");
        ranked.then(|| words[1].to_owned())
    };
    let first = text[begin..end].lines().find_map(alone).unwrap();
    let schedulers = format!("{first},min-rtt");
    let today = succeed(&here, &["compare", "--schedulers", &schedulers]);
    // The mean and its interval behind each name; a star depends on how many are tested.
    let value = |text: &str, name: &str| {
        let names = [format!("  {name}  "), format!("  {name} and ")];
        let line = text.lines().find(|line| names.iter().any(|name| line.contains(name)))?;
        let behind = line.split(name).nth(1)?.split(" more ").last()?;
        let words: Vec<&str> = behind.split_whitespace().take(3).collect();
        Some(words.join(" "))
    };
    let baselines = text[begin..end].lines().filter(|line| line.starts_with("      plain TCP on "));
    let baselines: Vec<String> =
        baselines.map(|line| line.split_whitespace().take(4).collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(baselines.len(), 2);
    for name in schedulers.split(',').chain(baselines.iter().map(String::as_str)).chain(["sum of paths"]) {
        let (held, found) = (value(&text[begin..end], name), value(&today, name));
        assert!(
            held.is_some() && held == found,
            "README.md has {held:?} for {name}, and today it is {found:?}: \
             BLESS=1 cargo test -p anabranch-cli --test docs"
        );
    }
}

/// The output of `compare` as the README shows it: three rows of the second table, one scheduler's parameters, one
/// build.
fn shortened(output: &str) -> String {
    let mut short = String::new();
    let (mut second, mut listed) = (None, false);
    for line in output.replace(&build(), "9ee84d7f362d2eca").lines() {
        let indented = line.starts_with("               ");
        match (&mut second, listed) {
            (Some(rows @ 0..6), _) if !line.is_empty() => {
                *rows += 1;
                short += if *rows == 6 { "  …" } else { line };
            }
            (Some(6), _) if !line.is_empty() => continue,
            (_, true) if indented => continue,
            _ => {
                listed = line.starts_with("  schedulers ");
                second = if line.starts_with("  scheduler  ") { Some(1) } else { second.filter(|_| !line.is_empty()) };
                short += line;
                if listed {
                    short += "\n               …";
                }
            }
        }
        short.push('\n');
    }
    short
}
