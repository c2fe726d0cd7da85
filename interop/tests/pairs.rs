//! Pairs of settings and faults drawn by lot, one connection each: an engine and a kernel in both roles, every byte
//! compared with its pattern at both ends. The engine's end is its application or a proxy on it, behind which a
//! kernel's socket talks plain TCP.
//!
//! Two kernels under the same pair are the control: a pair that they do not survive either says nothing of the engine,
//! and is reported as such. They are only asked when the engine has failed. One fault of Linux is known by its
//! counters: behind a box that merges segments it can lose count of its stream, which two kernels show rarely, since
//! they map more than a segment at once (docs/middleboxes.md).
//!
//! `ANABRANCH_PAIRS=N` plays N pairs of a seed of their own (`ANABRANCH_SEED` repeats it) in place of the 20 that every
//! run plays. With `ANABRANCH_PAIRS_CAPTURES=DIRECTORY` the engine's device is recorded there.

use anabranch_engine::FastClose;
use anabranch_interop::links::{self, Bounds};
use anabranch_interop::{
    Adjust, Case, Close, Family, Incident, KernelCounters, Meeting, Party, Plan, Stack, What, When, run, seed,
};
use anabranch_net::Change;
use anabranch_paths::{
    Coalesce, DropSyn, EarlyAck, End, Middlebox, MiddleboxSpec, MtuBlackhole, Nat, RewriteSequence, Split,
    SplitOptions, Strip, Stripped, StrippedOptions, SynOption, Unmapped,
};
use anabranch_policy::registry::{CONGESTION, Entry, Kind, REINJECTIONS, SCHEDULERS};
use anabranch_units::{Bytes, Duration as Span, Rate, Seed};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

