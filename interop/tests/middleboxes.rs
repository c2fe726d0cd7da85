//! Middleboxes between the engine and the kernel, made with nftables: they take MPTCP options out of some of the
//! segments. The connection goes on as plain TCP, or without the subflow concerned; the data is right, and both sides
//! say why.
#![allow(clippy::unwrap_used)]

mod common;

use anabranch_engine::{Event, FallbackReason};
use anabranch_interop::{Case, Close, Plan, Role, run, wait};
use common::*;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

fn main() -> ExitCode {
    let mut cases: Vec<Case> = Vec::new();
    each_role(&mut cases, "options_taken_from_the_syn", |role| {
        negotiation(role, Towards::Server, SYN, FallbackReason::SynAck, FallbackReason::Syn, "MPCapableFallbackSYNACK");
    });
    each_role(&mut cases, "options_taken_from_the_syn_ack", |role| {
        let counter = if role == Role::Client { "MPCapableFallbackACK" } else { "MPCapableFallbackSYNACK" };
        negotiation(role, Towards::Client, SYN_ACK, FallbackReason::SynAck, FallbackReason::ThirdAck, counter);
    });
    each_role(&mut cases, "options_taken_from_the_third_ack", |role| {
        let counter = if role == Role::Client { "MPCapableFallbackACK" } else { "MPCapableDataFallback" };
        negotiation(role, Towards::Server, THIRD_ACK, FallbackReason::FirstData, FallbackReason::ThirdAck, counter);
    });
    each_role(&mut cases, "options_taken_from_all_but_the_handshake", |role| {
        let ground = Ground::one_path(role);
        after_the_third_ack(&ground);
        plain_from_the_beginning(ground, &[FallbackReason::FirstData, FallbackReason::OptionsLost]);
    });
    each_role(&mut cases, "options_taken_in_the_middle_both_ways", |role| in_the_middle(role, &CHAINS));
    each_role(&mut cases, "options_taken_in_the_middle_towards_the_engine", |role| in_the_middle(role, &CHAINS[..1]));
    each_role(&mut cases, "options_taken_in_the_middle_towards_the_kernel", |role| in_the_middle(role, &CHAINS[1..]));
    each_role(&mut cases, "only_the_kernel_sends_as_its_options_are_lost", only_the_kernel_sends);
    each_role(&mut cases, "joins_stripped_on_one_path", join_stripped);
    each_role(&mut cases, "joins_dropped_on_one_path", join_dropped);
    each_role(&mut cases, "options_taken_from_one_of_two_subflows", one_of_two);
    cases.push(case("announcements_stripped::engine_client", announcements_stripped));
    for bytes in [60, 20_000] {
        for lost in [2, 3] {
            let name = format!("the_kernel_loses_its_first_{lost}_segments::{bytes}_bytes::engine_server");
            cases.push(case(name, move || beginning_lost(Role::Server, bytes, &beginning(NO_SYN, lost))));
            let name = format!("the_kernel_loses_its_first_{lost}_keys::{bytes}_bytes::engine_server");
            cases.push(case(name, move || beginning_lost(Role::Server, bytes, &beginning(KEYS, lost))));
        }
        for role in [Role::Client, Role::Server] {
            let name = format!("no_keys_of_the_client_get_through::{bytes}_bytes::engine_{role:?}").to_lowercase();
            cases.push(case(name, move || beginning_lost(role, bytes, KEYS)));
        }
    }
    run(cases, 8)
}

/// Both directions.
const CHAINS: [&str; 2] = ["toward_engine", "toward_kernel"];
/// Segments as nftables tells them apart.
const SYN: &str = "tcp flags & (syn | ack) == syn";
const SYN_ACK: &str = "tcp flags & (syn | ack) == syn | ack";
/// Of the first kind of the connection: MP_CAPABLE in what is no SYN. The data that follows has it as well (RFC 8684
/// §3.1), and is longer.
const THIRD_ACK: &str = "tcp flags & (syn | ack) == ack tcp option mptcp subtype 0 meta length < 100";
/// All that a client sends after its SYN, and all that has its keys.
const NO_SYN: &str = "tcp flags & syn == 0";
const KEYS: &str = "tcp flags & syn == 0 tcp option mptcp subtype 0";
const STRIP: &str = "counter reset tcp option mptcp";

#[derive(Clone, Copy)]
enum Towards {
    Client,
    Server,
}

impl Towards {
    fn chain(self, engine: Role) -> &'static str {
        match (self, engine) {
            (Towards::Client, Role::Client) | (Towards::Server, Role::Server) => CHAINS[0],
            _ => CHAINS[1],
        }
    }
}

