//! The statistics of an endpoint, its connections and their subflows, each described once.
//!
//! A new statistic is a field of [`ConnectionStats`], [`SubflowCounts`] or [`Counters`], with its description beside
//! it, and the line that counts. All outputs follow from the field: JSON, CSV, Parquet, tables, Prometheus, the checks
//! of scripts, the metrics of studies.

mod counters;
mod stats;

pub use counters::Counters;
pub use stats::{Blocked, ConnectionStats, Ended, Load, Misconduct, Overruled, SubflowCounts, SubflowStats};

use crate::FallbackReason;
use anabranch_units::statistic::{Access, Change, Shown, Statistic, Value};
use anabranch_wire::ResetReason;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The tables that outputs are made from.
#[derive(Clone, Copy)]
pub struct Tables<'a> {
    /// Statistics of an endpoint, over all its connections.
    pub endpoint: &'a [Statistic<Counters>],
    /// Statistics of one end of a connection.
    pub connection: &'a [Statistic<ConnectionStats>],
    /// Statistics of one end of a subflow.
    pub subflow: &'a [Statistic<SubflowStats>],
}

impl Tables<'static> {
    /// Tables of the engine.
    pub const ENGINE: Self = Tables { endpoint: ENDPOINT, connection: CONNECTION, subflow: SUBFLOW };
}

/// The statistics of an endpoint.
pub const ENDPOINT: &[Statistic<Counters>] = Counters::STATISTICS;

/// The statistics of one end of a connection.
pub const CONNECTION: &[Statistic<ConnectionStats>] = ConnectionStats::STATISTICS;

/// The statistics of one end of a subflow.
pub const SUBFLOW: &[Statistic<SubflowStats>] = SubflowStats::STATISTICS;

pub(crate) const FALLBACKS: Access<Counters> = Access::Counts {
    each: "fallback",
    label: "reason",
    get: |counters| {
        // Those that did not happen too: a rate of Prometheus needs a first value.
        let count = |reason| counters.fallbacks.get(&reason).copied().unwrap_or(0);
        FallbackReason::ALL.into_iter().map(|reason| (Cow::Borrowed(reason.name()), count(reason))).collect()
    },
    change: |sum, other, change| by_key(&mut sum.fallbacks, &other.fallbacks, change),
};

pub(crate) const RESETS_SENT: Access<Counters> = Access::Counts {
    each: "reset-sent",
    label: "reason",
    get: |counters| by_reason(&counters.resets_sent),
    change: |sum, other, change| by_key(&mut sum.resets_sent, &other.resets_sent, change),
};

pub(crate) const RESET_REASONS_RECEIVED: Access<Counters> = Access::Counts {
    each: "reset-received",
    label: "reason",
    get: |counters| by_reason(&counters.reset_reasons_received),
    change: |sum, other, change| by_key(&mut sum.reset_reasons_received, &other.reset_reasons_received, change),
};

pub(crate) const OVERRULED: Access<ConnectionStats> = Access::Counts {
    each: "overruled",
    label: "kind",
    get: |stats| {
        let Overruled { impossible, starving, looping, shares, copies } = stats.overruled;
        let kinds = [
            ("impossible", impossible),
            ("starving", starving),
            ("looping", looping),
            ("shares", shares),
            ("copies", copies),
        ];
        kinds.map(|(kind, count)| (Cow::Borrowed(kind), count)).into()
    },
    change: |sum, other, change| {
        let Overruled { impossible, starving, looping, shares, copies } = &mut sum.overruled;
        change(impossible, other.overruled.impossible);
        change(starving, other.overruled.starving);
        change(looping, other.overruled.looping);
        change(shares, other.overruled.shares);
        change(copies, other.overruled.copies);
    },
};

impl std::ops::AddAssign<&Counters> for Counters {
    /// Adds the counts of another endpoint.
    fn add_assign(&mut self, other: &Counters) {
        ENDPOINT.iter().for_each(|statistic| statistic.add(self, other));
    }
}

fn by_reason(counts: &BTreeMap<ResetReason, u64>) -> BTreeMap<Cow<'static, str>, u64> {
    counts.iter().map(|(reason, count)| (reason.name(), *count)).collect()
}

fn by_key<K: Copy + Ord>(sum: &mut BTreeMap<K, u64>, other: &BTreeMap<K, u64>, change: Change) {
    other.iter().for_each(|(key, count)| change(sum.entry(*key).or_default(), *count));
}

impl Shown for FallbackReason {
    fn shown(&self) -> Value {
        Value::Word(Cow::Borrowed(self.name()))
    }
}

impl Shown for Ended {
    fn shown(&self) -> Value {
        Value::Word(Cow::Borrowed(self.name()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_kebab_case_and_so_are_those_derived_from_them() {
        fn check<S>(table: &[Statistic<S>]) {
            for names in [Statistic::<S>::snake, Statistic::<S>::column, Statistic::<S>::metric] {
                let all: BTreeSet<String> = table.iter().map(names).collect();
                assert_eq!(all.len(), table.len(), "{all:?}");
            }
            for statistic in table {
                let plain = |c: char| c.is_ascii_lowercase() || c == '-';
                assert!(statistic.name.chars().all(plain), "{}", statistic.name);
                assert!(!statistic.about.ends_with('.'), "{}", statistic.about);
            }
        }
        check(ENDPOINT);
        check(CONNECTION);
        check(SUBFLOW);
    }

    #[test]
    fn counters_of_endpoints_add_up() {
        let mut one = Counters { joins_refused: 2, ..Counters::default() };
        one.fallbacks.insert(FallbackReason::SynAck, 1);
        let mut sum = one.clone();
        sum += &one;
        assert_eq!((sum.joins_refused, sum.fallbacks[&FallbackReason::SynAck]), (4, 2));
    }
}
