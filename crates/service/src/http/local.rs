//! A small site on a socket of the host's own stack, for a browser on the same machine.
//!
//! ```text
//! serve ─ a thread for each visitor ─▶ the head ─▶ Host and Origin ─▶ a resource, or the answerer of `/ask`
//!   └ Waiting: more visitors than it holds end the oldest of those that are not being answered
//! ```

mod waiting;

use super::body::Framing;
use super::request::Request;
use super::this_machine::{is_same_origin, names_this_machine};
use super::{Found, Head, Method, PLAIN, Reply, read_request, today, words};
use bytes::Bytes;
use std::borrow::Cow;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use waiting::Waiting;

/// Resources, and what is asked of the program.
#[derive(Default)]
pub struct LocalSite {
    /// Files; the first is also at `/`.
    pub resources: Vec<Resource>,
    /// Content-Security-Policy of the answers, unless the page names its own.
    pub policy: Option<&'static str>,
    /// Answers what is posted to `/ask`.
    pub answerer: Option<Answerer>,
}

/// A file.
pub struct Resource {
    /// Path, with its slash.
    pub path: &'static str,
    /// Media type.
    pub kind: &'static str,
    /// Contents.
    pub body: Cow<'static, [u8]>,
}

/// Answers a request: takes its body, and writes lines of JSON to the visitor, whose end of the connection ends when
/// the page has lost interest. An error is of the connection.
pub type Answerer = Box<dyn Fn(&[u8], &TcpStream) -> io::Result<()> + Send + Sync>;

/// Longest head of a request that is read \[bytes\].
const LONGEST_HEAD: usize = 16 << 10;
/// Longest body: two captures of a page, which refuses more than a gibibyte by itself \[bytes\].
const LONGEST_BODY: u64 = (1 << 30) + (1 << 20);
/// Answers that are made at the same time. The page has two engines, and a reader may have it open twice.
const MOST_ANSWERS: usize = 8;
/// Time for a head, and for each piece of a body or an answer. A browser on the same machine needs a few milliseconds.
const PATIENCE: Duration = Duration::from_secs(10);
/// Rest before the next visitor when none can be accepted, as when descriptors have run out.
const REST: Duration = Duration::from_millis(50);

/// The site while it is served.
struct Served {
    site: LocalSite,
    bound: IpAddr,
    waiting: Waiting,
    answers: AtomicUsize,
}

impl LocalSite {
    /// Serves the site until the process is ended.
    pub fn serve(self, listener: &TcpListener) {
        let bound = listener.local_addr().map_or(Ipv4Addr::LOCALHOST.into(), |address| address.ip());
        let served = Served { site: self, bound, waiting: Waiting::default(), answers: AtomicUsize::new(0) };
        let served = Arc::new(served);
        for stream in listener.incoming() {
            let Ok(stream) = stream else {
                thread::sleep(REST);
                continue;
            };
            let ticket = served.waiting.enter(&stream);
            let of_visitor = Arc::clone(&served);
            let begun = thread::Builder::new().spawn(move || {
                // A browser that goes away has its reasons.
                let _ = of_visitor.attend(&stream, ticket);
                of_visitor.waiting.leave(ticket);
            });
            if begun.is_err() {
                // Without a thread the visitor is let go, and may come again.
                served.waiting.leave(ticket);
            }
        }
    }
}

