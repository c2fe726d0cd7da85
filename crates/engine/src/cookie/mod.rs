//! SYN cookies (RFC 4987 §3.6): the answer to a SYN holds all that the next ACK needs to rebuild the connection, so
//! that nothing is kept between the two.
//!
//! With the client's flow and initial sequence number `isn`, and the number `n` of the current period of 64 s:
//! ```text
//! mac  = HMAC-SHA256(secret, flow ‖ isn ‖ n ‖ timestamps)
//! iss  = mac[0..4] + code,  code < 16
//! keys = mac[8..16], mac[16..24], mac[24..32]
//! ```
//! `iss` is our initial sequence number, which the third ACK acknowledges; the first of `keys` whose token is free is
//! our key, which the third ACK repeats (RFC 8684 §3.1). A cookie counts in its period and the next.
//!
//! With timestamps, `code` is one of 16 MSS values, and the lowest six bits of the SYN/ACK's TSval, which the third ACK
//! echoes, are classic ECN, window scale and SACK-permitted (as in Linux). Without them, two bits of `code` are the MSS
//! and two say which of four sets of SACK and window scale is in use, so that clients without timestamps keep SACK and
//! most of their window. Values between those that can be said are rounded down.
//!
//! **Forgery.** A blind ACK is taken if the number it acknowledges is one of 2 periods × 16 codes among 2³²: with
//! probability 2⁻²⁷, or once in 37 minutes at 60,000 ACKs per second, and only within two periods after a cookie was
//! sent. It makes a connection of plain TCP from an address that the forger cannot hear; one of MPTCP takes the key as
//! well (2⁻⁶⁴). Linux has 2⁻²⁹ and neither SACK nor window scale without timestamps.

mod pending;
mod terms;

pub(crate) use pending::{PendingJoin, PendingJoins};
pub(crate) use terms::Terms;

use crate::chance::addresses;
use anabranch_units::{Duration, Instant, Key, Secret, SubflowSeq};
use anabranch_wire::{FlowKey, Segment};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// Handshake that is answered without a trace: its keys are overwritten with zeros when it is dropped.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Cookie {
    /// Our initial sequence number.
    pub(crate) iss: SubflowSeq,
    /// Our key, the first of these whose token is free.
    pub(crate) keys: [Key; 3],
    /// Terms, as far as a cookie can encode them.
    pub(crate) terms: Terms,
}

impl Drop for Cookie {
    fn drop(&mut self) {
        self.keys.zeroize();
    }
}

impl ZeroizeOnDrop for Cookie {}

/// Makes cookies and knows them again.
pub(crate) struct Cookies {
    secret: Secret,
    last_sent: Option<Instant>,
}

impl Cookies {
    pub(crate) fn new(secret: Secret) -> Self {
        Cookies { secret, last_sent: None }
    }

    /// The answer to a SYN of this flow; `None` if its terms cannot be said.
    pub(crate) fn answer(&mut self, now: Instant, flow: &FlowKey, isn: SubflowSeq, terms: Terms) -> Option<Cookie> {
        let code = terms.code()?;
        let mac = self.mac(flow, isn, period(now), terms.timestamps);
        self.last_sent = Some(now);
        Some(cookie(&mac, code, terms.remembered(code)))
    }

    /// The cookie that an ACK answers. `echo` is the timestamp that it echoes, where timestamps may be in use.
    pub(crate) fn answered(&self, now: Instant, ack: &Segment, echo: Option<u32>) -> Option<Cookie> {
        let isn = SubflowSeq::new(ack.seq.get().wrapping_sub(1));
        let iss = ack.ack.get().wrapping_sub(1);
        let latest = period(now);
        [Some(latest), latest.checked_sub(1)].into_iter().flatten().find_map(|period| {
            let mac = self.mac(&ack.flow, isn, period, echo.is_some());
            let code = iss.wrapping_sub(first_word(&mac));
            (code < CODES).then(|| cookie(&mac, code, Terms::from_code(code, echo)))
        })
    }

    /// Tells whether a cookie was sent that may still come back.
    pub(crate) fn are_out(&self, now: Instant) -> bool {
        self.last_sent.is_some_and(|sent| period(now) <= period(sent) + 1)
    }

    /// Returns a number that depends on the flow and that outsiders cannot predict.
    pub(crate) fn place(&self, flow: &FlowKey) -> usize {
        first_word(&self.secret.digest(&message(flow, SubflowSeq::new(0), 0, PLACE))) as usize
    }

    fn mac(&self, flow: &FlowKey, isn: SubflowSeq, period: u64, timestamps: bool) -> Zeroizing<[u8; 32]> {
        self.secret.digest(&message(flow, isn, period, if timestamps { WITH_TIMESTAMPS } else { WITHOUT_TIMESTAMPS }))
    }
}

fn cookie(mac: &[u8; 32], code: u32, terms: Terms) -> Cookie {
    let key = |at: usize| Key::new(mac[at..at + 8].iter().fold(0, |key, byte| key << 8 | u64::from(*byte)));
    Cookie { iss: SubflowSeq::new(first_word(mac).wrapping_add(code)), keys: [key(8), key(16), key(24)], terms }
}

fn first_word(mac: &[u8; 32]) -> u32 {
    u32::from_be_bytes([mac[0], mac[1], mac[2], mac[3]])
}

/// 49 bytes: one block of SHA-256 with its padding.
fn message(flow: &FlowKey, isn: SubflowSeq, number: u64, purpose: u8) -> [u8; 49] {
    let mut message = [0; 49];
    message[..32].copy_from_slice(&addresses(flow));
    message[32..34].copy_from_slice(&flow.src_port.to_be_bytes());
    message[34..36].copy_from_slice(&flow.dst_port.to_be_bytes());
    message[36..40].copy_from_slice(&isn.get().to_be_bytes());
    message[40..48].copy_from_slice(&number.to_be_bytes());
    message[48] = purpose;
    message
}

fn period(now: Instant) -> u64 {
    now.as_nanos() / PERIOD.as_nanos()
}

/// A cookie is good for one to two of these: beyond the third repetition of a SYN/ACK's answer (RFC 6298), as in Linux.
const PERIOD: Duration = Duration::from_secs(64);
/// Range of values added to the authenticator.
const CODES: u32 = 16;
/// Distinguish what is authenticated.
const WITHOUT_TIMESTAMPS: u8 = 0;
const WITH_TIMESTAMPS: u8 = 1;
const PLACE: u8 = 2;

#[cfg(test)]
mod tests;
