//! Expectations of a script: segments, events, numbers.

use super::Runner;
use crate::compare::differences;
use crate::error::ScriptError;
use crate::statement::{Action, SegmentText, When};
use crate::stats;
use crate::text::Line;
use crate::value::time;

impl Runner {
    pub(super) fn expect(
        &mut self,
        when: Option<When>,
        name: &str,
        wanted: &SegmentText,
        line: &Line,
    ) -> Result<(), ScriptError> {
        let at = self.known(name, line)?;
        let (low, high) = self.window(when);
        let here = |runner: &Self| runner.pending.iter().position(|sent| sent.line == Some(at) || sent.line.is_none());
        self.advance(high, |runner| here(runner).is_some());
        let stated = format!("{name} > {wanted}");
        let Some(index) = here(self) else {
            let mut failed =
                self.failure(line, format!("nothing was sent on `{name}` until {}", time(high.as_nanos())));
            failed.expected = Some(stated);
            if let Some(other) = self.pending.front() {
                failed.got = Some(format!("@{} {}", time(other.at.as_nanos()), other.shown));
            }
            return Err(ScriptError::Failed(Box::new(failed)));
        };
        let sent = self.pending.remove(index).expect("the segment was just found");
        let mut found = differences(wanted, &sent.text);
        if sent.line.is_none() {
            found = vec!["subflow: no subflow of the script has these addresses".to_owned()];
        }
        if sent.at < low || sent.at > high {
            let span = if low == high {
                time(low.as_nanos())
            } else {
                format!("{}..{}", time(low.as_nanos()), time(high.as_nanos()))
            };
            found.insert(0, format!("time: expected @{span}, got @{}", time(sent.at.as_nanos())));
        }
        let shown = format!("@{} {}", time(sent.at.as_nanos()), sent.shown);
        if !found.is_empty() {
            let mut failed = self.failure(line, "another segment was sent than expected".to_owned());
            (failed.expected, failed.got, failed.differences) = (Some(stated), Some(shown), found);
            return Err(ScriptError::Failed(Box::new(failed)));
        }
        self.show(shown);
        self.passed.expected += 1;
        Ok(())
    }

    pub(super) fn look(&mut self, action: &Action, line: &Line) -> Result<(), ScriptError> {
        match action {
            Action::Event { words, absent, on } => {
                let at = self.conversation(on.as_deref(), line)?;
                let found = self.events.iter().position(|(of, got)| *of == Some(at) && got.starts_with(words));
                match (found, absent) {
                    // Events before the one found are dropped with it: a script states them in their order.
                    (Some(index), false) => drop(self.events.drain(..=index)),
                    (Some(index), true) => {
                        let got = self.events[index].1.join(" ");
                        return Err(self.failed(line, format!("the application heard `{got}`")));
                    }
                    (None, true) => {}
                    (None, false) => {
                        let heard: Vec<String> = self.events.iter().map(|(_, words)| words.join(" ")).collect();
                        let heard = if heard.is_empty() { "nothing".to_owned() } else { heard.join(", ") };
                        let problem = format!("the application did not hear `{}`, but {heard}", words.join(" "));
                        return Err(self.failed(line, problem));
                    }
                }
            }
            Action::Check { name, compare, value, on, at } => {
                let id = if self.world.conversations.is_empty() {
                    None
                } else {
                    self.world.conversations[self.conversation(on.as_deref(), line)?].id
                };
                self.host();
                let host = self.host.as_ref().expect("the endpoint was just made");
                let drained = || Ok(self.drained.to_string());
                let got = if name == "drained" { drained() } else { stats::value(host, id, &self.world, name) };
                let got =
                    got.map_err(|help| ScriptError::refused(line, at, format!("`{name}` cannot be checked"), help))?;
                match stats::holds(&got, *compare, value) {
                    Some(true) => {}
                    Some(false) => {
                        let mut failed = self.failure(line, format!("{name} is {got}"));
                        failed.expected = Some(line.text.trim().to_owned());
                        return Err(ScriptError::Failed(Box::new(failed)));
                    }
                    None => {
                        let help = format!("accepted: = and !=; the value is {got}");
                        return Err(ScriptError::refused(
                            line,
                            at,
                            "words cannot be compared with this operator",
                            help,
                        ));
                    }
                }
            }
            Action::Drain { least, most } => {
                let count = self.pending.len() as i128;
                if count < *least || count > *most {
                    return Err(self.failed(line, format!("{count} segments were sent, expected {least} to {most}")));
                }
                self.drained += self.pending.len() as u64;
                self.pending.clear();
            }
            _ => {}
        }
        Ok(())
    }
}
