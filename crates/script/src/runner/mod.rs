//! Runs a script in virtual time, with the codec in both directions; leftover segments and events are failures.

mod calls;
mod checks;
mod traffic;

use crate::error::{Failed, ScriptError};
use crate::expand::{Item, Variables, items, substitute};
use crate::parse::parse;
use crate::peer::World;
use crate::settings::Settings;
use crate::statement::{Action, SegmentText, Statement, When};
use crate::text::{Line, Source};
use crate::value::time;
use anabranch_engine::{ConnectionId, Endpoint};
use anabranch_units::{Instant, SubflowId, input};
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

/// A script that holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Passed {
    /// Statements carried out, loops unrolled.
    pub statements: u64,
    /// Segments injected.
    pub injected: u64,
    /// Segments of the endpoint that were expected.
    pub expected: u64,
}

/// Runs the script in a file; what it includes is found beside it.
pub fn run_file(path: &Path) -> Result<Passed, ScriptError> {
    let name = path.display().to_string();
    let text =
        input::written(path).map_err(|error| ScriptError::unreadable(&name, format!("cannot be read: {error}")))?;
    run(Source { name: name.into(), text: text.into() }, path.parent())
}

/// Runs a script that stands in `text`; `name` is for messages.
pub fn run_text(name: &str, text: &str) -> Result<Passed, ScriptError> {
    run(Source { name: name.into(), text: text.into() }, None)
}

fn run(source: Source, folder: Option<&Path>) -> Result<Passed, ScriptError> {
    let items = items(&source, folder, 0)?;
    check_syntax(&items, &mut Vec::new())?;
    let mut runner = Runner::new();
    runner.items(&items, &mut Vec::new())?;
    let lines = source.text.lines().count();
    let line = Line { source, number: lines.max(1), start: 0, text: String::new(), verbatim: false };
    runner.nothing_left(&line, "after the end of the script")?;
    Ok(runner.passed)
}

/// Every line is looked at before the first is carried out.
fn check_syntax(items: &[Item], variables: &mut Variables) -> Result<(), ScriptError> {
    for item in items {
        match item {
            Item::Line(line) => {
                parse(&substitute(line, variables)?)?;
            }
            Item::Repeat { name, body, .. } => {
                variables.push((name.clone(), 0));
                check_syntax(body, variables)?;
                variables.pop();
            }
        }
    }
    Ok(())
}

/// A segment that the endpoint sent and no statement has taken.
struct Sent {
    at: Instant,
    line: Option<usize>,
    text: SegmentText,
    shown: String,
}

struct Runner {
    settings: Settings,
    host: Option<Endpoint>,
    world: World,
    now: Instant,
    pending: VecDeque<Sent>,
    events: Vec<(Option<usize>, Vec<String>)>,
    around: VecDeque<String>,
    /// Names of the endpoint's subflows, with those that are gone.
    names: BTreeMap<(ConnectionId, SubflowId), String>,
    /// Segments taken by `drain`.
    drained: u64,
    passed: Passed,
    /// The endpoint broke a promise; reported with the next statement.
    broken: Option<String>,
}

/// Segments and calls shown before a failure.
const AROUND: usize = 8;
/// Statements of one script, loops unrolled.
const MAX_STATEMENTS: u64 = 10_000_000;
/// Deadlines of the endpoint that may fall on one moment.
const MAX_STUCK: u32 = 100_000;

impl Runner {
    fn new() -> Self {
        Runner {
            settings: Settings::default(),
            host: None,
            world: World::default(),
            now: Instant::ZERO,
            pending: VecDeque::new(),
            events: Vec::new(),
            around: VecDeque::new(),
            names: BTreeMap::new(),
            drained: 0,
            passed: Passed::default(),
            broken: None,
        }
    }

    fn items(&mut self, items: &[Item], variables: &mut Variables) -> Result<(), ScriptError> {
        for item in items {
            match item {
                Item::Line(line) => {
                    let line = substitute(line, variables)?;
                    let statement = parse(&line)?;
                    self.statement(&statement, &line)?;
                    if let Some(problem) = self.broken.take() {
                        return Err(self.failed(&line, problem));
                    }
                }
                Item::Repeat { count, name, body } => {
                    for turn in 0..*count {
                        variables.push((name.clone(), i128::from(turn)));
                        self.items(body, variables)?;
                        variables.pop();
                    }
                }
            }
        }
        Ok(())
    }

