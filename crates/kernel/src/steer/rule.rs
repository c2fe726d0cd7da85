//! Progress of a rule on a path: begun, lasting, ended.

use super::{Measure, Rule};
use anabranch_units::Duration;

/// Progress of a rule on a path.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Time since which the condition holds that would change it.
    since: Option<Duration>,
    /// Time of the latest look at which the condition was known.
    known: Option<Duration>,
    applied: Option<Applied>,
    /// Times that it began again soon after a try.
    in_vain: u32,
    /// End of the latest try.
    tried: Option<Duration>,
}

/// A rule that applies.
#[derive(Debug)]
struct Applied {
    since: Duration,
    reason: String,
}

/// A break in the measurements up to this length does not end a run of them.
const GAP: Duration = Duration::from_secs(2);
/// The time until a try is doubled this often at most: 32 minutes from 30 seconds.
const MOST_DOUBLED: u32 = 6;

impl Progress {
    /// Reason for which it applies; `None` if it does not.
    pub(super) fn reason(&self) -> Option<&str> {
        self.applied.as_ref().map(|it| it.reason.as_str())
    }

    /// Takes in a look. Returns the reason if it ends now.
    pub(super) fn step(&mut self, now: Duration, rule: &Rule, measure: &Measure) -> Option<String> {
        let Some(applied) = &self.applied else {
            if self.lasts(now, rule.when.holds(measure), rule.during) {
                // A try was in vain if it did not last as long as the wait for it.
                let soon = self.tried.is_some_and(|at| now.saturating_sub(at) < rule.retry + rule.during);
                self.in_vain = if soon { (self.in_vain + 1).min(MOST_DOUBLED) } else { 0 };
                let reason = match rule.during.is_zero() {
                    true => rule.when.explain(measure),
                    false => format!("{}, for {} s", rule.when.explain(measure), rule.during.as_secs_f64()),
                };
                self.applied = Some(Applied { since: now, reason });
                (self.since, self.known) = (None, Some(now));
            }
            return None;
        };
        let since = applied.since;
        let over = match &rule.until {
            Some(until) => until.holds(measure),
            None => rule.when.holds(measure).map(|holds| !holds),
        };
        if over.is_some() {
            self.known = Some(now);
        }
        let wait = Duration::from_nanos(rule.retry.as_nanos().saturating_mul(1 << self.in_vain));
        let unknown_for = now.saturating_sub(self.known.unwrap_or(since).max(since));
        let reason = if self.lasts(now, over, rule.during) && now.saturating_sub(since) >= rule.hold {
            self.tried = None;
            let told = rule.until.as_ref().unwrap_or(&rule.when);
            told.explain(measure)
        } else if over.is_none() && unknown_for >= wait {
            self.tried = Some(now);
            format!("tried again: nothing was measured for {:.0} s", unknown_for.as_secs_f64())
        } else {
            return None;
        };
        (self.applied, self.since, self.known) = (None, None, None);
        Some(reason)
    }

    /// Returns true once a condition held for so long without a break.
    fn lasts(&mut self, now: Duration, holds: Option<bool>, during: Duration) -> bool {
        match holds {
            Some(true) => self.since = self.since.or(Some(now)),
            Some(false) => self.since = None,
            // Unknown for longer than a gap: what was measured before says nothing of now.
            None if self.known.is_none_or(|at| now.saturating_sub(at) > GAP) => self.since = None,
            None => {}
        }
        if holds.is_some() {
            self.known = Some(now);
        }
        holds == Some(true) && self.since.is_some_and(|since| now.saturating_sub(since) >= during)
    }
}
