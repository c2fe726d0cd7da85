//! An application on the engine's thread, with jobs of other threads between two rounds of its loop.

use anabranch_engine::{ConnectionId, Event};
use anabranch_host::{Application, Context, Ready};
use anabranch_units::Instant;
use mio::{Interest, Token};
use std::io::Read;
use std::sync::mpsc::Receiver;

/// Something to be done on the engine's thread.
pub(crate) type Job<A> = Box<dyn FnOnce(&mut A, &mut Context<'_>) + Send>;

/// The application and its jobs.
pub(crate) struct Hosted<A> {
    pub(crate) application: A,
    pub(crate) jobs: Receiver<Job<A>>,
    /// Rings when there are jobs.
    pub(crate) ear: mio::net::UnixStream,
}

impl<A: Application> Application for Hosted<A> {
    fn on_start(&mut self, cx: &mut Context<'_>) {
        cx.registry.register(&mut self.ear, EAR, Interest::READABLE).expect("a socket can be waited for");
        self.application.on_start(cx);
    }

    fn on_event(&mut self, cx: &mut Context<'_>, id: ConnectionId, event: Event) {
        self.application.on_event(cx, id, event);
    }

    fn on_ready(&mut self, cx: &mut Context<'_>, token: Token, ready: Ready) {
        if token != EAR {
            return self.application.on_ready(cx, token, ready);
        }
        let mut rings = [0; 64];
        while self.ear.read(&mut rings).is_ok_and(|count| count > 0) {}
        while let Ok(job) = self.jobs.try_recv() {
            job(&mut self.application, cx);
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.application.deadline()
    }

    fn on_timeout(&mut self, cx: &mut Context<'_>) {
        self.application.on_timeout(cx);
    }

    fn on_round(&mut self, cx: &mut Context<'_>) {
        self.application.on_round(cx);
    }

    fn is_busy(&self) -> bool {
        self.application.is_busy()
    }

    fn is_finished(&self) -> bool {
        self.application.is_finished()
    }
}

/// Beyond those that applications count upwards.
const EAR: Token = Token(usize::MAX / 2);
