//! Text in lines of a given width.

/// Breaks `text` at its spaces into lines of at most `width` characters; a longer word stands alone.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => *line += &format!(" {word}"),
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// The same behind `label`, with all lines but the first indented as far as the label is long.
pub fn hang(label: &str, text: &str, width: usize) -> String {
    let indent = label.chars().count();
    let lines = wrap(text, width.saturating_sub(indent).max(10));
    let mut hung = label.to_owned() + &lines.join(&format!("\n{}", " ".repeat(indent)));
    hung.truncate(hung.trim_end().len());
    hung + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_spaces() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("a verylongword b", 5), ["a", "verylongword", "b"]);
        assert!(wrap("", 5).is_empty());
        assert_eq!(hang("  key  ", "one two three four five six", 27), "  key  one two three four\n       five six\n");
        assert_eq!(hang("  key  ", "", 27), "  key\n");
    }
}
