//! The lines before a body, as they arrive.

use bytes::{Buf, Bytes, BytesMut};

/// Collects a request's or a reply's head.
#[derive(Debug, Default)]
pub(crate) struct Head {
    held: BytesMut,
    /// Number of bytes that have been searched for the end of a head.
    searched: usize,
}

/// State of a head.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The whole head, with its empty line.
    Whole(Bytes),
    /// More must come.
    Partial,
    /// The head is longer than allowed.
    TooLong,
}

impl Head {
    /// More has arrived.
    pub(crate) fn push(&mut self, piece: &[u8]) {
        self.held.extend_from_slice(piece);
    }

    /// The head, if all of it is there and it has at most `limit` bytes. Empty lines before it are skipped (RFC 9112
    /// §2.2).
    pub(crate) fn take(&mut self, limit: usize) -> Found {
        if self.searched == 0 {
            let blank = self.held.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
            self.held.advance(blank);
        }
        // The end may have begun in what was searched.
        let from = self.searched.saturating_sub(3);
        let end = self.held[from..].windows(2).position(|pair| pair == b"\n\n").map(|at| from + at + 2);
        let crlf = self.held[from..].windows(3).position(|three| three == b"\n\r\n").map(|at| from + at + 3);
        match [end, crlf].into_iter().flatten().min() {
            Some(end) if end <= limit => {
                self.searched = 0;
                Found::Whole(self.held.split_to(end).freeze())
            }
            None if self.held.len() <= limit => {
                self.searched = self.held.len();
                Found::Partial
            }
            _ => Found::TooLong,
        }
    }

    /// Returns true if more than `limit` bytes are held.
    pub(crate) fn is_longer_than(&self, limit: usize) -> bool {
        self.held.len() > limit
    }

    /// Returns the bytes behind the head, which belong to the body or the next message.
    pub(crate) fn rest(&mut self) -> &mut BytesMut {
        &mut self.held
    }

    /// Number of bytes held.
    pub(crate) fn held(&self) -> usize {
        self.held.len()
    }

    /// Returns true if all bytes received have been used.
    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Returns true if the first byte begins no method and no version: the peer speaks another protocol.
    pub(crate) fn is_hopeless(&self) -> bool {
        let first = self.held.iter().find(|byte| !matches!(byte, b'\r' | b'\n'));
        first.is_some_and(|byte| !byte.is_ascii_alphanumeric())
    }
}

/// The values of all fields called `name`, in order.
pub(crate) fn fields<'a>(headers: &'a [httparse::Header<'_>], name: &'a str) -> impl Iterator<Item = &'a [u8]> {
    headers.iter().filter(move |header| header.name.eq_ignore_ascii_case(name)).map(|header| header.value)
}

/// The value of the field called `name`, if there is exactly one and it is text.
pub(crate) fn field<'a>(headers: &'a [httparse::Header<'_>], name: &'a str) -> Option<&'a str> {
    let mut all = fields(headers, name);
    let value = std::str::from_utf8(all.next()?).ok()?;
    if all.next().is_some() { None } else { Some(value.trim()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_found_however_it_is_cut() {
        let text = b"\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\nrest";
        for cut in 0..text.len() {
            let mut head = Head::default();
            head.push(&text[..cut]);
            let first = head.take(100);
            head.push(&text[cut..]);
            let found = if first == Found::Partial { head.take(100) } else { first };
            assert_eq!(found, Found::Whole(Bytes::from_static(&text[4..text.len() - 4])), "cut at {cut}");
            assert_eq!(&head.rest()[..], b"rest");
        }
    }

    #[test]
    fn a_head_has_a_limit() {
        let mut head = Head::default();
        for _ in 0..10 {
            assert_eq!(head.take(20), Found::Partial);
            head.push(b"ab");
        }
        head.push(b"c");
        assert_eq!(head.take(20), Found::TooLong);
        assert!(!head.is_hopeless());
        let mut tls = Head::default();
        tls.push(&[0x16, 3, 1]);
        assert!(tls.is_hopeless());
    }
}
