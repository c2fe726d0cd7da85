//! Baselines: what a connection had counted before its first transfer.

use crate::ConnectionOutcome;
use anabranch_engine::statistics::{CONNECTION, SUBFLOW};

/// Counts since `before`. Positions in the stream, states and the most held at once stay what they are.
pub(crate) fn since(mut now: ConnectionOutcome, before: &ConnectionOutcome) -> ConnectionOutcome {
    let ends = [(&mut now.sender, &before.sender), (&mut now.receiver, &before.receiver)];
    for (stats, before) in ends {
        if let (Some(stats), Some(before)) = (stats, before) {
            CONNECTION.iter().for_each(|statistic| statistic.subtract(stats, before));
        }
    }
    for subflow in &mut now.subflows {
        if let Some(before) = before.subflows.iter().find(|it| it.stats.id == subflow.stats.id) {
            SUBFLOW.iter().for_each(|statistic| statistic.subtract(&mut subflow.stats, &before.stats));
        }
    }
    now
}