/// The negotiation fails: plain TCP from the beginning. `client` and `server` are what the engine counts in these
/// roles, `counter` what the kernel does, if it can know.
fn negotiation(
    role: Role,
    towards: Towards,
    segments: &str,
    client: FallbackReason,
    server: FallbackReason,
    counter: &str,
) {
    let ground = Ground::two_paths(role);
    ground.make_chains();
    ground.filter(&format!("add rule inet box {} {segments} {STRIP}", towards.chain(role)));
    let expected = if role == Role::Client { client } else { server };
    let counters = plain_from_the_beginning(ground, &[expected]);
    // A server that gets a bare SYN has been asked for plain TCP and for nothing else.
    if segments != SYN || role == Role::Server {
        // A segment that was repeated, since a busy machine answered late, may count twice.
        assert!(counters.mptcp(counter) >= 1, "{counter}: {counters}");
    }
}

/// A whole conversation, after which the engine has fallen back once, for one of these reasons; what the kernel
/// counted.
fn plain_from_the_beginning(ground: Ground, reasons: &[FallbackReason]) -> anabranch_interop::KernelCounters {
    let mut meeting = ground.meet();
    meeting.exchange(1000, 1000);
    meeting.exchange(4 * MIB, 4 * MIB);
    let fallback = meeting.connection().stats.fallback;
    assert!(fallback.is_some_and(|reason| reasons.contains(&reason)), "{fallback:?}\n{}", meeting.describe());
    let counted = meeting.engine.counters().fallbacks;
    assert_eq!(counted.into_iter().collect::<Vec<_>>(), [(fallback.unwrap(), 1)]);
    assert_eq!(meeting.connection().subflows.len(), 1, "no joins");
    let counters = meeting.ground.counters();
    meeting.close(Role::Client);
    counters
}

/// Everything but SYNs and the two ACKs with MP_CAPABLE keys loses its options.
fn after_the_third_ack(ground: &Ground) {
    ground.make_chains();
    for chain in CHAINS {
        ground.filter(&format!("add rule inet box {chain} tcp flags & syn == 0 tcp option mptcp subtype != 0 {STRIP}"));
        // MP_CAPABLE on data.
        ground.filter(&format!("add rule inet box {chain} tcp flags & syn == 0 meta length > 100 {STRIP}"));
    }
}

/// A connection with one subflow that has carried data loses its options: it falls back where no byte is in doubt, and
/// goes on.
fn in_the_middle(role: Role, chains: &[&str]) {
    let mut meeting = Ground::one_path(role).meet();
    meeting.exchange(MIB, MIB);
    assert_eq!(meeting.connection().multipath, Some(true));
    for chain in chains {
        meeting.ground.filter(&format!("add rule inet box {chain} {STRIP}"));
    }
    meeting.exchange(4 * MIB, 4 * MIB);
    meeting.exchange(4 * MIB, 4 * MIB);
    let fallback = meeting.connection().stats.fallback;
    assert!(fallback.is_some() && meeting.said(Event::Fallback(fallback.unwrap())), "{}", meeting.describe());
    meeting.close(Role::Client);
}

/// The kernel's options are lost in mid-stream and the engine has nothing to send that could tell it. Without DATA_ACKs
/// the kernel repeats what it sent, on the same subflow, and nothing tells the repetition from more of the stream.
fn only_the_kernel_sends(role: Role) {
    let mut meeting = Ground::one_path(role).meet();
    meeting.exchange(MIB, MIB);
    meeting.ground.make_chains();
    meeting.ground.filter(&format!("add rule inet box {} {STRIP}", CHAINS[0]));
    meeting.kernel_send(8 * MIB);
    meeting.engine_receive();
    std::thread::sleep(Duration::from_secs(1));
    meeting.engine_receive();
    assert_eq!(meeting.connection().stats.fallback, Some(FallbackReason::OptionsLost), "{}", meeting.describe());
    meeting.close(role);
}

/// A box on the second path takes MP_JOIN out: no second subflow, nothing else changes.
fn join_stripped(role: Role) {
    let ground = Ground::two_paths(role);
    ground.make_chains();
    ground.on_path(2, &CHAINS, STRIP);
    one_subflow(ground);
}

/// A box on the second path drops segments with MPTCP options.
fn join_dropped(role: Role) {
    let ground = Ground::two_paths(role);
    ground.make_chains();
    ground.on_path(2, &CHAINS, "tcp option mptcp exists counter drop");
    one_subflow(ground);
}

