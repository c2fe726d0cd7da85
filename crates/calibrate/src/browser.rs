//! The client of a page: requests each object once its dependencies are met, as the simulator's does.
//!
//! HTTP/1.1: connections are opened on demand and reused, the most recent first, with one request at a time on each.
//! HTTP/2: one connection, opened when the page is requested.

use crate::end::{End, Log, Next, verify};
use crate::site::{Head, Kind};
use crate::transfer::TransferError;
use anabranch_sim::page::{Moment, Object, Page, Protocol, Work, http2};
use bytes::Bytes as Payload;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The client of a page.
pub(crate) struct Browser {
    page: Arc<Page>,
    protocol: Protocol,
    log: Log,
    activities: Vec<State>,
    /// Activities that wait for each activity.
    waiting: Vec<Vec<usize>>,
    /// Number of unfinished activities.
    left: usize,
    /// Timers by time, then in the order in which they were set.
    timers: BTreeMap<(Instant, u64), Timer>,
    timers_set: u64,
    connections: Vec<Connection>,
    /// Connections that wait for a request, over HTTP/1.1.
    idle: Vec<usize>,
    /// Objects that wait for a connection, over HTTP/1.1.
    queue: VecDeque<usize>,
}

/// Progress of an activity.
struct State {
    /// Number of conditions that are not met: its own time, and others.
    unmet: usize,
    /// Time of the request for its object.
    requested: Option<Instant>,
    /// Bytes of the body that have come.
    came: u64,
}

#[derive(Clone, Copy)]
enum Timer {
    /// Something that the activity waits for has come about.
    Met(usize),
    /// Its computation is through.
    Computed(usize),
}

#[derive(Default)]
struct Connection {
    /// Requests that were not written yet.
    requests: VecDeque<Payload>,
    reading: Reading,
    /// Bytes that have come.
    read: u64,
}

/// The answer or frame under way.
#[derive(Default)]
struct Reading {
    /// The header of a frame, as far as it has come.
    head: Vec<u8>,
    /// The object that it belongs to; `None` for SETTINGS.
    activity: Option<usize>,
    /// Bytes still to come of the header of the answer, or of a frame that is not DATA.
    header: u64,
    /// Bytes still to come of the body, or of a DATA frame.
    body: u64,
}

impl Browser {
    pub(crate) fn new(page: &Arc<Page>, protocol: Protocol, log: &Log) -> Self {
        let state = |unmet: usize| State { unmet: unmet + 1, requested: None, came: 0 };
        let activities: Vec<State> = page.activities.iter().map(|activity| state(activity.after.len())).collect();
        let mut waiting = vec![Vec::new(); activities.len()];
        for (index, activity) in page.activities.iter().enumerate() {
            for after in &activity.after {
                let others: &mut Vec<usize> = &mut waiting[after.activity];
                if others.last() != Some(&index) {
                    others.push(index);
                }
            }
        }
        Browser {
            page: Arc::clone(page),
            protocol,
            log: log.clone(),
            left: activities.len(),
            activities,
            waiting,
            timers: BTreeMap::new(),
            timers_set: 0,
            connections: Vec::new(),
            idle: Vec::new(),
            queue: VecDeque::new(),
        }
    }

    fn set_timer(&mut self, at: Instant, timer: Timer) {
        self.timers.insert((at, self.timers_set), timer);
        self.timers_set += 1;
    }

    /// One condition less that the activity waits for.
    fn met(&mut self, now: Instant, index: usize) {
        self.activities[index].unmet -= 1;
        if self.activities[index].unmet == 0 {
            self.tell(now, index, Moment::Begin);
            match self.page.activities[index].work {
                Work::Compute(time) => self.set_timer(now + on_the_wall(time), Timer::Computed(index)),
                Work::Download(object) => self.fetch(now, index, &object),
            }
        }
    }

    /// Those that wait for this moment of an activity go on, each after its delay.
    fn tell(&mut self, now: Instant, index: usize, moment: Moment) {
        let page = Arc::clone(&self.page);
        for place in 0..self.waiting[index].len() {
            let other = self.waiting[index][place];
            let after = page.activities[other].after.iter();
            for after in after.filter(|after| (after.activity, after.moment) == (index, moment)) {
                self.set_timer(now + on_the_wall(after.delay), Timer::Met(other));
            }
        }
    }

    fn through(&mut self, now: Instant, index: usize) {
        self.left -= 1;
        self.tell(now, index, Moment::End);
        if self.left == 0 {
            self.log.end(now);
        }
    }

    fn fetch(&mut self, now: Instant, index: usize, object: &Object) {
        match self.protocol {
            Protocol::Http1 { .. } => {
                self.queue.push_back(index);
                self.go_on(now);
            }
            Protocol::Http2 => {
                let length = http2::request_block(object);
                self.ask(now, 0, index, &Head::of(index, Kind::Headers, length).bytes(), http2::FRAME + length);
            }
        }
    }

