//! Baselines: what a connection had counted before its first transfer.

use crate::ConnectionOutcome;
use anabranch_engine::{Blocked, ConnectionStats, Overruled, SubflowStats};
use anabranch_units::Duration;

/// Counts since `before`. Positions in the stream, states and the most held at once stay what they are.
pub(crate) fn since(mut now: ConnectionOutcome, before: &ConnectionOutcome) -> ConnectionOutcome {
    let ends = [(&mut now.sender, &before.sender), (&mut now.receiver, &before.receiver)];
    for (stats, before) in ends {
        if let (Some(stats), Some(before)) = (stats, before) {
            subtract_connection(stats, before);
        }
    }
    for subflow in &mut now.subflows {
        if let Some(before) = before.subflows.iter().find(|it| it.stats.id == subflow.stats.id) {
            subtract_subflow(&mut subflow.stats, &before.stats);
        }
    }
    now
}

fn subtract_connection(now: &mut ConnectionStats, before: &ConnectionStats) {
    take(&mut now.segments_received, before.segments_received);
    take(&mut now.ofo_count, before.ofo_count);
    take(&mut now.reinjected, before.reinjected);
    take(&mut now.duplicates, before.duplicates);
    take(&mut now.acks_detoured, before.acks_detoured);
    take(&mut now.acks_kept, before.acks_kept);
    take(&mut now.acks_restored, before.acks_restored);
    take(&mut now.ack_fallbacks, before.ack_fallbacks);
    take(&mut now.probes_sent, before.probes_sent);
    let Overruled { impossible, starving, looping, shares, copies } = before.overruled;
    take(&mut now.overruled.impossible, impossible);
    take(&mut now.overruled.starving, starving);
    take(&mut now.overruled.looping, looping);
    take(&mut now.overruled.shares, shares);
    take(&mut now.overruled.copies, copies);
    take_time(&mut now.ofo_wait, before.ofo_wait);
    take_time(&mut now.hol_blocked, before.hol_blocked);
    let Blocked { cwnd, receive_window, scheduler, application } = before.blocked;
    take_time(&mut now.blocked.cwnd, cwnd);
    take_time(&mut now.blocked.receive_window, receive_window);
    take_time(&mut now.blocked.scheduler, scheduler);
    take_time(&mut now.blocked.application, application);
}

fn subtract_subflow(now: &mut SubflowStats, before: &SubflowStats) {
    take(&mut now.segments_sent, before.segments_sent);
    take(&mut now.bytes_first_sent, before.bytes_first_sent);
    take(&mut now.bytes_sent, before.bytes_sent);
    take(&mut now.retransmitted, before.retransmitted);
    take(&mut now.rtos, before.rtos);
    take(&mut now.fast_recoveries, before.fast_recoveries);
    take(&mut now.reinjected, before.reinjected);
    take(&mut now.bytes_received, before.bytes_received);
}

fn take(count: &mut u64, before: u64) {
    *count = count.saturating_sub(before);
}

fn take_time(time: &mut Duration, before: Duration) {
    *time = time.saturating_sub(before);
}
