//! Long functions explain themselves: one of more than [`LONGEST`] lines has a comment inside.
//!
//! Lines that end in a comma do not count: they are fields of a literal, arms of a table or arguments, and say all by
//! themselves. Tests are exempt: their names are the explanation.

use super::{Offence, Rule};

/// Lines of a function that needs no comment.
const LONGEST: usize = 40;

/// Crates whose functions are looked at.
const CRATES: [&str; 16] = [
    "engine",
    "policy",
    "net",
    "paths",
    "sim",
    "wire",
    "host",
    "service",
    "scenario",
    "lab",
    "study",
    "inspect",
    "report",
    "script",
    "calibrate",
    "cli",
];

/// Returns true if the rule holds for the file with this name below the root: a source, not a test.
pub(super) fn applies(name: &str) -> bool {
    let is_test = name.ends_with("/tests.rs") || name.contains("/tests/");
    !is_test
        && CRATES.iter().any(|it| name.strip_prefix("crates/").is_some_and(|at| at.starts_with(&format!("{it}/src/"))))
}

/// Finds the functions without an explanation. Relies on rustfmt: a function ends with the first brace that stands as
/// far to the right as its `fn` line.
pub(super) fn offences(text: &str) -> Vec<Offence> {
    let lines: Vec<&str> = text.lines().take_while(|line| *line != "#[cfg(test)]").collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = name_of(line) else { continue };
        let indent = &line[..line.len() - line.trim_start().len()];
        if line.ends_with([';', '}']) {
            continue; // A declaration in a trait, or a function of one line.
        }
        let is_end = |line: &str| line.strip_prefix(indent).is_some_and(|rest| rest.starts_with(['}', ';']));
        let Some(length) = lines[at..].iter().position(|line| is_end(line)) else { continue };
        let body = &lines[at + 1..at + length];
        let counted = 2 + body.iter().filter(|line| !line.trim_end().ends_with(',')).count();
        let explains = |line: &&str| line.trim_start().starts_with("// ") || line.contains(" // ");
        if counted > LONGEST && !body.iter().any(explains) {
            let what = format!("`{name}` has {counted} lines and no comment");
            found.push(Offence { line: at + 1, rule: Rule::Reason, what });
        }
    }
    found
}

/// The name of the function that begins on this line.
fn name_of(line: &str) -> Option<&str> {
    let (before, rest) = line.split_once("fn ")?;
    let is_modifier = |word: &str| ["pub", "const", "async", "unsafe", "extern", "\"C\""].contains(&word);
    let modified = before.split_whitespace().all(|word| is_modifier(word) || word.starts_with("pub("));
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    (modified && end > 0).then_some(&rest[..end])
}

#[test]
fn a_long_function_is_found_and_a_table_is_not() {
    let function = |line: &str, count: usize| {
        format!("impl A {{\n    pub(super) fn long(&self) {{\n{}    }}\n}}\n", line.repeat(count))
    };
    assert_eq!(offences(&function("        step();\n", LONGEST - 2)), []);
    let found = offences(&function("        step();\n", LONGEST - 1));
    assert_eq!((found.len(), found[0].line, found[0].rule), (1, 2, Rule::Reason));
    assert_eq!(offences(&(function("        // Before the timer: it may end.\n        step();\n", LONGEST))), []);
    assert_eq!(offences(&function("            A => b,\n", 2 * LONGEST)), []);
    let of_tests = format!("#[cfg(test)]\n{}", function("        step();\n", LONGEST));
    assert_eq!(offences(&of_tests), []);
    assert!(
        applies("crates/net/src/link.rs")
            && !applies("crates/net/src/link/tests.rs")
            && !applies("crates/net/tests/a.rs")
    );
}
