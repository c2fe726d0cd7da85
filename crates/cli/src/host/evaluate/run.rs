//! One run in real time: a testbed, its programs and competing traffic, and what became of all flows.

use super::program::{Client, Server, Task, failed};
use super::watch::Watch;
use crate::failure::Failure;
use crate::host::testbed::{not_built, settings};
use anabranch_host::emulator::{Options as EmulatorOptions, Validity};
use anabranch_host::testbed::traffic::{self, Ending, Transport, UdpRate};
use anabranch_host::testbed::{Testbed, TestbedOptions, show_hosts};
use anabranch_lab::{Flows, LiveFlows, LiveParty};
use anabranch_policy::congestion::kernel_name;
use anabranch_sim::{Extent, Spec, Workload};
use anabranch_study::evaluate::{LiveRun, Program, file_size, is_multipath};
use anabranch_units::{Bytes, Duration};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

/// Maker of runs.
pub struct Runner<'a> {
    /// Program under evaluation; `None` for the kernel's TCP.
    pub program: Option<&'a Program>,
    /// Longest wait for a server.
    pub wait: std::time::Duration,
    /// Signal that was received; 0 for none.
    pub halted: &'a AtomicI32,
}

/// Port at the server of the first workload.
const FIRST_PORT: u16 = 5201;
/// Packets of UDP that a run may lack: a hundredth of a second at 10 Mbit/s.
const MOST_LEFT_OUT: u64 = 10;
const BETWEEN_LOOKS: std::time::Duration = std::time::Duration::from_millis(5);

/// Flow that begins at some time.
enum Flow {
    /// Flow of the system under evaluation.
    Own(Task),
    /// Competing TCP from an address of the client.
    Rival { from: Ipv4Addr, task: Task, repeat: bool },
    /// UDP to an address of the client.
    Udp { to: Ipv4Addr, port: u16, rate: UdpRate },
}

/// A flow of the kernel under way.
struct Fetch {
    task: Task,
    started: Duration,
    thread: JoinHandle<io::Result<u64>>,
}

impl Runner<'_> {
    /// Makes a run. Repeats it once if the links were late.
    pub fn run(&self, live: &LiveRun<'_>) -> Result<Flows, Failure> {
        let flows = self.attempt(live)?;
        if flows.faults.is_empty() { Ok(flows) } else { self.attempt(live) }
    }

    fn is_halted(&self) -> bool {
        self.halted.load(Ordering::Relaxed) != 0
    }

    fn attempt(&self, live: &LiveRun<'_>) -> Result<Flows, Failure> {
        let spec = live.scenario.spec(live.seed);
        let watch = Arc::new(Mutex::new(Watch(Some(LiveFlows::new(live.span, parties(&spec))))));
        let settings = settings(live.scenario);
        let options = TestbedOptions {
            client: settings.client,
            server: settings.server,
            emulator: EmulatorOptions { witness: Some(watch.clone()), ..EmulatorOptions::default() },
            ..TestbedOptions::default()
        };
        let testbed = Testbed::build(&spec.network, spec.seed, spec.server.addresses, options);
        let testbed = testbed.map_err(|error| not_built(error).0)?;
        // Without it a program has no names, but the addresses in its environment.
        let _ = show_hosts(&testbed.layout);
        let ending = Ending::default();
        let mut servers = self.servers(live, &spec, &testbed, &ending)?;
        let mut stage = Stage {
            runner: self,
            live,
            testbed: &testbed,
            ending: &ending,
            clients: Vec::new(),
            fetches: Vec::new(),
            udp: Vec::new(),
        };
        let played = stage.play(schedule(live, &spec, &testbed));
        let Stage { mut clients, fetches, udp, .. } = stage;
        ending.store(true, Ordering::Relaxed);
        clients.iter_mut().for_each(Client::end);
        let lost_files = fetches.into_iter().filter_map(Fetch::unfinished);
        let own_lost = clients.iter().filter(|client| client.is_unfinished());
        let unfinished: Vec<(usize, Duration)> =
            lost_files.chain(own_lost.map(|client| (client.task.party, client.started))).collect();
        let mut words = clients.iter_mut().map(Client::words).chain(servers.iter_mut().map(Server::words));
        let words = words.find(|words| !words.is_empty()).unwrap_or_default();
        servers.into_iter().for_each(Server::end);
        let report = testbed.stop().map_err(broken)?;
        played?;
        let mut faults: Vec<String> = match report.validity {
            Validity::Valid => Vec::new(),
            Validity::Invalid(faults) => faults.into_iter().map(|fault| fault.what).collect(),
        };
        let left_out: u64 = udp.into_iter().filter_map(|sender| sender.join().ok()).sum();
        if left_out > MOST_LEFT_OUT {
            faults.push(format!("the machine did not send {left_out} packets of competing UDP in time"));
        }
        let flows = watch.lock().unwrap_or_else(PoisonError::into_inner).0.take();
        let flows = flows.expect("the emulator has stopped, and only this takes the flows");
        let flows = flows.finish(live.seed, &unfinished, faults);
        let came = |flows: &Flows| {
            flows.parties.iter().filter(|it| !it.competing).any(|it| it.bytes_over_time.iter().any(|n| *n > 0))
        };
        if live.control.is_none() && !came(&flows) {
            let help = "the data goes from the server to the client; try the commands with `anabranch testbed`";
            return Err(failed("no data of the program reached the client".to_owned(), help, &words));
        }
        Ok(flows)
    }

    /// Starts the servers of all workloads: the program's, or the kernel's in its place, and those of competing TCP.
    fn servers(
        &self,
        live: &LiveRun<'_>,
        spec: &Spec,
        testbed: &Testbed,
        ending: &Ending,
    ) -> Result<Vec<Server>, Failure> {
        let mut servers = Vec::new();
        let mut rivals = live.scenario.competing().iter();
        for (party, workload) in spec.workloads.iter().enumerate() {
            let control = match workload {
                Workload::Udp { .. } => continue,
                Workload::Tcp { .. } => rivals.next().map(|name| kernel_name(name)),
                _ => live.control,
            };
            let task = Task {
                party,
                port: port(party),
                bytes: file_size(workload).map(Bytes::get),
                duration: left(workload, live),
            };
            match (control, self.program) {
                (Some(control), _) => {
                    let transport = transport(workload, live);
                    let serving = traffic::serve(&testbed.server, transport, task.port, control, ending);
                    serving.map_err(|error| broken(format!("the kernel does not send under {control}: {error}")))?;
                }
                (None, Some(program)) => {
                    servers.push(Server::start(testbed, program, &task, self.wait, || !self.is_halted())?);
                }
                (None, None) => return Err(broken("there is no program to run")),
            }
        }
        Ok(servers)
    }
}