    /// Gives waiting requests to connections that are idle or may still be opened.
    fn go_on(&mut self, now: Instant) {
        let Protocol::Http1 { connections } = self.protocol else { return };
        while !self.queue.is_empty() && (!self.idle.is_empty() || self.connections.len() < connections) {
            let Some(index) = self.queue.pop_front() else { return };
            let Work::Download(object) = self.page.activities[index].work else { return };
            let connection = self.idle.pop().unwrap_or_else(|| {
                self.connections.push(Connection::default());
                self.connections.len() - 1
            });
            let (activity, header, body) = (Some(index), object.header.get(), object.size.get());
            self.connections[connection].reading = Reading { head: Vec::new(), activity, header, body };
            self.ask(now, connection, index, &(index as u32).to_be_bytes(), object.request.get());
        }
    }

    /// Writes a request of this length, which begins with `begin`.
    fn ask(&mut self, now: Instant, connection: usize, index: usize, begin: &[u8], length: u64) {
        let mut request = begin.to_vec();
        request.resize(length as usize, 0);
        self.connections[connection].requests.push_back(request.into());
        self.activities[index].requested = Some(now);
    }

    /// Counts bytes of an object's body that have come; zero for an empty object.
    fn came(&mut self, now: Instant, index: usize, object: &Object, count: u64) {
        let state = &mut self.activities[index];
        let is_first = state.came == 0;
        state.came += count;
        let is_last = state.came == object.size.get();
        if is_first {
            self.tell(now, index, Moment::FirstByte);
        }
        if is_last {
            let requested = self.activities[index].requested.unwrap_or(now);
            self.log.object(now.saturating_duration_since(requested));
            self.through(now, index);
        }
    }

    /// Reads from the beginning of `bytes`; how many were used.
    fn read(&mut self, now: Instant, connection: usize, bytes: &[u8]) -> Result<usize, TransferError> {
        let is_http2 = self.protocol == Protocol::Http2;
        let Connection { reading, read, .. } = &mut self.connections[connection];
        let at = *read;
        if reading.header == 0 && reading.body == 0 {
            if !is_http2 {
                return Err(self.log.broken("the server sends a stream that was not requested"));
            }
            // A read may end inside a frame header: its bytes are kept until the header is whole.
            let used = bytes.len().min(http2::FRAME as usize - reading.head.len());
            reading.head.extend_from_slice(&bytes[..used]);
            *read += used as u64;
            if let Some(head) = reading.head.first_chunk() {
                let head = Head::read(head);
                let (header, body) = if head.kind == Kind::Data { (0, head.length) } else { (head.length, 0) };
                let activity = (head.kind != Kind::Settings).then(|| head.activity());
                *reading = Reading { head: Vec::new(), activity, header, body };
            }
            return Ok(used);
        }
        let is_body = reading.header == 0;
        let left = if is_body { &mut reading.body } else { &mut reading.header };
        let used = bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
        verify(at, &bytes[..used])?;
        *left -= used as u64;
        *read += used as u64;
        if let Some(index) = reading.activity {
            let header_is_whole = reading.header == 0;
            if !is_http2 && header_is_whole && reading.body == 0 {
                self.idle.push(connection);
            }
            let Some(Work::Download(object)) = self.page.activities.get(index).map(|activity| activity.work) else {
                return Err(self.log.broken(format!("the server sends activity {index}, which has no object")));
            };
            if is_body {
                self.came(now, index, &object, used as u64);
            // An object without bytes has no body whose end could complete it.
            } else if header_is_whole && object.size.is_zero() {
                self.came(now, index, &object, 0);
            }
        }
        Ok(used)
    }
}

impl End for Browser {
    fn start(&mut self, now: Instant) {
        self.log.begin(now);
        if self.protocol == Protocol::Http2 {
            // The preface and SETTINGS (RFC 9113 §3.4).
            let greeting = Payload::from(vec![0; (http2::PREFACE + http2::SETTINGS) as usize]);
            self.connections.push(Connection { requests: VecDeque::from([greeting]), ..Connection::default() });
        }
        for index in 0..self.activities.len() {
            let begin = now + on_the_wall(self.page.activities[index].begin);
            self.set_timer(begin, Timer::Met(index));
        }
    }

    fn wanted(&self) -> usize {
        self.connections.len()
    }

    fn received(&mut self, now: Instant, connection: usize, bytes: &[u8]) -> Result<(), TransferError> {
        self.log.read(bytes.len());
        let mut used = 0;
        while used < bytes.len() {
            used += self.read(now, connection, &bytes[used..])?;
        }
        self.go_on(now);
        Ok(())
    }

