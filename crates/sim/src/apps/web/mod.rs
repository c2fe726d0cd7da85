//! Web pages: activities that wait for each other, and objects fetched over HTTP/1.1 or HTTP/2.
//!
//! [`Page`] has requests and objects; `http1.rs` and `http2.rs` choose the connection that carries each.
//! Servers answer at once. There is no TLS, and HTTP/2's own flow control never limits: browsers open its windows wide.

mod http1;
mod http2;

use self::http1::Http1;
use self::http2::Http2;
use super::{App, Identity};
use crate::page::{Activity, Moment, Object, Page, Protocol, Work};
use crate::session::News;
use crate::stage::Stage;
use anabranch_units::Instant;
use std::sync::Arc;

/// One page, loaded once.
pub(super) struct Web {
    identity: Identity,
    page: Arc<Page>,
    start: Instant,
    /// The page as a whole is a result; or else only its objects are.
    counts: bool,
    fetcher: Fetcher,
    activities: Vec<State>,
    /// Activities that wait for each activity.
    waiting: Vec<Vec<usize>>,
    /// Number of activities that have not ended.
    left: usize,
    /// Its number among the pages of the run, once it was asked for.
    number: Option<usize>,
    failed: bool,
}

/// State of an activity.
#[derive(Clone, Copy)]
struct State {
    /// Number of conditions not met: its own time, and other activities.
    unmet: usize,
    /// Its transfer, once it is requested.
    transfer: Option<usize>,
    through: bool,
}

enum Fetcher {
    Http1(Http1),
    Http2(Box<Http2>),
}

/// Something of an object has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Arrival {
    FirstByte(usize),
    End(usize),
}

/// An object to be fetched: which activity, and its transfer.
#[derive(Clone, Copy)]
struct Order {
    activity: usize,
    object: Object,
}

impl Web {
    pub(super) fn page(identity: Identity, page: Arc<Page>, protocol: Protocol, start: Instant) -> Self {
        let fetcher = match protocol {
            Protocol::Http1 { connections } => Fetcher::Http1(Http1::new(identity, connections)),
            Protocol::Http2 => Fetcher::Http2(Box::new(Http2::new(identity))),
        };
        Web::new(identity, page, fetcher, start, true)
    }

    /// Objects that are asked for at their times, on one connection opened at the start.
    pub(super) fn interactive(identity: Identity, page: Arc<Page>, start: Instant) -> Self {
        Web::new(identity, page, Fetcher::Http2(Box::new(Http2::new(identity))), start, false)
    }

    fn new(identity: Identity, page: Arc<Page>, fetcher: Fetcher, start: Instant, counts: bool) -> Self {
        let unmet = |activity: &Activity| activity.after.len() + 1;
        let state = |activity| State { unmet: unmet(activity), transfer: None, through: false };
        let mut waiting = vec![Vec::new(); page.activities.len()];
        for (index, activity) in page.activities.iter().enumerate() {
            for after in &activity.after {
                let others: &mut Vec<usize> = &mut waiting[after.activity];
                if others.last() != Some(&index) {
                    others.push(index);
                }
            }
        }
        let activities: Vec<State> = page.activities.iter().map(state).collect();
        let left = activities.len();
        Web { identity, page, start, counts, fetcher, activities, waiting, left, number: None, failed: false }
    }

    fn ask(&mut self, stage: &mut Stage) {
        if self.counts {
            self.number = Some(stage.begin_page(self.identity.client, self.identity.workload));
        }
        if let Fetcher::Http2(http2) = &mut self.fetcher {
            http2.open(stage);
        }
        for index in 0..self.activities.len() {
            let begin = self.start + self.page.activities[index].begin;
            stage.set_timer(self.identity.app, begin, token(index, MET));
        }
    }

