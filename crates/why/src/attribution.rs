//! Attribution: the one limit of a moment, for the connection and for each of its paths.
//!
//! Several limits often hold at once. The order of precedence for the connection, each step with its reason:
//!
//! 1. [`Limit::Handshake`]: before the sender may send, nothing else matters.
//! 2. [`Limit::Request`] and [`Limit::ApplicationSends`]: the receiver has read all that the application has written.
//!    No window and no path can be a limit of nothing.
//! 3. [`Limit::Join`], [`Limit::PathDown`] and [`Limit::PathFull`]: every path that may carry data sends without a
//!    pause. Whatever else is used up, more of it would only make queues longer; one more path would help.
//! 4. Some path idles from here on. Nothing unsent: [`Limit::SendBuffer`] if the application was not allowed to write
//!    more, [`Limit::ApplicationReads`], [`Limit::HeadOfLine`] if the receiver holds data behind a hole, else
//!    [`Limit::InFlight`]. These come before all windows: without data to send no window is used up.
//! 5. The peer's window admits nothing: [`Limit::ApplicationReads`] if data lies there unread, [`Limit::HeadOfLine`] if
//!    it is held behind a hole, else [`Limit::PeerWindow`]. It binds all paths at once, so it comes before what binds
//!    one.
//! 6. Otherwise each idle path has a limit of its own, and the connection has that of the idle path with the highest
//!    rate: it is the one whose limit leaves most unused. [`Limit::Timeout`], [`Limit::SlowStart`],
//!    [`Limit::CongestionWindow`], [`Limit::Pacing`], [`Limit::PeerWindow`] of the subflow alone,
//!    [`Limit::Nagle`], and [`Limit::Scheduler`] where there is room.
//!
//! A path idles when its slowest link has nothing to send. Where competing TCP keeps that link busy, it idles as well
//! when the connection has nothing to send on it, or may not: its share would be larger if it did. The precedence of
//! the full path over windows is where this differs from web100 and Linux, which see only the sender and count a window
//! that only fills a queue.

use crate::{Cause, Limit};
use anabranch_engine::{ConnectionInfo, Wait};
use anabranch_sim::{PathInfo, SessionState};

/// A state of a connection, and which of its paths are busy.
pub(crate) struct Moment<'a> {
    pub(crate) state: &'a SessionState,
    /// True for each path whose slowest link sends.
    pub(crate) busy: &'a [bool],
    /// The sender holds a short segment back while data is under way (RFC 9293 §3.7.4).
    pub(crate) nagle: bool,
}

