//! Lives of subflows between the engine and the kernel: they join, leave, fail, are demoted, end. The data is right in
//! every case, and both sides count the events.
#![allow(clippy::unwrap_used)]

mod common;

use anabranch_engine::{Config, Event, FastClose, LocalAddress, SubflowStats, Switch};
use anabranch_interop::{Close, Connection, Engine, Family, Meeting, Party, Plan, Role, Stack, run, wait};
use anabranch_net::{LinkConfig, LossModel};
use anabranch_paths::{NetworkSpec, PathSpec};
use anabranch_policy::registry::SCHEDULERS;
use anabranch_units::{Bytes, Duration, Rate, Seed, SubflowId};
use anabranch_wire::ResetReason;
use common::*;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

fn main() -> ExitCode {
    let mut cases = Vec::new();
    each_role(&mut cases, "an_announced_address_is_echoed_and_joined", announced);
    each_role(&mut cases, "a_refused_join_leaves_the_connection_alone", join_refused);
    each_role(&mut cases, "a_subflow_is_reset_at_the_kernel_with_data_in_flight", |role| reset(role, "toward_engine"));
    each_role(&mut cases, "a_subflow_is_reset_at_the_engine_with_data_in_flight", |role| reset(role, "toward_kernel"));
    each_role(&mut cases, "the_first_path_disappears_and_comes_back", |role| blackhole(role, 1));
    each_role(&mut cases, "the_second_path_disappears_and_comes_back", |role| blackhole(role, 2));
    for first in [Role::Client, Role::Server] {
        let name = format!("the_first_path_never_answers::{first:?}_speaks_first").to_lowercase();
        cases.push(case(name, move || never_answers(first)));
    }
    cases.push(case("joins_are_refused_until_the_third_ack_arrives", third_ack_lost));
    cases.push(case("four_addresses_are_announced_one_by_one", announced_one_by_one));
    each_role(&mut cases, "the_engine_gives_an_address_up", engine_removes);
    each_role(&mut cases, "the_kernel_gives_an_address_up", kernel_removes);
    each_role(&mut cases, "a_backup_waits_for_its_turn", backup);
    each_role(&mut cases, "the_engine_changes_priorities", engine_prio);
    each_role(&mut cases, "the_kernel_changes_priorities", kernel_prio);
    each_role(&mut cases, "the_engine_gives_up_with_a_reset", |role| engine_aborts(role, FastClose::Rst));
    each_role(&mut cases, "the_engine_gives_up_with_an_ack", |role| engine_aborts(role, FastClose::Ack));
    each_role(&mut cases, "the_kernel_gives_up", kernel_aborts);
    each_role(&mut cases, "the_kernel_closes_without_reading", kernel_closes_unread);
    each_role(&mut cases, "the_engine_closes_first", |role| closes_first(role, role));
    each_role(&mut cases, "the_kernel_closes_first", |role| closes_first(role, role.peer()));
    each_role(&mut cases, "both_close_at_once", close_at_once);
    each_role(&mut cases, "the_engine_closes_and_goes_on_reading", engine_half_closes);
    each_role(&mut cases, "the_kernel_closes_and_goes_on_reading", kernel_half_closes);
    each_role(&mut cases, "a_hundred_connections_at_once", hundred);
    for seed in 1..=3 {
        for receiver in [Stack::Engine, Stack::Kernel] {
            for role in [Role::Client, Role::Server] {
                let name = format!("a_small_buffer_and_a_slow_path::{receiver:?}_receives::engine_{role:?}::{seed}");
                cases.push(case(name.to_lowercase(), move || small_buffer(role, receiver, seed)));
            }
        }
    }
    run(cases, 8)
}