fn one_subflow(ground: Ground) {
    let mut meeting = ground.meet();
    meeting.exchange(4 * MIB, 4 * MIB);
    let tried = wait(LIMIT, || meeting.ground.box_has_seen_something());
    assert!(tried, "nobody tried to join\n{}", meeting.describe());
    meeting.exchange(4 * MIB, 4 * MIB);
    let connection = meeting.connection();
    assert_eq!((connection.multipath, connection.stats.fallback), (Some(true), None));
    assert_eq!(meeting.subflows().len(), 1);
    meeting.close(Role::Client);
}

/// Two subflows, and a box on the second path begins to take the options out: plain TCP is no way out any more (RFC
/// 8684 §3.7), the subflow ends and the other carries what it carried.
fn one_of_two(role: Role) {
    let mut meeting = Encounter::on_two_paths(role);
    let (id, first, second) = (meeting.id, meeting.subflow(1).id, meeting.subflow(2).id);
    // So that something travels there in both directions.
    meeting.engine.with(move |_, cx| cx.endpoint.set_backup(cx.now, id, first, true));
    meeting.ground.wait_counted("MPPrioRx", 1);
    meeting.exchange(MIB, MIB);
    meeting.ground.on_path(2, &CHAINS, STRIP);
    meeting.exchange(4 * MIB, 4 * MIB);
    meeting.wait_for("the spoilt subflow is gone", |c| c.events.contains(&Event::SubflowClosed(second)));
    meeting.exchange(MIB, MIB);
    assert_eq!(meeting.connection().stats.fallback, None);
    meeting.close(Role::Client);
}

/// A box takes the kernel's ADD_ADDR out: no second path, no harm.
fn announcements_stripped() {
    let ground = Ground::one_path(Role::Client);
    ground.endpoint("signal");
    ground.make_chains();
    ground.filter(&format!("add rule inet box toward_engine tcp option mptcp subtype 3 {STRIP}"));
    one_subflow(ground);
}

/// The first `count` of these segments.
fn beginning(segments: &str, count: u32) -> String {
    format!("{segments} numgen inc mod 1000000 < {count}")
}

/// The client sends `bytes`, closes its direction at once and waits for an answer, while `segments` of its own get
/// lost. Linux leaves its keys out of all that it sends once its application has closed, repetitions included: a server
/// that waits for them waits for ever.
fn beginning_lost(role: Role, bytes: u64, segments: &str) {
    let mut ground = Ground::one_path(role);
    let engine = ground.start_engine();
    let (chain, lose) = match role {
        Role::Client => (CHAINS[1], "drop".to_owned()),
        // A packet dropped in `output` counts as never sent: it leaves, for an address that is nobody's.
        Role::Server => (CHAINS[0], format!("ip daddr set {NOBODY}")),
    };
    ground.filter(&format!("add rule inet box {chain} {segments} counter {lose}"));
    let (ours, theirs) = (ground.direct.engine.v4[0], ground.direct.kernel.v4[0]);
    let (request, answer) = (Plan::send(bytes), Plan::send(60).closing(Close::AfterPeer));
    let (of_engine, of_kernel, id, transfer) = match role {
        Role::Client => {
            let id = engine.connect(ours, ground.listen(PORT), request);
            (request, answer, id, ground.accept().start(answer, ANSWERED).finish(&answer))
        }
        Role::Server => {
            engine.listen(PORT, answer);
            let stream = ground.kernel.connect(Some(theirs), SocketAddr::new(ours, PORT)).unwrap();
            let transfer = stream.start(request, ANSWERED).finish(&request);
            (answer, request, engine.nth_connection(1, ANSWERED).unwrap(), transfer)
        }
    };
    let state = || format!("kernel: {}\nengine: {:#?}", ground.counters(), engine.connection(id));
    assert!(ground.box_has_seen_something(), "nothing was lost\n{}", state());
    transfer.check(&of_kernel, &of_engine).unwrap_or_else(|error| panic!("the kernel {error}\n{}", state()));
    let connection = engine.wait_for(id, LIMIT, anabranch_interop::Connection::is_gone).unwrap();
    connection.transfer.check(&of_engine, &of_kernel).unwrap_or_else(|error| panic!("the engine {error}"));
    engine.check().unwrap();
}

/// Routed onto the engine's device, and not its own.
const NOBODY: &str = "10.78.200.200";
/// Limit for an exchange that takes a few RTOs, of 0.2 to 1 s each.
const ANSWERED: Duration = Duration::from_secs(30);
