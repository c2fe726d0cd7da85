//! A message's body as it arrives (RFC 9112 §6): how long it is, and what of the stream belongs to it.

use super::head::fields;
use bytes::{Buf, Bytes, BytesMut};

/// Framing of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// This number of bytes, perhaps zero.
    Length(u64),
    /// Chunks, each with its length.
    Chunked,
    /// The end of the stream; only a reply may end so.
    Close,
}

/// Why a body cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BodyError {
    /// Two lengths that differ, or one that is no number.
    #[error("Content-Length is not a number, or is given more than once")]
    Length,
    /// Both Content-Length and Transfer-Encoding: a recipient that prefers the other would see other messages in the
    /// stream (RFC 9112 §6.1).
    #[error("both Content-Length and Transfer-Encoding are given")]
    Both,
    /// An encoding other than `chunked`.
    #[error("Transfer-Encoding is not `chunked`, the only one supported")]
    Encoding,
    /// A chunk's length or its end is malformed.
    #[error("a chunk is malformed")]
    Chunk,
}

impl Framing {
    /// Returns the framing that the fields give; `None` without such fields.
    pub(crate) fn of(headers: &[httparse::Header<'_>]) -> Result<Option<Framing>, BodyError> {
        let mut encodings = fields(headers, "transfer-encoding").peekable();
        let mut lengths = fields(headers, "content-length").peekable();
        if encodings.peek().is_some() {
            if lengths.peek().is_some() {
                return Err(BodyError::Both);
            }
            let only = encodings.next().filter(|value| value.trim_ascii().eq_ignore_ascii_case(b"chunked"));
            return if only.is_some() && encodings.next().is_none() {
                Ok(Some(Framing::Chunked))
            } else {
                Err(BodyError::Encoding)
            };
        }
        let Some(first) = lengths.next() else { return Ok(None) };
        // Repeated with the same value it may be taken as one, in several fields or in one (RFC 9110 §8.6).
        let mut values = std::iter::once(first).chain(lengths).flat_map(|value| value.split(|byte| *byte == b','));
        let number = |value: &[u8]| decimal(value.trim_ascii());
        let length = values.next().and_then(number).ok_or(BodyError::Length)?;
        if values.all(|value| number(value) == Some(length)) {
            Ok(Some(Framing::Length(length)))
        } else {
            Err(BodyError::Length)
        }
    }
}

/// A number written in digits alone, without a sign.
fn decimal(text: &[u8]) -> Option<u64> {
    let digits = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    if digits { std::str::from_utf8(text).ok()?.parse().ok() } else { None }
}

/// Takes a body out of a stream.
#[derive(Debug)]
pub(crate) struct BodyReader {
    state: State,
    /// A chunk's line as far as it has come.
    line: BytesMut,
}

#[derive(Debug)]
enum State {
    /// Bytes missing of a body of known length.
    Length(u64),
    /// Body up to the end of the stream.
    Close,
    /// A chunk's length is next.
    ChunkSize,
    /// Bytes missing of a chunk.
    Chunk(u64),
    /// The line end behind a chunk is next.
    ChunkEnd,
    /// Trailers, of which this number of bytes has come, and the last empty line.
    Trailers(usize),
    Done,
}

/// Longest line with a chunk's length, extensions included, and most bytes of trailers.
const MAX_LINE: usize = 4096;

impl BodyReader {
    pub(crate) fn new(framing: Framing) -> Self {
        let state = match framing {
            Framing::Length(0) => State::Done,
            Framing::Length(length) => State::Length(length),
            Framing::Chunked => State::ChunkSize,
            Framing::Close => State::Close,
        };
        BodyReader { state, line: BytesMut::new() }
    }

    /// True if only the end of the stream ends the body.
    pub(crate) fn lasts_until_close(&self) -> bool {
        matches!(self.state, State::Close)
    }