/// ADD_ADDR with HMAC, its echo, and the join to it (RFC 8684 §3.4.1). `role` is the engine's; the server announces.
fn announced(role: Role) {
    let mut ground = Ground::one_path(role);
    match role {
        Role::Client => ground.endpoint("signal"),
        Role::Server => ground.settings = anabranch_interop::config(&ground.direct.engine.v4),
    }
    let mut meeting = ground.meet().with_subflows(2);
    let (announced, used) = match role {
        Role::Client => (meeting.ground.direct.kernel.v4[1], meeting.subflows()[1].remote.ip()),
        Role::Server => (meeting.ground.direct.engine.v4[1], meeting.subflows()[1].local.ip()),
    };
    assert_eq!(used, announced);
    let (tellers, echoes) = if role == Role::Client { ("AddAddrTx", "EchoAdd") } else { ("AddAddr", "EchoAddTx") };
    meeting.ground.wait_counted(tellers, 1);
    meeting.ground.wait_counted(echoes, 1);
    meeting.exchange(4 * MIB, 4 * MIB);
    assert_eq!(meeting.engine.counters().bad_add_addr, 0);
    meeting.assert_no_trouble_but(&[]);
    meeting.close(Role::Client);
}

/// The server has no room for a second subflow: RST with MP_TCPRST, and life goes on with the first.
fn join_refused(role: Role) {
    let mut ground = Ground::two_paths(role);
    match role {
        Role::Client => ground.ip("mptcp limits set subflows 0 add_addr_accepted 0"),
        Role::Server => ground.settings.max_subflows = 1,
    }
    let mut meeting = ground.meet();
    meeting.exchange(1000, 1000);
    match role {
        Role::Client => {
            let refused = |meeting: &Encounter| {
                meeting.engine.counters().reset_reasons_received.contains_key(&ResetReason::Prohibited)
            };
            assert!(wait(LIMIT, || refused(&meeting)), "{}", meeting.describe());
        }
        Role::Server => {
            let refused = || meeting.engine.counters().joins_refused >= 1;
            assert!(wait(LIMIT, refused), "{}", meeting.describe());
            assert!(
                meeting.engine.counters().resets_sent.contains_key(&ResetReason::Prohibited),
                "{}",
                meeting.describe()
            );
        }
    }
    meeting.exchange(2 * MIB, 2 * MIB);
    assert_eq!(meeting.subflows().len(), 1);
    assert_eq!(meeting.connection().stats.fallback, None);
    meeting.close(Role::Client);
}

/// A middlebox resets the second subflow while both ends have data on it.
fn reset(role: Role, chain: &str) {
    let mut meeting = Encounter::on_two_paths(role);
    let (id, first, path) = (meeting.id, meeting.subflow(1).id, meeting.subflow(2).id);
    // Everything is to travel on the second subflow.
    meeting.engine.with(move |_, cx| cx.endpoint.set_backup(cx.now, id, first, true));
    meeting.ground.wait_counted("MPPrioRx", 1);
    // No end reads, so that both windows fill.
    meeting.engine.set_reading(id, false);
    meeting.engine_send(16 * MIB);
    meeting.kernel_send(MIB);
    meeting.wait_for("data on the second subflow", |c| {
        c.subflows.iter().any(|s| s.id == path && s.bytes_sent > 16 * KIB && s.bytes_received > 0)
    });
    // The reply of the end that was reset is let through.
    meeting.ground.on_path(2, &[chain], "tcp flags & rst == 0 reject with tcp reset");
    meeting.engine.set_reading(id, true);
    meeting.kernel_receive(8 * MIB);
    meeting.kernel_send(8 * MIB);
    meeting.wait_for("the second subflow is gone", |c| c.events.contains(&Event::SubflowClosed(path)));
    meeting.ground.clear_paths();
    meeting.kernel_receive(8 * MIB);
    meeting.engine_receive();
    assert!(meeting.engine.counters().resets_received >= 1, "{}", meeting.describe());
    meeting.close(role);
}

