//! Data in both directions of one connection at once.

use super::{App, Identity};
use crate::session::News;
use crate::stage::Stage;
use anabranch_paths::Direction;
use anabranch_units::{Bytes, Duration, Instant};

pub(super) struct Exchange {
    identity: Identity,
    /// Amounts in either direction.
    ways: [(Direction, Bytes); 2],
    start: Instant,
    pause: Duration,
    session: Option<usize>,
    /// Transfers under way, by direction.
    running: Vec<(Direction, usize)>,
    begun: bool,
    failed: bool,
}

impl Exchange {
    /// `sizes`: down and up.
    pub(super) fn new(identity: Identity, sizes: [Bytes; 2], start: Instant, pause: Duration) -> Self {
        let ways = [(Direction::Down, sizes[0]), (Direction::Up, sizes[1])];
        Exchange { identity, ways, start, pause, session: None, running: Vec::new(), begun: false, failed: false }
    }

    fn send(&mut self, session: usize, stage: &mut Stage) {
        self.begun = true;
        for (direction, size) in self.ways {
            let way = if direction == Direction::Down { "down" } else { "up" };
            let label = format!("{} {way}", self.identity.kind);
            self.running.push((direction, stage.begin_transfer(session, direction, label, Some(size.get()))));
            stage.expect(session, direction, size.get());
        }
        for (direction, size) in self.ways {
            stage.write(session, direction, size.get());
            stage.finish(session, direction);
        }
    }
}

impl App for Exchange {
    fn begin(&mut self, stage: &mut Stage) {
        stage.set_timer(self.identity.app, self.start, OPEN);
    }

    fn on_timer(&mut self, token: u32, stage: &mut Stage) {
        match self.session {
            None if token == OPEN => {
                self.session = Some(self.identity.open(self.identity.kind.to_owned(), stage));
                stage.set_timer(self.identity.app, stage.now + self.pause, SEND);
            }
            Some(session) if !self.failed => self.send(session, stage),
            _ => {}
        }
    }

    fn on_news(&mut self, session: usize, news: News, stage: &mut Stage) {
        match news {
            News::Reached(direction) => {
                for (_, transfer) in self.running.extract_if(.., |(way, _)| *way == direction) {
                    stage.finish_transfer(transfer);
                }
                if self.running.is_empty() {
                    stage.conclude(session);
                }
            }
            News::Drained(_) => {}
            News::Failed => self.failed = true,
        }
    }

    fn gave_up(&self) -> bool {
        self.failed
    }

    fn is_done(&self) -> bool {
        self.failed || (self.begun && self.running.is_empty())
    }
}

const OPEN: u32 = 0;
const SEND: u32 = 1;
