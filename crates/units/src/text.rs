//! Texts that several crates print alike.

use std::borrow::Cow;

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The accepted name that `wrong` is most likely meant to be, if one is near enough: at most a third of its letters are
/// missing, superfluous, other ones or swapped with a neighbour.
pub fn nearest<'a>(wrong: &str, accepted: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Distances take time in proportion to the length, and no name is nearly as long: it is no slip of the finger.
    if wrong.len() > LONGEST_SLIP {
        return None;
    }
    let limit = (wrong.len() / 3).max(1);
    let with_distance = accepted.into_iter().map(|name| (strsim::osa_distance(wrong, name), name));
    let best = with_distance.min_by_key(|(distance, _)| *distance)?;
    (best.0 <= limit).then_some(best.1)
}

const LONGEST_SLIP: usize = 256;

/// "did you mean …? accepted: …"
pub fn suggest<'a>(wrong: &str, accepted: impl IntoIterator<Item = &'a str>) -> String {
    let accepted: Vec<&str> = accepted.into_iter().collect();
    let list =
        if accepted.is_empty() { "nothing, since there is none to name".to_owned() } else { accepted.join(", ") };
    match nearest(wrong, accepted.iter().copied()) {
        Some(name) => format!("did you mean `{name}`? accepted: {list}"),
        None => format!("accepted: {list}"),
    }
}

/// Text from a file or from the network, safe for a terminal: what is not shown as itself is written as an escape of
/// JSON, so that a text that is JSON stays the same JSON. Line ends and tabs stay.
pub fn harmless(text: &str) -> Cow<'_, str> {
    escaped(text, |c| is_unseen(c) && !matches!(c, '\n' | '\t'))
}

/// Name from a file or from the network, safe for a terminal and in one line: as [`harmless`], and line ends and tabs
/// are escapes as well.
pub fn in_one_line(name: &str) -> Cow<'_, str> {
    escaped(name, is_unseen)
}

/// The text if it has at most `most` characters, or else its beginning and an ellipsis.
pub fn cut(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
    }
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match is_escaped(c) {
            false => safe.push(c),
            true => match c {
                '\n' => safe += "\\n",
                '\r' => safe += "\\r",
                '\t' => safe += "\\t",
                _ => c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| safe += &format!("\\u{unit:04x}")),
            },
        }
    }
    Cow::Owned(safe)
}

/// Returns true for characters that a terminal obeys instead of showing them, that reverse the order of others, or that
/// have no width.
fn is_unseen(c: char) -> bool {
    // C0 and C1, with ESC and CSI; then "Bidi_Control", "Default_Ignorable_Code_Point" without the variation selectors
    // of emoji, and the two separators of lines (Unicode 16, PropList.txt and DerivedCoreProperties.txt).
    c.is_control()
        || matches!(u32::from(c),
            0xad | 0x34f | 0x61c | 0x115f | 0x1160 | 0x17b4 | 0x17b5 | 0x180b..=0x180f | 0x200b..=0x200f
            | 0x2028..=0x202e | 0x2060..=0x206f | 0x3164 | 0xfeff | 0xffa0 | 0xfff0..=0xfffb
            | 0x1bca0..=0x1bca3 | 0x1d173..=0x1d17a | 0xe0000..=0xe0fff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_commands_a_terminal() {
        for (text, one_line) in [
            ("wlan", "wlan"),
            ("Zürich 5 µs ± 中文 🛰️", "Zürich 5 µs ± 中文 🛰️"),
            ("\x1b[31mred\x1b]0;title\x07", r"\u001b[31mred\u001b]0;title\u0007"),
            ("\u{9b}2J\u{9d}0;x\u{9c}\x7f", r"\u009b2J\u009d0;x\u009c\u007f"),
            ("a\u{202e}b\u{2066}c\u{2069}\u{200f}\u{61c}", r"a\u202eb\u2066c\u2069\u200f\u061c"),
            ("w\u{200b}l\u{feff}an\u{2060}\u{e0041}", r"w\u200bl\ufeffan\u2060\udb40\udc41"),
            ("two\nlines\tand\rmore\u{2028}", r"two\nlines\tand\rmore\u2028"),
        ] {
            assert_eq!(in_one_line(text), one_line);
            assert_eq!(in_one_line(&in_one_line(text)), one_line);
            assert!(harmless(text).chars().all(|c| matches!(c, '\n' | '\t') || !is_unseen(c)), "{text:?}");
        }
        assert_eq!(harmless("a\n\tb\r"), "a\n\tb\\r");
        assert_eq!((cut("äöü", 3), cut("äöü", 2)), ("äöü".into(), "äö…".into()));
    }

    #[test]
    fn a_slip_of_the_finger_is_understood() {
        assert_eq!(nearest("dealy", ["rate", "delay", "rtt"]), Some("delay"));
        assert_eq!(nearest("shedulr", ["scheduler", "path"]), Some("scheduler"));
        assert_eq!(nearest("bandwidth", ["rate", "delay"]), None);
        let long = "x".repeat(1000);
        assert_eq!((nearest(&long, [&*long]), nearest(&long[..256], [&long[..256]])), (None, Some(&long[..256])));
        assert_eq!(
            suggest("mp_capabel", ["dss", "mp_capable"]),
            "did you mean `mp_capable`? accepted: dss, mp_capable"
        );
        assert_eq!(suggest("zebra", ["seq", "ack"]), "accepted: seq, ack");
    }
}
