//! HTTP/2 (RFC 9113): one connection, requests as HEADERS frames, answers as HEADERS and DATA frames in turn among all
//! streams that are open.
//!
//! The server writes a frame when its socket has room for it, so an answer that is ready later waits behind what the
//! send buffer holds, as it does with a real one. Header blocks are as long as HPACK makes them on average. Left out
//! are the client's acknowledgment of the server's SETTINGS, WINDOW_UPDATE, priorities and push.

use super::{Arrival, Order, begin};
use crate::apps::Identity;
use crate::page::http2::{FRAME, MAX_FRAME, PREFACE, SETTINGS, request_block, response_block};
use crate::session::News;
use crate::stage::Stage;
use anabranch_paths::Direction;
use std::collections::VecDeque;

pub(super) struct Http2 {
    identity: Identity,
    session: Option<usize>,
    /// Requests on their way to the server, each with the byte of the stream that completes it.
    asked: VecDeque<(u64, Asked)>,
    /// Answers that the server has not written to their ends, the next one first.
    answers: VecDeque<Answer>,
    /// Answers on their way to the client, each with the byte of the stream that completes it.
    milestones: VecDeque<(u64, Arrival)>,
}

enum Asked {
    /// The client's connection preface.
    Preface,
    Object(Order, usize),
}

struct Answer {
    order: Order,
    transfer: usize,
    /// Its HEADERS frame has been written.
    begun: bool,
    /// Bytes of the body that were written.
    written: u64,
}

impl Http2 {
    pub(super) fn new(identity: Identity) -> Self {
        let (asked, answers, milestones) = (VecDeque::new(), VecDeque::new(), VecDeque::new());
        Http2 { identity, session: None, asked, answers, milestones }
    }

    /// Opens the connection, whose first bytes are the preface and SETTINGS (RFC 9113 §3.4).
    pub(super) fn open(&mut self, stage: &mut Stage) {
        let session = self.identity.open(format!("{} connection", self.identity.kind), stage);
        self.session = Some(session);
        self.say(session, PREFACE + SETTINGS, Asked::Preface, stage);
    }

    pub(super) fn fetch(&mut self, order: Order, stage: &mut Stage) -> Vec<(usize, usize)> {
        let Some(session) = self.session else { return Vec::new() };
        let transfer = begin(self.identity, session, order, stage);
        let frame = FRAME + request_block(&order.object);
        self.say(session, frame, Asked::Object(order, transfer), stage);
        vec![(order.activity, transfer)]
    }

    fn say(&mut self, session: usize, length: u64, what: Asked, stage: &mut Stage) {
        self.asked.push_back((stage.target(session, Direction::Up) + length, what));
        stage.expect(session, Direction::Up, self.asked[0].0);
        stage.write(session, Direction::Up, length);
    }

    pub(super) fn on_news(&mut self, session: usize, news: News, stage: &mut Stage) -> Vec<Arrival> {
        match news {
            News::Reached(Direction::Up) => {
                self.hear(session, stage);
                Vec::new()
            }
            News::Reached(Direction::Down) => {
                let (read, mut arrivals) = (stage.read(session, Direction::Down), Vec::new());
                while let Some(&(at, arrival)) = self.milestones.front()
                    && at <= read
                {
                    arrivals.push(arrival);
                    self.milestones.pop_front();
                }
                if let Some(&(at, _)) = self.milestones.front() {
                    stage.expect(session, Direction::Down, at);
                }
                arrivals
            }
            News::Drained(_) => {
                self.answer(session, stage);
                Vec::new()
            }
            News::Failed => Vec::new(),
        }
    }

    /// The server has read what came.
    fn hear(&mut self, session: usize, stage: &mut Stage) {
        let read = stage.read(session, Direction::Up);
        while self.asked.front().is_some_and(|(end, _)| *end <= read) {
            match self.asked.pop_front() {
                Some((_, Asked::Object(order, transfer))) => {
                    self.answers.push_back(Answer { order, transfer, begun: false, written: 0 });
                }
                // SETTINGS of its own, and the acknowledgment of the client's.
                Some((_, Asked::Preface)) => stage.write(session, Direction::Down, SETTINGS + FRAME),
                None => {}
            }
        }
        if let Some((end, _)) = self.asked.front() {
            stage.expect(session, Direction::Up, *end);
        }
        self.answer(session, stage);
    }

    /// The server writes frames while its socket takes them.
    fn answer(&mut self, session: usize, stage: &mut Stage) {
        while !self.answers.is_empty() {
            if stage.backlog(session, Direction::Down) > 0 {
                return stage.expect_drained(session, Direction::Down);
            }
            let Some(mut answer) = self.answers.pop_front() else { return };
            if !self.write_frame(session, &mut answer, stage) {
                self.answers.push_back(answer);
            }
        }
    }

    /// Writes the next frame of an answer; true if it was the last.
    fn write_frame(&mut self, session: usize, answer: &mut Answer, stage: &mut Stage) -> bool {
        let (Order { activity, object }, begin) = (answer.order, stage.target(session, Direction::Down));
        let size = object.size.get();
        let end = match answer.begun {
            false => begin + FRAME + response_block(&object),
            true => {
                let length = (size - answer.written).min(MAX_FRAME);
                stage.add_piece(answer.transfer, begin + FRAME, length);
                if answer.written == 0 {
                    self.milestone(session, begin + FRAME + 1, Arrival::FirstByte(activity), stage);
                }
                answer.written += length;
                begin + FRAME + length
            }
        };
        answer.begun = true;
        let is_last = answer.written == size;
        if is_last {
            if size == 0 {
                self.milestone(session, end, Arrival::FirstByte(activity), stage);
            }
            self.milestone(session, end, Arrival::End(activity), stage);
        }
        stage.write(session, Direction::Down, end - begin);
        is_last
    }

    fn milestone(&mut self, session: usize, at: u64, arrival: Arrival, stage: &mut Stage) {
        self.milestones.push_back((at, arrival));
        stage.expect(session, Direction::Down, self.milestones[0].0);
    }

    /// The page is there: the client closes.
    pub(super) fn close(&mut self, stage: &mut Stage) {
        if let Some(session) = self.session {
            stage.finish(session, Direction::Up);
            stage.conclude(session);
        }
    }
}
