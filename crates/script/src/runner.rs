//! Runs a script: virtual time, the codec both ways, and what is left over counts.

use crate::build::build;
use crate::compare::differences;
use crate::describe::{describe, flags_text, shorten};
use crate::error::{Failed, ScriptError};
use crate::event;
use crate::expand::{Item, Variables, items, substitute};
use crate::parse::parse;
use crate::pattern::{Side, matches, pattern};
use crate::peer::{Conversation, Line as Subflow, World};
use crate::settings::Settings;
use crate::statement::{Action, Field, SegmentText, Statement, When};
use crate::stats;
use crate::text::{Line, Source};
use crate::value::{self, time};
use anabranch_engine::{ConnectionId, Endpoint};
use anabranch_units::{Instant, Key, Nonce, SubflowId, SubflowSeq};
use anabranch_wire::{Checksums, Segment, emit, parse as parse_bytes};
use bytes::BytesMut;
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
    let text = std::fs::read_to_string(path)
        .map_err(|error| ScriptError::unreadable(&name, format!("cannot be read: {error}")))?;
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
    /// What the endpoint's subflows are called, those that are gone included.
    names: BTreeMap<(ConnectionId, SubflowId), String>,
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
        change(&mut self.settings)
    }

    fn host(&mut self) -> &mut Endpoint {
        if self.host.is_none() {
            let (host, world) = self.settings.endpoint();
            self.world.pinned = world.pinned;
            self.host = Some(host);
        }
        self.host.as_mut().expect("the endpoint was just made")
    }

    fn subflow(
        &mut self,
        name: &str,
        host: (std::net::IpAddr, Option<u16>),
        peer: std::net::SocketAddr,
        join: Option<&str>,
        fields: &[Field],
        line: &Line,
    ) -> Result<(), ScriptError> {
        let conversation = match join {
            Some(first) => self.world.lines[self.known(first, line)?].conversation,
            None => {
                let n = self.world.conversations.len() as u64;
                // The first has the key of `peer`; the others need only be different.
                let peer_key = Key::new(self.settings.peer_key.get().wrapping_add(n));
                self.world.conversations.push(Conversation { id: None, host_key: None, peer_key, written: 1, read: 1 });
                self.world.conversations.len() - 1
            }
        };
        let n = self.world.lines.len();
        let mut subflow = Subflow::new(name.to_owned(), host, peer, conversation, n);
        for field in fields {
            let raw = field.value.as_deref().and_then(value::number).and_then(|raw| u32::try_from(raw).ok());
            let Some(raw) = raw else {
                let help = "32 bits, for example isn=0xffff_fff0";
                return Err(ScriptError::refused(line, &field.at, format!("`{field}` is refused"), help));
            };
            if field.name == "isn" {
                subflow.peer_isn = SubflowSeq::new(raw);
            } else {
                subflow.peer_nonce = Nonce(raw);
            }
        }
        self.world.lines.push(subflow);
        Ok(())
    }

    fn known(&self, name: &str, line: &Line) -> Result<usize, ScriptError> {
        self.world.line(name).ok_or_else(|| {
            let names = self.world.lines.iter().rev().take(10).map(|line| line.name.as_str());
            let help = format!("declare it: subflow {name} host … peer …; {}", crate::names::suggest(name, names));
            ScriptError::refused(line, &(0..line.text.len()), format!("there is no subflow `{name}`"), help)
        })
    }

    /// The connection that a statement is about: that of the subflow named, otherwise the first.
    fn conversation(&self, on: Option<&str>, line: &Line) -> Result<usize, ScriptError> {
        match on {
            Some(name) => Ok(self.world.lines[self.known(name, line)?].conversation),
            None if self.world.conversations.is_empty() => {
                let help = "declare a subflow first";
                Err(ScriptError::refused(line, &(0..line.text.len()), "there is no connection", help))
            }
            None => Ok(0),
        }
    }

    fn connection(&self, on: Option<&str>, line: &Line) -> Result<(usize, ConnectionId), ScriptError> {
        let at = self.conversation(on, line)?;
        match self.world.conversations[at].id {
            Some(id) => Ok((at, id)),
            None => Err(self.failed(line, "the endpoint has no such connection".to_owned())),
        }
    }

    fn act(&mut self, action: &Action, line: &Line) -> Result<(), ScriptError> {
        let now = self.now;
        match action {
            Action::Nothing => {}
            Action::Inject { subflow, segment } => self.inject(subflow, segment, line)?,
            Action::Listen(port) => self.host().listen(*port),
            Action::Open(name) => {
                let at = self.known(name, line)?;
                let (local, remote) = (self.world.lines[at].host.0, self.world.lines[at].peer);
                let id = self.host().open(now, local, remote);
                let conversation = self.world.lines[at].conversation;
                self.world.conversations[conversation].id = Some(id);
            }
            Action::Write { bytes, takes, on } => {
                let (at, id) = self.connection(on.as_deref(), line)?;
                let start = self.world.conversations[at].written;
                let data = pattern(Side::Host, start, (*bytes).min(1 << 26) as usize);
                let taken = self.host().write(now, id, &data) as u64;
                self.world.conversations[at].written += taken as i64;
                if taken != *takes {
                    return Err(self.failed(line, format!("the write took {taken} bytes, expected {takes}")));
                }
            }
            Action::Read { bytes, on } => self.read(*bytes, on.as_deref(), line)?,
            Action::Shutdown { on } => {
                let (_, id) = self.connection(on.as_deref(), line)?;
                self.host().shutdown(now, id);
            }
            Action::Abort { on } => {
                let (_, id) = self.connection(on.as_deref(), line)?;
                self.host().abort(now, id);
            }
            Action::CloseSubflow(name) | Action::Backup(name, _) => {
                let at = self.known(name, line)?;
                let (_, id) = self.connection(Some(name), line)?;
                let subflows = self.host().subflows(id);
                let found = subflows.iter().rev().find(|one| self.world.named(one.local, one.remote) == Some(at));
                let Some(subflow) = found.map(|one| one.id) else {
                    return Err(self.failed(line, format!("the endpoint has no subflow `{name}`")));
                };
                if let Action::Backup(_, on) = action {
                    self.host().set_backup(now, id, subflow, *on);
                } else if !self.close_subflow(id, subflow) {
                    return Err(self.failed(line, format!("the endpoint does not close `{name}` alone")));
                }
            }
            Action::Carrier(address, up) => self.host().set_carrier(now, *address, *up),
            _ => {}
        }
        self.remember(format!("@{} {}", time(now.as_nanos()), line.text.trim()), action);
        Ok(())
    }

    fn close_subflow(&mut self, id: ConnectionId, subflow: SubflowId) -> bool {
        let now = self.now;
        self.host().close_subflow(now, id, subflow)
    }

    /// Calls are shown as they stand; segments when they pass.
    fn remember(&mut self, shown: String, action: &Action) {
        if !matches!(action, Action::Inject { .. }) {
            self.show(shown);
        }
    }

    fn show(&mut self, shown: String) {
        if self.around.len() == AROUND {
            self.around.pop_front();
        }
        self.around.push_back(shown);
    }

    fn read(&mut self, bytes: u64, on: Option<&str>, line: &Line) -> Result<(), ScriptError> {
        let (at, id) = self.connection(on, line)?;
        let now = self.now;
        let mut got = 0;
        while let Some(chunk) = self.host().read(now, id) {
            let start = self.world.conversations[at].read;
            if !matches(Side::Peer, start, &chunk) {
                let problem = format!("the bytes read from {start} on are not what the peer sent");
                return Err(self.failed(line, problem));
            }
            self.world.conversations[at].read += chunk.len() as i64;
            got += chunk.len() as u64;
        }
        if got != bytes {
            return Err(self.failed(line, format!("there were {got} bytes to read, expected {bytes}")));
        }
        Ok(())
    }

    fn inject(&mut self, name: &str, text: &SegmentText, line: &Line) -> Result<(), ScriptError> {
        let at = self.known(name, line)?;
        let built = build(&self.world, at, text, line)?;
        let segment = through_the_codec(&built).map_err(|problem| {
            let help = "40 bytes of options at most, and one address family";
            ScriptError::refused(line, &(0..line.text.len()), format!("this segment has no bytes: {problem}"), help)
        })?;
        self.world.note(at, Side::Peer, &segment);
        let text = describe(&self.world, at, Side::Peer, &segment);
        self.show(format!("@{} {name} < {}", time(self.now.as_nanos()), shorten(&text)));
        self.passed.injected += 1;
        let now = self.now;
        self.host().handle_segment(now, segment);
        Ok(())
    }

    /// Takes what the endpoint has to say.
    fn pump(&mut self) {
        let now = self.now;
        let Some(host) = &mut self.host else { return };
        let (mut events, mut sent) = (Vec::new(), Vec::new());
        loop {
            let before = events.len() + sent.len();
            while let Some(event) = host.poll_event() {
                events.push(event);
            }
            while let Some(transmit) = host.poll_transmit(now) {
                sent.push(transmit.segment);
            }
            if events.len() + sent.len() == before {
                break;
            }
        }
        if let Err(problem) = host.check(now) {
            self.broken.get_or_insert(format!("an invariant of the endpoint broke: {problem}"));
        }
        for segment in sent {
            self.take(segment);
        }
        for (id, event) in events {
            let at = self.identify(id);
            for stats in self.host().subflows(id) {
                if let Some(line) = self.world.named(stats.local, stats.remote) {
                    self.names.entry((id, stats.id)).or_insert_with(|| self.world.lines[line].name.clone());
                }
            }
            let known = |subflow| self.names.get(&(id, subflow)).cloned();
            let words = event::words(&event, |subflow| known(subflow).unwrap_or_else(|| format!("#{subflow}")));
            self.events.push((at, words));
        }
    }

    /// Which conversation of the script the endpoint's connection `id` is.
    fn identify(&mut self, id: ConnectionId) -> Option<usize> {
        if let Some(at) = self.world.conversations.iter().position(|one| one.id == Some(id)) {
            return Some(at);
        }
        let subflows = self.host().subflows(id);
        let line = subflows.iter().find_map(|one| self.world.named(one.local, one.remote))?;
        let at = self.world.lines[line].conversation;
        self.world.conversations[at].id.get_or_insert(id);
        Some(at)
    }

    fn take(&mut self, segment: Segment) {
        let at = self.now;
        let line = self.world.line_of(&segment.flow);
        match through_the_codec(&segment) {
            Ok(parsed) if parsed == segment => {}
            Ok(_) => {
                self.broken.get_or_insert("a segment of the endpoint is not the same after the codec".to_owned());
            }
            Err(problem) => {
                self.broken.get_or_insert(format!("a segment of the endpoint has no bytes: {problem}"));
            }
        }
        let (text, shown) = match line {
            Some(line) => {
                self.world.note(line, Side::Host, &segment);
                let text = describe(&self.world, line, Side::Host, &segment);
                let shown = format!("{} > {}", self.world.lines[line].name, shorten(&text));
                (text, shown)
            }
            None => {
                let flags = flags_text(segment.flags);
                let shown = format!("({}) > {flags}, on no subflow of the script", segment.flow);
                (SegmentText::default(), shown)
            }
        };
        self.pending.push_back(Sent { at, line, text, shown });
    }

    /// From now to `until`, timer by timer; stops early when `enough` says so.
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
            return Err(ScriptError::refused(line, &(0..line.text.len()), "this happens at one moment", help));
        }
        // What is due at this very moment happens first only if time has to pass.
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
        let mut failed = self.failure(line, format!("the endpoint sent a segment that nobody expected {place}"));
        failed.got = Some(got);
        Err(ScriptError::Failed(Box::new(failed)))
    }

    fn expect(&mut self, when: Option<When>, name: &str, wanted: &SegmentText, line: &Line) -> Result<(), ScriptError> {
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

    fn look(&mut self, action: &Action, line: &Line) -> Result<(), ScriptError> {
        match action {
            Action::Event { words, absent, on } => {
                let at = self.conversation(on.as_deref(), line)?;
                let found = self.events.iter().position(|(of, got)| *of == Some(at) && got.starts_with(words));
                match (found, absent) {
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
                let got = stats::value(host, id, &self.world, name)
                    .map_err(|help| ScriptError::refused(line, at, format!("`{name}` cannot be checked"), help))?;
                match stats::holds(&got, *compare, value) {
                    Some(true) => {}
                    Some(false) => {
                        let mut failed = self.failure(line, format!("{name} is {got}"));
                        failed.expected = Some(line.text.trim().to_owned());
                        return Err(ScriptError::Failed(Box::new(failed)));
                    }
                    None => {
                        let help = format!("it is {got} now; words compare with = and != only");
                        return Err(ScriptError::refused(line, at, "these cannot be compared so", help));
                    }
                }
            }
            Action::Drain { least, most } => {
                let count = self.pending.len() as i128;
                if count < *least || count > *most {
                    return Err(self.failed(line, format!("{count} segments were sent, expected {least} to {most}")));
                }
                self.pending.clear();
            }
            _ => {}
        }
        Ok(())
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

/// The segment as its own bytes have it.
fn through_the_codec(segment: &Segment) -> Result<Segment, String> {
    let mut bytes = BytesMut::new();
    emit(segment, &mut bytes).map_err(|error| error.to_string())?;
    parse_bytes(&bytes.freeze(), Checksums::Verify).map_err(|error| error.to_string())
}