/// One path loses everything for a while: the other carries all of it. When it works again it carries data again.
fn blackhole(role: Role, path: usize) {
    let mut meeting = Encounter::on_two_paths(role);
    meeting.exchange(MIB, MIB);
    meeting.ground.on_path(path, &["toward_engine", "toward_kernel"], "drop");
    meeting.exchange(4 * MIB, 4 * MIB);
    meeting.ground.clear_paths();
    let carried = |meeting: &Encounter| {
        let client = meeting.ground.client(path);
        let all = meeting.connection().subflows.into_iter();
        let here = all.filter(|s| [s.local.ip(), s.remote.ip()].contains(&client));
        here.fold((0, 0), |sum, s| (sum.0 + s.bytes_sent, sum.1 + s.bytes_received))
    };
    let before = carried(&meeting);
    let revived = wait(LIMIT, || {
        meeting.exchange(256 * KIB, 256 * KIB);
        let now = carried(&meeting);
        now.0 > before.0 && now.1 > before.1
    });
    assert!(revived, "path {path} is not used again\n{}", meeting.describe());
    meeting.close(Role::Client);
}

/// The first path returns nothing but the SYN/ACK: the engine joins from its other address nonetheless, and the kernel,
/// which has the third ACK, takes the join (§3.1, §3.2).
fn never_answers(first: Role) {
    let rule = "tcp flags & syn == 0 drop";
    let mut meeting = Ground::two_paths(Role::Client).meet_amid(|g| g.on_path(1, &["toward_engine"], rule), |_, _| {});
    match first {
        Role::Client => meeting.exchange(MIB, 0),
        Role::Server => meeting.exchange(0, MIB),
    }
    meeting.exchange(MIB, MIB);
    let second = meeting.subflow(2);
    assert!(second.bytes_sent > MIB / 2 && second.bytes_received >= MIB, "{}", meeting.describe());
    assert_eq!(meeting.connection().stats.fallback, None);
    meeting.ground.clear_paths();
    meeting.close(Role::Client);
}

/// The kernel has not seen the third ACK and so lacks the engine's key: it refuses the joins of the engine, which waits
/// for its first path then, and joins when that is back.
fn third_ack_lost() {
    let refused = |engine: &Engine| engine.counters().reset_reasons_received.contains_key(&ResetReason::MptcpError);
    let rule = "tcp flags & syn == 0 drop";
    let mut meeting = Ground::two_paths(Role::Client).meet_amid(
        |ground| ground.on_path(1, &["toward_kernel"], rule),
        |ground, engine| {
            ground.wait_counted("MPJoinNoTokenFound", 1);
            assert!(wait(LIMIT, || refused(engine)), "{}", ground.counters());
            ground.clear_paths();
        },
    );
    meeting.exchange(MIB, MIB);
    meeting.wait_subflows(2);
    assert_eq!(meeting.connection().stats.fallback, None);
    meeting.close(Role::Client);
}

/// The kernel drops an ADD_ADDR that comes while it handles another, so the engine announces one at a time (§3.4.1).
fn announced_one_by_one() {
    let mut ground = Ground::one_path(Role::Server);
    ground.settings = anabranch_interop::config(&ground.direct.engine.v4);
    let own = ground.direct.engine.v4[0];
    let std::net::IpAddr::V4(own) = own else { panic!("{own} is of IPv4") };
    let [a, b, c, _] = own.octets();
    for number in 101..=103 {
        let ip = std::net::IpAddr::from([a, b, c, number]);
        ground.settings.addresses.push(LocalAddress { ip, backup: false });
    }
    let mut meeting = ground.meet();
    meeting.exchange(1000, 1000);
    meeting.ground.wait_counted("AddAddr", 4);
    meeting.ground.wait_counted("EchoAddTx", 4);
    assert_eq!(meeting.ground.counters().mptcp("AddAddrDrop"), 0, "{}", meeting.ground.counters());
    meeting.close(Role::Client);
}

