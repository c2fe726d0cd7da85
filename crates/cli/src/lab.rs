//! `anabranch lab`: serves the laboratory, a page with the simulator in it, on loopback and opens it.

use crate::failure::Failure;
use crate::output;
use clap::Args as ClapArgs;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Arguments of `lab`.
#[derive(ClapArgs, Debug)]
#[command(after_help = "Examples:
  anabranch lab                                       lessons, laboratory and judge of captures in the browser
  anabranch lab --no-open --port 8000                 on a machine of its own, behind `ssh -L 8000:127.0.0.1:8000`

The page is one file that also opens from disk or from any static host. Packages have it; from the sources, web/build
makes it. Ctrl-C ends the command.")]
pub struct LabArgs {
    /// Port on 127.0.0.1; 0 takes a free one.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub port: u16,
    /// Print the address and open no browser.
    #[arg(long)]
    pub no_open: bool,
    /// Page to serve; unless given, that of the package or of web/build.
    #[arg(long, value_name = "FILE")]
    pub page: Option<PathBuf>,
}

/// Longest head of a request that is read.
const LONGEST_HEAD: usize = 16 << 10;
/// A browser that says nothing for this long is let go.
const PATIENCE: Duration = Duration::from_secs(5);

/// Serves the page until the process is ended.
pub fn lab(args: &LabArgs) -> Result<(), Failure> {
    let page = page(args.page.as_deref())?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, args.port));
    let listener = listener.map_err(|error| {
        let help = "accepted: a free port above 1023, or none for any";
        Failure::Refused(miette::miette!(help = help, "cannot listen on 127.0.0.1:{}: {error}", args.port))
    })?;
    let address = listener.local_addr().map_err(|error| Failure::Failed(miette::miette!("no address: {error}")))?;
    let address = format!("http://{address}/");
    output::print(&format!("{address}\n"))?;
    if !args.no_open {
        open(&address);
    }
    for stream in listener.incoming() {
        // A browser that goes away has its reasons; the next one is served all the same.
        let _ = stream.and_then(|stream| answer(stream, &page));
    }
    Ok(())
}

/// Reads the page.
fn page(named: Option<&Path>) -> Result<Vec<u8>, Failure> {
    let places = named.map_or_else(places, |named| vec![named.to_owned()]);
    for place in &places {
        match std::fs::read(place) {
            Ok(page) => return Ok(page),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(Failure::Refused(miette::miette!("cannot read {}: {error}", place.display()))),
        }
    }
    let looked: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
    let help = "build it from the sources with `web/build` (needs node and npm), or name one with --page";
    Err(Failure::Refused(miette::miette!(help = help, "the laboratory's page is not at {}", looked.join(", "))))
}

/// Places of the page: of a package, and of the sources that this program was built from.
fn places() -> Vec<PathBuf> {
    let program = std::env::current_exe().unwrap_or_default();
    let folder = program.parent().unwrap_or(Path::new("."));
    ["../share/anabranch/lab/index.html", "../../web/dist/index.html"].map(|place| folder.join(place)).into()
}

/// Opens the address in the reader's browser, or says what to do.
fn open(address: &str) {
    let mut opener = Command::new("xdg-open");
    opener.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if opener.spawn().is_err() {
        output::remark("no browser could be opened (xdg-open is missing): open the address above");
    }
}

/// Answers one request; the connection then ends.
fn answer(mut stream: TcpStream, page: &[u8]) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut head = Vec::new();
    let mut part = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < LONGEST_HEAD {
        match stream.read(&mut part)? {
            0 => break,
            n => head.extend_from_slice(&part[..n]),
        }
    }
    let (status, body) = respond(&head, page);
    let length = body.len();
    let kind = if status == "200 OK" { "text/html; charset=utf-8" } else { "text/plain; charset=utf-8" };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nCache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
    )?;
    if !head.starts_with(b"HEAD ") {
        stream.write_all(body)?;
    }
    stream.flush()
}

/// Returns status and body for the head of a request.
fn respond<'a>(head: &[u8], page: &'a [u8]) -> (&'static str, &'a [u8]) {
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let mut words = line.split(|byte| *byte == b' ');
    match (words.next(), words.next()) {
        (Some(b"GET" | b"HEAD"), Some(path)) => match path.split(|byte| *byte == b'?').next() {
            Some(b"/" | b"/index.html") => ("200 OK", page),
            _ => ("404 Not Found", b"only / is here\n"),
        },
        (Some([_, ..]), Some(_)) => ("405 Method Not Allowed", b"only GET is answered\n"),
        _ => ("400 Bad Request", b"this is no request\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_page_is_served() {
        let status = |head: &[u8]| respond(head, b"page").0;
        assert_eq!(respond(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"page"), ("200 OK", b"page".as_slice()));
        assert_eq!(status(b"HEAD /index.html?x HTTP/1.1\r\n\r\n"), "200 OK");
        assert_eq!(status(b"GET /../etc/passwd HTTP/1.1\r\n\r\n"), "404 Not Found");
        assert_eq!(status(b"POST / HTTP/1.1\r\n\r\n"), "405 Method Not Allowed");
        for nonsense in [b"".as_slice(), b"\r\n\r\n", b"GET", &[0xff; 40]] {
            assert_eq!(status(nonsense), "400 Bad Request", "{nonsense:?}");
        }
    }

    #[test]
    fn a_page_that_is_not_there_is_told_with_a_remedy() {
        let Err(Failure::Refused(report)) = page(Some(Path::new("no/such/page.html"))) else {
            panic!("it is not there")
        };
        assert_eq!(report.to_string(), "the laboratory's page is not at no/such/page.html");
        assert!(report.help().is_some_and(|help| help.to_string().contains("web/build")));
    }
}
