//! SOCKS version 5 (RFC 1928) with user name and password (RFC 1929), as a server sees it; only CONNECT.

use super::front::{Denial, Host, Request, Step};
use super::settings::Users;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

pub(super) const VERSION: u8 = 5;

/// Reply to a SOCKS4 client: version 0, request rejected, six bytes without meaning.
pub(super) const VERSION_4_REJECTED: [u8; 8] = [0, 0x5b, 0, 0, 0, 0, 0, 0];

/// Message expected next.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Greeting,
    Password,
    Request,
}

const NO_AUTHENTICATION: u8 = 0;
const USER_AND_PASSWORD: u8 = 2;
const NONE_ACCEPTABLE: u8 = 0xff;

pub(super) const SUCCEEDED: u8 = 0;
const GENERAL_FAILURE: u8 = 1;
const NOT_ALLOWED: u8 = 2;
const NETWORK_UNREACHABLE: u8 = 3;
const HOST_UNREACHABLE: u8 = 4;
const CONNECTION_REFUSED: u8 = 5;
const COMMAND_NOT_SUPPORTED: u8 = 7;
const ADDRESS_TYPE_NOT_SUPPORTED: u8 = 8;

/// The methods on offer (RFC 1928 §3): the answer, and what follows.
pub(super) fn greeting(buffer: &[u8], with_password: bool) -> Step<([u8; 2], Stage)> {
    let [VERSION, count, rest @ ..] = buffer else { return Step::Short };
    let Some(methods) = rest.get(..usize::from(*count)) else { return Step::Short };
    let (method, next) =
        if with_password { (USER_AND_PASSWORD, Stage::Password) } else { (NO_AUTHENTICATION, Stage::Request) };
    if methods.contains(&method) {
        Step::Done(2 + methods.len(), ([VERSION, method], next))
    } else {
        Step::Refuse(vec![VERSION, NONE_ACCEPTABLE], "no authentication method in common")
    }
}

/// Name and password (RFC 1929 §2): the answer.
pub(super) fn password(buffer: &[u8], users: Option<&Users>) -> Step<[u8; 2]> {
    let Some(&version) = buffer.first() else { return Step::Short };
    if version != 1 {
        return Step::Refuse(vec![1, 1], "not a user name and password");
    }
    let Some((name, after)) = counted(&buffer[1..]) else { return Step::Short };
    let Some((password, _)) = counted(after) else { return Step::Short };
    if users.is_some_and(|users| users.admits(name, password)) {
        Step::Done(3 + name.len() + password.len(), [1, 0])
    } else {
        Step::Refuse(vec![1, 1], "wrong user name or password")
    }
}

/// The request (RFC 1928 §4).
pub(super) fn request(buffer: &[u8]) -> Step<Request> {
    if buffer[0] != VERSION {
        return Step::Refuse(reply(GENERAL_FAILURE, None), "not a SOCKS5 request");
    }
    let [_, command, _, kind, rest @ ..] = buffer else { return Step::Short };
    if *command != 1 {
        return Step::Refuse(reply(COMMAND_NOT_SUPPORTED, None), "a SOCKS command other than CONNECT");
    }
    let (host, after) = match kind {
        1 => match rest.split_first_chunk::<4>() {
            Some((octets, after)) => (Some(Host::Address(Ipv4Addr::from(*octets).into())), after),
            None => return Step::Short,
        },
        3 => match counted(rest) {
            Some((name, after)) => (std::str::from_utf8(name).ok().and_then(Host::parse), after),
            None => return Step::Short,
        },
        4 => match rest.split_first_chunk::<16>() {
            Some((octets, after)) => (Some(Host::Address(IpAddr::from(Ipv6Addr::from(*octets)).to_canonical())), after),
            None => return Step::Short,
        },
        _ => return Step::Refuse(reply(ADDRESS_TYPE_NOT_SUPPORTED, None), "an unknown SOCKS address type"),
    };
    let Some((port, after)) = after.split_first_chunk::<2>() else { return Step::Short };
    match (host, u16::from_be_bytes(*port)) {
        (Some(host), port @ 1..) => Step::Done(buffer.len() - after.len(), Request { host, port }),
        _ => Step::Refuse(reply(GENERAL_FAILURE, None), "a destination with an invalid name or port 0"),
    }
}

/// A byte that counts the bytes after it.
fn counted(buffer: &[u8]) -> Option<(&[u8], &[u8])> {
    let (count, rest) = buffer.split_first()?;
    rest.split_at_checked(usize::from(*count))
}

/// The answer to a request (RFC 1928 §6).
pub(super) fn reply(code: u8, bound: Option<SocketAddr>) -> Vec<u8> {
    let bound = bound.unwrap_or(SocketAddr::from(([0, 0, 0, 0], 0)));
    let mut bytes = vec![VERSION, code, 0];
    match bound.ip() {
        IpAddr::V4(address) => {
            bytes.push(1);
            bytes.extend(address.octets());
        }
        IpAddr::V6(address) => {
            bytes.push(4);
            bytes.extend(address.octets());
        }
    }
    bytes.extend(bound.port().to_be_bytes());
    bytes
}

pub(super) fn code(why: Denial) -> u8 {
    match why {
        Denial::ConnectionRefused => CONNECTION_REFUSED,
        Denial::TimedOut | Denial::NoSuchName => HOST_UNREACHABLE,
        Denial::Unreachable => NETWORK_UNREACHABLE,
        Denial::NotAllowed => NOT_ALLOWED,
        Denial::Busy => GENERAL_FAILURE,
    }
}
