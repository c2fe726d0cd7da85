//! Coupled ACKs, as mptcp-ns3 has them (`StoreUnOrderedData`): docs/stacks.md.

use crate::common::puppet::Puppet;
use crate::common::{PATTERN, config, server_ip};
use anabranch_engine::{Config, Profile};

/// Bytes 110 to 210 of the stream are next on their subflow and wait for 10 to 110: they are neither acknowledged nor
/// answered, and their repetition is not answered either. What fills the gap is, and acknowledges both.
#[test]
fn what_waits_for_the_stream_and_its_repetition_are_not_answered() {
    for (coupled_acks, silent) in [(true, true), (false, false)] {
        let profile = Profile { coupled_acks, ..Profile::mptcp_ns3() };
        let (mut puppet, line) = Puppet::confirmed(Config { profile, ..config([server_ip(0)]) });
        let early = puppet.map(11, 110, 100);
        puppet.data(line, 11, &PATTERN[110..210], Some(early));
        assert_eq!(puppet.take().is_empty(), silent);
        puppet.data(line, 11, &PATTERN[110..210], Some(early));
        assert_eq!(puppet.take().is_empty(), silent);
        let gap = puppet.map(111, 10, 100);
        puppet.data(line, 111, &PATTERN[10..110], Some(gap));
        assert!(!puppet.take().is_empty());
        assert_eq!(puppet.read, PATTERN[..210]);
    }
}