/// REMOVE_ADDR from the engine (§3.4.2), in the middle of transfers both ways; then it takes the address again.
fn engine_removes(role: Role) {
    let mut ground = Ground::one_path(role);
    // As a server it announces the second address.
    ground.settings = anabranch_interop::config(&ground.direct.engine.v4);
    let mut meeting = ground.meet().with_subflows(2);
    let second = meeting.ground.direct.engine.v4[1];
    let subflow = meeting.subflows()[1].id;
    meeting.engine_send(8 * MIB);
    meeting.kernel_receive(MIB);
    assert!(meeting.engine.with(move |_, cx| cx.endpoint.remove_address(cx.now, second)));
    meeting.ground.wait_counted("RmAddr", 1);
    meeting.kernel_receive(MIB);
    meeting.kernel_send(2 * MIB);
    meeting.kernel_receive(6 * MIB);
    meeting.engine_receive();
    meeting.wait_for("its subflow is gone", |c| c.events.contains(&Event::SubflowClosed(subflow)));
    assert_eq!(meeting.subflows().len(), 1);
    let again = LocalAddress { ip: second, backup: false };
    assert!(meeting.engine.with(move |_, cx| cx.endpoint.add_address(cx.now, again)));
    meeting.wait_subflows(2);
    meeting.exchange(2 * MIB, 2 * MIB);
    meeting.close(Role::Server);
}

/// REMOVE_ADDR from the kernel: its administrator deletes the endpoint.
fn kernel_removes(role: Role) {
    let ground = Ground::one_path(role);
    let flags = if role == Role::Client { "signal" } else { "subflow" };
    ground.endpoint(flags);
    let mut meeting = ground.meet().with_subflows(2);
    let subflow = meeting.subflows()[1].id;
    meeting.engine_send(8 * MIB);
    meeting.kernel_receive(MIB);
    meeting.ground.ip("mptcp endpoint delete id 1");
    meeting.ground.wait_counted("RmAddrTx", 1);
    meeting.kernel_send(2 * MIB);
    meeting.kernel_receive(7 * MIB);
    meeting.engine_receive();
    meeting.wait_for("its subflow is gone", |c| c.events.contains(&Event::SubflowClosed(subflow)));
    meeting.ground.endpoint(flags);
    meeting.wait_subflows(2);
    meeting.exchange(2 * MIB, 2 * MIB);
    meeting.close(Role::Server);
}

/// A subflow that was joined as a backup carries nothing until the other has failed (§3.3.8). The client says so.
fn backup(role: Role) {
    let mut ground = Ground::two_paths(role);
    match role {
        Role::Client => ground.settings.addresses[1].backup = true,
        Role::Server => ground.ip("mptcp endpoint change id 1 backup"),
    }
    let mut meeting = ground.meet().with_subflows(2);
    let spare = meeting.subflow(2).id;
    carries_nothing(&mut meeting, spare);
    meeting.ground.on_path(1, &["toward_engine", "toward_kernel"], "drop");
    meeting.exchange(MIB, MIB);
    let spare = meeting.subflow(2);
    assert!(spare.bytes_sent > 0 && spare.bytes_received > 0, "{}", meeting.describe());
    meeting.ground.clear_paths();
    meeting.close(Role::Client);
}

/// MP_PRIO from the engine: a demoted subflow carries no more data, either way.
fn engine_prio(role: Role) {
    let mut meeting = Encounter::on_two_paths(role);
    let id = meeting.id;
    for (path, count) in [(1, 1), (2, 3)] {
        let (demoted, other) = (meeting.subflow(path).id, meeting.subflow(3 - path).id);
        meeting.engine.with(move |_, cx| {
            cx.endpoint.set_backup(cx.now, id, demoted, true);
            cx.endpoint.set_backup(cx.now, id, other, false);
        });
        meeting.ground.wait_counted("MPPrioRx", count);
        carries_nothing(&mut meeting, demoted);
    }
    meeting.assert_no_trouble_but(&[]);
    meeting.close(Role::Client);
}

