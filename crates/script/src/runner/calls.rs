//! Actions of the peer and of the host's application.

use super::traffic::through_the_codec;
use super::{AROUND, Runner};
use crate::build::build;
use crate::describe::{describe, shorten};
use crate::error::ScriptError;
use crate::pattern::{Side, matches, pattern};
use crate::peer::{Conversation, Line as Subflow};
use crate::statement::{Action, Field, SegmentText};
use crate::text::Line;
use crate::value::{self, time};
use anabranch_engine::{ConnectionId, Read};
use anabranch_units::{Key, Nonce, SubflowId, SubflowSeq};

impl Runner {
    pub(super) fn subflow(
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

    pub(super) fn known(&self, name: &str, line: &Line) -> Result<usize, ScriptError> {
        self.world.line(name).ok_or_else(|| {
            let names = self.world.lines.iter().rev().take(10).map(|line| line.name.as_str());
            let help = format!("declare it: subflow {name} host … peer …; {}", anabranch_units::suggest(name, names));
            ScriptError::refused(line, &(0..line.text.len()), format!("there is no subflow `{name}`"), help)
        })
    }

    /// The connection that a statement is about: that of the subflow named, otherwise the first.
    pub(super) fn conversation(&self, on: Option<&str>, line: &Line) -> Result<usize, ScriptError> {
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

    pub(super) fn act(&mut self, action: &Action, line: &Line) -> Result<(), ScriptError> {
        let now = self.now;
        match action {
            Action::Nothing => {}
            Action::Inject { subflow, segment } => self.inject(subflow, segment, line)?,
            Action::Listen(port) => self.host().listen(*port),
            Action::Open(name) => {
                let at = self.known(name, line)?;
                let (local, remote) = (self.world.lines[at].host.0, self.world.lines[at].peer);
                let opened = self.host().open(now, local, remote);
                let id = opened.map_err(|error| self.failed(line, error.to_string()))?;
                let conversation = self.world.lines[at].conversation;
                self.world.conversations[conversation].id = Some(id);
            }
            Action::Write { bytes, takes, on } => {
                let (at, id) = self.connection(on.as_deref(), line)?;
                let start = self.world.conversations[at].written;
                // The limit keeps a number of a script from taking all memory.
                let data = pattern(Side::Host, start, (*bytes).min(1 << 26) as usize);
                let taken = self.host().write(id, &data).unwrap_or(0) as u64;
                self.world.conversations[at].written += taken as i64;
                if taken != *takes {
                    return Err(self.failed(line, format!("the write took {taken} bytes, expected {takes}")));
                }
            }
            Action::Read { bytes, on } => self.read(*bytes, on.as_deref(), line)?,
            Action::Shutdown { on } => {
                let (_, id) = self.connection(on.as_deref(), line)?;
                self.host().shutdown(id);
            }
            Action::Abort { on } => {
                let (_, id) = self.connection(on.as_deref(), line)?;
                self.host().abort(now, id);
            }
            Action::CloseSubflow(name) | Action::Backup(name, _) => {
                let at = self.known(name, line)?;
                let (_, id) = self.connection(Some(name), line)?;
                let subflows = self.host().subflow_stats(id);
                // Subflows that are gone are listed as well, perhaps on the same addresses: the last is the current
                // one.
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

    pub(super) fn show(&mut self, shown: String) {
        if self.around.len() == AROUND {
            self.around.pop_front();
        }
        self.around.push_back(shown);
    }

    fn read(&mut self, bytes: u64, on: Option<&str>, line: &Line) -> Result<(), ScriptError> {
        let (at, id) = self.connection(on, line)?;
        let mut got = 0;
        while let Ok(Read::Data(chunk)) = self.host().read(id) {
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
        let mut segment = through_the_codec(&built).map_err(|problem| {
            let help = "40 bytes of options at most, and one address family";
            ScriptError::refused(
                line,
                &(0..line.text.len()),
                format!("this segment cannot be encoded: {problem}"),
                help,
            )
        })?;
        self.world.note(at, Side::Peer, &segment);
        let text = describe(&self.world, at, Side::Peer, &segment);
        self.show(format!("@{} {name} < {}", time(self.now.as_nanos()), shorten(&text)));
        self.passed.injected += 1;
        let now = self.now;
        self.host().handle_segment(now, &mut segment);
        Ok(())
    }
}
