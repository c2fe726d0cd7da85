//! Excerpts of the recordings that a study needs and the user has fetched.

use super::file::{DataTable, ExcerptTable};
use anabranch_scenario::ScenarioError;
use anabranch_units::input;
use std::collections::BTreeMap;
use std::path::Path;

/// Reads all excerpts of a study, by name.
///
/// # Errors
///
/// If a file is not there, with the command that fetches it; or if it has no such rows.
pub(super) fn read(study: &str, data: &DataTable, directory: &Path) -> Result<BTreeMap<String, String>, ScenarioError> {
    let mut texts = BTreeMap::new();
    for (name, excerpt) in &data.excerpt {
        let path = directory.join(&excerpt.value.file);
        let text = input::text(&path, input::RECORDED).map_err(|error| {
            let word = anabranch_scenario::in_shell(study);
            let help = format!(
                "the recordings are not part of the program (licence: {}); fetch them with `{}`, then run \
                 `anabranch study {word} --data {}`, or name the directory where they are",
                data.licence, data.fetch, data.directory
            );
            ScenarioError::plain(format!("{study} needs {}: {error}", path.display()), Some(help))
        })?;
        texts.insert(name.clone(), cut(&text, &excerpt.value, &path)?);
    }
    Ok(texts)
}

/// Cuts the rows of an excerpt out of a file.
fn cut(text: &str, excerpt: &ExcerptTable, path: &Path) -> Result<String, ScenarioError> {
    let Some(from) = &excerpt.from else { return Ok(text.to_owned()) };
    let lines: Vec<&str> = text.lines().collect();
    let refused = |problem: String| {
        let help = "accepted: the file of the same name as its authors published it, which has that row";
        Err(ScenarioError::plain(format!("{}: {problem}", path.display()), Some(help.to_owned())))
    };
    let Some(first) = lines.iter().skip(1).position(|line| line.starts_with(from.as_str())) else {
        return refused(format!("no row begins with `{from}`"));
    };
    let rows = &lines[first + 1..];
    let count = excerpt.rows.unwrap_or(rows.len());
    if rows.len() < count {
        return refused(format!("{} rows follow `{from}`, and {count} are needed", rows.len()));
    }
    let kept: Vec<&str> = [lines[0]].into_iter().chain(rows[..count].iter().copied()).collect();
    Ok(kept.join("\n") + "\n")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_excerpt_has_the_header_and_its_rows() {
        let text = "time,mbps\n1,10\n2,20\n3,30\n4,40\n";
        let excerpt =
            |from: &str, rows| ExcerptTable { file: "a.csv".into(), from: Some(from.into()), rows: Some(rows) };
        let path = Path::new("a.csv");
        assert_eq!(cut(text, &excerpt("2,", 2), path).unwrap(), "time,mbps\n2,20\n3,30\n");
        let said = |from, rows| cut(text, &excerpt(from, rows), path).unwrap_err().to_string();
        assert_eq!(said("9,", 2), "a.csv: no row begins with `9,`");
        assert_eq!(said("3,", 3), "a.csv: 2 rows follow `3,`, and 3 are needed");
        let whole = ExcerptTable { file: "a.csv".into(), from: None, rows: None };
        assert_eq!(cut(text, &whole, path).unwrap(), text);
    }
}
