//! The target of a request in absolute form (RFC 9112 §3.2.2).

use crate::proxy::front::{Host, Request};
use crate::proxy::http::Refusal;
use std::net::IpAddr;

/// Destination of a request, and the target that is sent there.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::proxy) struct Target {
    pub(in crate::proxy) request: Request,
    /// Value of the field Host.
    pub(super) host: String,
    /// Target in origin form; `*` for OPTIONS of the whole server (RFC 9112 §3.2.4).
    pub(super) path: String,
}

/// Port of `http` (RFC 9110 §4.2.1).
const PORT: u16 = 80;

/// Reads the target of a request that is no CONNECT.
pub(in crate::proxy) fn read(parsed: &httparse::Request<'_, '_>) -> Result<Target, Refusal> {
    let target = parsed.path.unwrap_or_default();
    let Some((scheme, rest)) = target.split_once("://").filter(|(scheme, _)| !scheme.contains('/')) else {
        return Err(bad("this is a proxy: accepted are http://HOST/… as the target, and CONNECT HOST:PORT"));
    };
    if !scheme.eq_ignore_ascii_case("http") {
        return Err(bad("only http is forwarded; for https and all else ask for a tunnel: CONNECT HOST:PORT"));
    }
    if !rest.is_ascii() || rest.contains(['#', '\\']) {
        return Err(bad("the target has letters that no URI has; write them as %XX"));
    }
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let Some(request) = destination(authority) else {
        return Err(bad(
            "the target has no host, or a port that is none, or a password: accepted is http://HOST[:PORT]/…",
        ));
    };
    let host = match &request.host {
        Host::Name(name) => name.clone(),
        Host::Address(IpAddr::V4(address)) => address.to_string(),
        Host::Address(IpAddr::V6(address)) => format!("[{address}]"),
    };
    let host = if request.port == PORT { host } else { format!("{host}:{}", request.port) };
    let path = match path {
        "" if parsed.method == Some("OPTIONS") => "*".to_owned(),
        _ if path.starts_with('/') => path.to_owned(),
        _ => format!("/{path}"),
    };
    Ok(Target { request, host, path })
}

/// `HOST[:PORT]`, an IPv6 address in brackets.
fn destination(authority: &str) -> Option<Request> {
    let end = if authority.starts_with('[') {
        authority.find(']')? + 1
    } else {
        authority.find(':').unwrap_or(authority.len())
    };
    let (host, port) = authority.split_at(end);
    let port = match port.strip_prefix(':') {
        None if !port.is_empty() => return None,
        None | Some("") => PORT,
        // A sign is no digit.
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            digits.parse().ok().filter(|port| *port != 0)?
        }
        Some(_) => return None,
    };
    let bracketed = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let is_v6 = |text: &str| text.parse::<std::net::Ipv6Addr>().is_ok();
    // What stands in brackets is an IPv6 address, and the other way round.
    if bracketed.map_or(is_v6(host), |text| !is_v6(text)) {
        return None;
    }
    Host::parse(host).map(|host| Request { host, port })
}

fn bad(text: &'static str) -> Refusal {
    Refusal { status: "400 Bad Request", fields: "", text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(method: &'static str, target: &'static str) -> Result<(String, String, String), &'static str> {
        let mut request = httparse::Request::new(&mut []);
        (request.method, request.path) = (Some(method), Some(target));
        match read(&request) {
            Ok(target) => Ok((target.request.to_string(), target.host, target.path)),
            Err(refusal) => Err(refusal.status),
        }
    }

    #[test]
    fn absolute_forms() {
        for (method, text, [to, host, path]) in [
            ("GET", "http://example.org/a?b=c", ["example.org:80", "example.org", "/a?b=c"]),
            ("GET", "HTTP://example.org", ["example.org:80", "example.org", "/"]),
            ("GET", "http://example.org:/", ["example.org:80", "example.org", "/"]),
            ("GET", "http://example.org?q", ["example.org:80", "example.org", "/?q"]),
            ("GET", "http://10.0.0.1:8080/x", ["10.0.0.1:8080", "10.0.0.1:8080", "/x"]),
            ("GET", "http://[2001:db8::1]:81/", ["[2001:db8::1]:81", "[2001:db8::1]:81", "/"]),
            ("GET", "http://example.org/http://b/", ["example.org:80", "example.org", "/http://b/"]),
            ("OPTIONS", "http://example.org", ["example.org:80", "example.org", "*"]),
            ("OPTIONS", "http://example.org/", ["example.org:80", "example.org", "/"]),
        ] {
            assert_eq!(target(method, text), Ok((to.to_owned(), host.to_owned(), path.to_owned())), "{text}");
        }
    }

    #[test]
    fn what_names_no_destination_is_refused() {
        for text in [
            "/",
            "*",
            "/redirect?to=http://example.org/",
            "example.org/",
            "https://example.org/",
            "ftp://example.org/",
            "http:///path",
            "http://",
            "http://:80/",
            "http://user:word@example.org/",
            "http://user@example.org/",
            "http://example.org:0/",
            "http://example.org:65536/",
            "http://example.org:+80/",
            "http://example.org:8a/",
            "http://2001:db8::1/",
            "http://[2001:db8::1/",
            "http://[2001:db8::1]x/",
            "http://[example.org]/",
            "http://[10.0.0.1]/",
            "http://exa mple.org/",
            "http://example.org/#part",
            "http://example.org\\@b/",
            "http://-x/",
            "http://exämple.org/",
        ] {
            assert_eq!(target("GET", text), Err("400 Bad Request"), "{text}");
        }
    }
}