/// MP_PRIO from the kernel: the administrator changes the endpoint's flag.
fn kernel_prio(role: Role) {
    let ground = Ground::one_path(role);
    ground.endpoint(if role == Role::Client { "signal" } else { "subflow" });
    let mut meeting = ground.meet().with_subflows(2);
    // The subflow uses the kernel's second address, whichever side opened it.
    let second =
        meeting.subflows().into_iter().find(|s| s.remote.ip() == meeting.ground.direct.kernel.v4[1]).unwrap().id;
    let is_backup = move |meeting: &Encounter, backup: bool| {
        meeting.wait_for("MP_PRIO came", |c| c.subflows.iter().any(|s| s.id == second && s.backup == backup));
    };
    meeting.ground.ip("mptcp endpoint change id 1 backup");
    meeting.ground.wait_counted("MPPrioTx", 1);
    is_backup(&meeting, true);
    carries_nothing(&mut meeting, second);
    meeting.ground.ip("mptcp endpoint change id 1 nobackup");
    is_backup(&meeting, false);
    meeting.assert_no_trouble_but(&[]);
    meeting.close(Role::Client);
}

/// A backup has no part in an exchange. What times out on the other path, where a busy machine answers late, both
/// stacks repeat wherever it gets through, and the engine takes a path that times out for dead until something comes:
/// an exchange in which that happened says nothing, and another one follows.
fn carries_nothing(meeting: &mut Encounter, spare: SubflowId) {
    let timeouts = |meeting: &Encounter| {
        let engine: u64 = meeting.connection().subflows.iter().map(|subflow| subflow.rtos).sum();
        (engine, meeting.ground.counters().mptcp("MPTCPRetrans"))
    };
    let counted = |meeting: &Encounter| {
        let Connection { subflows, stats, .. } = meeting.connection();
        (subflows.into_iter().find(|subflow| subflow.id == spare).unwrap(), stats)
    };
    let undisturbed = wait(LIMIT, || {
        let (said, (before, earlier)) = (timeouts(meeting), counted(meeting));
        meeting.exchange(4 * MIB, 4 * MIB);
        let (after, later) = counted(meeting);
        if timeouts(meeting) != said {
            return false;
        }
        assert!(after.backup, "{}", meeting.describe());
        assert_eq!(before.bytes_sent, after.bytes_sent, "of subflow {spare:?}\n{}", meeting.describe());
        // A copy that left before this exchange may have arrived in it.
        let (came, copies) = (after.bytes_received - before.bytes_received, later.duplicates - earlier.duplicates);
        assert!(came <= copies, "{spare:?} brought {came} bytes, and {copies} are copies\n{}", meeting.describe());
        true
    });
    assert!(undisturbed, "no exchange without a timeout\n{}", meeting.describe());
}

/// MP_FASTCLOSE from the engine in the middle of a transfer, in both of its forms (§3.5).
fn engine_aborts(role: Role, form: FastClose) {
    let mut ground = Ground::two_paths(role);
    ground.settings.fast_close = form;
    let mut meeting = ground.meet().with_subflows(2);
    meeting.engine_send(16 * MIB);
    meeting.kernel_receive(MIB);
    let id = meeting.id;
    meeting.engine.with(move |_, cx| cx.endpoint.abort(cx.now, id));
    meeting.wait_for("it is over", |c| c.events.contains(&Event::Reset));
    meeting.ground.wait_counted("MPFastcloseRx", 1);
    // Data that arrived before may still be read; then comes the error.
    let mut failed = None;
    while failed.is_none() {
        failed = meeting
            .stream()
            .receive(MIB + 1000, 1, LIMIT)
            .err()
            .filter(|e| e.kind() != std::io::ErrorKind::InvalidData);
    }
    assert_eq!(failed.map(|error| error.kind()), Some(std::io::ErrorKind::ConnectionReset), "{}", meeting.describe());
    meeting.engine.check().unwrap();
}

/// MP_FASTCLOSE from the kernel: linger 0.
fn kernel_aborts(role: Role) {
    let mut meeting = Encounter::on_two_paths(role);
    meeting.engine_send(16 * MIB);
    meeting.kernel_receive(MIB);
    meeting.kernel_abort();
    meeting.wait_for("it is over", |c| c.events.contains(&Event::Reset));
    meeting.ground.wait_counted("MPFastcloseTx", 1);
    // The event comes first, and the connection is gone when its RSTs have left: on a busy machine that may be a round
    // later.
    let gone = wait(LIMIT, || meeting.engine.with(|_, cx| cx.endpoint.connection_count()) == 0);
    assert!(gone, "{}", meeting.describe());
    meeting.engine.check().unwrap();
}

