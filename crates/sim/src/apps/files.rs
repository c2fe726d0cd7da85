//! Files of given sizes: in turn, in turn on one connection, or without waiting for one another.

use super::gaps::Gaps;
use super::{App, Identity};
use crate::FileOrder;
use crate::session::News;
use crate::stage::Stage;
use anabranch_paths::Direction;
use anabranch_units::{Bytes, Duration, Instant, Stream};
use std::collections::BTreeMap;

pub(super) struct Files {
    identity: Identity,
    sizes: Sizes,
    order: Order,
    start: Instant,
    /// Number of files begun.
    begun: usize,
    /// Transfer and size of the file under way, by session.
    running: BTreeMap<usize, (usize, u64)>,
    failed: bool,
}

/// Sizes of the files.
pub(super) enum Sizes {
    /// Given sizes.
    These(Vec<Bytes>),
    /// Files of this size without end, one after the other.
    Always(Bytes),
}

/// Condition for the next file, and the connection it takes.
pub(super) enum Order {
    /// The one before and a pause; its own connection.
    InTurn(Duration),
    /// The one before and a pause; the connection of all.
    OneConnection(WarmUp),
    /// Its time; its own connection.
    AtOnce(Gaps),
    /// Its time; one of the connections that were opened before.
    Established(WarmUp, Gaps),
}

/// Connections that are opened and used before the first file.
pub(super) struct WarmUp {
    /// Bytes over each connection; zero for none.
    bytes: u64,
    /// Pause after the arrival of the last, and of a file before another on the same connection.
    pause: Duration,
    sessions: Vec<usize>,
    /// Sessions whose warm-up has not arrived.
    cold: usize,
}

impl WarmUp {
    fn new(bytes: Bytes, pause: Duration) -> WarmUp {
        WarmUp { bytes: bytes.get(), pause, sessions: Vec::new(), cold: 0 }
    }
}

impl Order {
    /// The same with what it takes to draw times.
    pub(super) fn of(order: &FileOrder, stream: Stream) -> Order {
        match *order {
            FileOrder::InTurn(think) => Order::InTurn(think),
            FileOrder::OneConnection { warm_up, pause } => Order::OneConnection(WarmUp::new(warm_up, pause)),
            FileOrder::AtOnce(arrivals) => Order::AtOnce(Gaps::new(arrivals.interval, arrivals.spacing, stream)),
            FileOrder::Established { warm_up, pause, arrivals } => {
                let gaps = Gaps::new(arrivals.interval, arrivals.spacing, stream);
                Order::Established(WarmUp::new(warm_up, pause), gaps)
            }
        }
    }

    /// Bytes sent before the first file, with the connections that they warm up.
    fn warm_up(&mut self) -> Option<&mut WarmUp> {
        match self {
            Order::OneConnection(warm_up) | Order::Established(warm_up, _) => Some(warm_up),
            Order::InTurn(_) | Order::AtOnce(_) => None,
        }
    }

    /// The time to the next file where files do not wait for one another.
    fn gap(&mut self) -> Option<Duration> {
        match self {
            Order::AtOnce(gaps) | Order::Established(_, gaps) => Some(gaps.next()),
            Order::InTurn(_) | Order::OneConnection(_) => None,
        }
    }
}

impl Sizes {
    fn nth(&self, n: usize) -> Option<u64> {
        match self {
            Sizes::These(sizes) => sizes.get(n).map(|size| size.get()),
            Sizes::Always(size) => Some(size.get()),
        }
    }

    /// Returns their number; zero for those without end.
    fn count(&self) -> usize {
        match self {
            Sizes::These(sizes) => sizes.len(),
            Sizes::Always(_) => 0,
        }
    }
}

impl Files {
    pub(super) fn new(identity: Identity, sizes: Sizes, order: Order, start: Instant) -> Self {
        Files { identity, sizes, order, start, begun: 0, running: BTreeMap::new(), failed: false }
    }

    /// Opens the connections, and sends over each what warms it.
    fn establish(&mut self, stage: &mut Stage) {
        let count = if matches!(self.order, Order::OneConnection(_)) { 1 } else { self.sizes.count() };
        let Some(warm_up) = self.order.warm_up() else { return };
        let direction = self.identity.direction;
        for n in 1..=count {
            let session = self.identity.open(format!("{} {n}", self.identity.kind), stage);
            stage.expect(session, direction, warm_up.bytes);
            stage.write(session, direction, warm_up.bytes);
            warm_up.sessions.push(session);
            warm_up.cold += 1;
        }
    }

    fn on_warm(&mut self, stage: &mut Stage) {
        let Some(warm_up) = self.order.warm_up() else { return };
        warm_up.cold -= 1;
        if warm_up.cold == 0 {
            stage.set_timer(self.identity.app, stage.now + warm_up.pause, NEXT);
        }
    }

