#![allow(clippy::unwrap_used)]
use super::*;
use std::net::SocketAddr;

fn site() -> LocalSite {
    let page = Resource { path: "/index.html", kind: "text/html", body: Cow::Borrowed(b"a page") };
    let script = Resource { path: "/main.js", kind: "text/javascript", body: Cow::Borrowed(b"a script") };
    let answerer: Answerer = Box::new(|body, mut visitor| {
        if body == b"hold" {
            visitor.read_to_end(&mut Vec::new())?;
        }
        visitor.write_all(&body.to_ascii_uppercase())
    });
    LocalSite { resources: vec![page, script], policy: Some("default-src 'none'"), answerer: Some(answerer) }
}

/// A served site, which ends with the process.
fn served(site: LocalSite) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || site.serve(&listener));
    address
}

fn ask(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn only_what_the_site_has_is_served() {
    let address = served(site());
    let whole = ask(address, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(whole.starts_with("HTTP/1.1 200 OK\r\n") && whole.ends_with("\r\n\r\na page"), "{whole}");
    assert!(whole.contains("\r\nContent-Security-Policy: default-src 'none'\r\n"), "{whole}");
    assert!(ask(address, "GET /main.js?1 HTTP/1.1\r\nHost: [::1]:80\r\n\r\n").ends_with("\r\n\r\na script"));
    let head = ask(address, "HEAD /index.html?x HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.ends_with("\r\n\r\n"), "{head}");
    let post = |more: &str| ask(address, &format!("POST /ask HTTP/1.1\r\nHost: localhost:1\r\n{more}"));
    assert!(post("Content-Length: 3\r\n\r\nabcdef").ends_with("\r\n\r\nABC"));
    assert!(post("Origin: http://localhost:1\r\nContent-Length: 1\r\n\r\na").ends_with("\r\n\r\nA"));
    assert!(
        post("Expect: 100-continue\r\nContent-Length: 1\r\n\r\na")
            .starts_with("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200")
    );
    for (request, status) in [
        ("GET /../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
        ("GET /ask HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
        ("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", 405),
        ("POST /ask HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999999999\r\n\r\n", 413),
        ("POST /ask HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", 411),
        ("POST /ask HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\nContent-Length: 0\r\n\r\n", 403),
        ("POST /ask HTTP/1.1\r\nHost: localhost\r\nOrigin: null\r\nContent-Length: 0\r\n\r\n", 403),
        ("\x16\x03\x01", 400),
        ("GET\r\n\r\n", 400),
    ] {
        let answer = ask(address, request);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request:?}: {answer}");
    }
}

/// A page of another site whose name leads here (DNS rebinding) gets no answer but the reason.
#[test]
fn another_host_is_refused() {
    let address = served(site());
    for host in ["evil.example", "evil.example:8000", "localhost.evil.example", "0.0.0.0"] {
        for line in ["GET / HTTP/1.1", "POST /ask HTTP/1.1\r\nContent-Length: 0"] {
            let answer = ask(address, &format!("{line}\r\nHost: {host}\r\n\r\n"));
            assert!(answer.starts_with("HTTP/1.1 421 Misdirected Request\r\n"), "{host}: {answer}");
            assert!(answer.contains("localhost") && !answer.contains("a page"), "{answer}");
        }
    }
    assert!(ask(address, &format!("GET / HTTP/1.1\r\nHost: {address}\r\n\r\n")).starts_with("HTTP/1.1 200 "));
}

/// Three hundred connections with half a head each, one that closes at once, and one that takes no answer.
#[test]
fn who_says_half_of_it_is_in_nobodys_way() {
    let address = served(site());
    drop(TcpStream::connect(address).unwrap());
    let mut half = Vec::new();
    for _ in 0..300 {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: loc").unwrap();
        half.push(stream);
    }
    let begun = Instant::now();
    let answer = ask(address, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(begun.elapsed() < PATIENCE, "it waited for the others' time to be over");
    // The first ones had to go, the last are still served.
    let mut first = half.swap_remove(0);
    assert!(matches!(first.read(&mut [0; 1]), Ok(0) | Err(_)), "the oldest is still there");
    let mut last = half.pop().unwrap();
    last.write_all(b"alhost\r\n\r\n").unwrap();
    let mut text = String::new();
    last.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 200 "), "{text}");
}

/// As many answers under way as there may be: the next is refused at once, and a place that is free is given again.
#[test]
fn answers_have_a_limit() {
    let address = served(site());
    let hold = || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(b"POST /ask HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nhold").unwrap();
        // Its head comes when it has its place.
        stream.read_exact(&mut [0; 12]).unwrap();
        stream
    };
    let mut held: Vec<TcpStream> = (0..MOST_ANSWERS).map(|_| hold()).collect();
    // Half a body takes no place.
    let mut half = TcpStream::connect(address).unwrap();
    half.write_all(b"POST /ask HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nho").unwrap();
    let once = "POST /ask HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\na";
    assert!(ask(address, once).starts_with("HTTP/1.1 503 "));
    let mut one = held.pop().unwrap();
    one.shutdown(Shutdown::Write).unwrap();
    let mut text = String::new();
    one.read_to_string(&mut text).unwrap();
    assert!(text.ends_with("HOLD"), "{text}");
    let again = (0..100).map(|_| ask(address, once)).find(|answer| answer.starts_with("HTTP/1.1 200 "));
    assert!(again.is_some(), "the place was not given again");
}
