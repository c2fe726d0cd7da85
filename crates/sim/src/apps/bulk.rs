//! Bulk transfers: as much data as possible for a time, over one connection.

use super::{App, Identity};
use crate::session::News;
use crate::stage::Stage;
use anabranch_paths::Direction;
use anabranch_units::{Duration, Instant};

pub(super) struct Bulk {
    identity: Identity,
    start: Instant,
    duration: Duration,
    /// Session and transfer.
    running: Option<(usize, usize)>,
    done: bool,
}

impl Bulk {
    pub(super) fn new(identity: Identity, start: Instant, duration: Duration) -> Self {
        Bulk { identity, start, duration, running: None, done: false }
    }
}

impl App for Bulk {
    fn begin(&mut self, stage: &mut Stage) {
        stage.set_timer(self.identity.app, self.start, OPEN);
        stage.set_timer(self.identity.app, self.start + self.duration, END);
    }

    fn on_timer(&mut self, token: u32, stage: &mut Stage) {
        if token == OPEN {
            let session = self.identity.open(self.identity.kind.to_owned(), stage);
            let transfer = stage.begin_transfer(session, self.identity.direction, self.identity.kind.to_owned(), None);
            self.running = Some((session, transfer));
            self.identity.request(session, stage);
            if self.identity.direction == Direction::Up {
                stage.write(session, Direction::Up, u64::MAX);
            }
        } else if let Some((session, transfer)) = self.running
            && !self.done
        {
            stage.finish_transfer(transfer);
            stage.abort(session);
            self.done = true;
        }
    }

    fn on_news(&mut self, session: usize, news: News, stage: &mut Stage) {
        match news {
            News::Reached(_) => stage.write(session, Direction::Down, u64::MAX),
            News::Drained(_) => {}
            News::Failed => self.done = true,
        }
    }

    fn is_done(&self) -> bool {
        self.done
    }
}

const OPEN: u32 = 0;
const END: u32 = 1;
