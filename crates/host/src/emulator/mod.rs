//! Links in real time: what a host writes into one device comes out of another, after what a scenario's links do to it.
//!
//! One thread moves IP packets, of any protocol, between the two devices of each path through the same network that the
//! simulator uses ([`Topology`](anabranch_paths::Topology)), first hops (`nic`) included: links, shared links, changes
//! over time, middleboxes. [`EmulatorReport`] says what each link did, how late the emulator itself was, and whether
//! the run is valid.

mod damage;
mod options;
mod packet;
mod passage;
mod percentiles;
mod port;
mod recorder;
mod report;
mod run;
mod scope;
mod spin;
mod witness;

pub use options::{Bounds, CaptureOptions, Options};
pub use percentiles::Percentiles;
pub use report::{CaptureReport, EmulatorReport, Fault, LinkReport, PathReport, Scheduling, Traffic, Validity};
pub use witness::{Glimpse, Witness};

use crate::{Clock, Device, sys};
use anabranch_capture::WriteError;
use anabranch_net::Change;
use anabranch_paths::{Affected, NetworkError, NetworkSpec};
use anabranch_units::Seed;
use run::Run;
use rustix::event::EventfdFlags;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;

/// The two devices of a path.
pub struct PathEnds {
    /// Device that carries the client's packets.
    pub client: Box<dyn Device>,
    /// Device that carries the server's packets.
    pub server: Box<dyn Device>,
}

/// Starts emulators.
pub struct Emulator;

/// A running emulator. Dropping it stops the emulator.
pub struct Handle {
    commands: Sender<Command>,
    wake: Arc<OwnedFd>,
    thread: Option<JoinHandle<io::Result<EmulatorReport>>>,
    clock: Clock,
}

/// Why an emulator cannot run.
#[derive(Debug, thiserror::Error)]
pub enum EmulatorError {
    /// The network cannot be.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// Another number of paths than of devices.
    #[error("the specification has {paths} paths, but there are devices for {ends}")]
    Ends {
        /// Paths of the specification.
        paths: usize,
        /// Pairs of devices.
        ends: usize,
    },
    /// The capture cannot be written.
    #[error(transparent)]
    Capture(#[from] WriteError),
    /// A descriptor or thread could not be made, or polling failed.
    #[error("the emulator cannot run: {0}")]
    System(#[from] io::Error),
}

enum Command {
    Report(Sender<EmulatorReport>),
    Begin,
    Change { path: String, affected: Affected, change: Change, answer: Sender<bool> },
    Stop,
}

impl Emulator {
    /// Starts the links of `spec` between these devices, one pair for each path in its order. Links draw from streams
    /// of `seed`, as in the simulator. Times count from now on.
    ///
    /// # Errors
    ///
    /// If the specification cannot be, or the system refuses.
    pub fn start(
        spec: &NetworkSpec,
        seed: Seed,
        ends: Vec<PathEnds>,
        options: Options,
    ) -> Result<Handle, EmulatorError> {
        if ends.len() != spec.paths.len() {
            return Err(EmulatorError::Ends { paths: spec.paths.len(), ends: ends.len() });
        }
        let wake = Arc::new(
            rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(io::Error::from)?,
        );
        let (commands, inbox) = mpsc::channel();
        let (started, outcome) = mpsc::channel();
        let clock = Clock::start();
        let (spec, woken) = (spec.clone(), Arc::clone(&wake));
        let thread = std::thread::Builder::new().name("emulator".to_owned()).spawn(move || {
            let scheduling = schedule(options.real_time);
            let _awake = options.real_time.then(keep_awake);
            // Built here, since the buffers of packets belong to this thread.
            match Run::new((&spec, seed), ends, options, (clock, scheduling), (inbox, woken)) {
                Ok(run) => {
                    let _ = started.send(Ok(()));
                    run.run()
                }
                Err(error) => {
                    let _ = started.send(Err(error));
                    Err(io::ErrorKind::InvalidInput.into())
                }
            }
        })?;
        outcome.recv().map_err(io::Error::other)??;
        Ok(Handle { commands, wake, thread: Some(thread), clock })
    }
}

impl Handle {
    /// Returns the report so far.
    ///
    /// # Errors
    /// If the emulator has died.
    pub fn snapshot(&self) -> Result<EmulatorReport, EmulatorError> {
        let (answer, report) = mpsc::channel();
        self.command(Command::Report(answer))?;
        Ok(report.recv().map_err(io::Error::other)?)
    }

    /// Lets the times of the specification's changes count from now on, if they were held: see
    /// [`Options::hold_changes`].
    ///
    /// # Errors
    ///
    /// If the emulator has died.
    pub fn begin(&self) -> Result<(), EmulatorError> {
        self.command(Command::Begin)
    }

    /// Changes the links of a path, or a shared link, now. Where this is down or up, the client's interface shows it.
    ///
    /// # Errors
    /// If there is none of that name, a number means nothing, or the emulator has died.
    pub fn change(&self, path: &str, affected: Affected, change: Change) -> Result<(), EmulatorError> {
        if let Change::Loss(model) = &change {
            let place = format!("change of {path}");
            model.check().map_err(|error| NetworkError::Link { place, error })?;
        }
        let (answer, known) = mpsc::channel();
        self.command(Command::Change { path: path.to_owned(), affected, change, answer })?;
        if known.recv().map_err(io::Error::other)? {
            return Ok(());
        }
        let message = format!("there is no path or shared link `{path}`");
        Err(io::Error::new(io::ErrorKind::NotFound, message).into())
    }

    /// Ends the emulator: what is under way never arrives.
    ///
    /// # Errors
    /// If it has died before.
    pub fn stop(mut self) -> Result<EmulatorReport, EmulatorError> {
        let stopped = self.end();
        Ok(stopped.unwrap_or_else(|| Err(io::ErrorKind::NotFound.into()))?)
    }

    /// The emulator's clock; it showed zero at the start.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    fn command(&self, command: Command) -> Result<(), EmulatorError> {
        self.commands.send(command).map_err(|_| io::Error::other("the emulator's thread has ended"))?;
        rustix::io::write(&*self.wake, &1u64.to_ne_bytes()).map_err(io::Error::from)?;
        Ok(())
    }

    fn end(&mut self) -> Option<io::Result<EmulatorReport>> {
        let thread = self.thread.take()?;
        // Fails if the emulator has ended already.
        let _ = self.command(Command::Stop);
        Some(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.end();
        }
    }
}

/// Makes wake-ups of the calling thread as punctual as the system permits.
fn schedule(real_time: bool) -> Scheduling {
    // Ordinary threads are woken up to 50 us late so that wake-ups can be bundled. Harmless if refused.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    if !real_time {
        return Scheduling::Ordinary;
    }
    match sys::schedule_first_in_first_out(PRIORITY) {
        Ok(()) => Scheduling::RealTime,
        Err(error) => Scheduling::Refused(error.to_string()),
    }
}

/// Keeps idle processors out of sleep states for as long as the answer lives (the kernel's CPU latency QoS): each
/// wake-up of a processor that has gone to sleep makes a packet late, the host's as well as ours. `None` where that is
/// not permitted; the run is then less exact, which its report shows.
fn keep_awake() -> Option<File> {
    let mut file = OpenOptions::new().write(true).open("/dev/cpu_dma_latency").ok()?;
    let tolerated = 0i32; // Microseconds.
    file.write_all(&tolerated.to_ne_bytes()).ok()?;
    Some(file)
}

/// Any priority of SCHED_FIFO is above all ordinary threads; a low one leaves the kernel's own above ours.
const PRIORITY: i32 = 5;
