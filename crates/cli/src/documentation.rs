//! The documentation of a policy: the `//!` lines at the head of its source, made readable in a terminal.

use anabranch_report::{hang, wrap};

/// The module documentation at the head of `source`, as it stands there; empty if there is none.
pub fn of(source: &str) -> String {
    let lines = source.lines().map_while(|line| line.strip_prefix("//!"));
    let lines: Vec<&str> = lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
    // Links lead to other documentation, where there is any; their words are enough here.
    lines.join("\n").trim().replace("[`", "`").replace("`]", "`")
}

/// Paragraphs and points of lists in lines of at most `width`, blocks of code and tables as they are, further in.
pub fn laid_out(markdown: &str, width: usize) -> String {
    let mut text = String::new();
    // The paragraph being read, with what stands before its first line.
    let mut paragraph = (String::new(), String::new());
    let mut in_code = false;
    for line in markdown.lines() {
        let trimmed = line.trim_start();
        let fence = trimmed.starts_with("```");
        let point = ["- ", "* "].iter().any(|mark| trimmed.starts_with(mark)) || is_numbered(trimmed);
        let apart = fence || in_code || trimmed.is_empty() || trimmed.starts_with(['|', '#']);
        if apart || point {
            text += &flush(&mut paragraph, width);
        }
        if fence {
            in_code = !in_code;
        } else if in_code {
            text += &format!("    {line}");
            text.truncate(text.trim_end_matches(' ').len());
            text.push('\n');
        } else if apart {
            text += &format!("{line}\n");
        } else if point {
            let indent = line.len() - trimmed.len();
            let (mark, rest) = trimmed.split_once(' ').unwrap_or((trimmed, ""));
            paragraph = (format!("{}{mark} ", " ".repeat(indent)), rest.to_owned());
        } else {
            paragraph.1 += " ";
            paragraph.1 += line.trim();
        }
    }
    text + &flush(&mut paragraph, width)
}

fn flush((label, words): &mut (String, String), width: usize) -> String {
    let (label, words) = (std::mem::take(label), std::mem::take(words));
    match (label.is_empty(), words.is_empty()) {
        (true, true) => String::new(),
        (true, false) => wrap(&words, width).join("\n") + "\n",
        (false, _) => hang(&label, &words, width),
    }
}

/// `1. ` and so on.
fn is_numbered(line: &str) -> bool {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    digits > 0 && line[digits..].starts_with(". ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "//! A [`line`] that is\n//! broken.\n\
        //!\n//! ```text\n//! a   = b\n//!\n//!   c\n//! ```\n//! - one point of\n\
        //!   two lines\n//! 1. another\n\nuse x; //! not this\n//! nor this\n";

    #[test]
    fn the_head_of_a_source_is_its_documentation() {
        assert!(of(SOURCE).starts_with("A `line` that is\nbroken.\n\n```text\n"));
        assert!(of(SOURCE).ends_with("1. another"));
        assert_eq!(of("use x;\n//! late"), "");
        assert_eq!(of(""), "");
    }

    #[test]
    fn paragraphs_flow_and_code_stays() {
        let text = laid_out(&of(SOURCE), 16);
        let expected = [
            "A `line` that is",
            "broken.",
            "",
            "    a   = b",
            "",
            "      c",
            "- one point of",
            "  two lines",
            "1. another",
            "",
        ];
        assert_eq!(text, expected.join("\n"));
    }
}
