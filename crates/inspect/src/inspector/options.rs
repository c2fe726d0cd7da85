//! MPTCP options other than DSS.

use super::{Inspector, MPTCP, Packet};
use crate::signal::{Signal, What, version_0};
use anabranch_wire::MpOption;

impl Inspector {
    /// MPTCP options other than DSS.
    pub(super) fn options(&mut self, packet: &Packet<'_>) {
        for option in packet.segment.options.mptcp() {
            match option {
                MpOption::Capable(capable) => self.capable(packet, capable),
                MpOption::JoinSyn(join) => self.join(packet, join.token),
                MpOption::JoinSynAck(_) | MpOption::JoinAck(_) => {}
                MpOption::TcpReset { transient, reason } => self.signal(packet, What::Reset(*reason, *transient)),
                MpOption::AddAddr(add) => self.signal(packet, What::AddAddr(*add)),
                MpOption::RemoveAddr(remove) => self.signal(packet, What::RemoveAddr(remove.ids.clone())),
                MpOption::Prio { backup } => self.signal(packet, What::Prio { backup: *backup, address: None }),
                MpOption::Fail { dsn } => self.signal(packet, What::Fail(*dsn)),
                MpOption::FastClose { receiver_key } => self.signal(packet, What::FastClose(*receiver_key)),
            }
        }
        for unknown in packet.segment.options.unknown().iter().filter(|option| option.kind == MPTCP) {
            if let Some(what) = version_0(&unknown.data) {
                self.signal(packet, what);
            }
        }
    }

    pub(super) fn signal(&mut self, packet: &Packet<'_>, what: What) {
        let flow = &mut self.flows[packet.flow];
        let same = |signal: &&mut Signal| signal.from == packet.from && signal.what == what;
        // A priority that is repeated may have changed in between.
        let latest = if matches!(what, What::Prio { .. }) { flow.signals.len().saturating_sub(1) } else { 0 };
        if let Some(known) = flow.signals[latest..].iter_mut().find(same) {
            known.count += 1;
        } else if flow.signals.len() < MOST_SIGNALS {
            flow.signals.push(Signal { at: packet.at, from: packet.from, what, count: 1 });
        } else {
            flow.more_signals += 1;
        }
    }
}

const MOST_SIGNALS: usize = 64;
