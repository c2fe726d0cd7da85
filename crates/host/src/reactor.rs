//! One thread's loop: a device, the endpoint on it, its timers, and the kernel sockets of an application.

use crate::{Caught, Driver, Sent};
use anabranch_engine::{ConnectionId, Endpoint, Event};
use anabranch_units::{Duration, Instant};
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Registry, Token, Waker};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;

/// Application on top of an endpoint. All methods are called on the reactor's thread and must not block.
pub trait Application {
    /// Called once before all other methods.
    fn on_start(&mut self, _cx: &mut Context<'_>) {}

    /// The endpoint has something to say of a connection.
    fn on_event(&mut self, cx: &mut Context<'_>, id: ConnectionId, event: Event);

    /// A source that was registered with [`Context::registry`] is ready. Edge-triggered: called once per readiness.
    fn on_ready(&mut self, _cx: &mut Context<'_>, _token: Token, _ready: Ready) {}

    /// Time at which to call [`Application::on_timeout`]; `None` for never.
    fn deadline(&self) -> Option<Instant> {
        None
    }

    /// The deadline has come.
    fn on_timeout(&mut self, _cx: &mut Context<'_>) {}

    /// A round is over: packets were read, but their events may still be pending. Data written here is sent in this
    /// round.
    fn on_round(&mut self, _cx: &mut Context<'_>) {}

    /// True if another round would get something done although nothing has happened: the loop does not wait then.
    fn is_busy(&self) -> bool {
        false
    }

    /// A signal asks for the end; see [`Reactor::handle_signals`].
    fn on_signal(&mut self, _cx: &mut Context<'_>, _signal: i32) {}

    /// SIGHUP, which asks some to read their settings again, and all others for the end.
    fn on_hangup(&mut self, cx: &mut Context<'_>) {
        self.on_signal(cx, libc::SIGHUP);
    }

    /// Returns true if the loop may end once everything is sent.
    fn is_finished(&self) -> bool {
        false
    }
}

/// Access of an application to its endpoint.
pub struct Context<'a> {
    /// The endpoint.
    pub endpoint: &'a mut Endpoint,
    /// The time of this round.
    pub now: Instant,
    /// Registry for kernel sockets; tokens from [`FIRST_TOKEN`] upwards are free.
    pub registry: &'a Registry,
}

/// Readiness of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// A read will not block.
    pub readable: bool,
    /// A write will not block.
    pub writable: bool,
    /// The peer has closed its direction, or there is an error to fetch.
    pub closed: bool,
}

/// The first token that an application may use.
pub const FIRST_TOKEN: usize = 16;

/// The loop.
pub struct Reactor<A> {
    driver: Driver,
    application: A,
    poll: Poll,
    timer: OwnedFd,
    /// Time to which the timer is set.
    armed: Option<Instant>,
    waker: Arc<Waker>,
    signals: Option<Caught>,
    chore: Option<Chore>,
    stopped: bool,
}

/// Work at intervals.
struct Chore {
    pause: Duration,
    next: Instant,
    work: Work,
}

/// Periodic work, called with the endpoint and the time.
type Work = Box<dyn FnMut(&mut Endpoint, Instant) + Send>;

/// Ends a loop from another thread.
#[derive(Clone)]
pub struct Stop(Arc<Waker>);

impl Stop {
    /// The loop returns after this round, finished or not.
    pub fn stop(&self) {
        // Fails only if the reactor is gone, and then it has stopped.
        let _ = self.0.wake();
    }
}

impl<A: Application> Reactor<A> {
    /// A loop over this driver and application.
    pub fn new(driver: Driver, application: A) -> io::Result<Self> {
        let poll = Poll::new()?;
        let registry = poll.registry();
        let both = Interest::READABLE | Interest::WRITABLE;
        registry.register(&mut SourceFd(&driver.as_fd().as_raw_fd()), DEVICE, both)?;
        let timer =
            rustix::time::timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        registry.register(&mut SourceFd(&timer.as_raw_fd()), TIMER, Interest::READABLE)?;
        let waker = Arc::new(Waker::new(registry, STOP)?);
        Ok(Reactor { driver, application, poll, timer, armed: None, waker, signals: None, chore: None, stopped: false })
    }

    /// Tells the application of signals from now on.
    pub fn handle_signals(&mut self, caught: &Caught) -> io::Result<()> {
        let caught = caught.share()?;
        let source = caught.readiness().as_raw_fd();
        self.poll.registry().register(&mut SourceFd(&source), SIGNALS, Interest::READABLE)?;
        self.signals = Some(caught);
        Ok(())
    }

    /// Runs `work` once per `pause`; replaces previous work.
    pub fn every(&mut self, pause: Duration, work: impl FnMut(&mut Endpoint, Instant) + Send + 'static) {
        self.chore = Some(Chore { pause, next: self.driver.now() + pause, work: Box::new(work) });
    }

    /// Ends the loop from another thread.
    pub fn stopper(&self) -> Stop {
        Stop(Arc::clone(&self.waker))
    }

    /// Runs until the application is finished or someone stops it; answers both parts.
    ///
    /// # Errors
    /// If the device or the poll fails; the application is lost then.
    pub fn run(mut self) -> io::Result<(A, Driver)> {
        let mut events = Events::with_capacity(256);
        let (mut device_readable, mut device_writable) = (false, true);
        self.with(|application, cx| application.on_start(cx));
        loop {
            // Sending may end a connection, and the application hears of that before anything is waited for. A full
            // batch is enough for one round: what waits on the device has its turn, or its queue would overflow behind
            // our back.
            let (mut told, mut more) = (true, false);
            while told && !more {
                self.tell_events();
                if device_writable {
                    let sent = self.driver.transmit(BATCH)?;
                    device_writable = sent != Sent::Blocked;
                    more = sent == Sent::Some;
                }
                told = self.tell_events();
            }
            if self.stopped || (self.application.is_finished() && device_writable && !more) {
                return Ok((self.application, self.driver));
            }
            let waits = if device_readable || more || self.application.is_busy() {
                Some(std::time::Duration::ZERO)
            } else {
                None
            };
            self.arm()?;
            match self.poll.poll(&mut events, waits) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                result => result?,
            }
            for event in &events {
                match event.token() {
                    DEVICE => {
                        // A device that is gone is no more than an error, which reading it tells.
                        device_readable |= event.is_readable() || event.is_error();
                        device_writable |= event.is_writable();
                    }
                    // It tells of each expiry once, read or not.
                    TIMER => self.armed = None,
                    STOP => self.stopped = true,
                    SIGNALS => self.tell_signals(),
                    token => {
                        let closed = event.is_read_closed() || event.is_error();
                        let ready = Ready { readable: event.is_readable(), writable: event.is_writable(), closed };
                        self.with(|application, cx| application.on_ready(cx, token, ready));
                    }
                }
            }
            if device_readable {
                device_readable = self.driver.receive(BATCH)?;
            }
            if self.driver.is_due() {
                device_readable = self.catch_up()?;
            }
            self.driver.handle_timeout();
            if self.application.deadline().is_some_and(|at| at <= self.driver.now()) {
                self.with(|application, cx| application.on_timeout(cx));
            }
            if let Some(chore) = &mut self.chore
                && chore.next <= self.driver.now()
            {
                let now = self.driver.now();
                chore.next = now + chore.pause;
                (chore.work)(self.driver.endpoint(), now);
            }
            self.with(|application, cx| application.on_round(cx));
        }
    }

    /// Reads what has arrived before timers act: on a busy host the answer that stops a timer often waits on the device
    /// already, and whatever would be repeated makes it busier. Whether the device may have more.
    fn catch_up(&mut self) -> io::Result<bool> {
        for _ in 0..BATCHES {
            if !self.driver.receive(BATCH)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn with(&mut self, call: impl FnOnce(&mut A, &mut Context<'_>)) {
        let now = self.driver.now();
        let registry = self.poll.registry();
        call(&mut self.application, &mut Context { endpoint: self.driver.endpoint(), now, registry });
    }

    /// Passes events to the application; returns true if there were any.
    fn tell_events(&mut self) -> bool {
        let mut told = false;
        while let Some((id, event)) = self.driver.endpoint().poll_event() {
            self.with(|application, cx| application.on_event(cx, id, event));
            told = true;
        }
        told
    }

    fn tell_signals(&mut self) {
        for signal in self.signals.as_mut().map(Caught::take).unwrap_or_default() {
            self.with(|application, cx| match signal {
                libc::SIGHUP => application.on_hangup(cx),
                signal => application.on_signal(cx, signal),
            });
        }
    }

    /// Sets the timer to the next deadline. One that is set to something earlier is left alone: it costs one idle
    /// round, less than setting it anew for every packet.
    fn arm(&mut self) -> io::Result<()> {
        let chore = self.chore.as_ref().map(|chore| chore.next);
        let deadlines = [self.driver.endpoint().next_timeout(), self.application.deadline(), chore];
        let Some(next) = deadlines.into_iter().flatten().min() else { return Ok(()) };
        if self.armed.is_some_and(|armed| armed <= next) {
            return Ok(());
        }
        // A value of zero would switch the timer off.
        let wait = next.since(self.driver.now()).as_nanos().max(1);
        let value = Timespec { tv_sec: (wait / 1_000_000_000) as i64, tv_nsec: (wait % 1_000_000_000) as i64 };
        let interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        let setting = Itimerspec { it_interval: interval, it_value: value };
        rustix::time::timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &setting)?;
        self.armed = Some(next);
        Ok(())
    }
}

const DEVICE: Token = Token(0);
const TIMER: Token = Token(1);
const STOP: Token = Token(2);
const SIGNALS: Token = Token(3);

/// Packets read before the endpoint is asked what to send, and packets sent before the device is read again.
const BATCH: usize = 64;
/// Batches read before timers act, at most: a few milliseconds' worth.
const BATCHES: usize = 16;
