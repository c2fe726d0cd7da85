//! Messages between the two hosts, in UDP datagrams on each path.
//!
//! ```text
//!  0      8      9    10      12         16      24     32       40
//!  | name | kind | 0 | count | interval | nonce | echo | digest | count times: two ports, path, family
//! ```
//! Numbers are in network order. A probe has a nonce that cannot be guessed; its reply gives it back as `echo`, and so
//! does the next probe of the other host: what it says of subflows counts only then. So nobody who does not see the
//! packets of a path can answer in place of the other host.

use super::maps::{FlowPorts, KnownFlow};

/// Kind of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Asks for a reply, and lists subflows.
    Probe = 1,
    /// Answers a probe.
    Reply = 2,
    /// Says that this host will restore no more.
    Farewell = 3,
}

/// A message, with ports as the host that sent it sees them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Message {
    pub(super) kind: Kind,
    /// Time from one round of probes to the next \[ms\].
    pub(super) interval: u32,
    pub(super) nonce: u64,
    /// Latest nonce of the other host on this path.
    pub(super) echo: u64,
    /// Digest of the list of paths.
    pub(super) digest: u64,
    /// Subflows whose ACKs the sender restores.
    pub(super) flows: Vec<KnownFlow>,
}

/// Name and version of the format.
const NAME: &[u8; 8] = b"anabACK1";
const HEADER: usize = 40;
const FLOW: usize = 6;

/// Subflows in one message: it fits an MTU of 1280 bytes.
pub(super) const FLOWS: usize = 196;

/// Size of the longest message \[bytes\].
pub(super) const LONGEST: usize = HEADER + FLOWS * FLOW;

impl Message {
    /// Returns the bytes of the message. `flows` beyond [`FLOWS`] are left out.
    pub(super) fn encode(&self) -> Vec<u8> {
        let flows = &self.flows[..self.flows.len().min(FLOWS)];
        let mut bytes = Vec::with_capacity(HEADER + flows.len() * FLOW);
        bytes.extend(NAME);
        bytes.extend([self.kind as u8, 0]);
        bytes.extend((flows.len() as u16).to_be_bytes());
        bytes.extend(self.interval.to_be_bytes());
        for number in [self.nonce, self.echo, self.digest] {
            bytes.extend(number.to_be_bytes());
        }
        for flow in flows {
            bytes.extend(flow.ports.local.to_be_bytes());
            bytes.extend(flow.ports.remote.to_be_bytes());
            bytes.extend([flow.path as u8, if flow.ports.ipv6 { 6 } else { 4 }]);
        }
        bytes
    }

    /// Reads a message; `None` if it is none, or has more or less bytes than it says.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(NAME)?;
        let (&[kind, _], rest) = rest.split_first_chunk()?;
        let kind = match kind {
            1 => Kind::Probe,
            2 => Kind::Reply,
            3 => Kind::Farewell,
            _ => return None,
        };
        let (count, rest) = rest.split_first_chunk()?;
        let (interval, rest) = rest.split_first_chunk()?;
        let (nonce, rest) = rest.split_first_chunk()?;
        let (echo, rest) = rest.split_first_chunk()?;
        let (digest, rest) = rest.split_first_chunk()?;
        if rest.len() != usize::from(u16::from_be_bytes(*count)) * FLOW {
            return None;
        }
        let flow = |bytes: &[u8]| {
            let &[a, b, c, d, path, family] = bytes else { return None };
            let ports = FlowPorts {
                local: u16::from_be_bytes([a, b]),
                remote: u16::from_be_bytes([c, d]),
                ipv6: match family {
                    4 => false,
                    6 => true,
                    _ => return None,
                },
            };
            Some(KnownFlow { ports, path: path.into() })
        };
        Some(Message {
            kind,
            interval: u32::from_be_bytes(*interval),
            nonce: u64::from_be_bytes(*nonce),
            echo: u64::from_be_bytes(*echo),
            digest: u64::from_be_bytes(*digest),
            flows: rest.chunks(FLOW).map(flow).collect::<Option<_>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(flows: usize) -> Message {
        let flow = |n: usize| KnownFlow {
            ports: FlowPorts { local: 443, remote: 50_000 + n as u16, ipv6: n % 2 == 1 },
            path: n % 8,
        };
        Message {
            kind: Kind::Probe,
            interval: 200,
            nonce: 1 << 63,
            echo: 7,
            digest: 0x0102_0304_0506_0708,
            flows: (0..flows).map(flow).collect(),
        }
    }

    #[test]
    fn what_is_written_is_read() {
        for flows in [0, 1, 2, FLOWS] {
            let bytes = message(flows).encode();
            assert!(bytes.len() <= LONGEST);
            assert_eq!(Message::decode(&bytes), Some(message(flows)));
        }
        assert_eq!(Message::decode(&message(FLOWS + 5).encode()), Some(message(FLOWS)));
    }

    #[test]
    fn anything_else_is_refused() {
        let bytes = message(2).encode();
        for length in 0..bytes.len() {
            assert_eq!(Message::decode(&bytes[..length]), None, "{length} bytes");
        }
        assert_eq!(Message::decode(&[&bytes[..], &[0]].concat()), None);
        for (place, value) in [(0, b'b'), (8, 0), (8, 4), (11, 3), (45, 5)] {
            let mut other = bytes.clone();
            other[place] = value;
            assert_eq!(Message::decode(&other), None, "byte {place}");
        }
    }
}