/// The kernel's application closes without having read what came, which the kernel answers with MP_FASTCLOSE as well.
fn kernel_closes_unread(role: Role) {
    let mut meeting = Encounter::on_two_paths(role);
    meeting.engine_send(64 * KIB);
    meeting.wait_for("it arrived", |c| c.stats.data_acked == 64 * KIB + 1000);
    meeting.close_socket();
    meeting.wait_for("it is over", |c| c.events.contains(&Event::Reset));
    meeting.ground.wait_counted("MPFastcloseTx", 1);
}

/// DATA_FIN in both orders: no resets, nothing repeated for want of an answer, nothing left.
fn closes_first(role: Role, first: Role) {
    let mut meeting = Encounter::on_two_paths(role);
    meeting.exchange(MIB, MIB);
    let watcher = meeting.ground.direct.namespace.clone();
    meeting.assert_no_trouble_but(&[]);
    meeting.close(first);
    let left = || watcher.command("ss", &["-MHan"]).unwrap();
    assert!(wait(LIMIT, || !left().contains("ESTAB")), "{}", left());
}

/// Both DATA_FINs cross.
fn close_at_once(role: Role) {
    let mut meeting = Encounter::on_two_paths(role);
    meeting.exchange(MIB, MIB);
    meeting.stream().shutdown().unwrap();
    meeting.engine_close();
    meeting.stream().receive_end(LIMIT).unwrap();
    meeting.wait_closed();
    meeting.assert_no_trouble_but(&[]);
}

/// The engine sends all its data and closes; the kernel answers afterwards.
fn engine_half_closes(role: Role) {
    let mut meeting = Encounter::on_two_paths(role);
    meeting.engine_send(MIB);
    meeting.engine_close();
    meeting.kernel_receive(MIB);
    meeting.stream().receive_end(LIMIT).unwrap();
    meeting.kernel_send(8 * MIB);
    meeting.engine_receive();
    meeting.stream().shutdown().unwrap();
    meeting.wait_closed();
    meeting.assert_no_trouble_but(&[]);
}

/// The other way round.
fn kernel_half_closes(role: Role) {
    let mut meeting = Encounter::on_two_paths(role);
    meeting.kernel_send(MIB);
    meeting.stream().shutdown().unwrap();
    meeting.wait_for("the end came", |connection| connection.transfer.peer_finished);
    meeting.engine_send(8 * MIB);
    meeting.kernel_receive(8 * MIB);
    meeting.engine_close();
    meeting.stream().receive_end(LIMIT).unwrap();
    meeting.wait_closed();
    meeting.assert_no_trouble_but(&[]);
}

/// A hundred connections, each of another length, so that none can pass for another.
fn hundred(role: Role) {
    let mut ground = Ground::two_paths(role);
    let engine = ground.start_engine();
    let (ours, theirs) = (ground.direct.engine.v4[0], ground.direct.kernel.v4[0]);
    let plans: Vec<_> = (0..100)
        .map(|n| (PORT + n, Plan::send(64 * KIB + 917 * u64::from(n)), Plan::send(32 * KIB + 313 * u64::from(n))))
        .collect();
    let mut conversations = Vec::new();
    for (port, of_engine, _) in &plans {
        let patient = of_engine.closing(Close::AfterPeer);
        let (id, stream) = match role {
            Role::Client => {
                let id = engine.connect(ours, ground.listen(*port), patient);
                (id, ground.accept())
            }
            Role::Server => {
                engine.listen(*port, patient);
                let stream = ground.kernel.connect(Some(theirs), SocketAddr::new(ours, *port)).unwrap();
                (engine.nth_connection(conversations.len() + 1, LIMIT).unwrap(), stream)
            }
        };
        conversations.push((id, stream));
    }
    assert_eq!(engine.with(|_, cx| cx.endpoint.connection_count()), 100);
    for (id, _) in &conversations {
        let joined = |c: &anabranch_interop::Connection| c.subflows.iter().filter(|s| s.established).count() == 2;
        engine.wait_for(*id, LIMIT, joined).unwrap();
    }
    let started: Vec<_> = conversations
        .into_iter()
        .zip(&plans)
        .map(|((id, stream), plan)| (id, stream.start(plan.2, LIMIT), plan))
        .collect();
    for (id, conversation, (_, of_engine, of_kernel)) in started {
        conversation.finish(of_kernel).check(of_kernel, of_engine).unwrap();
        let connection = engine.wait_for(id, LIMIT, anabranch_interop::Connection::is_gone).unwrap();
        connection.transfer.check(of_engine, of_kernel).unwrap();
    }
    ground.wait_counted(if role == Role::Client { "MPJoinAckRx" } else { "MPJoinSynAckRx" }, 100);
    assert!(ground.counters().mptcp_trouble().is_empty(), "{}", ground.counters());
    engine.check().unwrap();
}

