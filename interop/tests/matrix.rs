//! {engine, kernel} x {client, server} x {MPTCP, plain TCP} x {IPv4, IPv6} x {checksum off, on}: 16 MiB each way
//! through links drawn by lot, compared byte for byte. Captures at the engine's device are judged by tshark. A few
//! cells are kernel against kernel and engine against engine: what fails there does not come from the other.

use anabranch_interop::links::{self, Bounds, Drawn};
use anabranch_interop::tshark::{Dissection, has_tshark, subtype};
use anabranch_interop::{Case, End, Family, Meeting, Outcome, Party, Plan, Stack, run, seed};
use anabranch_units::Seed;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

fn main() -> ExitCode {
    let seed = match seed("matrix") {
        Ok(seed) => seed,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let judged = match (has_tshark(), std::env::var_os("ANABRANCH_REQUIRE_TSHARK")) {
        (true, _) => true,
        (false, None) => {
            eprintln!("SKIPPED: tshark is not installed, so nobody looks at the captures of the matrix");
            false
        }
        (false, Some(_)) => {
            eprintln!("FAILED: ANABRANCH_REQUIRE_TSHARK is set, and tshark is not installed");
            return ExitCode::FAILURE;
        }
    };
    let cases = cells().into_iter().map(|cell| {
        let seed = seed.child(&cell.name());
        Case::new(cell.name(), move || cell.run(seed, judged))
    });
    run(cases.collect(), AT_ONCE)
}

/// One cell of the matrix.
#[derive(Clone, Copy)]
struct Cell {
    client: Stack,
    server: Stack,
    multipath: bool,
    family: Family,
    checksum: bool,
}

fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for (client, server) in [(Stack::Engine, Stack::Kernel), (Stack::Kernel, Stack::Engine)] {
        for multipath in [true, false] {
            for family in [Family::V4, Family::V6] {
                for checksum in [false, true] {
                    cells.push(Cell { client, server, multipath, family, checksum });
                }
            }
        }
    }
    for stack in [Stack::Kernel, Stack::Engine] {
        for (family, checksum) in [(Family::V4, false), (Family::V6, true)] {
            cells.push(Cell { client: stack, server: stack, multipath: true, family, checksum });
        }
    }
    cells
}

impl Cell {
    fn name(&self) -> String {
        let protocol = if self.multipath { "mptcp" } else { "tcp" };
        let checksum = if self.checksum { "checksum" } else { "plain" };
        format!("{:?}_to_{:?}_{protocol}_{:?}_{checksum}", self.client, self.server, self.family).to_lowercase()
    }

    /// Two kernels are the control. On a busy machine Linux 6.18 once stalled for five minutes in mid-transfer, without
    /// our engine (`NoDSSInWindow` 2): such a cell is run once more, with a message.
    fn run(&self, seed: Seed, judged: bool) -> Result<(), String> {
        let held = self.hold(seed, judged);
        match held {
            Err(error) if (self.client, self.server) == (Stack::Kernel, Stack::Kernel) => {
                eprintln!("{}: two kernels failed with each other; once more\n{error}", self.name());
                self.hold(seed, judged)
            }
            held => held,
        }
    }

    fn hold(&self, seed: Seed, judged: bool) -> Result<(), String> {
        let paths = links::draw(seed, &BOUNDS);
        let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
        let meeting = self.meeting(seed, &paths, directory.path());
        let outcome = meeting.hold();
        let checked =
            outcome.and_then(|outcome| self.check(&meeting, &outcome).map_err(|error| format!("{error}\n{outcome}")));
        let mut captures = [&meeting.client, &meeting.server].into_iter().filter_map(|party| party.capture.as_deref());
        let dissected = match judged {
            true => captures.try_for_each(|capture| self.dissect(capture)),
            false => Ok(()),
        };
        checked.and(dissected).map_err(|error| {
            let kept = directory.keep();
            format!("{}\n{}\n{error}\ncaptures are in {}", paths[0], paths[1], kept.display())
        })
    }

    fn meeting(&self, seed: Seed, paths: &[Drawn], captures: &Path) -> Meeting {
        let plan = Plan::send(SIZE);
        let [client_requires, server_requires] = match (self.checksum, seed.stream("who requires checksums").below(3)) {
            (false, _) => [false, false],
            (true, 0) => [true, false],
            (true, 1) => [false, true],
            (true, _) => [true, true],
        };
        let party = |stack: Stack, checksum: bool, name: &str| {
            let capture: Option<PathBuf> = (stack == Stack::Engine).then(|| captures.join(format!("{name}.pcapng")));
            // In a cell of plain TCP the kernel speaks nothing else. Where checksums are off, neither does the engine;
            // where they are on it offers, or accepts, MPTCP in vain.
            let multipath = self.multipath || (stack == Stack::Engine && self.checksum);
            Party { multipath, checksum, capture, ..Party::new(stack, plan) }
        };
        Meeting {
            network: links::network(paths),
            seed,
            family: self.family,
            client: party(self.client, client_requires, "client"),
            server: party(self.server, server_requires, "server"),
            subflows: if self.multipath { 2 } else { 1 },
            incidents: Vec::new(),
            limit: LIMIT,
        }
    }

