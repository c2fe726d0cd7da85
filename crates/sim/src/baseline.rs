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
    let ends = [(&mut now.subflows, &before.subflows), (&mut now.receiving_subflows, &before.receiving_subflows)];
    for (subflows, before) in ends {
        for subflow in subflows {
            if let Some(before) = before.iter().find(|it| it.stats.id == subflow.stats.id) {
                SUBFLOW.iter().for_each(|statistic| statistic.subtract(&mut subflow.stats, &before.stats));
            }
        }
    }
    now
}
