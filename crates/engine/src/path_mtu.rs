//! Packet sizes: the MTU of our own devices, and limits that a path reports or shows.
//!
//! RFC 1191 and RFC 8201 (a router says what fits), RFC 5927 §7.2 (whether it may be believed), and RFC 4821 in one
//! part: a path that swallows large packets without a word. What is found lasts ten minutes; then full segments are
//! tried again. There is no search upwards below the device's MTU.

use crate::Profile;
use anabranch_units::{Duration, Instant};
use anabranch_wire::FlowKey;
use std::net::IpAddr;

/// The MTUs of our devices, as far as the driver told.
#[derive(Debug, Default)]
pub(crate) struct Mtus(Vec<(IpAddr, u16)>);

/// Largest packet that a path carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PathMtu {
    pub(crate) mtu: u16,
    /// Time at which larger packets are tried again.
    pub(crate) until: Instant,
}

impl Mtus {
    /// The device with this address has this MTU; `None` forgets it.
    pub(crate) fn set(&mut self, local: IpAddr, mtu: Option<u16>) {
        self.0.retain(|(address, _)| *address != local);
        self.0.extend(mtu.map(|mtu| (local, mtu)));
    }

    /// The MSS option for a subflow of this flow (RFC 9293 §3.7.1): what fits our device.
    pub(crate) fn mss(&self, flow: &FlowKey, profile: &Profile) -> u16 {
        let known = self.0.iter().find(|(address, _)| *address == flow.src);
        known.map_or_else(|| profile.mss_towards(flow.dst), |(_, mtu)| segment_in(*mtu, flow))
    }
}

impl PathMtu {
    pub(crate) fn new(now: Instant, mtu: u16) -> Self {
        PathMtu { mtu, until: now + LIFETIME }
    }
}

/// Returns the payload that fits a packet of this size beside the headers without options.
pub(crate) fn segment_in(mtu: u16, flow: &FlowKey) -> u16 {
    mtu.saturating_sub(if flow.dst.is_ipv6() { 60 } else { 40 })
}

/// Bounds a router's report from below, by the smallest MTU of the protocol. IPv6 links carry 1280 (RFC 8200 §5);
/// IPv4's 68 is a way to make us send nothing but headers (RFC 5927 §7.1), so it is 552 as in Linux
/// (`net.ipv4.route.min_pmtu`).
pub(crate) fn believable(mtu: u32, flow: &FlowKey) -> u16 {
    let least = if flow.dst.is_ipv6() { 1280 } else { 552 };
    u16::try_from(mtu).unwrap_or(u16::MAX).max(least)
}

/// The MSS of a peer that does not name one (RFC 9293 §3.7.1).
pub(crate) fn default_mss(flow: &FlowKey) -> u16 {
    if flow.dst.is_ipv6() { 1220 } else { 536 }
}

/// Returns the next size to try below `mtu` on a path that silently drops large packets. The smallest is every IPv6
/// link's, or for IPv4 the size that every host accepts (RFC 4821 §7.2 begins at 1024).
pub(crate) fn smaller(mtu: u16, flow: &FlowKey) -> Option<u16> {
    let steps: &[u16] = if flow.dst.is_ipv6() { &[1400, 1280] } else { &[1400, 1280, 1024, 576] };
    steps.iter().copied().find(|step| *step < mtu)
}

/// RFC 1191 §6.3, RFC 8201 §4: not asked again for ten minutes.
const LIFETIME: Duration = Duration::from_secs(600);
