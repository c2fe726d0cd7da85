//! Baselines: what a connection had counted before its first transfer.

use crate::ConnectionOutcome;
use anabranch_engine::{Blocked, ConnectionStats, Overruled, SubflowStats};

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

fn subtract_connection(stats: &mut ConnectionStats, before: &ConnectionStats) {
    stats.segments_received = stats.segments_received.saturating_sub(before.segments_received);
    stats.ofo_count = stats.ofo_count.saturating_sub(before.ofo_count);
    stats.ofo_wait = stats.ofo_wait.saturating_sub(before.ofo_wait);
    stats.reinjected = stats.reinjected.saturating_sub(before.reinjected);
    stats.duplicates = stats.duplicates.saturating_sub(before.duplicates);
    stats.acks_detoured = stats.acks_detoured.saturating_sub(before.acks_detoured);
    stats.acks_kept = stats.acks_kept.saturating_sub(before.acks_kept);
    stats.acks_restored = stats.acks_restored.saturating_sub(before.acks_restored);
    stats.ack_fallbacks = stats.ack_fallbacks.saturating_sub(before.ack_fallbacks);
    stats.probes_sent = stats.probes_sent.saturating_sub(before.probes_sent);
    let Overruled { impossible, starving, looping, shares, copies } = &mut stats.overruled;
    let earlier = before.overruled;
    let counts = [impossible, starving, looping, shares, copies];
    let earlier = [earlier.impossible, earlier.starving, earlier.looping, earlier.shares, earlier.copies];
    counts.into_iter().zip(earlier).for_each(|(count, before)| *count = count.saturating_sub(before));
    stats.hol_blocked = stats.hol_blocked.saturating_sub(before.hol_blocked);
    let Blocked { cwnd, receive_window, scheduler, application } = &mut stats.blocked;
    *cwnd = cwnd.saturating_sub(before.blocked.cwnd);
    *receive_window = receive_window.saturating_sub(before.blocked.receive_window);
    *scheduler = scheduler.saturating_sub(before.blocked.scheduler);
    *application = application.saturating_sub(before.blocked.application);
}

fn subtract_subflow(stats: &mut SubflowStats, before: &SubflowStats) {
    stats.segments_sent = stats.segments_sent.saturating_sub(before.segments_sent);
    stats.bytes_first_sent = stats.bytes_first_sent.saturating_sub(before.bytes_first_sent);
    stats.bytes_sent = stats.bytes_sent.saturating_sub(before.bytes_sent);
    stats.retransmitted = stats.retransmitted.saturating_sub(before.retransmitted);
    stats.rtos = stats.rtos.saturating_sub(before.rtos);
    stats.fast_recoveries = stats.fast_recoveries.saturating_sub(before.fast_recoveries);
    stats.reinjected = stats.reinjected.saturating_sub(before.reinjected);
    stats.bytes_received = stats.bytes_received.saturating_sub(before.bytes_received);
}