    fn check(&self, meeting: &Meeting, outcome: &Outcome) -> Result<(), String> {
        let ends = [
            ("client", &outcome.client, &meeting.client, &meeting.server),
            ("server", &outcome.server, &meeting.server, &meeting.client),
        ];
        for (name, end, party, peer) in ends {
            end.transfer.check(&party.plan, &peer.plan).map_err(|error| format!("the {name} {error}"))?;
            match party.stack {
                Stack::Engine => self.check_engine(end),
                Stack::Kernel => self.check_kernel(end, name == "client"),
            }
            .map_err(|error| format!("the {name}: {error}"))?;
        }
        for (path, number) in outcome.links.paths.iter().zip(0..) {
            for traffic in [&path.traffic.down, &path.traffic.up] {
                if traffic.delivered_bytes.get() < ON_EACH_PATH && (self.multipath || number == 0) {
                    return Err(format!("{} carried {} only", path.name, traffic.delivered_bytes));
                }
            }
        }
        Ok(())
    }

    fn check_engine(&self, end: &End) -> Result<(), String> {
        let connection = end.connection.as_ref().ok_or("there is no connection")?;
        if connection.multipath != Some(self.multipath) {
            return Err(format!("multipath: {:?}", connection.multipath));
        }
        if self.multipath && connection.stats.fallback.is_some() {
            return Err(format!("it fell back: {:?}", connection.stats.fallback));
        }
        let carried = connection.subflows.iter().filter(|it| it.bytes_first_sent > 0 && it.bytes_received > 0).count();
        let expected = if self.multipath { 2 } else { 1 };
        if carried != expected {
            return Err(format!("{carried} subflows carried data both ways, expected are {expected}"));
        }
        Ok(())
    }

    fn check_kernel(&self, end: &End, is_client: bool) -> Result<(), String> {
        let counters = &end.counters;
        let [opened, joined] = match is_client {
            true => ["MPCapableSYNACKRX", "MPJoinSynAckRx"],
            false => ["MPCapableACKRX", "MPJoinAckRx"],
        };
        let expected = u64::from(self.multipath);
        if counters.mptcp(opened) != expected || counters.mptcp(joined) < expected {
            return Err(format!("no connection with a join: {counters}"));
        }
        let mut trouble = counters.mptcp_trouble();
        if self.client == self.server {
            // Two kernels, the control: one answers what the other repeats after the end with RSTs now and then, and
            // that says nothing of ours. The bytes, the joins and everything else have to be right all the same.
            trouble.retain(|name, _| !name.contains("Rst"));
        }
        // Not every RST it sent (`TcpOutRsts`): an ACK that was overtaken by the last one finds no socket and gets one.
        let resets = counters.get("TcpEstabResets");
        // A SYN/ACK that comes once more, since what answered the first was lost, is an error to the kernel: it answers
        // with a challenge ACK (RFC 5961 §4).
        let damage = counters.get("TcpInErrs").saturating_sub(counters.get("TcpExtTCPSYNChallenge"));
        if !trouble.is_empty() || resets + damage > 0 {
            return Err(format!("trouble: {trouble:?}, {resets} resets, {damage} damaged; all: {counters}"));
        }
        Ok(())
    }

    fn dissect(&self, capture: &Path) -> Result<(), String> {
        let dissection = Dissection::of(capture)?;
        dissection.check()?;
        let [data, joins] = [subtype::DSS, subtype::JOIN].map(|subtype| dissection.with(subtype));
        if self.multipath && (data < dissection.packets / 2 || joins < 3) {
            return Err(format!("tshark sees {data} DSS and {joins} MP_JOIN in {} packets", dissection.packets));
        }
        Ok(())
    }
}

const SIZE: u64 = 16 << 20;
/// Bytes in IP packets, more than a handshake and its ACKs come to when the other path carries everything. How much
/// more depends on the links drawn, and on the machine.
const ON_EACH_PATH: u64 = 16 << 10;
/// Only a guard against hanging.
const LIMIT: Duration = Duration::from_secs(300);
/// Cells at the same time: they mostly wait for their links.
const AT_ONCE: usize = 8;

const BOUNDS: Bounds = Bounds { rate: (20, 80), delay: 50, loss: 0.01, reordering: 0.02, first_path: 12.0 };
