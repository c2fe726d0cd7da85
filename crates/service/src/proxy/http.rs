//! HTTP CONNECT (RFC 9110 §9.3.6), as a proxy sees it.

use super::front::{Denial, Host, Request, Step};
use super::settings::Users;

pub(super) const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";

/// A request is not longer than this, all its headers counted.
const LONGEST_REQUEST: usize = 8 << 10;
const MOST_HEADERS: usize = 64;

/// The request, if all of it has arrived.
pub(super) fn request(buffer: &[u8], users: Option<&Users>) -> Step<Request> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    let length = match parsed.parse(buffer) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if buffer.len() < LONGEST_REQUEST => return Step::Short,
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
            return refuse("431 Request Header Fields Too Large", "", "an HTTP request that is too long");
        }
        Err(_) => return refuse("400 Bad Request", "", "neither SOCKS5 nor HTTP"),
    };
    if parsed.method != Some("CONNECT") {
        return refuse("405 Method Not Allowed", "Allow: CONNECT\r\n", "an HTTP method other than CONNECT");
    }
    if let Some(users) = users
        && !parsed.headers.iter().any(|header| is_authorized(header, users))
    {
        let ask = "Proxy-Authenticate: Basic realm=\"anabranch\", charset=\"UTF-8\"\r\n";
        return refuse("407 Proxy Authentication Required", ask, "a user name or password that is missing or wrong");
    }
    match parsed.path.and_then(authority) {
        Some(request) => Step::Done(length, request),
        None => refuse("400 Bad Request", "", "a destination that is not HOST:PORT"),
    }
}

/// The answer to a request that comes to nothing.
pub(super) fn denial(why: Denial) -> Vec<u8> {
    match why {
        Denial::ConnectionRefused | Denial::Unreachable => response("502 Bad Gateway", ""),
        Denial::NoSuchName => response("502 Bad Gateway", "Proxy-Status: anabranch; error=dns_error\r\n"),
        Denial::TimedOut => response("504 Gateway Timeout", ""),
        Denial::NotAllowed => response("403 Forbidden", ""),
        Denial::Busy => response("503 Service Unavailable", "Retry-After: 1\r\n"),
    }
}

/// `HOST:PORT`, the host in brackets if it is an IPv6 address.
fn authority(text: &str) -> Option<Request> {
    let (host, port) = text.rsplit_once(':')?;
    let port = port.parse().ok().filter(|port| *port != 0)?;
    let bare_v6 = host.contains(':') && !host.starts_with('[');
    Host::parse(host).filter(|_| !bare_v6).map(|host| Request { host, port })
}

fn is_authorized(header: &httparse::Header<'_>, users: &Users) -> bool {
    if !header.name.eq_ignore_ascii_case("Proxy-Authorization") {
        return false;
    }
    let Some((scheme, encoded)) = std::str::from_utf8(header.value).ok().and_then(|value| value.split_once(' ')) else {
        return false;
    };
    let Some(decoded) = base64(encoded.trim()).filter(|_| scheme.eq_ignore_ascii_case("Basic")) else { return false };
    let Some(colon) = decoded.iter().position(|byte| *byte == b':') else { return false };
    users.admits(&decoded[..colon], &decoded[colon + 1..])
}

/// RFC 4648 §4.
fn base64(text: &str) -> Option<Vec<u8>> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bits, mut count, mut bytes) = (0_u32, 0, Vec::new());
    for byte in text.trim_end_matches('=').bytes() {
        let value = ALPHABET.iter().position(|known| *known == byte)?;
        bits = bits << 6 | value as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    Some(bytes)
}

fn refuse(status: &str, headers: &str, why: &'static str) -> Step<Request> {
    Step::Refuse(response(status, headers), why)
}

fn response(status: &str, headers: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: 0\r\nConnection: close\r\n\r\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_as_in_rfc_4648() {
        for (text, plain) in [("", ""), ("Zg==", "f"), ("Zm8=", "fo"), ("Zm9v", "foo"), ("Zm9vYmFy", "foobar")] {
            assert_eq!(base64(text).as_deref(), Some(plain.as_bytes()));
        }
        assert_eq!(base64("a b"), None);
    }
}
