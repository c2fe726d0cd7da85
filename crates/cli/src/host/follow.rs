//! `anabranch why --follow`: where the time of live connections goes, second by second, from what the kernel tells of
//! their sockets.

use super::socket_tables::SocketTables;
use crate::failure::Failure;
use crate::output;
use crate::why::WhyArgs;
use anabranch_host::{Caught, Clock, sockets_of};
use anabranch_lab::format::{NoContents, WHY_LIVE};
use anabranch_units::Duration;
use anabranch_why::{Follower, LiveAnswer, Target};
use miette::miette;
use std::io::ErrorKind;
use std::net::SocketAddr;

/// Looks in an interval: the state between two of them is taken for that at the later one.
const LOOKS: u64 = 20;
/// Shortest time between two looks.
const SHORTEST: Duration = Duration::from_millis(10);

/// Connections as they are asked for.
enum Wanted {
    Address(SocketAddr),
    Process(u32),
}

/// Answers once each interval until the connections end, or a signal comes.
pub fn follow(args: &WhyArgs) -> Result<(), Failure> {
    let wanted = args.scenario.iter().map(|text| wanted(text)).collect::<Result<Vec<_>, _>>()?;
    let missing = |it: &&Wanted| matches!(it, Wanted::Process(process) if is_gone(*process));
    if let Some(Wanted::Process(process)) = wanted.iter().find(missing) {
        return Err(Failure::Refused(miette!(
            help = "`ps` lists those that there are",
            "there is no process {process}"
        )));
    }
    let mut kernel = SocketTables::open()?;
    let mut caught = Caught::new().map_err(|error| Failure::Failed(miette!("cannot catch signals: {error}")))?;
    let mut follower = Follower::new(Vec::new());
    let clock = Clock::start();
    let mut answers = Answers { json: args.json, screen: output::Screen::default() };
    answers.begin()?;
    let pause = (args.interval / LOOKS).max(SHORTEST);
    let mut due = Duration::ZERO + args.interval;
    let mut waiting = false;
    loop {
        let targets = targets(&wanted)?;
        // Sockets of a process come and go, so targets are found anew each time.
        let gone = !wanted.is_empty() && targets.is_empty();
        follower.set_targets(targets);
        let sockets = kernel.sockets()?;
        let at = clock.now();
        follower.look(at.as_nanos(), sockets);
        let over = gone || !wanted.is_empty() && follower.has_found() && follower.connections() == 0;
        let late = args.max_time.is_some_and(|most| at.as_nanos() >= most.as_nanos());
        if over || late {
            break;
        }
        if at.as_nanos() >= due.as_nanos() {
            match follower.has_found() || args.json {
                true => answers.show(&follower.interval())?,
                false if !waiting => {
                    waiting = true;
                    output::remark("waiting for such a connection; `ss -tnM` lists those that there are");
                }
                false => {}
            }
            while at.as_nanos() >= due.as_nanos() {
                due += args.interval;
            }
        }
        let signalled = caught.wait(std::time::Duration::from_nanos(pause.as_nanos()));
        if signalled.map_err(|error| Failure::Failed(miette!("cannot wait for signals: {error}")))? {
            break;
        }
    }
    answers.show(&follower.whole())
}

/// Returns true if there is no such process.
fn is_gone(process: u32) -> bool {
    sockets_of(process).is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

/// A process or an address.
fn wanted(text: &str) -> Result<Wanted, Failure> {
    if let Ok(process) = text.parse() {
        return Ok(Wanted::Process(process));
    }
    text.parse().map(Wanted::Address).map_err(|_| {
        let help = "accepted: the number of a process, such as 1234; or ADDRESS:PORT of either end, such as \
                    10.0.0.1:443 or [fd00::1]:443";
        Failure::Refused(miette!(help = help, "`{text}` is no connection to follow"))
    })
}

/// Targets as they are now: the sockets of a process change. A process that has ended is none.
fn targets(wanted: &[Wanted]) -> Result<Vec<Target>, Failure> {
    let mut targets = Vec::new();
    for wanted in wanted {
        match wanted {
            Wanted::Address(address) => targets.push(Target::Address(*address)),
            Wanted::Process(process) => match sockets_of(*process) {
                Ok(inodes) => targets.push(Target::Process(inodes)),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => {
                    let help = "run as the user of that process, or as root";
                    return Err(Failure::Failed(miette!(help = help, "cannot see the sockets of {process}: {error}")));
                }
            },
        }
    }
    Ok(targets)
}

/// Standard output.
struct Answers {
    json: bool,
    screen: output::Screen,
}

impl Answers {
    fn begin(&self) -> Result<(), Failure> {
        match self.json {
            true => output::print(&format!("{}\n", serde_json::json!(WHY_LIVE.document(NoContents {})))),
            false => Ok(()),
        }
    }

    fn show(&mut self, answer: &LiveAnswer) -> Result<(), Failure> {
        match self.json {
            true => output::print(&format!("{}\n", serde_json::json!(answer))),
            false => self.screen.show(&anabranch_report::why_live(answer, output::width())),
        }
    }
}