fn round_robin(config: &mut Config) {
    let entry = SCHEDULERS.iter().find(|entry| entry.name == "round-robin").expect("it is in the table");
    config.policies.switch(&Switch::Scheduler(Arc::new(|| entry.build_default())));
}

/// A receive buffer of 64 KiB, a path of 5 Mbit/s and a slow and long one: data of the fast path fills the buffer while
/// what the slow path brings is missing. Two kernels were seen to stop for good here; the receiver has to be able to
/// take the byte it waits for, and the sender to send it again where it gets through.
fn small_buffer(role: Role, receiver: Stack, seed: u64) {
    let path = |name: &str, rate, delay, loss| {
        let mut link = LinkConfig::new(Rate::from_mbps(rate), Duration::from_millis(delay));
        link.loss = LossModel::Bernoulli { p: loss };
        PathSpec::new(name, link.clone(), link)
    };
    let paths = vec![path("fast", 5, 25, 0.01), path("slow", 2, 125, 0.001)];
    let (network, seed) = (NetworkSpec::new(paths), Seed(seed));
    // After an end of stream either way the kernel lets no subflow join: the receiver waits for the sender's end.
    let plan = |sends: bool| if sends { Plan::send(2 * MIB) } else { Plan::send(KIB).closing(Close::AfterPeer) };
    let mut engine = Party::new(Stack::Engine, plan(receiver == Stack::Kernel));
    let mut kernel = Party::new(Stack::Kernel, plan(receiver == Stack::Engine));
    match receiver {
        Stack::Engine => engine.adjust = Arc::new(|config: &mut Config| config.receive_buffer = Bytes::new(64 << 10)),
        Stack::Kernel => {
            kernel.receive_buffer = Some(64 << 10);
            // The slow path is to have its share, however small the window.
            engine.adjust = Arc::new(round_robin);
        }
    }
    let (of_engine, of_kernel) = (engine.plan, kernel.plan);
    let (client, server) = if role == Role::Client { (engine, kernel) } else { (kernel, engine) };
    let meeting = Meeting {
        network,
        seed,
        family: Family::V4,
        client,
        server,
        subflows: 2,
        incidents: Vec::new(),
        limit: 2 * LIMIT,
    };
    let outcome = meeting.hold().unwrap();
    let (engine, kernel) =
        if role == Role::Client { (&outcome.client, &outcome.server) } else { (&outcome.server, &outcome.client) };
    // Otherwise nothing was at stake.
    let subflows = &engine.connection.as_ref().unwrap().subflows;
    let busy =
        |s: &&SubflowStats| if receiver == Stack::Kernel { s.bytes_sent > 64 * KIB } else { s.bytes_received > 0 };
    assert_eq!(subflows.iter().filter(busy).count(), 2, "both paths are used\n{outcome}");
    engine.transfer.check(&of_engine, &of_kernel).unwrap_or_else(|error| panic!("engine: {error}\n{outcome}"));
    kernel.transfer.check(&of_kernel, &of_engine).unwrap_or_else(|error| panic!("kernel: {error}\n{outcome}"));
}
