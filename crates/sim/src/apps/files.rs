//! Files of given sizes: at once, in turn, or in turn on one connection.

use super::{App, Identity};
use crate::Direction;
use crate::session::News;
use crate::stage::Stage;
use anabranch_units::{Bytes, Duration, Instant};
use std::collections::BTreeMap;

pub(super) struct Files {
    identity: Identity,
    sizes: Sizes,
    order: Order,
    start: Instant,
    /// How many were begun.
    begun: usize,
    /// By session: the transfer and the size of the file under way.
    running: BTreeMap<usize, (usize, u64)>,
    failed: bool,
}

/// Which files.
pub(super) enum Sizes {
    /// These.
    These(Vec<Bytes>),
    /// One after the other of this size, without end.
    Always(Bytes),
}

/// In which order, with which pause.
#[derive(Clone, Copy)]
pub(super) enum Order {
    /// Each on its own connection, all at the start.
    AtOnce,
    /// Each on its own connection, after the one before.
    InTurn(Duration),
    /// On one connection.
    OneConnection(Duration),
}

impl Sizes {
    fn nth(&self, n: usize) -> Option<u64> {
        match self {
            Sizes::These(sizes) => sizes.get(n).map(|size| size.get()),
            Sizes::Always(size) => Some(size.get()),
        }
    }
}

impl Files {
    pub(super) fn new(identity: Identity, sizes: Sizes, order: Order, start: Instant) -> Self {
        Files { identity, sizes, order, start, begun: 0, running: BTreeMap::new(), failed: false }
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

    /// The sender writes the file, and closes if it is the last on its connection.
    fn send(&self, session: usize, size: u64, stage: &mut Stage) {
        stage.write(session, self.identity.direction, size);
        if !matches!(self.order, Order::OneConnection(_)) || self.sizes.nth(self.begun).is_none() {
            stage.finish(session, self.identity.direction);
        }
    }

    fn on_complete(&mut self, session: usize, stage: &mut Stage) {
        let Some((transfer, _)) = self.running.remove(&session) else {
            return;
        };
        stage.finish_transfer(transfer);
        let is_last = self.sizes.nth(self.begun).is_none();
        let pause = match self.order {
            Order::AtOnce => None,
            Order::InTurn(think) | Order::OneConnection(think) => Some(think),
        };
        match pause {
            Some(think) if !is_last => {
                let token = match self.order {
                    Order::OneConnection(_) => session as u32,
                    _ => COLD,
                };
                stage.set_timer(self.identity.app, stage.now + think, token);
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
        stage.set_timer(self.identity.app, self.start, COLD);
    }

    fn on_timer(&mut self, token: u32, stage: &mut Stage) {
        match self.order {
            Order::AtOnce => {
                while self.sizes.nth(self.begun).is_some() {
                    self.begin_next(None, stage);
                }
            }
            _ => self.begin_next((token != COLD).then_some(token as usize), stage),
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
                self.running.remove(&session);
                // Files in turn wait for the one before, which will not come.
                self.failed |= !matches!(self.order, Order::AtOnce);
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

/// The token that opens a connection; others name the session to go on with.
const COLD: u32 = u32::MAX;