    fn next(&mut self, connection: usize) -> Next {
        let request = self.connections.get_mut(connection).and_then(|connection| connection.requests.pop_front());
        match request {
            Some(request) => Next::Piece(request),
            None if self.left == 0 => Next::Shutdown,
            None => Next::Nothing,
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.timers.keys().next().map(|(at, _)| *at)
    }

    fn timeout(&mut self, now: Instant) {
        while let Some(first) = self.timers.first_entry().filter(|first| first.key().0 <= now) {
            match first.remove() {
                Timer::Met(index) => self.met(now, index),
                Timer::Computed(index) => {
                    self.tell(now, index, Moment::FirstByte);
                    self.through(now, index);
                }
            }
        }
    }

    fn is_done(&self) -> Option<bool> {
        Some(self.left == 0)
    }
}

/// The wall clock's duration.
fn on_the_wall(duration: anabranch_units::Duration) -> Duration {
    Duration::from_nanos(duration.as_nanos())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::site::Site;
    use anabranch_sim::page::{Activity, After};
    use anabranch_units::Bytes;

    /// Loads a page without a network, in pieces of the given size; each request as its connection and when it was
    /// made.
    fn load(page: &Page, protocol: Protocol, piece: usize) -> (Vec<(usize, Duration)>, Browser) {
        let (page, log, start) = (Arc::new(page.clone()), Log::default(), Instant::now());
        let (mut browser, mut site) = (Browser::new(&page, protocol, &log), Site::new(&page, protocol));
        let (mut now, mut accepted, mut requests) = (start, 0, Vec::new());
        browser.start(now);
        for _ in 0..10_000 {
            browser.timeout(now);
            let mut moved = false;
            for connection in 0..browser.wanted() {
                if connection == accepted {
                    site.opened(now);
                    accepted += 1;
                }
                while let Next::Piece(request) = browser.next(connection) {
                    requests.push((connection, now - start));
                    for bytes in request.chunks(piece) {
                        site.received(now, connection, bytes).unwrap();
                    }
                }
                if let Next::Piece(answer) = site.next(connection) {
                    moved = true;
                    for bytes in answer.chunks(piece) {
                        browser.received(now, connection, bytes).unwrap();
                    }
                }
            }
            if browser.is_done() == Some(true) {
                return (requests, browser);
            }
            if !moved {
                now = browser.deadline().unwrap();
            }
        }
        panic!("the page is never there");
    }

    const MS: fn(u64) -> anabranch_units::Duration = anabranch_units::Duration::from_millis;

    fn object(size: u64, after: &[After]) -> Activity {
        Activity { after: after.to_vec(), ..Activity::download(Object::of_size(Bytes::new(size))) }
    }

    /// A document that names three objects, of which one is empty; a computation of 30 ms, which the last waits for.
    fn page() -> Page {
        let document = |moment| After { activity: 0, moment, delay: MS(20) };
        let compute = Activity { begin: MS(0), after: vec![document(Moment::End)], work: Work::Compute(MS(30)) };
        let computed = After { activity: 4, moment: Moment::End, delay: MS(0) };
        let named = document(Moment::FirstByte);
        let objects = [object(100_000, &[]), object(1, &[named]), object(0, &[named]), object(70_000, &[named])];
        Page { activities: objects.into_iter().chain([compute, object(5, &[computed])]).collect() }
    }

    #[test]
    fn http1_opens_connections_on_demand_and_uses_them_again() {
        for piece in [1, 7, 1460, 1 << 20] {
            let (requests, mut browser) = load(&page(), Protocol::Http1 { connections: 2 }, piece);
            // The document; 20 ms after its first byte two of three, the second on a connection of its own; the third
            // on the first that is idle again; the last after the computation.
            let times: Vec<u128> = requests.iter().map(|(_, at)| at.as_millis()).collect();
            assert_eq!(times, [0, 20, 20, 20, 50], "{requests:?}");
            let connections: Vec<usize> = requests.iter().map(|(connection, _)| *connection).collect();
            assert_eq!((&connections[..3], browser.wanted()), (&[0, 0, 1][..], 2));
            assert_eq!(browser.next(0), Next::Shutdown, "behind the page");
        }
    }

    #[test]
    fn http2_has_one_connection_and_answers_in_turn() {
        for piece in [1, 7, 1460, 1 << 20] {
            let (requests, browser) = load(&page(), Protocol::Http2, piece);
            // The greeting comes before the document.
            let times: Vec<u128> = requests.iter().map(|(_, at)| at.as_millis()).collect();
            assert_eq!(times, [0, 0, 20, 20, 20, 50], "{requests:?}");
            assert_eq!(browser.wanted(), 1);
            let came: Vec<u64> = browser.activities.iter().map(|activity| activity.came).collect();
            assert_eq!(came, [100_000, 1, 0, 70_000, 0, 5]);
        }
    }

    #[test]
    fn altered_bytes_are_found() {
        let page = Arc::new(page());
        let mut browser = Browser::new(&page, Protocol::Http1 { connections: 1 }, &Log::default());
        let now = Instant::now();
        browser.start(now);
        browser.timeout(now);
        browser.received(now, 0, &anabranch_wire::pattern::slice(0, 10)).unwrap();
        let wrong = browser.received(now, 0, &[0; 10]);
        assert!(matches!(wrong, Err(TransferError::Altered { at: 10 })), "{wrong:?}");
    }
}
