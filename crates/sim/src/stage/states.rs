//! Reports of the state of connections to an observer that asks for it. Looking changes nothing.

use super::Stage;
use crate::SessionState;
use crate::address::sender;
use crate::session::Session;
use crate::state::PathInfo;
use anabranch_engine::{ConnectionInfo, SubflowInfo, Wait};
use anabranch_paths::Direction;

impl Stage<'_> {
    /// Tells the state of each connection under test that carries a transfer.
    #[cold]
    pub(crate) fn tell_states(&mut self) {
        let Some(mut state) = self.watch.state.take() else { return };
        for session in 0..self.sessions.len() {
            if self.is_under_test(session) && !self.sessions[session].concluded {
                self.look(session, &mut state);
                if let Some(observer) = &mut self.watch.observer {
                    observer.on_state(&state);
                }
            }
        }
        self.watch.state = Some(state);
    }

    /// Fills in the state of a session now.
    fn look(&mut self, session: usize, state: &mut SessionState) {
        let Session { ends, ids, direction, streams, .. } = &self.sessions[session];
        let (direction, client) = (*direction, self.hosts[ends[0]].place.client);
        let (data, back) = (streams.of(direction), streams.of(direction.reversed()));
        (state.connection, state.at, state.direction) = (session, self.now, direction);
        (state.wanted, state.written, state.read) = (data.target, data.written, data.read);
        // What a middlebox adds to a stream is no request.
        state.asked = back.written.saturating_sub(back.read);
        let sending = sender(direction);
        let fill = |side: usize, kept: &mut Option<ConnectionInfo>| {
            let mut info = kept.take().unwrap_or_default();
            let known = ids[side].is_some_and(|id| self.hosts[ends[side]].endpoint.connection_info(id, &mut info));
            *kept = known.then_some(info);
        };
        fill(sending, &mut state.sender);
        fill(1 - sending, &mut state.receiver);
        let on_path = |it: &SubflowInfo| self.path_in_spec(self.path_between(it.local, it.remote));
        let missing = state.receiver.as_ref().map_or(0, |receiver| receiver.expected);
        let carrier = ids[sending].and_then(|id| self.hosts[ends[sending]].endpoint.first_carrier(id, missing));
        let of_sender = || state.sender.iter().flat_map(|end| &end.subflows);
        state.missing_on = carrier.and_then(|id| of_sender().find(|it| it.id == id)).map(on_path);
        state.paths.fill(PathInfo::default());
        for it in of_sender() {
            let path = &mut state.paths[on_path(it)];
            // Of several subflows of one path, the one that could send first.
            path.wait = path.wait.max(Some(it.wait));
            path.mss = path.mss.max(u64::from(it.mss));
            path.timeouts += it.timeouts;
            path.heard = path.heard.max(it.heard);
        }
        // The sender does not hear of a join before its SYN arrives.
        let joining = |it: &&SubflowInfo| it.wait == Wait::Handshake;
        for it in state.receiver.iter().flat_map(|end| &end.subflows).filter(joining) {
            state.paths[on_path(it)].wait.get_or_insert(Wait::Handshake);
        }
        let first = client * self.topology.paths_per_client();
        for (path, info) in state.paths.iter_mut().enumerate() {
            info.rate = self.topology.state(first + path, direction).rate;
            info.busy_until = self.topology.busy_until(self.now, first + path, direction);
        }
        for rival in (0..self.sessions.len()).filter(|it| !self.is_under_test(*it) && self.has_transfer(*it, direction))
        {
            for used in self.paths_of(rival) {
                for (path, info) in state.paths.iter_mut().enumerate() {
                    info.contended |= self.topology.is_contended(first + path, used, direction);
                }
            }
        }
    }

    /// True if the connection still has data to carry in this direction.
    fn has_transfer(&self, session: usize, direction: Direction) -> bool {
        let Session { concluded, streams, .. } = &self.sessions[session];
        let stream = streams.of(direction);
        !concluded && stream.read < stream.target
    }

    /// The paths of a connection's subflows, by their numbers in the topology.
    fn paths_of(&self, session: usize) -> Vec<usize> {
        let Session { ends, ids, .. } = &self.sessions[session];
        let mut info = ConnectionInfo::default();
        let known = ids[0].is_some_and(|id| self.hosts[ends[0]].endpoint.connection_info(id, &mut info));
        let subflows = info.subflows.iter().filter(|_| known);
        subflows.map(|it| self.path_between(it.local, it.remote)).collect()
    }
}

/// A state to be filled in, for observers that ask for it.
pub(super) fn room(paths: usize) -> SessionState {
    SessionState::new(0, Direction::Down, paths)
}
