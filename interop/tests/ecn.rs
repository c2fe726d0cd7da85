//! Marks (ECN): what the engine and the kernel agree on under each of Linux' six settings of `tcp_ecn` at either end,
//! and whether each end reports the marks that the other's packets came with. Both directions pass FQ-CoDel.

use anabranch_engine::{EcnRule, Feedback};
use anabranch_host::Namespace;
use anabranch_interop::tshark::{Dissection, has_tshark};
use anabranch_interop::{Case, End, Family, Meeting, Outcome, Party, Plan, Stack, run, seed};
use anabranch_net::{Discipline, LinkConfig, QueueLimit};
use anabranch_paths::{NetworkSpec, PathSpec};
use anabranch_policy::queue::QueueDiscipline;
use anabranch_policy::registry::QUEUES;
use anabranch_units::{Duration as Span, Rate, Seed};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

fn main() -> ExitCode {
    let seed = match seed("ecn") {
        Ok(seed) => seed,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let judged = has_tshark();
    if !judged {
        eprintln!("SKIPPED: tshark is not installed, so nobody looks at the captures of the ECN matrix");
    }
    let largest = largest_setting();
    if largest < RULES.len() - 1 {
        eprintln!("SKIPPED: `tcp_ecn` of this kernel ends at {largest}: no accurate feedback with it");
    }
    let cells = cells().into_iter().filter(|cell| cell.kernel <= largest);
    let cases = cells.map(|cell| {
        let seed = seed.child(&cell.name());
        Case::new(cell.name(), move || cell.run(seed, judged))
    });
    run(cases.collect(), AT_ONCE)
}

/// The largest setting that this kernel accepts; Linux 6.18 has 0 to 2, later ones 0 to 5. All if there is no namespace
/// to ask in, where nothing runs.
fn largest_setting() -> usize {
    let Ok(namespace) = Namespace::new("ecn") else { return RULES.len() - 1 };
    let accepts = |number: &&str| namespace.sysctl("net.ipv4.tcp_ecn", number).is_ok();
    NUMBERS.into_iter().take_while(accepts).count().saturating_sub(1)
}

/// Linux' settings of `tcp_ecn`, from 0 on.
const RULES: [EcnRule; 6] = [
    EcnRule::OFF,
    EcnRule::CLASSIC,
    EcnRule::ACCEPT_CLASSIC,
    EcnRule::ACCURATE,
    EcnRule::ACCEPT_ACCURATE_ASK_CLASSIC,
    EcnRule::ACCEPT_ACCURATE,
];

/// One cell: who connects, over what, and the settings of both.
#[derive(Clone, Copy)]
struct Cell {
    client: Stack,
    multipath: bool,
    cookies: bool,
    engine: usize,
    kernel: usize,
}

fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for client in [Stack::Engine, Stack::Kernel] {
        for engine in 0..RULES.len() {
            for kernel in 0..RULES.len() {
                // Half of them speak MPTCP, each setting in both roles.
                let multipath = (engine + kernel) % 2 == 0;
                cells.push(Cell { client, multipath, cookies: false, engine, kernel });
            }
        }
    }
    for (engine, kernel) in [(1, 1), (3, 3), (3, 1), (1, 3)] {
        for multipath in [false, true] {
            // The server's SYN/ACKs are cookies.
            for client in [Stack::Engine, Stack::Kernel] {
                cells.push(Cell { client, multipath, cookies: true, engine, kernel });
            }
        }
    }
    cells
}

impl Cell {
    fn name(&self) -> String {
        let protocol = if self.multipath { "mptcp" } else { "tcp" };
        let cookies = if self.cookies { "_cookies" } else { "" };
        format!("{:?}_connects_{protocol}_engine_{}_kernel_{}{cookies}", self.client, self.engine, self.kernel)
            .to_lowercase()
    }

    /// The feedback that both agree on.
    fn agreed(&self) -> Feedback {
        let (client, server) = match self.client {
            Stack::Engine => (RULES[self.engine], RULES[self.kernel]),
            Stack::Kernel => (RULES[self.kernel], RULES[self.engine]),
        };
        client.asks.min(server.accepts)
    }

    fn run(&self, seed: Seed, judged: bool) -> Result<(), String> {
        let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
        let capture = directory.path().join("engine.pcapng");
        let outcome = self.meeting(seed, &capture).hold()?;
        let checked = self.check(&outcome).map_err(|error| format!("{error}\n{outcome}"));
        let dissected = if judged { Dissection::of(&capture)?.check() } else { Ok(()) };
        checked.and(dissected).map_err(|error| format!("{error}\nthe capture is in {}", directory.keep().display()))
    }