    fn statement(&mut self, statement: &Statement, line: &Line) -> Result<(), ScriptError> {
        self.passed.statements += 1;
        if self.passed.statements > MAX_STATEMENTS {
            let help = format!("at most {MAX_STATEMENTS} statements, loops unrolled");
            return Err(ScriptError::refused(line, &(0..line.text.len()), "the script does not end", help));
        }
        match &statement.action {
            Action::Host(fields) => return self.set(line, |settings| settings.host(fields, line)),
            Action::Peer(fields) => return self.set(line, |settings| settings.peer(fields, line)),
            Action::Subflow { name, host, peer, join, fields } => {
                return self.subflow(name, *host, *peer, join.as_deref(), fields, line);
            }
            Action::Expect { subflow, segment } => return self.expect(statement.when, subflow, segment, line),
            Action::Event { .. } | Action::Check { .. } | Action::Drain { .. } => {
                self.pass_time(statement.when, line)?;
                return self.look(&statement.action, line);
            }
            _ => {}
        }
        self.pass_time(statement.when, line)?;
        self.nothing_left(line, "here")?;
        self.act(&statement.action, line)?;
        self.pump();
        Ok(())
    }

    fn set(
        &mut self,
        line: &Line,
        change: impl FnOnce(&mut Settings) -> Result<(), ScriptError>,
    ) -> Result<(), ScriptError> {
        if self.host.is_some() {
            let help = "move it before the first statement that lets the endpoint do something";
            return Err(ScriptError::refused(line, &(0..line.text.len()), "the endpoint exists already", help));
        }
        change(&mut self.settings)?;
        self.settings.check(line)
    }

    fn host(&mut self) -> &mut Endpoint {
        if self.host.is_none() {
            let (host, world) = self.settings.endpoint();
            self.world.pinned = world.pinned;
            self.host = Some(host);
        }
        self.host.as_mut().expect("the endpoint was just made")
    }

    /// Advances to `until`, timer by timer; stops early when `enough` returns true.
    fn advance(&mut self, until: Instant, enough: impl Fn(&Self) -> bool) {
        let mut stuck = 0;
        self.pump();
        while !enough(self) {
            let due = self.host.as_ref().and_then(Endpoint::poll_timeout).filter(|due| *due <= until);
            let Some(due) = due else {
                self.now = self.now.max(until);
                return;
            };
            stuck = if due > self.now { 0 } else { stuck + 1 };
            if stuck > MAX_STUCK {
                self.broken.get_or_insert("the endpoint asks again and again for the same moment".to_owned());
                return;
            }
            self.now = self.now.max(due);
            let now = self.now;
            self.host().handle_timeout(now);
            self.pump();
        }
    }

    fn window(&self, when: Option<When>) -> (Instant, Instant) {
        match when {
            None => (self.now, self.now),
            Some(When::After(low, high)) => (self.now + low, self.now + high),
            Some(When::At(low, high)) => (Instant::ZERO + low, Instant::ZERO + high),
        }
    }

    fn pass_time(&mut self, when: Option<When>, line: &Line) -> Result<(), ScriptError> {
        let (low, high) = self.window(when);
        if low != high || low < self.now {
            let help = "one time that has not passed; ranges go with expected segments";
            return Err(ScriptError::refused(
                line,
                &(0..line.text.len()),
                "this statement takes no range of times",
                help,
            ));
        }
        // Events due at this very moment happen first only if time has to pass.
        if low > self.now {
            self.advance(low, |_| false);
        } else {
            self.pump();
        }
        Ok(())
    }

    fn nothing_left(&mut self, line: &Line, place: &str) -> Result<(), ScriptError> {
        let Some(sent) = self.pending.pop_front() else { return Ok(()) };
        let got = format!("@{} {}", time(sent.at.as_nanos()), sent.shown);
        let mut failed =
            self.failure(line, format!("the endpoint sent a segment that the script does not expect {place}"));
        failed.got = Some(got);
        Err(ScriptError::Failed(Box::new(failed)))
    }

    fn failure(&self, line: &Line, problem: String) -> Failed {
        Failed {
            place: line.place(),
            problem,
            expected: None,
            got: None,
            differences: Vec::new(),
            around: self.around.iter().cloned().collect(),
        }
    }

    fn failed(&self, line: &Line, problem: String) -> ScriptError {
        ScriptError::Failed(Box::new(self.failure(line, problem)))
    }
}