fn main() -> ExitCode {
    let (count, seed) = match std::env::var("ANABRANCH_PAIRS") {
        Err(_) => (IN_EVERY_RUN, Ok(FIXED)),
        Ok(text) => match text.parse() {
            Ok(count) => (count, seed("pairs")),
            Err(_) => (0, Err(format!("ANABRANCH_PAIRS is `{text}`; a whole number is accepted"))),
        },
    };
    match seed {
        Ok(seed) => run((0..count).map(|number| case(seed, number)).collect(), AT_ONCE),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// A connection before its settings are applied, in both roles alike.
struct Draft {
    meeting: Meeting,
    /// Changes to the engine, whichever end it is.
    engine: Vec<Adjust>,
}

/// Setting or fault: its name, and the change to the draft.
type Setting = (&'static str, fn(&mut Draft));

/// All that is drawn from. A new entry changes the pairs of every seed.
const SETTINGS: &[Setting] = &[
    // --- the engine
    ("checksum-engine", |it| it.of(Stack::Engine, |party| party.checksum = true)),
    ("no-timestamps-engine", |it| it.adjust(|config| config.profile.timestamps = false)),
    ("no-sack-engine", |it| it.adjust(|config| config.profile.sack = false)),
    ("no-window-scaling-engine", |it| it.adjust(|config| config.profile.window_scaling = false)),
    ("small-receive-buffer-engine", |it| it.adjust(|config| config.receive_buffer = Bytes::new(6 << 10))),
    ("small-send-buffer-engine", |it| it.adjust(|config| config.send_buffer = Bytes::new(3 << 10))),
    ("small-mss-engine", |it| it.adjust(|config| config.profile.mss = 536)),
    ("cookies-engine", |it| it.adjust(|config| config.max_half_open = 0)),
    ("each-acknowledged-engine", |it| it.adjust(|config| config.profile.delayed_ack = None)),
    ("fast-close-ack-engine", |it| it.adjust(|config| config.fast_close = FastClose::Ack)),
    ("round-robin", |it| it.adjust(|config| config.policies.scheduler = policy(SCHEDULERS, "round-robin"))),
    ("redundant", |it| it.adjust(|config| config.policies.scheduler = policy(SCHEDULERS, "redundant"))),
    ("blest", |it| it.adjust(|config| config.policies.scheduler = policy(SCHEDULERS, "blest"))),
    ("late", |it| it.adjust(|config| config.policies.scheduler = policy(SCHEDULERS, "late"))),
    ("bbr", |it| it.adjust(|config| config.policies.congestion = policy(CONGESTION, "bbr"))),
    ("olia", |it| it.adjust(|config| config.policies.congestion = policy(CONGESTION, "olia"))),
    ("insured", |it| it.adjust(|config| config.policies.reinjection = policy(REINJECTIONS, "insured"))),
    // --- the kernel
    ("checksum-kernel", |it| it.of(Stack::Kernel, |party| party.checksum = true)),
    ("no-timestamps-kernel", |it| it.sysctl("net.ipv4.tcp_timestamps", "0")),
    ("no-sack-kernel", |it| it.sysctl("net.ipv4.tcp_sack", "0")),
    ("no-window-scaling-kernel", |it| it.sysctl("net.ipv4.tcp_window_scaling", "0")),
    ("cookies-kernel", |it| it.sysctl("net.ipv4.tcp_syncookies", "2")),
    ("no-join-at-first-address-kernel", |it| it.sysctl("net.mptcp.allow_join_initial_addr_port", "0")),
    ("small-buffers-kernel", |it| it.sysctl("net.ipv4.tcp_rmem", "4096 8192 16384")),
    ("plain-tcp-kernel", |it| it.of(Stack::Kernel, |party| party.multipath = false)),
    ("small-so-rcvbuf-kernel", |it| it.of(Stack::Kernel, |party| party.receive_buffer = Some(8 << 10))),
    // --- the paths
    ("ipv6", |it| it.meeting.family = Family::V6),
    ("first-path-slow", |it| it.rate(0, 5)),
    ("second-path-slow", |it| it.rate(1, 1)),
    ("mptcp-stripped-all", |it| it.boxes(0..2, Middlebox::strip(Stripped::All))),
    ("mptcp-stripped-second-path", |it| it.boxes(1..2, Middlebox::strip(Stripped::All))),
    ("mptcp-stripped-from-syn", |it| it.boxes(0..1, Middlebox::strip(Stripped::Syn))),
    ("mptcp-stripped-from-syn-ack", |it| it.boxes(0..1, Middlebox::strip(Stripped::SynAck))),
    ("mptcp-stripped-after-syns", |it| it.boxes(0..2, Middlebox::strip(Stripped::AfterHandshake))),
    ("mptcp-stripped-in-mid-stream-second-path", |it| it.boxes(1..2, stripped_later(StrippedOptions::Mptcp))),
    ("dss-stripped-second-path", |it| it.boxes(1..2, stripped_later(StrippedOptions::Dss))),
    ("add-addr-stripped", |it| it.boxes(0..2, stripped(StrippedOptions::AddAddr))),
    ("control-options-stripped", |it| it.boxes(0..2, stripped(StrippedOptions::Control))),
    ("joins-dropped", |it| it.boxes(1..2, DropSyn { option: SynOption::Join }.into())),
    ("sequence-numbers-rewritten", |it| it.boxes(0..2, RewriteSequence.into())),
    ("split", |it| {
        it.boxes(0..2, Split { size: 700, options: SplitOptions::Copied, direction: None }.into());
    }),
    ("coalesced", |it| {
        it.boxes(0..2, Coalesce { size: 4000, wait: Span::from_millis(2), direction: None }.into());
    }),
    ("early-ack", |it| {
        it.boxes(1..2, EarlyAck { delay: Span::from_millis(1), lose: 0, direction: None }.into());
    }),
    ("nat", |it| it.boxes(0..2, Nat { rebind: None, unmapped: Unmapped::Dropped }.into())),
    ("nat-forgets-second-path", |it| {
        it.boxes(1..2, Nat { rebind: Some(Span::from_millis(400)), unmapped: Unmapped::Reset }.into());
    }),
    ("large-packets-vanish-second-path", |it| {
        it.boxes(1..2, MtuBlackhole { size: 1300, from: Span::from_millis(200), direction: None }.into());
    }),
    // --- incidents in mid-stream
    ("timestamps-stripped-in-mid-stream", |it| {
        it.later(When::Received(BEGUN), What::Command(Stack::Kernel, "nft", &[TIMESTAMPS_STRIPPED]));
    }),
    ("endpoints-flushed", |it| it.later(When::Received(BEGUN), What::Command(Stack::Kernel, "ip", FLUSH))),
    ("engine-gives-an-address-up", |it| it.later(When::Received(BEGUN), What::AddressGivenUp)),
    ("engine-flushes-its-addresses", |it| it.later(When::Received(BEGUN), What::AddressesFlushed(PAUSE))),
    ("first-path-down-for-a-while", |it| it.down(0)),
    ("second-path-down-for-a-while", |it| it.down(1)),
    ("first-path-silent-for-a-while", |it| it.silent(0)),
    ("both-paths-down-for-a-while", |it| it.both(Change::Down, Change::Up)),
    ("both-paths-silent-for-a-while", |it| it.both(Change::Blackhole, Change::Restore)),
    // --- the conversation
    ("client-waits-for-the-end", |it| it.meeting.client.plan.close = Close::AfterPeer),
    ("server-waits-for-the-end", |it| it.meeting.server.plan.close = Close::AfterPeer),
    ("client-sends-nothing", |it| it.meeting.client.plan.send = 0),
    ("server-sends-nothing", |it| it.meeting.server.plan.send = 0),
    ("few-bytes", |it| (it.meeting.client.plan.send, it.meeting.server.plan.send) = (100, 100)),
];

fn policy<T: Kind + ?Sized>(table: &'static [Entry<T>], name: &str) -> anabranch_engine::Factory<T>
where
    Entry<T>: Sync,
{
    let entry = table.iter().find(|entry| entry.name == name).expect("there is such a policy");
    Arc::new(|| entry.build_default())
}

fn stripped(options: StrippedOptions) -> Middlebox {
    Strip { from: Stripped::All, options, after: 0, direction: None }.into()
}

/// A box that lets the beginning of a flow through.
fn stripped_later(options: StrippedOptions) -> Middlebox {
    Strip { from: Stripped::All, options, after: 60, direction: None }.into()
}

impl Draft {
    /// A connection between two stacks; the engine among them is a proxy's if it is `proxied`.
    fn new(seed: Seed, client: Stack, server: Stack, proxied: bool) -> Draft {
        let paths = links::draw(seed, &BOUNDS);
        let party = |stack| Party { proxied: proxied && stack == Stack::Engine, ..Party::new(stack, Plan::send(SIZE)) };
        let meeting = Meeting {
            network: links::network(&paths),
            seed,
            family: Family::V4,
            client: party(client),
            server: party(server),
            subflows: 1,
            incidents: Vec::new(),
            limit: LIMIT,
        };
        Draft { meeting, engine: Vec::new() }
    }

    fn of(&mut self, stack: Stack, change: impl Fn(&mut Party)) {
        let parties = [&mut self.meeting.client, &mut self.meeting.server];
        parties.into_iter().filter(|party| party.stack == stack).for_each(change);
    }

    fn adjust(&mut self, change: fn(&mut anabranch_engine::Config)) {
        self.engine.push(Arc::new(change));
    }

    fn sysctl(&mut self, key: &'static str, value: &'static str) {
        self.of(Stack::Kernel, |party| party.sysctls.push((key, value)));
    }

    fn rate(&mut self, path: usize, megabits: u64) {
        let path = &mut self.meeting.network.paths[path];
        for link in [&mut path.down, &mut path.up] {
            link.service = Rate::from_mbps(megabits).into();
        }
    }

    fn later(&mut self, when: When, what: What) {
        self.meeting.incidents.push(Incident { when, what });
    }

    /// The client's interface loses its carrier for a while.
    fn down(&mut self, path: usize) {
        self.later(When::Received(BEGUN), What::Path(path, Change::Down));
        self.later(When::Later(PAUSE), What::Path(path, Change::Up));
    }

    /// Packets vanish for a while, and no host hears of it.
    fn silent(&mut self, path: usize) {
        self.later(When::Received(BEGUN), What::Path(path, Change::Blackhole));
        self.later(When::Later(PAUSE), What::Path(path, Change::Restore));
    }

    /// Something happens to both paths at once, and ends at once after a while.
    fn both(&mut self, begin: Change, end: Change) {
        self.later(When::Received(BEGUN), What::Path(0, begin.clone()));
        self.later(When::Received(0), What::Path(1, begin));
        self.later(When::Later(PAUSE), What::Path(0, end.clone()));
        self.later(When::Received(0), What::Path(1, end));
    }

    fn boxes(&mut self, paths: std::ops::Range<usize>, kind: Middlebox) {
        for path in &mut self.meeting.network.paths[paths] {
            path.middleboxes.push(MiddleboxSpec { kind: kind.clone(), end: End::Server });
        }
    }

    /// The connection with both settings, byte for byte; the engine's device is recorded in `capture`. The error says
    /// whether a kernel has lost count of its stream, too.
    fn play(mut self, pair: [Setting; 2], capture: Option<&Path>) -> Result<(), (String, bool)> {
        pair.iter().for_each(|(_, apply)| apply(&mut self));
        let changes = std::mem::take(&mut self.engine);
        let all: Adjust = Arc::new(move |config| changes.iter().for_each(|change| change(config)));
        self.of(Stack::Engine, |party| {
            party.adjust = Arc::clone(&all);
            party.capture = capture.map(Path::to_path_buf);
        });
        let outcome = self.meeting.hold().map_err(|error| (error, false))?;
        let Meeting { client, server, .. } = &self.meeting;
        for (name, end, party, peer) in
            [("client", &outcome.client, client, server), ("server", &outcome.server, server, client)]
        {
            let mut transfer = end.transfer.clone();
            if transfer.sent == party.plan.send && transfer.peer_finished {
                // An engine is asked until its connection is gone, for which a FIN on a dead path may take longer than
                // the limit; a kernel's socket tells nothing of that.
                transfer.failure = None;
            }
            let checked = transfer.check(&party.plan, &peer.plan);
            checked.map_err(|error| {
                let counters = [&outcome.client, &outcome.server].map(|end| &end.counters);
                (format!("the {name} {error}\n{outcome}"), counters.into_iter().any(has_lost_count))
            })?;
        }
        Ok(())
    }
}

/// Linux has fallen back to plain TCP over a merged segment, and thrown away data that it has acknowledged.
fn has_lost_count(counters: &KernelCounters) -> bool {
    counters.mptcp("DSSCorruptionFallback") > 0 && counters.mptcp("NoDSSInWindow") > 0
}

/// Pair `number` of a seed: two different settings, who is the client, and if a proxy stands between.
fn case(seed: Seed, number: u64) -> Case {
    let seed = seed.child(&format!("pair {number}"));
    let mut chance = seed.stream("pair");
    let first = chance.below(SETTINGS.len() as u64);
    let second = (first + 1 + chance.below(SETTINGS.len() as u64 - 1)) % SETTINGS.len() as u64;
    let pair = [SETTINGS[first as usize], SETTINGS[second as usize]];
    let (client, server) = match chance.chance(0.5) {
        true => (Stack::Engine, Stack::Kernel),
        false => (Stack::Kernel, Stack::Engine),
    };
    let proxied = chance.chance(0.5);
    let role = if client == Stack::Engine { "client" } else { "server" };
    let stack = if proxied { "proxy" } else { "engine" };
    let name = format!("{number}_{}+{}_{stack}_{role}", pair[0].0, pair[1].0);
    Case::new(name.clone(), move || {
        let folder = std::env::var_os("ANABRANCH_PAIRS_CAPTURES").map(PathBuf::from);
        let capture = folder.map(|folder| folder.join(format!("{name}.pcapng")));
        let played = Draft::new(seed, client, server, proxied).play(pair, capture.as_deref());
        let Err((error, lost_count)) = played else { return Ok(()) };
        if lost_count && pair.iter().any(|(name, _)| *name == "coalesced") {
            eprintln!("{name}: passed over, since the kernel has lost count of its stream behind a box that merges");
            return Ok(());
        }
        match Draft::new(seed, Stack::Kernel, Stack::Kernel, false).play(pair, None) {
            Ok(()) => Err(format!("two kernels pass, the {stack} does not: {error}")),
            Err((control, _)) => {
                let line = control.lines().next().unwrap_or_default().to_owned();
                eprintln!("{name}: passed over, since two kernels fail as well: {line}");
                Ok(())
            }
        }
    })
}

/// Pairs of every run, and their seed.
const IN_EVERY_RUN: u64 = 20;
const FIXED: Seed = Seed(41);
/// Pairs at the same time: they mostly wait for their links.
const AT_ONCE: usize = 6;
/// Bytes each way: long enough for a second subflow and for what begins in mid-stream.
const SIZE: u64 = 512 << 10;
/// Bytes received when an incident begins, and its duration.
const BEGUN: u64 = 128 << 10;
const PAUSE: Duration = Duration::from_millis(400);
const FLUSH: &[&str] = &["mptcp", "endpoint", "flush"];
const TIMESTAMPS_STRIPPED: &str = "add table inet incident
    add chain inet incident arriving { type filter hook prerouting priority -300; }
    add chain inet incident leaving { type filter hook postrouting priority 300; }
    add rule inet incident arriving reset tcp option timestamp
    add rule inet incident leaving reset tcp option timestamp";
/// Only a guard against hanging.
const LIMIT: Duration = Duration::from_secs(45);
const BOUNDS: Bounds = Bounds { rate: (20, 80), delay: 20, loss: 0.003, reordering: 0.01, first_path: 12.0 };