    /// Counts a condition of the activity as met.
    fn met(&mut self, index: usize, stage: &mut Stage) {
        self.activities[index].unmet -= 1;
        if self.activities[index].unmet == 0 {
            self.tell(index, Moment::Begin, stage);
            match self.page.activities[index].work {
                Work::Compute(duration) => {
                    stage.set_timer(self.identity.app, stage.now + duration, token(index, COMPUTED));
                }
                Work::Download(object) => self.fetch(Order { activity: index, object }, stage),
            }
        }
    }

    /// Tells the activities that wait for this moment of another; each goes on after its delay.
    fn tell(&mut self, index: usize, moment: Moment, stage: &mut Stage) {
        for &other in &self.waiting[index] {
            for after in &self.page.activities[other].after {
                if (after.activity, after.moment) == (index, moment) {
                    stage.set_timer(self.identity.app, stage.now + after.delay, token(other, MET));
                }
            }
        }
    }

    fn through(&mut self, index: usize, stage: &mut Stage) {
        self.activities[index].through = true;
        self.left -= 1;
        self.tell(index, Moment::End, stage);
        if self.left == 0 {
            if let Some(number) = self.number {
                stage.finish_page(number);
            }
            match &mut self.fetcher {
                Fetcher::Http1(http1) => http1.close(stage),
                Fetcher::Http2(http2) => http2.close(stage),
            }
        }
    }

    fn fetch(&mut self, order: Order, stage: &mut Stage) {
        let requested = match &mut self.fetcher {
            Fetcher::Http1(http1) => http1.fetch(order, stage),
            Fetcher::Http2(http2) => http2.fetch(order, stage),
        };
        self.note(requested);
    }

    /// Requests have gone out: activities with their transfers.
    fn note(&mut self, requested: Vec<(usize, usize)>) {
        for (activity, transfer) in requested {
            self.activities[activity].transfer = Some(transfer);
        }
    }

    fn arrived(&mut self, arrival: Arrival, stage: &mut Stage) {
        match arrival {
            Arrival::FirstByte(index) => self.tell(index, Moment::FirstByte, stage),
            Arrival::End(index) => {
                if let Some(transfer) = self.activities[index].transfer {
                    stage.finish_transfer(transfer);
                }
                self.through(index, stage);
            }
        }
    }
}

impl App for Web {
    fn begin(&mut self, stage: &mut Stage) {
        stage.set_timer(self.identity.app, self.start, ASK);
    }

    fn on_timer(&mut self, token: u32, stage: &mut Stage) {
        if self.failed {
            return;
        }
        let index = (token >> 1) as usize;
        match token {
            ASK => self.ask(stage),
            _ if token & 1 == MET => self.met(index, stage),
            _ => {
                self.tell(index, Moment::FirstByte, stage);
                self.through(index, stage);
            }
        }
    }

    fn on_news(&mut self, session: usize, news: News, stage: &mut Stage) {
        if news == News::Failed {
            self.failed = true;
            return;
        }
        let arrivals = match &mut self.fetcher {
            Fetcher::Http1(http1) => http1.on_news(session, news, stage),
            Fetcher::Http2(http2) => http2.on_news(session, news, stage),
        };
        for arrival in arrivals {
            self.arrived(arrival, stage);
        }
        if let Fetcher::Http1(http1) = &mut self.fetcher {
            let requested = http1.go_on(stage);
            self.note(requested);
        }
    }

    fn gave_up(&self) -> bool {
        self.failed
    }

    fn is_done(&self) -> bool {
        self.failed || self.left == 0
    }
}

/// Opens a transfer for an object.
fn begin(identity: Identity, session: usize, order: Order, stage: &mut Stage) -> usize {
    let label = format!("{} {}", identity.kind, order.activity + 1);
    stage.begin_object(session, label, order.object.size.get())
}

const fn token(index: usize, what: u32) -> u32 {
    (index as u32) << 1 | what
}

/// Something that an activity waits for has come about.
const MET: u32 = 0;
/// A computation is through.
const COMPUTED: u32 = 1;
/// Number of the timer that asks for the page; larger than any number of activities.
const ASK: u32 = u32::MAX;