    /// The whole body has come.
    pub(crate) fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// The stream has ended: whether the body is whole.
    pub(crate) fn end(&mut self) -> bool {
        if matches!(self.state, State::Close) {
            self.state = State::Done;
        }
        self.is_done()
    }

    /// The next bytes of the body from the front of `input`, which then holds the rest. `None` if `input` is used up,
    /// or the body is done.
    pub(crate) fn next(&mut self, input: &mut Bytes) -> Result<Option<Bytes>, BodyError> {
        loop {
            match &mut self.state {
                State::Done => return Ok(None),
                _ if input.is_empty() => return Ok(None),
                State::Close => return Ok(Some(std::mem::take(input))),
                State::Length(missing) => {
                    let piece = take(input, missing);
                    if *missing == 0 {
                        self.state = State::Done;
                    }
                    return Ok(Some(piece));
                }
                State::Chunk(missing) => {
                    let piece = take(input, missing);
                    if *missing == 0 {
                        self.state = State::ChunkEnd;
                    }
                    return Ok(Some(piece));
                }
                State::ChunkSize => {
                    let Some(line) = self.line(input)? else { return Ok(None) };
                    self.state = match chunk_size(&line)? {
                        0 => State::Trailers(0),
                        size => State::Chunk(size),
                    };
                }
                State::ChunkEnd => {
                    let Some(line) = self.line(input)? else { return Ok(None) };
                    if !line.is_empty() {
                        return Err(BodyError::Chunk);
                    }
                    self.state = State::ChunkSize;
                }
                State::Trailers(so_far) => {
                    let so_far = *so_far;
                    let Some(line) = self.line(input)? else { return Ok(None) };
                    self.state = match so_far + line.len() {
                        _ if line.is_empty() => State::Done,
                        all if all > MAX_LINE => return Err(BodyError::Chunk),
                        all => State::Trailers(all),
                    };
                }
            }
        }
    }

