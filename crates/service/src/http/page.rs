//! One page on a socket of the host's own stack, for a browser on the same machine.

use super::{Found, Head, Method, PLAIN, Reply, read_request, today, words};
use bytes::Bytes;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::Duration;

/// A page at `/` and `/index.html`.
#[derive(Clone, Debug)]
pub struct Page {
    /// Media type.
    pub kind: &'static str,
    /// Contents.
    pub body: Vec<u8>,
}

/// Longest head of a request that is read \[bytes\].
const LONGEST_HEAD: usize = 16 << 10;
/// A browser that says nothing for this long is let go.
const PATIENCE: Duration = Duration::from_secs(5);

impl Page {
    /// Serves the page, one browser after the other, until the process is ended.
    pub fn serve(&self, listener: &TcpListener) {
        for stream in listener.incoming() {
            // A browser that goes away has its reasons; the next one is served all the same.
            let _ = stream.and_then(|stream| self.answer(stream));
        }
    }

    /// Answers one request; the connection then ends.
    fn answer(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut head = Head::default();
        let mut piece = [0; 1024];
        let found = loop {
            match head.take(LONGEST_HEAD) {
                Found::Partial if !head.is_hopeless() => {}
                found => break found,
            }
            match stream.read(&mut piece)? {
                0 => return Ok(()),
                length => head.push(&piece[..length]),
            }
        };
        stream.write_all(&self.reply(&found, today()))?;
        // A close with unread data would be a RST, which can overtake the answer. But nobody may keep us here by
        // sending.
        stream.shutdown(Shutdown::Write)?;
        for _ in 0..LONGEST_HEAD / piece.len() {
            if stream.read(&mut piece)? == 0 {
                break;
            }
        }
        Ok(())
    }

    fn reply(&self, found: &Found, now: i64) -> Bytes {
        let request = match found {
            Found::Whole(head) => read_request(head),
            Found::Partial => Err(400),
            Found::TooLong => Err(431),
        };
        let wanted = request.and_then(|request| match (request.method, request.target.split('?').next()) {
            (Method::Get | Method::Head, Some("/" | "/index.html")) => Ok(request.method == Method::Head),
            (Method::Get | Method::Head, _) => Err(404),
            _ => Err(405),
        });
        match wanted {
            Ok(only_head) => {
                let mut reply = Reply::new(200, now);
                // The file may be built anew while the page is open.
                reply.put("Cache-Control", "no-store").put("X-Content-Type-Options", "nosniff");
                reply.whole(self.kind, &self.body, false, only_head)
            }
            Err(status) => Reply::new(status, now).whole(PLAIN, words(status).as_bytes(), false, false),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn page() -> Page {
        Page { kind: "text/html", body: b"a page".to_vec() }
    }

    #[test]
    fn only_the_page_is_served() {
        let reply = |head: &'static [u8]| {
            let bytes = page().reply(&Found::Whole(Bytes::from_static(head)), 0);
            String::from_utf8(bytes.to_vec()).unwrap()
        };
        let whole = reply(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(whole.starts_with("HTTP/1.1 200 OK\r\n") && whole.ends_with("\r\n\r\na page"), "{whole}");
        let head = reply(b"HEAD /index.html?x HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.ends_with("\r\n\r\n"), "{head}");
        assert!(reply(b"GET /../etc/passwd HTTP/1.1\r\nHost: a\r\n\r\n").starts_with("HTTP/1.1 404 "));
        assert!(reply(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n").starts_with("HTTP/1.1 405 "));
        for nonsense in [&b"\r\n\r\n"[..], b"GET\r\n\r\n", &[0xff; 40]] {
            assert!(reply(nonsense).starts_with("HTTP/1.1 400 "), "{nonsense:?}");
        }
        assert!(page().reply(&Found::TooLong, 0).starts_with(b"HTTP/1.1 431 "));
    }

    /// Also one that closes at once, and one that speaks another protocol; the next is served all the same.
    #[test]
    fn browsers_are_served_one_after_the_other() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        // Ends with the process.
        std::thread::spawn(move || page().serve(&listener));
        drop(TcpStream::connect(address).unwrap());
        for (request, answer) in [("\x16\x03\x01", "400"), ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", "200")] {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            assert!(text.starts_with(&format!("HTTP/1.1 {answer} ")), "{text}");
        }
    }
}
