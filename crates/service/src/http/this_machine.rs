//! Names of this machine, for services that only programs on it are to use.
//!
//! A page of any site can have its own name resolved to 127.0.0.1 (DNS rebinding). Its browser then takes our answers
//! for those of the site, and hands them to its scripts. Such a request names the site in `Host`.

use std::net::{IpAddr, Ipv6Addr};

/// Returns true if the value of `Host` or the authority of an origin names a loopback address, `localhost`, or `bound`.
///
/// Any port is right: that of a tunnel (`ssh -L 8000:127.0.0.1:9000`) is not ours.
pub(crate) fn names_this_machine(authority: &str, bound: IpAddr) -> bool {
    let address = match authority.strip_prefix('[').map(|rest| rest.split_once(']')) {
        Some(Some((inside, port))) if is_port(port) => inside.parse::<Ipv6Addr>().map(IpAddr::V6).ok(),
        Some(_) => None,
        None => {
            let name = match authority.split_once(':') {
                Some((name, port)) if is_digits(port) => name,
                Some(_) => return false,
                None => authority,
            };
            if name.strip_suffix('.').unwrap_or(name).eq_ignore_ascii_case("localhost") {
                return true;
            }
            name.parse().ok()
        }
    };
    address.is_some_and(|address| address.to_canonical().is_loopback() || address == bound)
}

/// Returns true if the field `Origin` names a page of this machine that has the authority `host`.
pub(crate) fn is_same_origin(origin: &str, host: &str) -> bool {
    origin.strip_prefix("http://").is_some_and(|authority| authority.eq_ignore_ascii_case(host))
}

fn is_port(behind: &str) -> bool {
    behind.is_empty() || behind.strip_prefix(':').is_some_and(is_digits)
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn loopback_and_the_bound_address_are_this_machine() {
        let bound = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));
        for ours in [
            "localhost",
            "LocalHost:8000",
            "localhost.:80",
            "127.0.0.1",
            "127.0.0.1:8000",
            "127.9.9.9:1",
            "[::1]",
            "[::1]:8000",
            "[::ffff:127.0.0.1]:80",
            "192.0.2.7:8000",
        ] {
            assert!(names_this_machine(ours, bound), "{ours}");
        }
        for other in [
            "",
            "evil.example",
            "evil.example:8000",
            "localhost.evil.example",
            "localhost:80:80",
            "127.0.0.1.evil.example",
            "192.0.2.8",
            "0.0.0.0",
            "[::]:80",
            "[::1",
            "[::1]x",
            "::1",
            "127.1",
            "2130706433",
            "localhost@evil.example",
            "evil.example#localhost",
        ] {
            assert!(!names_this_machine(other, bound), "{other}");
        }
    }

    #[test]
    fn another_port_is_another_origin() {
        assert!(is_same_origin("http://LOCALHOST:8000", "localhost:8000"));
        for other in ["http://localhost:8001", "https://localhost:8000", "http://evil.example", "null", ""] {
            assert!(!is_same_origin(other, "localhost:8000"), "{other}");
        }
    }
}
