//! Output of the endpoint: segments through the codec, events by name.

use super::{Runner, Sent};
use crate::describe::{describe, flags_text, shorten};
use crate::event;
use crate::pattern::Side;
use crate::statement::SegmentText;
use anabranch_engine::ConnectionId;
use anabranch_wire::{Checksums, Segment, emit, parse as parse_bytes};
use bytes::BytesMut;

impl Runner {
    /// Takes the endpoint's events and segments.
    pub(super) fn pump(&mut self) {
        let now = self.now;
        let Some(host) = &mut self.host else { return };
        let (mut events, mut sent) = (Vec::new(), Vec::new());
        loop {
            let before = events.len() + sent.len();
            while let Some(event) = host.poll_event() {
                events.push(event);
            }
            while let Some(transmit) = host.poll_transmit(now) {
                sent.push(*transmit.segment);
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
            for stats in self.host().subflow_stats(id) {
                if let Some(line) = self.world.named(stats.local, stats.remote) {
                    self.names.entry((id, stats.id)).or_insert_with(|| self.world.lines[line].name.clone());
                }
            }
            let known = |subflow| self.names.get(&(id, subflow)).cloned();
            let words = event::words(&event, |subflow| known(subflow).unwrap_or_else(|| format!("#{subflow}")));
            self.events.push((at, words));
        }
    }

    /// Returns the conversation of the script that the endpoint's connection `id` belongs to.
    fn identify(&mut self, id: ConnectionId) -> Option<usize> {
        if let Some(at) = self.world.conversations.iter().position(|one| one.id == Some(id)) {
            return Some(at);
        }
        let subflows = self.host().subflow_stats(id);
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
                self.broken.get_or_insert(format!("a segment of the endpoint cannot be encoded: {problem}"));
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
                let flags = flags_text(&segment);
                let shown = format!("({}) > {flags}, on no subflow of the script", segment.flow);
                (SegmentText::default(), shown)
            }
        };
        self.pending.push_back(Sent { at, line, text, shown });
    }
}

/// The segment as its own bytes have it.
pub(super) fn through_the_codec(segment: &Segment) -> Result<Segment, String> {
    let mut bytes = BytesMut::new();
    emit(segment, &mut bytes).map_err(|error| error.to_string())?;
    parse_bytes(&bytes.freeze(), Checksums::Verify).map_err(|error| error.to_string())
}