    /// A whole line without its end, once it has come.
    fn line(&mut self, input: &mut Bytes) -> Result<Option<Bytes>, BodyError> {
        let end = input.iter().position(|byte| *byte == b'\n');
        let piece = input.split_to(end.map_or(input.len(), |at| at + 1));
        if self.line.len() + piece.len() > MAX_LINE {
            return Err(BodyError::Chunk);
        }
        self.line.extend_from_slice(&piece);
        if end.is_none() {
            return Ok(None);
        }
        let mut line = self.line.split().freeze();
        line.truncate(line.len() - 1);
        if line.last() == Some(&b'\r') {
            line.truncate(line.len() - 1);
            return Ok(Some(line));
        }
        // A bare line feed ends no line here: readers that differ on it see different messages.
        Err(BodyError::Chunk)
    }
}

fn take(input: &mut Bytes, missing: &mut u64) -> Bytes {
    let piece = input.split_to(usize::try_from(*missing).unwrap_or(usize::MAX).min(input.len()));
    *missing -= piece.len() as u64;
    piece
}

/// The number before extensions, in hexadecimal digits alone.
fn chunk_size(line: &[u8]) -> Result<u64, BodyError> {
    let digits = line.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii_end();
    let hexadecimal = (1..=16).contains(&digits.len()) && digits.iter().all(u8::is_ascii_hexdigit);
    let text = std::str::from_utf8(digits).ok().filter(|_| hexadecimal).ok_or(BodyError::Chunk)?;
    u64::from_str_radix(text, 16).map_err(|_| BodyError::Chunk)
}

/// Skips what was read through a [`Bytes`] view of the front of a buffer.
pub(crate) fn with_buffer<T>(buffer: &mut BytesMut, read: impl FnOnce(&mut Bytes) -> T) -> T {
    let mut view = buffer.split().freeze();
    let result = read(&mut view);
    // The buffer has no other owner, or the rest is small.
    *buffer = view.try_into_mut().unwrap_or_else(|shared| {
        let mut copy = BytesMut::with_capacity(shared.remaining());
        copy.extend_from_slice(&shared);
        copy
    });
    result
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn read(framing: Framing, pieces: &[&'static [u8]]) -> Result<(Vec<u8>, bool, Vec<u8>), BodyError> {
        let (mut reader, mut body, mut rest) = (BodyReader::new(framing), Vec::new(), Vec::new());
        for piece in pieces {
            let mut input = Bytes::from_static(piece);
            while let Some(data) = reader.next(&mut input)? {
                body.extend_from_slice(&data);
            }
            rest.extend_from_slice(&input);
        }
        Ok((body, reader.is_done(), rest))
    }

    #[test]
    fn a_body_ends_where_it_says() {
        assert_eq!(read(Framing::Length(5), &[b"ab", b"cdefg"]), Ok((b"abcde".into(), true, b"fg".into())));
        assert_eq!(read(Framing::Length(0), &[b"ab"]), Ok((vec![], true, b"ab".into())));
        assert_eq!(read(Framing::Close, &[b"ab", b"cd"]), Ok((b"abcd".into(), false, vec![])));
    }

    #[test]
    fn chunks_however_they_are_cut() {
        let text: &'static [u8] = b"4\r\nWiki\r\nB;name=\"x\"\r\npedia in \r\n\r\n0\r\nTrailer: x\r\n\r\nGET";
        for cut in 0..text.len() {
            let (body, done, rest) = read(Framing::Chunked, &[&text[..cut], &text[cut..]]).unwrap();
            assert_eq!(
                (body.as_slice(), done, rest.as_slice()),
                (&b"Wikipedia in \r\n"[..], true, &b"GET"[..]),
                "{cut}"
            );
        }
        let single: Vec<&'static [u8]> = text.chunks(1).collect();
        assert!(read(Framing::Chunked, &single).unwrap().1);
    }

    #[test]
    fn malformed_chunks_are_refused() {
        for text in [
            &b"x\r\n"[..],
            b"\r\n",
            b"-1\r\n",
            b"+1\r\n",
            b"1 1\r\n",
            b"0x1\r\n",
            b"11111111111111111\r\n",
            b"4\nWiki\r\n",
            b"4\r\nWikis\r\n",
            b"ffffffffffffffff1\r\n",
        ] {
            assert_eq!(read(Framing::Chunked, &[text]), Err(BodyError::Chunk), "{}", String::from_utf8_lossy(text));
        }
        assert_eq!(read(Framing::Chunked, &[&[b'0'; 5000]]), Err(BodyError::Chunk));
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
        let framing = |fields: &[(&'static str, &'static str)]| {
            let headers: Vec<_> =
                fields.iter().map(|(name, value)| httparse::Header { name, value: value.as_bytes() }).collect();
            Framing::of(&headers)
        };
        assert_eq!(framing(&[]), Ok(None));
        assert_eq!(framing(&[("content-length", "7"), ("Content-Length", "7, 7")]), Ok(Some(Framing::Length(7))));
        assert_eq!(framing(&[("Transfer-Encoding", " Chunked ")]), Ok(Some(Framing::Chunked)));
        for (fields, error) in [
            (&[("Content-Length", "7"), ("Content-Length", "8")][..], BodyError::Length),
            (&[("Content-Length", "+7")], BodyError::Length),
            (&[("Content-Length", "")], BodyError::Length),
            (&[("Content-Length", "99999999999999999999")], BodyError::Length),
            (&[("Content-Length", "7"), ("Transfer-Encoding", "chunked")], BodyError::Both),
            (&[("Transfer-Encoding", "gzip, chunked")], BodyError::Encoding),
            (&[("Transfer-Encoding", "chunked"), ("Transfer-Encoding", "chunked")], BodyError::Encoding),
        ] {
            assert_eq!(framing(fields), Err(error), "{fields:?}");
        }
    }
}
