//! Events of steering, for readers and as JSON.

use crate::failure::Failure;
use crate::output;
use anabranch_kernel::steer::{Action, Change, Event, Quantity, State, Steering};
use anabranch_lab::format::{KERNEL_STEER, NoContents};
use anabranch_units::Duration;
use serde_json::json;

/// Standard output.
pub(super) struct Events {
    json: bool,
    /// Measurements are printed for readers as well, and nothing but them.
    once: bool,
    changes: u64,
}

impl Events {
    pub(super) fn new(json: bool, once: bool) -> Result<Self, Failure> {
        if json {
            output::print(&format!("{}\n", json!(KERNEL_STEER.document(NoContents {}))))?;
        }
        Ok(Events { json, once, changes: 0 })
    }

    /// Changes so far.
    pub(super) fn changes(&self) -> u64 {
        self.changes
    }

    pub(super) fn path(&self, event: &Event) -> Result<(), Failure> {
        let Event::Path { time, path, addresses, endpoints } = event else { return Ok(()) };
        let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        let text = match (addresses.is_empty(), endpoints.len()) {
            (true, _) => "no address".to_owned(),
            (false, 0) => format!("{}, no endpoint", addresses.join(", ")),
            (false, 1) => format!("{}, endpoint {}", addresses.join(", "), endpoints[0]),
            (false, count) => format!("{}, {count} endpoints", addresses.join(", ")),
        };
        self.print(event, || format!("{time:7.1} s  path {path}: {text}\n"))
    }

    pub(super) fn change(
        &mut self,
        now: Duration,
        steering: &Steering,
        change: Change,
        done: bool,
    ) -> Result<(), Failure> {
        if self.once {
            return Ok(());
        }
        self.changes += 1;
        let Change { path, from, to, reason } = change;
        let path = steering.policy().paths[path].name.clone();
        let event =
            Event::Change { time: now.as_secs_f64(), path: path.clone(), from, to, reason: reason.clone(), done };
        let not = if done { "" } else { " (not done)" };
        self.print(&event, || {
            format!("{:7.1} s  path {path}: {} -> {}{not}: {reason}\n", now.as_secs_f64(), word(from), word(to))
        })
    }

    /// Measurements of all paths: only JSON and `--once` have them.
    pub(super) fn measures(&self, now: Duration, steering: &Steering) -> Result<(), Failure> {
        for (index, path) in steering.policy().paths.iter().enumerate() {
            let measure = &steering.measures()[index];
            let rules = steering.explain(index);
            let text = || {
                let of = |quantity: Quantity| {
                    let value = quantity.of(measure);
                    value.map_or_else(|| "not known".to_owned(), |value| quantity.show(value))
                };
                let up = if measure.up { "up" } else { "no established subflow" };
                let mut text =
                    format!("path {}: {up}, rtt {}, loss {}", path.name, of(Quantity::Rtt), of(Quantity::Loss));
                text += &format!(", {}", of(Quantity::Rate));
                if path.quota.is_some() {
                    text += &format!(", {} of the quota used", of(Quantity::Quota));
                }
                text.push('\n');
                for rule in &rules {
                    let holds = match rule.holds {
                        Some(true) => "holds",
                        Some(false) => "does not hold",
                        None => "is not known",
                    };
                    let then = match rule.then {
                        Action::Backup => "backup",
                        Action::Close => "close",
                        Action::Gate => "gate",
                    };
                    text += &format!("  {then} {holds}: {}\n", rule.condition);
                }
                text
            };
            let event = Event::Measure {
                time: now.as_secs_f64(),
                path: path.name.clone(),
                state: steering.states()[index],
                up: measure.up,
                rtt_ms: measure.rtt_ms,
                loss: measure.loss,
                rate_mbit_s: measure.rate / 1e6,
                used: steering.used(index),
                quota_used: measure.quota_used,
                rules: rules.clone(),
            };
            if self.json || self.once {
                self.print(&event, text)?;
            }
        }
        Ok(())
    }

    pub(super) fn end(&self, event: &Event) -> Result<(), Failure> {
        let Event::End { changes, put_back, .. } = event else { return Ok(()) };
        if self.once && !self.json {
            return Ok(());
        }
        self.print(event, || format!("{changes} changes; {put_back} endpoints put back\n"))
    }

    fn print(&self, event: &Event, text: impl FnOnce() -> String) -> Result<(), Failure> {
        output::print(&if self.json { format!("{}\n", json!(event)) } else { text() })
    }
}

fn word(state: State) -> &'static str {
    match state {
        State::Open => "open",
        State::Gated => "gated",
        State::Backup => "backup",
        State::Closed => "closed",
    }
}