/// The running flows of a run.
struct Stage<'a> {
    runner: &'a Runner<'a>,
    live: &'a LiveRun<'a>,
    testbed: &'a Testbed,
    ending: &'a Ending,
    clients: Vec<Client>,
    fetches: Vec<Fetch>,
    /// Senders of UDP; each answers how many packets it left out.
    udp: Vec<JoinHandle<u64>>,
}

impl Stage<'_> {
    /// Starts each flow at its time, and waits until all that has an end has ended or the run is over.
    fn play(&mut self, schedule: Vec<(Duration, Flow)>) -> Result<(), Failure> {
        let [least, most] = self.live.length();
        let mut schedule = schedule.into_iter().peekable();
        self.testbed.begin().map_err(broken)?;
        let begin = Instant::now();
        loop {
            let now = since(begin);
            while let Some((_, flow)) = schedule.next_if(|(at, _)| *at <= now) {
                self.start(flow, now)?;
            }
            let mut busy = false;
            for client in &mut self.clients {
                busy |= client.attend(now)?;
            }
            busy |= self.fetches.iter().any(|fetch| !fetch.thread.is_finished());
            if self.runner.is_halted() {
                return Err(Failure::Command(128 + self.runner.halted.load(Ordering::Relaxed) as u8));
            }
            if now >= most || (now >= least && !busy && schedule.peek().is_none()) {
                return Ok(());
            }
            thread::sleep(BETWEEN_LOOKS);
        }
    }

    fn start(&mut self, flow: Flow, now: Duration) -> Result<(), Failure> {
        let (testbed, ending) = (self.testbed, self.ending);
        let server = testbed.layout.server().next().map_or(Ipv4Addr::LOCALHOST, |it| it.v4);
        let fetch = |transport: Transport, from: Ipv4Addr, task: &Task| {
            let (there, limit) = (SocketAddrV4::new(server, task.port), of_clock(task.duration));
            traffic::fetch(&testbed.client, transport, from, there, task.bytes, limit, ending)
        };
        match (flow, self.live.control, self.runner.program) {
            (Flow::Own(task), None, Some(program)) => {
                self.clients.push(Client::start(testbed, program, task, now)?);
            }
            (Flow::Own(task), ..) => {
                let thread = fetch(own_transport(self.live), testbed.layout.primary().client().v4, &task);
                self.fetches.push(Fetch { task, started: now, thread });
            }
            (Flow::Rival { from, task, repeat: false }, ..) => drop(fetch(Transport::Tcp, from, &task)),
            (Flow::Rival { from, task, repeat: true }, ..) => {
                let (client, ending) = (testbed.client.clone(), Arc::clone(ending));
                thread::spawn(move || {
                    let there = SocketAddrV4::new(server, task.port);
                    while !ending.load(Ordering::Relaxed) {
                        let limit = of_clock(task.duration);
                        let fetch = traffic::fetch(&client, Transport::Tcp, from, there, task.bytes, limit, &ending);
                        if !matches!(fetch.join(), Ok(Ok(_))) {
                            thread::sleep(BETWEEN_LOOKS);
                        }
                    }
                });
            }
            (Flow::Udp { to, port, rate }, ..) => {
                let from = SocketAddrV4::new(server, port);
                self.udp.push(traffic::send_udp(&testbed.server, from, to, rate, ending).map_err(broken)?);
            }
        }
        Ok(())
    }
}

