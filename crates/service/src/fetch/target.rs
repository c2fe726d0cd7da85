//! Target of a fetch: an `http:` or `tcp:` URL.

use url::{Host, Url};

/// A URL that can be fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The whole URL.
    pub url: Url,
    /// Protocol.
    pub scheme: Scheme,
    /// Host as it stands in `Host`, the port only if it is not the usual one.
    pub authority: String,
    /// Path and query.
    pub path: String,
    /// A name to resolve, or an address without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// Protocol of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// HTTP/1.1.
    Http,
    /// No request: the server's data is the content.
    Tcp,
}

/// A URL that cannot be fetched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// The text is no URL.
    #[error("`{0}` is not a URL ({1})")]
    NoUrl(String, url::ParseError),
    /// Something else than HTTP.
    #[error("`{0}:` is not supported")]
    Scheme(String),
    /// No host, or for TCP no port.
    #[error("`{0}` has no {1}")]
    Lacks(String, &'static str),
    /// A user name or password, which would go over the wire for all to read.
    #[error("the URL has a user name or password, which would be sent unencrypted; leave it out")]
    Credentials,
}

impl Target {
    /// Reads a URL. `HOST/PATH` without a scheme means HTTP.
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        let whole = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let url = Url::parse(&whole).map_err(|error| TargetError::NoUrl(text.to_owned(), error))?;
        Target::of(url)
    }

    /// Resolves the target of a redirect (RFC 9110 §10.2.2). Redirects to anything but HTTP are errors.
    pub fn redirected(&self, location: &str) -> Result<Self, TargetError> {
        let url = self.url.join(location).map_err(|error| TargetError::NoUrl(location.to_owned(), error))?;
        let target = Target::of(url)?;
        if target.scheme == Scheme::Http { Ok(target) } else { Err(TargetError::Scheme("tcp".into())) }
    }

    fn of(url: Url) -> Result<Self, TargetError> {
        let (scheme, usual) = match url.scheme() {
            "http" => (Scheme::Http, Some(80)),
            "tcp" => (Scheme::Tcp, None),
            other => return Err(TargetError::Scheme(other.to_owned())),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(TargetError::Credentials);
        }
        let host = match url.host().ok_or_else(|| TargetError::Lacks(url.to_string(), "host"))? {
            Host::Ipv6(address) => address.to_string(),
            Host::Ipv4(address) => address.to_string(),
            // Of other schemes than HTTP the parser reads an IPv4 address as a name; the text is the same.
            Host::Domain(name) => name.to_owned(),
        };
        let lacks_port = || TargetError::Lacks(url.to_string(), "port");
        let port = url.port().or(usual).filter(|port| *port > 0).ok_or_else(lacks_port)?;
        let name = url.host_str().unwrap_or_default();
        let authority = if Some(port) == usual { name.to_owned() } else { format!("{name}:{port}") };
        let path = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        Ok(Target { scheme, authority, path, host, port, url })
    }

    /// The name of a file for the content: the last part of the path, if it is a plain name.
    pub fn file_name(&self) -> Option<&str> {
        if self.scheme == Scheme::Tcp {
            return None;
        }
        let name = self.url.path_segments()?.next_back().unwrap_or_default();
        let name = if name.is_empty() { "index.html" } else { name };
        let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.' | '+');
        let usable = !name.starts_with('.') && name.len() <= 200 && name.chars().all(plain);
        usable.then_some(name)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn urls_that_can_be_fetched() {
        for (text, host, port, authority, path, name) in [
            ("http://server/a/b.bin?x=1", "server", 80, "server", "/a/b.bin?x=1", Some("b.bin")),
            ("10.78.0.1:8080/bytes/1MiB", "10.78.0.1", 8080, "10.78.0.1:8080", "/bytes/1MiB", Some("1MiB")),
            ("http://[fd78::1]:81", "fd78::1", 81, "[fd78::1]:81", "/", Some("index.html")),
            ("http://h/a%2fb", "h", 80, "h", "/a%2fb", None),
            ("http://h/.profile", "h", 80, "h", "/.profile", None),
            ("tcp://10.78.0.1:19", "10.78.0.1", 19, "10.78.0.1:19", "", None),
            ("tcp://[fd78::1]:19", "fd78::1", 19, "[fd78::1]:19", "", None),
        ] {
            let target = Target::parse(text).unwrap();
            assert_eq!((target.host.as_str(), target.port), (host, port), "{text}");
            assert_eq!((target.authority.as_str(), target.path.as_str()), (authority, path), "{text}");
            assert_eq!(target.file_name(), name, "{text}");
        }
    }

    #[test]
    fn urls_that_cannot() {
        let unusable =
            ["", "http://", "https://h/", "ftp://h/", "tcp://h", "http://u:p@h/", "http://h:0/", "http://h:99999/"];
        for text in unusable.into_iter().chain(["file:///etc/passwd"]) {
            assert!(Target::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn redirects_are_relative_to_where_they_are() {
        let here = Target::parse("http://h:81/a/b").unwrap();
        assert_eq!(here.redirected("c").unwrap().url.as_str(), "http://h:81/a/c");
        assert_eq!(here.redirected("//other/x").unwrap().url.as_str(), "http://other/x");
        for location in ["https://h/", "tcp://h:1", "file:///etc/passwd"] {
            assert!(here.redirected(location).is_err(), "{location}");
        }
    }
}
