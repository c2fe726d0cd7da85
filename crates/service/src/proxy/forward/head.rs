//! Heads of messages as the proxy sends them on: without what concerns one connection alone (RFC 9110 §7.6.1).

use crate::http::fields;
use httparse::Header;

/// Fields about one connection, or about the framing of a message, which the proxy writes itself.
const HOP_BY_HOP: [&str; 12] = [
    "connection",
    "proxy-connection",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "content-length",
    "upgrade",
    "http2-settings",
    "proxy-authorization",
    "proxy-authenticate",
    "proxy-authentication-info",
];

/// A head under way.
pub(super) struct HeadWriter(Vec<u8>);

impl HeadWriter {
    /// Begins with this line.
    pub(super) fn new(line: &str) -> Self {
        HeadWriter([line.as_bytes(), b"\r\n"].concat())
    }

    /// One more field.
    pub(super) fn put(&mut self, name: &str, value: &[u8]) -> &mut Self {
        for piece in [name.as_bytes(), b": ", value, b"\r\n"] {
            self.0.extend_from_slice(piece);
        }
        self
    }

    /// The fields of a message that concern the other end, except one that is called `but`. Then Via: the message came
    /// as HTTP/1.`minor` (RFC 9110 §7.6.3).
    pub(super) fn put_all(&mut self, headers: &[Header<'_>], but: &str, minor: u8) -> &mut Self {
        let named: Vec<&[u8]> = words(headers, "connection").chain(words(headers, "proxy-connection")).collect();
        for Header { name, value } in headers {
            let is_one_of = |names: &[&str]| names.iter().any(|other| other.eq_ignore_ascii_case(name));
            let is_named = named.iter().any(|word| word.eq_ignore_ascii_case(name.as_bytes()));
            if !is_one_of(&HOP_BY_HOP) && !is_named && !name.eq_ignore_ascii_case(but) {
                self.put(name, value);
            }
        }
        self.put("Via", format!("1.{minor} anabranch").as_bytes())
    }

    /// The whole head.
    pub(super) fn done(mut self) -> Vec<u8> {
        self.0.extend_from_slice(b"\r\n");
        self.0
    }
}

/// The words of all fields called `name`, which are lists.
pub(super) fn words<'a>(headers: &'a [Header<'_>], name: &'a str) -> impl Iterator<Item = &'a [u8]> {
    fields(headers, name).flat_map(|value| value.split(|byte| *byte == b',')).map(<[u8]>::trim_ascii)
}