impl Fetch {
    /// Returns party and beginning of a file that did not arrive.
    fn unfinished(self) -> Option<(usize, Duration)> {
        let bytes = self.task.bytes?;
        let whole = matches!(self.thread.join(), Ok(Ok(got)) if got >= bytes);
        (!whole).then_some((self.task.party, self.started))
    }
}

/// Protocol of the kernel's TCP in place of the system under evaluation.
fn own_transport(live: &LiveRun<'_>) -> Transport {
    if is_multipath(live.scenario) { Transport::Mptcp } else { Transport::Tcp }
}

fn transport(workload: &Workload, live: &LiveRun<'_>) -> Transport {
    if matches!(workload, Workload::Tcp { .. }) { Transport::Tcp } else { own_transport(live) }
}

fn port(party: usize) -> u16 {
    FIRST_PORT + party as u16
}

fn parties(spec: &Spec) -> Vec<LiveParty> {
    let party = |(place, workload): (usize, &Workload)| LiveParty {
        competing: matches!(workload, Workload::Udp { .. } | Workload::Tcp { .. }),
        port: port(place),
        size: file_size(workload).map(Bytes::get),
    };
    spec.workloads.iter().enumerate().map(party).collect()
}

/// Returns the time that a flow of a workload may take.
fn left(workload: &Workload, live: &LiveRun<'_>) -> Duration {
    match workload {
        Workload::Bulk { duration, .. } | Workload::Tcp { extent: Extent::For(duration), .. } => *duration,
        Workload::Udp { start, stop, .. } => stop.saturating_sub(*start),
        _ => live.length()[1],
    }
}

/// Returns the flows of a run with their times, in order.
fn schedule(live: &LiveRun<'_>, spec: &Spec, testbed: &Testbed) -> Vec<(Duration, Flow)> {
    let address = |path: &str| {
        let layout = &testbed.layout;
        layout.paths.iter().find(|it| it.name == path).unwrap_or(layout.primary()).client().v4
    };
    let mut all = Vec::new();
    for (party, workload) in spec.workloads.iter().enumerate() {
        let duration = left(workload, live);
        let task = Task { party, port: port(party), bytes: file_size(workload).map(Bytes::get), duration };
        match workload {
            Workload::Bulk { start, .. } => all.push((*start, Flow::Own(task))),
            Workload::Tcp { path, start, extent, .. } => {
                let repeat = matches!(extent, Extent::Repeat(_));
                all.push((*start, Flow::Rival { from: address(path), task, repeat }));
            }
            Workload::Udp { path, rate, packet, start, .. } => {
                let packet_bytes = usize::try_from(packet.get()).unwrap_or(usize::MAX);
                let rate = UdpRate {
                    packet: packet_bytes,
                    gap: of_clock(rate.time_for(*packet)),
                    duration: of_clock(duration),
                };
                all.push((*start, Flow::Udp { to: address(path), port: task.port, rate }));
            }
            files => {
                let times = files.file_times(spec.seed, party).unwrap_or_default();
                all.extend(times.into_iter().map(|at| (at, Flow::Own(task))));
            }
        }
    }
    all.sort_by_key(|(at, _)| *at);
    all
}

fn of_clock(time: Duration) -> std::time::Duration {
    std::time::Duration::from_nanos(time.as_nanos())
}

fn since(begin: Instant) -> Duration {
    Duration::from_nanos(u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX))
}

fn broken(error: impl std::fmt::Display) -> Failure {
    Failure::Testbed(miette::miette!("{error}"))
}
