//! Bursts on one warm connection, sent on time whether or not the one before has arrived.

use super::{App, Identity};
use crate::session::News;
use crate::stage::Stage;
use anabranch_units::{Duration, Instant};
use std::collections::VecDeque;

pub(super) struct Bursts {
    identity: Identity,
    plan: Plan,
    session: Option<usize>,
    sent: usize,
    /// Transfers that have not arrived, and the byte of the stream that completes each.
    under_way: VecDeque<(usize, u64)>,
    failed: bool,
}

/// Sizes in bytes.
pub(super) struct Plan {
    pub(super) size: u64,
    pub(super) count: usize,
    pub(super) interval: Duration,
    pub(super) start: Instant,
    pub(super) warm_up: u64,
}

impl Bursts {
    pub(super) fn new(identity: Identity, plan: Plan) -> Self {
        Bursts { identity, plan, session: None, sent: 0, under_way: VecDeque::new(), failed: false }
    }

    fn send_one(&mut self, session: usize, stage: &mut Stage) {
        let direction = self.identity.direction;
        self.sent += 1;
        let transfer = stage.begin_transfer(
            session,
            direction,
            format!("{} {}", self.identity.kind, self.sent),
            Some(self.plan.size),
        );
        let end = stage.target(session, direction) + self.plan.size;
        if self.under_way.is_empty() {
            stage.expect(session, direction, end);
        }
        self.under_way.push_back((transfer, end));
        stage.write(session, direction, self.plan.size);
        if self.sent == self.plan.count {
            stage.finish(session, direction);
        } else {
            stage.set_timer(self.identity.app, stage.now + self.plan.interval, BURST);
        }
    }
}

impl App for Bursts {
    fn begin(&mut self, stage: &mut Stage) {
        stage.set_timer(self.identity.app, self.plan.start, OPEN);
    }

    fn on_timer(&mut self, token: u32, stage: &mut Stage) {
        match self.session {
            None if token == OPEN => {
                let session = self.identity.open(format!("{} 1", self.identity.kind), stage);
                self.session = Some(session);
                stage.write(session, self.identity.direction, self.plan.warm_up);
                if self.plan.count > 0 {
                    stage.set_timer(self.identity.app, stage.now + self.plan.interval, BURST);
                }
            }
            Some(session) if !self.failed => self.send_one(session, stage),
            _ => {}
        }
    }

    fn on_news(&mut self, session: usize, news: News, stage: &mut Stage) {
        if news == News::Failed {
            self.failed = true;
            return;
        }
        let read = stage.read(session, self.identity.direction);
        while let Some(&(transfer, end)) = self.under_way.front()
            && end <= read
        {
            stage.finish_transfer(transfer);
            self.under_way.pop_front();
        }
        if let Some(&(_, end)) = self.under_way.front() {
            stage.expect(session, self.identity.direction, end);
        }
        if self.is_done() {
            stage.conclude(session);
        }
    }

    fn gave_up(&self) -> bool {
        self.failed
    }

    fn is_done(&self) -> bool {
        self.failed || (self.sent == self.plan.count && self.under_way.is_empty())
    }
}

const OPEN: u32 = 0;
const BURST: u32 = 1;
