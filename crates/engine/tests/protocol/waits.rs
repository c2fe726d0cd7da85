//! Time for which the engine waits for what never comes.

use crate::common::puppet::{KEY, Line, Puppet, reason};
use crate::common::{client_ip, config};
use anabranch_units::{AddressId, Duration, Nonce, join_hmac};
use anabranch_wire::{Flags, JoinSynAck, MpCapable, MpOption, ResetReason, Segment};

/// A client of two paths whose join on the second has got its SYN/ACK, 20 ms after its SYN, and nothing since.
fn unconfirmed_join() -> (Puppet, Line) {
    let (mut puppet, line) = Puppet::connected(config((0..2).map(client_ip)), MpCapable::OFFER);
    puppet.confirm(line, 1, 0);
    let join = |s: &Segment| {
        s.options.mptcp().iter().find_map(|option| match option {
            MpOption::JoinSyn(join) => Some(*join),
            _ => None,
        })
    };
    let own = puppet.out.iter().find_map(join).unwrap();
    puppet.wait(Duration::from_millis(20));
    let hmac = join_hmac(KEY, puppet.theirs.unwrap(), Nonce(77), own.nonce).first_8();
    let answer = JoinSynAck { backup: false, address: AddressId(0), hmac, nonce: Nonce(77) };
    let second = puppet.answer(MpOption::JoinSynAck(answer));
    (puppet, second)
}

/// A fourth ACK that never comes ends the join after three timeouts of a SYN, with a reason.
#[test]
fn the_wait_for_the_fourth_ack_ends_after_three_timeouts() {
    let (mut puppet, second) = unconfirmed_join();
    let start = puppet.now;
    let reset = loop {
        puppet.wait(Duration::from_millis(10));
        let out = puppet.take();
        if let Some(reset) = out.into_iter().find(|s| second.carries(s) && s.flags.has(Flags::RST)) {
            break reset;
        }
        assert!(puppet.now.since(start) <= Duration::from_millis(3010), "still waiting");
    };
    assert!(puppet.now.since(start) >= Duration::from_millis(2990), "after {}", puppet.now.since(start));
    assert_eq!(reason(&reset), Some(ResetReason::UnacceptablePerformance));
}