impl Moment<'_> {
    /// Returns the limit of the connection.
    pub(crate) fn connection(&self) -> Cause {
        let Some(sender) = self.open_sender() else { return Cause::of_all(Limit::Handshake) };
        if let Some(idle) = self.nothing_to_carry() {
            return idle;
        }
        let joining = self.fastest(|path| self.is_joining(path)).map(|path| Cause::of(Limit::Join, path));
        let carrying = || self.usable().map(|(path, _)| path).filter(|path| !self.is_joining(*path));
        let down = self.down().map(|path| Cause::of(Limit::PathDown, path));
        let Some(first) = carrying().next() else {
            // No subflow is left that could carry anything: one has to be joined, or the connection set up again.
            return joining.or(down).unwrap_or(Cause::of_all(Limit::Handshake));
        };
        if carrying().all(|path| self.is_down(path)) {
            return joining.or(down).unwrap_or(Cause::of(Limit::PathDown, first));
        }
        if carrying().all(|path| self.is_full(path) || self.is_down(path)) {
            let full = Cause { limit: Limit::PathFull, path: Some(first).filter(|_| carrying().count() == 1) };
            return joining.or(down).unwrap_or(full);
        }
        if let Some(shared) = self.shared_limit(sender) {
            return shared;
        }
        let idle = self.fastest(|path| !self.is_joining(path) && !self.is_full(path));
        idle.map_or(Cause::of_all(Limit::InFlight), |path| self.own_limit(sender, path))
    }

    /// Returns the limit of a path.
    pub(crate) fn path(&self, path: usize) -> Cause {
        if self.is_down(path) {
            return Cause::of(Limit::PathDown, path);
        }
        let Some(wait) = self.state.paths[path].wait else { return Cause::of(Limit::Unused, path) };
        let Some(sender) = self.open_sender() else { return Cause::of(Limit::Handshake, path) };
        match wait {
            Wait::Handshake => Cause::of(Limit::Join, path),
            _ if self.is_full(path) => Cause::of(Limit::PathFull, path),
            Wait::SetAside => Cause::of(Limit::Unused, path),
            _ => match self.nothing_to_carry().or_else(|| self.shared_limit(sender)) {
                // The missing data itself is under way here.
                Some(Cause { limit: Limit::HeadOfLine, path: Some(by) }) if by == path => {
                    Cause::of(Limit::InFlight, path)
                }
                Some(Cause { limit: Limit::InFlight, .. }) => Cause::of(Limit::InFlight, path),
                Some(shared) => shared,
                None => self.own_limit(sender, path),
            },
        }
    }

    fn open_sender(&self) -> Option<&ConnectionInfo> {
        self.state.sender.as_ref().filter(|sender| sender.open)
    }

    /// The limit where the receiver has read all that was to be written.
    fn nothing_to_carry(&self) -> Option<Cause> {
        let SessionState { read, wanted, asked, .. } = *self.state;
        let limit = if asked > 0 { Limit::Request } else { Limit::ApplicationSends };
        (read >= wanted).then_some(Cause::of_all(limit))
    }

    /// A limit that binds all paths: there is nothing unsent, or the peer's window admits none of it.
    fn shared_limit(&self, sender: &ConnectionInfo) -> Option<Cause> {
        let missing_on = self.state.missing_on;
        if sender.unsent == 0 {
            if self.state.written < self.state.wanted {
                return Some(Cause { limit: Limit::SendBuffer, path: missing_on });
            }
            return Some(self.held_back().unwrap_or(Cause { limit: Limit::InFlight, path: missing_on }));
        }
        // A part of a segment is not sent either while more is under way (RFC 9293 §3.8.6.2.1).
        let mss = self.usable().map(|(_, info)| info.mss).max().unwrap_or(0);
        let is_silly = sender.sendable < sender.unsent.min(mss) && sender.outstanding > 0;
        (sender.sendable == 0 || is_silly).then(|| self.window())
    }

    /// The reason for which the peer's window is used up.
    fn window(&self) -> Cause {
        self.held_back().unwrap_or(Cause::of_all(Limit::PeerWindow))
    }

    /// The reason for which data that has arrived is not read.
    fn held_back(&self) -> Option<Cause> {
        let receiver = self.state.receiver.as_ref()?;
        if receiver.unread > 0 {
            return Some(Cause::of_all(Limit::ApplicationReads));
        }
        // Where the missing data was never sent, the scheduler has left it out: that is no hole of a path.
        (receiver.held > 0).then_some(())?;
        match self.state.missing_on {
            Some(path) => Some(Cause::of(Limit::HeadOfLine, path)),
            None => Some(Cause::of_all(Limit::Scheduler)),
        }
    }

    /// The limit of a path alone, which idles.
    fn own_limit(&self, sender: &ConnectionInfo, path: usize) -> Cause {
        let info = &self.state.paths[path];
        let limit = match info.wait {
            Some(Wait::Timeout) => Limit::Timeout,
            Some(Wait::SlowStart) => Limit::SlowStart,
            Some(Wait::CongestionWindow) => Limit::CongestionWindow,
            Some(Wait::Pacing) => Limit::Pacing,
            Some(Wait::PeerWindow) => return self.window(),
            // No scheduler is asked about a segment that Nagle's algorithm holds.
            Some(Wait::Room) if self.nagle && sender.unsent < info.mss && sender.outstanding > 0 => Limit::Nagle,
            // One subflow has no choice: it waits for the rest of a segment (Nagle, RFC 9293 §3.7.4).
            Some(Wait::Room) if self.usable().count() == 1 && sender.unsent < info.mss => Limit::ApplicationSends,
            _ => Limit::Scheduler,
        };
        Cause::of(limit, path)
    }

    /// The paths with a subflow that policies are shown, or that is being joined.
    fn usable(&self) -> impl Iterator<Item = (usize, &PathInfo)> {
        let all = self.state.paths.iter().enumerate();
        let some_are_up = self.has_rate();
        all.filter(move |(_, info)| {
            let dead = info.rate.is_zero() && some_are_up;
            info.wait.is_some_and(|wait| wait != Wait::SetAside) && !dead
        })
    }

    /// True if some path with a subflow is up.
    fn has_rate(&self) -> bool {
        let shown = |info: &&PathInfo| info.wait.is_some_and(|wait| wait != Wait::SetAside);
        self.state.paths.iter().filter(shown).any(|info| !info.rate.is_zero())
    }

    /// True if a path sends without a pause, and what holds back the connection there comes of that.
    fn is_full(&self, path: usize) -> bool {
        let info = &self.state.paths[path];
        let by_path = matches!(info.wait, Some(Wait::SlowStart | Wait::CongestionWindow | Wait::Pacing));
        self.busy[path] && (by_path || !info.contended)
    }

    fn is_down(&self, path: usize) -> bool {
        self.state.paths[path].rate.is_zero()
    }

    /// The first path that is down.
    fn down(&self) -> Option<usize> {
        (0..self.state.paths.len()).find(|path| self.is_down(*path))
    }

    fn is_joining(&self, path: usize) -> bool {
        self.state.paths[path].wait == Some(Wait::Handshake)
    }

    /// The usable path with the highest rate among those that count; of equals the first.
    fn fastest(&self, counts: impl Fn(usize) -> bool) -> Option<usize> {
        let counted = self.usable().filter(|(path, _)| counts(*path));
        counted.reduce(|best, next| if next.1.rate > best.1.rate { next } else { best }).map(|(path, _)| path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_paths::Direction;
    use anabranch_units::Rate;

    /// A download over two paths of 10 and 20 Mbit/s: data waits, the peer's window is open, and both have room.
    fn state() -> SessionState {
        let mut state = SessionState::new(0, Direction::Down, 2);
        (state.wanted, state.written, state.read) = (1_000_000, 1_000_000, 0);
        let mut sender = ConnectionInfo::default();
        (sender.open, sender.unsent, sender.sendable, sender.outstanding) = (true, 500_000, 100_000, 50_000);
        (state.sender, state.receiver) = (Some(sender), Some(ConnectionInfo::default()));
        for (path, mbps) in state.paths.iter_mut().zip([10, 20]) {
            (path.rate, path.wait, path.mss) = (Rate::from_mbps(mbps), Some(Wait::Room), 1460);
        }
        state
    }

    fn sender(state: &mut SessionState) -> &mut ConnectionInfo {
        state.sender.as_mut().expect("it is there")
    }

    fn receiver(state: &mut SessionState) -> &mut ConnectionInfo {
        state.receiver.as_mut().expect("it is there")
    }

    #[track_caller]
    fn expect(change: impl FnOnce(&mut SessionState), busy: [bool; 2], expected: Cause) {
        let mut state = state();
        change(&mut state);
        assert_eq!(Moment { state: &state, busy: &busy, nagle: false }.connection(), expected);
    }

    const IDLE: [bool; 2] = [false; 2];

    #[test]
    fn each_limit_is_found_in_its_place() {
        use Limit as L;
        expect(|it| it.sender = None, IDLE, Cause::of_all(L::Handshake));
        expect(|it| sender(it).open = false, IDLE, Cause::of_all(L::Handshake));
        expect(|it| (it.read, it.asked) = (it.wanted, 100), IDLE, Cause::of_all(L::Request));
        expect(|it| it.read = it.wanted, IDLE, Cause::of_all(L::ApplicationSends));
        expect(|_| (), [true; 2], Cause::of_all(L::PathFull));
        expect(|it| it.paths[1].wait = None, [true, false], Cause::of(L::PathFull, 0));
        // Others keep the links busy: only what comes of a full link is one.
        let contend = |wait| {
            move |it: &mut SessionState| {
                it.paths.iter_mut().for_each(|path| (path.contended, path.wait) = (true, Some(wait)))
            }
        };
        expect(contend(Wait::CongestionWindow), [true; 2], Cause::of_all(L::PathFull));
        expect(contend(Wait::Room), [true; 2], Cause::of(L::Scheduler, 1));
        expect(contend(Wait::Timeout), [true; 2], Cause::of(L::Timeout, 1));
        expect(|it| it.paths[1].wait = Some(Wait::Handshake), [true, false], Cause::of(L::Join, 1));
        expect(|_| (), IDLE, Cause::of(L::Scheduler, 1));
        expect(|_| (), [false, true], Cause::of(L::Scheduler, 0));
        let waits = [
            (Wait::Timeout, L::Timeout),
            (Wait::SlowStart, L::SlowStart),
            (Wait::CongestionWindow, L::CongestionWindow),
            (Wait::Pacing, L::Pacing),
        ];
        for (wait, limit) in waits {
            expect(|it| it.paths[1].wait = Some(wait), IDLE, Cause::of(limit, 1));
        }
    }

    #[test]
    fn a_path_that_is_down_is_named_where_the_others_are_full() {
        use Limit as L;
        let dies = |it: &mut SessionState| it.paths[1].rate = Rate::from_bps(0);
        expect(dies, [true, false], Cause::of(L::PathDown, 1));
        expect(dies, IDLE, Cause::of(L::Scheduler, 0));
        // Its subflow may be gone as well, and both may be down.
        let gone = |it: &mut SessionState| (it.paths[1].rate, it.paths[1].wait) = (Rate::from_bps(0), None);
        expect(gone, [true, false], Cause::of(L::PathDown, 1));
        expect(
            |it| it.paths.iter_mut().for_each(|path| path.rate = Rate::from_bps(0)),
            IDLE,
            Cause::of(L::PathDown, 0),
        );
    }

    #[test]
    fn the_window_says_why_it_is_used_up() {
        use Limit as L;
        let shut = |it: &mut SessionState| sender(it).sendable = 0;
        expect(shut, IDLE, Cause::of_all(L::PeerWindow));
        expect(|it| sender(it).sendable = 1000, IDLE, Cause::of_all(L::PeerWindow));
        let hole = |it: &mut SessionState| {
            shut(it);
            (receiver(it).held, it.missing_on) = (9000, Some(0));
        };
        expect(hole, IDLE, Cause::of(L::HeadOfLine, 0));
        // More room for data would not make a full path faster.
        expect(hole, [true; 2], Cause::of_all(L::PathFull));
        let unread = |it: &mut SessionState| {
            hole(it);
            receiver(it).unread = 1;
        };
        expect(unread, IDLE, Cause::of_all(L::ApplicationReads));
    }

    #[test]
    fn without_data_to_send_no_window_is_named() {
        use Limit as L;
        let sent = |it: &mut SessionState| {
            (sender(it).unsent, sender(it).sendable, it.missing_on) = (0, 0, Some(1));
            it.paths[1].wait = Some(Wait::CongestionWindow);
        };
        expect(sent, IDLE, Cause::of(L::InFlight, 1));
        expect(
            |it| {
                sent(it);
                it.wanted += 1;
            },
            IDLE,
            Cause::of(L::SendBuffer, 1),
        );
        expect(
            |it| {
                sent(it);
                receiver(it).held = 1;
            },
            IDLE,
            Cause::of(L::HeadOfLine, 1),
        );
    }

    #[test]
    fn a_path_has_the_limit_that_it_waits_for_itself() {
        let mut state = state();
        (state.paths[0].wait, state.paths[1].wait) = (Some(Wait::SetAside), Some(Wait::SlowStart));
        let limits =
            |busy: [bool; 2]| [0, 1].map(|path| Moment { state: &state, busy: &busy, nagle: false }.path(path).limit);
        assert_eq!(limits(IDLE), [Limit::Unused, Limit::SlowStart]);
        assert_eq!(limits([true; 2]), [Limit::PathFull; 2]);
    }
}
