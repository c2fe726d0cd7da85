//! A request target's path: percent-decoded, and never leading upwards.

/// Why a target is no path of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadPath;

/// The path's segments, decoded, and whether it ends in a slash. The target is in origin form (`/a/b?query`) or
/// absolute form (`http://host/a/b`; RFC 9112 §3.2).
pub(crate) fn segments(target: &str) -> Result<(Vec<Vec<u8>>, bool), BadPath> {
    let path = match target.strip_prefix('/') {
        Some(path) => path,
        None => {
            let (scheme, rest) = target.split_once("://").ok_or(BadPath)?;
            if !scheme.eq_ignore_ascii_case("http") {
                return Err(BadPath);
            }
            rest.split_once('/').map_or("", |(_, path)| path)
        }
    };
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let decoded = decode(path)?;
    let mut segments = Vec::new();
    for segment in decoded.split(|byte| *byte == b'/') {
        match segment {
            b"" | b"." => {}
            b".." => return Err(BadPath),
            name => segments.push(name.to_vec()),
        }
    }
    let directory = decoded.is_empty() || decoded.ends_with(b"/") || decoded.ends_with(b"/.") || decoded == b".";
    Ok((segments, directory))
}

/// Percent-decoded bytes; no NUL, which no file name holds.
fn decode(text: &str) -> Result<Vec<u8>, BadPath> {
    let (mut out, mut bytes) = (Vec::with_capacity(text.len()), text.bytes());
    while let Some(byte) = bytes.next() {
        let byte = match byte {
            b'%' => {
                let mut digit = || bytes.next().and_then(|digit| (digit as char).to_digit(16)).ok_or(BadPath);
                (digit()? * 16 + digit()?) as u8
            }
            plain => plain,
        };
        if byte == 0 {
            return Err(BadPath);
        }
        out.push(byte);
    }
    Ok(out)
}

/// A name as it stands in a path: everything but unreserved characters encoded (RFC 3986 §2.3).
pub(crate) fn encode(name: &[u8]) -> String {
    let mut out = String::with_capacity(name.len());
    for &byte in name {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(byte as char),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(target: &str) -> Option<(Vec<String>, bool)> {
        let (segments, directory) = segments(target).ok()?;
        Some((segments.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect(), directory))
    }

    #[test]
    fn paths_are_decoded_once() {
        for (target, names, directory) in [
            ("/", &[][..], true),
            ("/a/b", &["a", "b"], false),
            ("/a%20b/?q=/../x", &["a b"], true),
            ("//a/./b/.", &["a", "b"], true),
            ("/%2561", &["%61"], false),
            ("/...", &["..."], false),
            ("http://host:80/a", &["a"], false),
            ("http://host", &[], true),
        ] {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            assert_eq!(read(target), Some((names, directory)), "{target}");
        }
    }

    #[test]
    fn nothing_leads_upwards() {
        for target in [
            "/..",
            "/a/../b",
            "/%2e%2e/etc",
            "/a%2f..%2fb",
            "/%2E.",
            "/%00",
            "/%",
            "/%4",
            "/%zz",
            "*",
            "a",
            "https://a/",
            "a://",
        ] {
            assert_eq!(read(target), None, "{target}");
        }
    }

    #[test]
    fn what_is_encoded_is_decoded_again() {
        let all: Vec<u8> = (1..=255).filter(|byte| *byte != b'/').collect();
        let (back, _) = segments(&format!("/{}", encode(&all))).expect("what we encode can be decoded");
        assert_eq!(back, [all]);
    }
}
