//! Random values of an endpoint: keys, nonces, initial sequence numbers, ports.
//!
//! In a simulation all of it comes from the seed. On a real network it must not be guessed by who is not on the path,
//! so there it comes from the driver's entropy: keys and nonces from a ChaCha20 stream, initial sequence numbers as RFC
//! 6528 says, ports at random (RFC 6056 §3.3.1), and timestamps that begin somewhere else for each pair of hosts (RFC
//! 7323 §5.4, Linux `tcp_timestamps` = 1).

use anabranch_units::{Entropy, Instant, Secret, Seed, Stream, SubflowSeq};
use anabranch_wire::FlowKey;
use std::net::IpAddr;
use std::ops::RangeInclusive;

pub(crate) struct Chance {
    stream: Stream,
    secrets: Option<Secrets>,
    /// The port that is tried next in a simulation; at first the first there is.
    next_port: Option<u16>,
}

struct Secrets {
    isn: Secret,
    timestamps: Secret,
}

impl Chance {
    /// Repeatable.
    pub(crate) fn seeded(seed: Seed) -> Self {
        Chance { stream: seed.stream("endpoint"), secrets: None, next_port: None }
    }

    /// Derives the secret from entropy, unpredictable to peers.
    pub(crate) fn secret(entropy: &Entropy) -> Self {
        let secrets = Secrets { isn: entropy.secret("isn"), timestamps: entropy.secret("timestamps") };
        Chance { stream: entropy.stream("endpoint"), secrets: Some(secrets), next_port: None }
    }

    /// Secret that authenticates the SYN cookies of a repeatable host.
    pub(crate) fn seeded_cookies(seed: Seed) -> Secret {
        let mut stream = seed.stream("endpoint/cookies");
        let mut bytes = [0; 32];
        bytes.chunks_exact_mut(8).for_each(|part| part.copy_from_slice(&stream.next_u64().to_be_bytes()));
        Entropy::new(bytes).secret("cookies")
    }

    /// The next 64 random bits.
    pub(crate) fn next_u64(&mut self) -> u64 {
        self.stream.next_u64()
    }

    /// The next 32 random bits.
    pub(crate) fn next_u32(&mut self) -> u32 {
        self.stream.next_u32()
    }

    /// The initial sequence number of a flow of ours. RFC 6528 §3: a clock of 4 µs, so that one flow's next incarnation
    /// begins above the one before, and a secret function of the flow, so that one flow says nothing of another.
    pub(crate) fn isn(&mut self, now: Instant, flow: &FlowKey) -> SubflowSeq {
        let Some(secrets) = &self.secrets else { return SubflowSeq::new(self.stream.next_u32()) };
        let mut message = addresses(flow).to_vec();
        message.extend(flow.src_port.to_be_bytes());
        message.extend(flow.dst_port.to_be_bytes());
        let clock = (now.as_nanos() / 4_000) as u32;
        SubflowSeq::new(clock.wrapping_add(secrets.isn.of(&message)))
    }

    /// Returns the offset added to the clock of timestamps between these hosts. It is the same for all their flows: a
    /// port that is used again goes on where it ended.
    pub(crate) fn timestamp_offset(&self, flow: &FlowKey) -> u32 {
        self.secrets.as_ref().map_or(0, |secrets| secrets.timestamps.of(&addresses(flow)))
    }

    /// Draws one of these ports, which may be in use.
    pub(crate) fn port(&mut self, ports: &RangeInclusive<u16>) -> u16 {
        if self.secrets.is_some() {
            let count = u64::from(ports.end() - ports.start()) + 1;
            return ports.start() + self.stream.below(count) as u16;
        }
        let port = self.next_port.unwrap_or(*ports.start());
        self.next_port = Some(if port >= *ports.end() { *ports.start() } else { port + 1 });
        port
    }
}

/// Both addresses, in one form: an IPv4 address as IPv6 has it (RFC 4291 §2.5.5.2).
pub(crate) fn addresses(flow: &FlowKey) -> [u8; 32] {
    let octets = |ip: IpAddr| match ip {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    };
    let mut both = [0; 32];
    both[..16].copy_from_slice(&octets(flow.src));
    both[16..].copy_from_slice(&octets(flow.dst));
    both
}