impl Served {
    /// Answers one request; the connection then ends.
    fn attend(&self, mut stream: &TcpStream, ticket: u64) -> io::Result<()> {
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut head = Head::default();
        let Some(found) = read_head(stream, &mut head)? else { return Ok(()) };
        let request = match &found {
            Found::Whole(head) => read_request(head),
            Found::Partial => Err(400),
            Found::TooLong => Err(431),
        };
        let answer = match request.and_then(|request| self.find(&request).map(|asked| (request, asked))) {
            Ok((request, Asked::Resource(resource))) => self.show(resource, request.method == Method::Head),
            Ok((request, Asked::Answer(answerer, length))) => {
                let Some(body) = read_body(stream, &request, &head.rest()[..], length)? else { return Ok(()) };
                // Its time is now that of runs. Before, who sends half a body had to make room for others.
                self.waiting.leave(ticket);
                match self.place() {
                    Some(_place) => return self.ask(answerer, &body, stream),
                    None => refusal(503),
                }
            }
            Err(status) => refusal(status),
        };
        stream.write_all(&answer)?;
        // A close with unread data would be a RST, which can overtake the answer. But nobody may keep us here by
        // sending.
        stream.shutdown(Shutdown::Write)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut piece = [0; 1024];
        for _ in 0..LONGEST_HEAD / piece.len() {
            if stream.read(&mut piece)? == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Finds what a request is for, or the status that refuses it.
    fn find(&self, request: &Request) -> Result<Asked<'_>, u16> {
        if request.host.as_ref().is_some_and(|host| !names_this_machine(host, self.bound)) {
            return Err(421);
        }
        let path = request.target.split('?').next().unwrap_or_default();
        let path = if path == "/" { "/index.html" } else { path };
        let resource = self.site.resources.iter().find(|it| it.path == path);
        match (request.method, resource, &self.site.answerer) {
            (Method::Get | Method::Head, Some(resource), _) => Ok(Asked::Resource(resource)),
            (Method::Post, None, Some(answerer)) if path == "/ask" => {
                // A browser names the page that posts; programs such as curl do not.
                let host = request.host.as_deref().unwrap_or_default();
                if request.origin.as_ref().is_some_and(|origin| !is_same_origin(origin, host)) {
                    return Err(403);
                }
                match request.framing {
                    Framing::Length(length) if length <= LONGEST_BODY => Ok(Asked::Answer(answerer, length)),
                    Framing::Length(_) => Err(413),
                    _ => Err(411),
                }
            }
            (_, None, answerer) if answerer.is_none() || path != "/ask" => Err(404),
            _ => Err(405),
        }
    }

    /// Takes a place for an answer, unless all are taken.
    fn place(&self) -> Option<Place<'_>> {
        let place = Place(&self.answers);
        (self.answers.fetch_add(1, Ordering::Relaxed) < MOST_ANSWERS).then_some(place)
    }

    /// Hands a request to the answerer.
    fn ask(&self, answerer: &Answerer, body: &[u8], mut stream: &TcpStream) -> io::Result<()> {
        let mut reply = self.head();
        reply.put("Content-Type", "application/x-ndjson");
        stream.write_all(&reply.done(false))?;
        stream.set_read_timeout(None)?;
        answerer(body, stream)?;
        stream.shutdown(Shutdown::Write)
    }

    fn show(&self, resource: &Resource, only_head: bool) -> Bytes {
        self.head().whole(resource.kind, &resource.body, false, only_head)
    }

    /// Begins a reply.
    fn head(&self) -> Reply {
        let mut reply = Reply::new(200, today());
        // The files may be built anew while the page is open.
        reply.put("Cache-Control", "no-store").put("X-Content-Type-Options", "nosniff");
        if let Some(policy) = self.site.policy {
            reply.put("Content-Security-Policy", policy);
        }
        reply
    }
}

/// The target of a request.
enum Asked<'a> {
    Resource(&'a Resource),
    Answer(&'a Answerer, u64),
}

/// A place among the answers that are made.
struct Place<'a>(&'a AtomicUsize);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Reads a head within [`PATIENCE`], however slowly its bytes come; `None` if the visitor goes before.
fn read_head(mut stream: &TcpStream, head: &mut Head) -> io::Result<Option<Found>> {
    let until = Instant::now() + PATIENCE;
    let mut piece = [0; 1024];
    loop {
        match head.take(LONGEST_HEAD) {
            Found::Partial if !head.is_hopeless() => {}
            found => return Ok(Some(found)),
        }
        let left = until.saturating_duration_since(Instant::now());
        // A timeout of zero would be none.
        stream.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        match stream.read(&mut piece) {
            _ if left.is_zero() => return Ok(None),
            Ok(0) => return Ok(None),
            Ok(length) => head.push(&piece[..length]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Reads the body, of which `begun` came with the head; `None` if the visitor goes before.
fn read_body(mut stream: &TcpStream, request: &Request, begun: &[u8], length: u64) -> io::Result<Option<Vec<u8>>> {
    stream.set_read_timeout(Some(PATIENCE))?;
    if request.expects_continue {
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    // Nothing is read beyond it: the answerer may watch for the end of the connection.
    let mut body = begun[..begun.len().min(usize::try_from(length).unwrap_or(usize::MAX))].to_vec();
    stream.take(length - body.len() as u64).read_to_end(&mut body)?;
    Ok((body.len() as u64 == length).then_some(body))
}

fn refusal(status: u16) -> Bytes {
    let mut reply = Reply::new(status, today());
    if status == 405 {
        reply.put("Allow", "GET, HEAD, POST");
    }
    reply.whole(PLAIN, words(status).as_bytes(), false, false)
}

#[cfg(test)]
mod tests;