    /// Leaves out of the counts what warmed the connections up.
    fn count_from_here(&mut self, stage: &mut Stage) {
        let sessions = self.order.warm_up().map_or(&[][..], |warm_up| &warm_up.sessions);
        sessions.iter().for_each(|session| stage.count_from_here(*session));
    }

    fn begin_next(&mut self, warm: Option<usize>, stage: &mut Stage) {
        let Some(size) = self.sizes.nth(self.begun) else {
            return;
        };
        let (direction, label) = (self.identity.direction, format!("{} {}", self.identity.kind, self.begun + 1));
        self.begun += 1;
        let session = warm.unwrap_or_else(|| self.identity.open(label.clone(), stage));
        let transfer = stage.begin_transfer(session, direction, label, Some(size));
        self.running.insert(session, (transfer, size));
        let end = stage.target(session, direction) + size;
        stage.expect(session, direction, end);
        match direction {
            Direction::Down => self.identity.request(session, stage),
            Direction::Up => self.send(session, size, stage),
        }
    }

    /// Begins the files whose time has come, and waits for the next.
    fn begin_due(&mut self, stage: &mut Stage) {
        while self.sizes.nth(self.begun).is_some() {
            let warm = match &self.order {
                Order::Established(warm_up, _) => warm_up.sessions.get(self.begun).copied(),
                _ => None,
            };
            self.begin_next(warm, stage);
            match self.order.gap() {
                Some(gap) if !gap.is_zero() => return stage.set_timer(self.identity.app, stage.now + gap, NEXT),
                _ => {}
            }
        }
    }

    /// The sender writes the file, and closes if it is the last on its connection.
    fn send(&self, session: usize, size: u64, stage: &mut Stage) {
        stage.write(session, self.identity.direction, size);
        if !matches!(self.order, Order::OneConnection(_)) || self.sizes.nth(self.begun).is_none() {
            stage.finish(session, self.identity.direction);
        }
    }

    fn on_complete(&mut self, session: usize, stage: &mut Stage) {
        let Some((transfer, _)) = self.running.remove(&session) else {
            return self.on_warm(stage);
        };
        stage.finish_transfer(transfer);
        let is_last = self.sizes.nth(self.begun).is_none();
        match &self.order {
            &Order::InTurn(think) if !is_last => stage.set_timer(self.identity.app, stage.now + think, NEXT),
            Order::OneConnection(warm_up) if !is_last => {
                stage.set_timer(self.identity.app, stage.now + warm_up.pause, session as u32);
            }
            _ => {}
        }
        if is_last || !matches!(self.order, Order::OneConnection(_)) {
            stage.conclude(session);
        }
    }
}

impl App for Files {
    fn begin(&mut self, stage: &mut Stage) {
        let is_warm = self.order.warm_up().is_some_and(|warm_up| warm_up.bytes > 0);
        let first = if is_warm { ESTABLISH } else { NEXT };
        stage.set_timer(self.identity.app, self.start, first);
    }

    fn on_timer(&mut self, token: u32, stage: &mut Stage) {
        if token == NEXT && self.begun == 0 {
            self.count_from_here(stage);
        }
        match (&self.order, token) {
            (_, ESTABLISH) => self.establish(stage),
            (Order::AtOnce(_) | Order::Established(..), _) => self.begin_due(stage),
            (Order::OneConnection(warm_up), NEXT) => {
                let warm = warm_up.sessions.first().copied();
                self.begin_next(warm, stage);
            }
            (_, NEXT) => self.begin_next(None, stage),
            (_, session) => self.begin_next(Some(session as usize), stage),
        }
    }

    fn on_news(&mut self, session: usize, news: News, stage: &mut Stage) {
        match news {
            News::Reached(direction) if direction == self.identity.direction => self.on_complete(session, stage),
            News::Reached(_) => {
                if let Some(&(_, size)) = self.running.get(&session) {
                    self.send(session, size, stage);
                }
            }
            News::Drained(_) => {}
            News::Failed => {
                let was_running = self.running.remove(&session).is_some();
                // Files in turn wait for the one before, which will not come; and all wait for the last warm-up.
                self.failed |= match self.order {
                    Order::InTurn(_) | Order::OneConnection(_) => true,
                    Order::AtOnce(_) => false,
                    Order::Established(..) => !was_running && self.sizes.nth(self.begun).is_some(),
                };
            }
        }
    }

    fn gave_up(&self) -> bool {
        self.failed
    }

    fn is_done(&self) -> bool {
        self.failed || (self.running.is_empty() && self.sizes.nth(self.begun).is_none())
    }
}

/// The token of a file on a new connection, or of one whose time has come; others name the session to go on with.
const NEXT: u32 = u32::MAX;
/// The token that opens connections beforehand.
const ESTABLISH: u32 = u32::MAX - 1;
