//! docs/policies.md is what the registry says; `BLESS=1 cargo test -p anabranch-policy --test docs` writes it anew.
#![allow(clippy::unwrap_used)]

use anabranch_policy::registry::{Domain, Kind, Parameter};
use anabranch_policy::{Catalogue, Table};
use std::fs;
use std::path::Path;

const HEAD: &str = "# Policies

Everything that can be swapped, with its parameters. This file is made from the registry
(`BLESS=1 cargo test -p anabranch-policy --test docs`); `anabranch list schedulers NAME` prints more on each. Labels
such as A-LATE-7 are explained in [`interpretations.md`](interpretations.md).
A scenario names a policy as `scheduler = \"ecf\"` or with parameters as `scheduler = { name = \"ecf\", beta = 0.5 }`,
in `[host]`, `[client]` or `[server]`. It takes the place of another while connections run, with nothing lost, by

```toml
[[change]]
at = \"3s\"
scheduler = { name = \"ecf\", beta = 0.5 }
congestion = \"lia\"  # the windows stay as they are
host = \"server\"     # both hosts unless given
```

A queue discipline is one of a path or link, in both directions or, with `discipline-up` beside it, from server to
client: `discipline = \"fq-codel\"` in `[path.NAME]` or `[link.NAME]`. It stays for the run.
";

/// Words in a cell: no bar may end it early.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn parameter(policy: &str, p: &Parameter) -> String {
    let (default, accepted) = match p.domain {
        Domain::Number { default, min, max } => (default.to_string(), format!("{min} to {max}")),
        Domain::Flag { default } => (default.to_string(), "true, false".to_owned()),
        Domain::Text { default, .. } => (format!("\"{default}\""), cell(&p.domain.to_string())),
    };
    let (unit, about) = (cell(p.unit), cell(p.about));
    format!("| `{policy}` | `{}` | {default} | {unit} | {accepted} | {about} |\n", p.name)
}

fn section<T: Kind + ?Sized>(title: &str, key: &str, table: &Table<T>) -> String {
    let mut text = format!("\n## {title}: `{key}`\n\n| name | what it does | from |\n|---|---|---|\n");
    for entry in table.entries() {
        let from = entry.paper.map(cell).unwrap_or_default();
        text += &format!("| `{}` | {} | {from} |\n", entry.name, cell(&entry.about));
    }
    let parameters: String =
        (table.entries().iter()).flat_map(|entry| entry.parameters.iter().map(|p| parameter(&entry.name, p))).collect();
    if !parameters.is_empty() {
        text += "\n| policy | parameter | default | unit | accepted | what it does |\n|---|---|---|---|---|---|\n";
        text += &parameters;
    }
    text
}

#[test]
fn policies_md_is_what_the_registry_says() {
    let all = Catalogue::default();
    let wanted = [
        HEAD.to_owned(),
        section("Schedulers", "scheduler", &all.schedulers),
        section("Congestion control", "congestion", &all.congestion),
        section("Receive window", "window", &all.windows),
        section("ACK path", "ack-path", &all.ack_paths),
        section("Reinjection", "reinjection", &all.reinjections),
        section("First path", "first-path", &all.first_paths),
        section("Queue discipline", "discipline", &all.queues),
    ]
    .concat();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/policies.md");
    if std::env::var_os("BLESS").is_some() {
        fs::write(path, wanted).unwrap();
        return;
    }
    let held = fs::read_to_string(path).unwrap_or_default();
    assert!(held == wanted, "docs/policies.md is out of date: BLESS=1 cargo test -p anabranch-policy --test docs");
}

/// The texts that `anabranch list` prints exist: a line, and the head of a module.
#[test]
fn every_policy_is_documented() {
    fn check<T: Kind + ?Sized>(table: &Table<T>) {
        for entry in table.entries() {
            assert!(entry.source.starts_with("//! "), "{} begins with its documentation", entry.name);
            assert!(!entry.about.is_empty() && entry.about.chars().count() <= 110, "{}", entry.name);
            for parameter in entry.parameters {
                let (name, about) = (parameter.name, parameter.about);
                assert!(!about.is_empty() && about.chars().count() <= 110, "{}.{name}", entry.name);
                if let Domain::Number { default, min, max } = parameter.domain {
                    assert!(min <= default && default <= max, "{}.{name}", entry.name);
                }
            }
        }
        let mut names: Vec<_> = table.names().collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
    }
    let all = Catalogue::default();
    check(&all.schedulers);
    check(&all.congestion);
    check(&all.windows);
    check(&all.ack_paths);
    check(&all.reinjections);
    check(&all.first_paths);
    check(&all.queues);
}
