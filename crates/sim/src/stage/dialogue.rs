//! Dialogue with endpoints: their events, and the answers of a session's two ends: accept, read, write, close.

use super::Stage;
use crate::address::sender;
use crate::baseline::since;
use crate::host::Side;
use crate::session::{News, Session};
use crate::{ConnectionOutcome, PhaseRecord, SubflowOutcome};
use anabranch_engine::{ConnectionId, ConnectionStats, Event, Read};
use anabranch_paths::Direction;
use anabranch_units::{Instant, SubflowId};
use anabranch_wire::pattern;
use std::net::SocketAddr;

impl Stage<'_> {
    /// Acts on all the host's events; false if there were none but phases of congestion control.
    #[inline]
    pub(crate) fn drain_events(&mut self, host: usize) -> bool {
        let mut any = false;
        while let Some((id, event)) = self.hosts[host].endpoint.poll_event() {
            // Before the application acts on it: it forgets a connection at its end. It knows a connection that it
            // accepts only behind that.
            let is_new = matches!(event, Event::Accepted { .. });
            if !is_new {
                self.watch_event(host, id, event);
            }
            // A look at congestion control, which changes nothing: a run is the same with and without it.
            if let Event::CongestionPhase { subflow, phase } = event {
                self.note_phase(host, id, subflow, phase);
                continue;
            }
            self.on_event(host, id, event);
            if is_new {
                self.watch_event(host, id, event);
            }
            any = true;
        }
        any
    }

    /// Notes that a congestion control is in another phase.
    fn note_phase(&mut self, host: usize, id: ConnectionId, subflow: SubflowId, phase: &'static str) {
        let (place, endpoint) = (self.hosts[host].place, &self.hosts[host].endpoint);
        let Some(connection) = self.hosts[host].session(id) else { return };
        let (at, client) = (self.now, place.client);
        let host = place.role();
        let variables = endpoint.congestion_variables(id, subflow);
        self.phases.push(PhaseRecord { at, client, host, connection, subflow, phase, variables });
    }

    #[inline]
    fn on_event(&mut self, host: usize, id: ConnectionId, event: Event) {
        self.digest.add(code(&event) << 8 ^ host as u64);
        if let Event::Accepted { .. } = event
            && !self.accept(host, id)
        {
            return self.hosts[host].endpoint.abort(self.now, id);
        }
        let Some(session) = self.hosts[host].session(id) else {
            return; // Of a connection that its application has already left.
        };
        let side = self.hosts[host].place.side;
        let (sends, receives) = (side.sends(), side.sends().reversed());
        match event {
            Event::Connected { multipath } | Event::Reopened { multipath } | Event::Accepted { multipath } => {
                if side == Side::Client {
                    self.await_winner(host, id, session);
                }
                self.sessions[session].multipath[side as usize] = multipath;
                self.pump(session, sends);
            }
            Event::Readable => self.drink(host, id, session, receives),
            Event::Writable => self.pump(session, sends),
            Event::PeerFinished => {
                self.drink(host, id, session, receives);
                // Who sees the end of the other's stream ends its own.
                self.finish(session, sends);
            }
            Event::Closed => self.leave(host, id, session),
            Event::Reset => {
                // What had arrived before is there to be read.
                self.drink(host, id, session, receives);
                self.report_failure(session);
                self.leave(host, id, session);
            }
            Event::Fallback(_) => self.sessions[session].fell_back = true,
            // Subflows come and go without the application.
            _ => {}
        }
    }

    /// A connection need not begin where its first SYN went; the server will know it by where it did.
    fn await_winner(&mut self, host: usize, id: ConnectionId, session: usize) {
        let began = self.hosts[host].endpoint.subflow_stats(id).into_iter().find(|subflow| subflow.established);
        if let Some(subflow) = began
            && self.awaited.get(&subflow.local) != Some(&session)
        {
            self.awaited.retain(|_, other| *other != session);
            self.awaited.insert(subflow.local, session);
        }
    }

    /// Finds the session of a connection that the server just learned of.
    fn accept(&mut self, host: usize, id: ConnectionId) -> bool {
        let client = self.hosts[host].endpoint.subflow_stats(id).first().map(|subflow| subflow.remote);
        let path = |client: SocketAddr| self.path_between(client.ip(), client.ip());
        let client = client.map(|client| self.passage.inside(path(client), client));
        let Some((client, &session)) = client.and_then(|client| Some((client, self.awaited.get(&client)?))) else {
            return false;
        };
        // A client that has restarted may use a port again while the server still completes what it knows of it from
        // before.
        let older = |stats: ConnectionStats| stats.opened_at < self.sessions[session].opened;
        if self.hosts[host].endpoint.connection_stats(id).is_some_and(older) {
            return false;
        }
        self.awaited.remove(&client);
        let Session { ids, streams, .. } = &mut self.sessions[session];
        if let Some(stale) = ids[1].replace(id) {
            // The client has begun anew though the server had heard of its first attempt: all of it is said again.
            (streams.up.read, streams.down.written) = (0, 0);
            self.hosts[host].endpoint.abort(self.now, stale);
        }
        self.hosts[host].bind(id, session);
        true
    }

    /// Reads all there is and checks it.
    #[inline]
    fn drink(&mut self, host: usize, id: ConnectionId, session: usize, direction: Direction) {
        let endpoint = &mut self.hosts[host].endpoint;
        let Session { app, concluded, streams, .. } = &mut self.sessions[session];
        let stream = streams.of_mut(direction);
        while let Ok(Read::Data(chunk)) = endpoint.read(id) {
            let intact = pattern::matches(stream.read, &chunk);
            if !intact && self.alters_payload {
                self.altered_bytes += pattern::differences(stream.read, &chunk);
            }
            assert!(
                intact || self.alters_payload,
                "what the application reads is what was written, from byte {} of session {session} on",
                stream.read
            );
            stream.read += chunk.len() as u64;
        }
        assert!(stream.read <= stream.written || self.alters_payload, "no byte is read that was not written");
        if stream.milestone.is_some_and(|milestone| stream.read >= milestone) && !*concluded {
            stream.milestone = None;
            self.news.push_back((*app, session, News::Reached(direction)));
        }
    }

    /// Writes as much as the endpoint takes.
    #[inline]
    pub(super) fn pump(&mut self, session: usize, direction: Direction) {
        let side = sender(direction);
        let Session { app, ends, ids, streams, over, .. } = &mut self.sessions[session];
        let host = ends[side];
        let (Some(id), false) = (ids[side], over[side]) else {
            return;
        };
        let (stream, endpoint) = (streams.of_mut(direction), &mut self.hosts[host].endpoint);
        while stream.written < stream.target {
            let chunk = pattern::slice(stream.written, stream.target - stream.written);
            let (offered, taken) = (chunk.len(), endpoint.write(id, &chunk).unwrap_or(0));
            stream.written += taken as u64;
            if taken < offered {
                break;
            }
        }
        if stream.drains && stream.written == stream.target {
            stream.drains = false;
            self.news.push_back((*app, session, News::Drained(direction)));
        }
        if stream.finish && !stream.shut && stream.written == stream.target {
            stream.shut = true;
            endpoint.shutdown(id);
        }
        self.touch(host);
    }

    pub(super) fn report_failure(&mut self, session: usize) {
        if !self.sessions[session].concluded {
            self.conclude(session);
            self.news.push_back((self.sessions[session].app, session, News::Failed));
        }
    }

    /// The host is through with the connection; nothing of it is kept but its outcome.
    fn leave(&mut self, host: usize, id: ConnectionId, session: usize) {
        self.note_before_leaving(session);
        self.sessions[session].over[self.hosts[host].place.side as usize] = true;
        self.freeze(session);
        self.hosts[host].leave(id);
    }

    /// A host under test loses all its state. Its applications learn that their connections are gone; its peers do not.
    pub(crate) fn restart(&mut self, host: usize) {
        let side = self.hosts[host].place.side as usize;
        for session in 0..self.sessions.len() {
            let Session { ends, ids, over, .. } = &self.sessions[session];
            if ends[side] == host && ids[side].is_some() && !over[side] {
                self.note_before_leaving(session);
                self.report_failure(session);
                let Session { ids, over, .. } = &mut self.sessions[session];
                (ids[side], over[side]) = (None, true);
            }
        }
        self.departures.forget(host);
        self.hosts[host].restart();
        self.alarms.set(host, Instant::MAX);
        self.touch(host);
    }

    /// The connection's statistics as they were when it was concluded, or else as they are now.
    pub(crate) fn final_outcome(&self, session: usize) -> ConnectionOutcome {
        self.sessions[session].outcome.clone().unwrap_or_else(|| self.connection_outcome(session))
    }

    pub(super) fn connection_outcome(&self, session: usize) -> ConnectionOutcome {
        let Session { workload, label, ends, direction, ids, multipath, fell_back, baseline, .. } =
            &self.sessions[session];
        let stats = |side: usize| ids[side].and_then(|id| self.hosts[ends[side]].endpoint.connection_stats(id));
        let side = sender(*direction);
        let (sender, receiver) = (stats(side), stats(1 - side));
        let with_path = |stats: anabranch_engine::SubflowStats| SubflowOutcome {
            path: self.path_in_spec(self.path_between(stats.local.ip(), stats.remote.ip())),
            stats,
        };
        let subflows = |side: usize| {
            let all = ids[side].map_or(Vec::new(), |id| self.hosts[ends[side]].endpoint.subflow_stats(id));
            all.into_iter().map(with_path).collect()
        };
        let outcome = ConnectionOutcome {
            client: self.hosts[ends[0]].place.client,
            workload: *workload,
            label: label.clone(),
            multipath: multipath[0] && !fell_back,
            sender,
            receiver,
            subflows: subflows(side),
            receiving_subflows: subflows(1 - side),
        };
        match baseline {
            None => outcome,
            Some(before) => since(outcome, before),
        }
    }
}

/// Tells events apart in the digest.
fn code(event: &Event) -> u64 {
    match event {
        Event::Readable => 1,
        Event::Writable => 2,
        Event::Connected { multipath } => 3 + u64::from(*multipath),
        Event::Accepted { multipath } => 5 + u64::from(*multipath),
        Event::PeerFinished => 7,
        Event::Closed => 8,
        Event::Reset => 9,
        Event::Fallback(_) => 10,
        Event::SubflowEstablished(subflow) => 11 + (u64::from(subflow.0) << 8),
        Event::SubflowClosed(subflow) => 12 + (u64::from(subflow.0) << 8),
        Event::SubflowReset { subflow, .. } => 13 + (u64::from(subflow.0) << 8),
        Event::SchedulerOverruled(_) => 14,
        Event::Reopened { multipath } => 15 + u64::from(*multipath),
        // Further kinds of events have no number until they get one here.
        _ => 0,
    }
}