    fn meeting(&self, seed: Seed, capture: &Path) -> Meeting {
        let plan = Plan::send(SIZE);
        let rule = RULES[self.engine];
        let cookies = self.cookies;
        let party = |stack: Stack| {
            let mut party = Party { multipath: self.multipath, ..Party::new(stack, plan) };
            match stack {
                Stack::Engine => {
                    party.capture = Some(capture.to_owned());
                    party.adjust = Arc::new(move |config| {
                        config.profile.ecn = rule;
                        if cookies {
                            config.max_half_open = 0;
                        }
                    });
                }
                Stack::Kernel => {
                    party.sysctls.push(("net.ipv4.tcp_ecn", NUMBERS[self.kernel]));
                    if cookies {
                        party.sysctls.push(("net.ipv4.tcp_syncookies", "2"));
                    }
                }
            }
            party
        };
        let other = if self.client == Stack::Engine { Stack::Kernel } else { Stack::Engine };
        Meeting {
            network: network(),
            seed,
            family: Family::V4,
            client: party(self.client),
            server: party(other),
            subflows: 1,
            incidents: Vec::new(),
            limit: LIMIT,
        }
    }

    fn check(&self, outcome: &Outcome) -> Result<(), String> {
        let plan = Plan::send(SIZE);
        let ends = [&outcome.client, &outcome.server];
        ends.into_iter().try_for_each(|end| end.transfer.check(&plan, &plan))?;
        let (engine, kernel) = match self.client {
            Stack::Engine => (&outcome.client, &outcome.server),
            Stack::Kernel => (&outcome.server, &outcome.client),
        };
        let marked: u64 = outcome.links.links.iter().map(|link| link.stats.marked).sum();
        let ours = Marks::of(engine);
        let (came, said) = (kernel.counters.get("IpExtInCEPkts"), kernel.counters.get("TcpExtTCPDeliveredCE"));
        let agreed = self.agreed();
        let all = format!("{agreed:?}: {marked} marked; engine {ours:?}; kernel {came} came, {said} told");
        let wrong = |what: &str| Err(format!("{what}: {all}"));
        if agreed == Feedback::Off {
            return if (marked, ours.received, ours.reported) == (0, 0, 0) {
                Ok(())
            } else {
                wrong("marks of nothing")
            };
        }
        if marked == 0 || came == 0 || ours.received == 0 {
            return wrong("no marks");
        }
        if ours.reductions == 0 || ours.reported == 0 || said == 0 {
            return wrong("marks that nobody reports");
        }
        if agreed == Feedback::Accurate {
            // What is told last may be under way when the connection ends, and a merged segment counts as its parts.
            let most = |told: u64, marks: u64| told <= marks + marks / 10 + 8;
            if !most(ours.reported, came) || !most(ours.received, said) {
                return wrong("the reports do not agree");
            }
            // A cookie's SYN/ACK has no option, and where the ACE field is all there is, ACKs that merge eight segments
            // or more leave open how many were marked: the engine takes the fewest there, Linux 7.2 also the most.
            if !self.cookies && (!most(came, ours.reported) || !most(said, ours.received)) {
                return wrong("the reports do not agree");
            }
        }
        Ok(())
    }
}

/// Marks of an engine's subflows.
#[derive(Debug, Default)]
struct Marks {
    received: u64,
    reported: u64,
    reductions: u64,
}

impl Marks {
    fn of(end: &End) -> Self {
        let subflows = end.connection.iter().flat_map(|connection| &connection.subflows);
        subflows.fold(Marks::default(), |sum, subflow| Marks {
            received: sum.received + subflow.marks_received,
            reported: sum.reported + subflow.marks_reported,
            reductions: sum.reductions + subflow.mark_reductions,
        })
    }
}

/// Two paths whose queues mark in both directions.
fn network() -> NetworkSpec {
    let path = |name: &str, rate: u64| {
        let mut link = LinkConfig::new(Rate::from_mbps(rate), Span::from_millis(10));
        link.queue = QueueLimit::Packets(1000);
        link.discipline = Some(Discipline::new("fq-codel", fq_codel));
        PathSpec::new(name, link.clone(), link)
    };
    NetworkSpec::new(vec![path("path1", 20), path("path2", 10)])
}

fn fq_codel() -> Box<dyn QueueDiscipline> {
    let entry = QUEUES.iter().find(|entry| entry.name == "fq-codel").expect("it is among them");
    entry.build_default().policy
}

const NUMBERS: [&str; 6] = ["0", "1", "2", "3", "4", "5"];
const SIZE: u64 = 4 << 20;
/// Only a guard against hanging.
const LIMIT: Duration = Duration::from_secs(120);
/// Cells at the same time: they mostly wait for their links.
const AT_ONCE: usize = 8;
