//! Waits of the engine, each provoked, and measured against its row in the table of docs/wire.md. The RTO is 200 ms,
//! the shortest of a Linux profile, and 220 ms where a SYN/ACK came after 20 ms.

use crate::common::puppet::{KEY, Line, Puppet, reason};
use crate::common::{PATTERN, PORT, client_ip, config, server_ip};
use crate::handshake::is_join_syn;
use anabranch_engine::{Config, Event, FastClose};
use anabranch_units::{AddressId, Duration, Nonce, SubflowId, join_hmac};
use anabranch_wire::{Flags, JoinSynAck, Map, MpCapable, MpOption, RemoveAddr, ResetReason, Segment};
use std::net::SocketAddr;
use std::path::Path;
use std::{env, fs};

/// A client of two paths whose join on the second has got its SYN/ACK, 20 ms after its SYN, and nothing since.
pub(crate) fn unconfirmed_join() -> (Puppet, Line, Line) {
    let (mut puppet, line) = Puppet::connected(config((0..2).map(client_ip)), MpCapable::OFFER);
    puppet.confirm(line, 1, 0);
    let join = |s: &Segment| {
        s.options.mptcp().iter().find_map(|option| match option {
            MpOption::JoinSyn(join) => Some(*join),
            _ => None,
        })
    };
    let own = puppet.out.iter().find_map(join).unwrap();
    puppet.wait(Duration::from_millis(20));
    let hmac = join_hmac(KEY, puppet.theirs.unwrap(), Nonce(77), own.nonce).first_8();
    let answer = JoinSynAck { backup: false, address: AddressId(0), hmac, nonce: Nonce(77) };
    let second = puppet.answer(MpOption::JoinSynAck(answer));
    (puppet, line, second)
}

/// Lets the engine's timers run until `done` says so of what it sent; returns the time that took.
fn until(puppet: &mut Puppet, mut done: impl FnMut(&mut Puppet, &[Segment]) -> bool) -> Duration {
    let start = puppet.now;
    loop {
        let out = puppet.take();
        if done(puppet, &out) {
            return puppet.now.since(start);
        }
        let Some(at) = puppet.host.poll_timeout() else { panic!("it waits for ever: {:?}", puppet.events) };
        puppet.wait(at.since(puppet.now));
    }
}

/// Time until the engine sends a RST for the reason `why`.
fn until_reset(puppet: &mut Puppet, why: ResetReason) -> Duration {
    until(puppet, |_, out| out.iter().any(|segment| reason(segment) == Some(why)))
}

/// Time until the engine has nothing left of the connection.
fn until_gone(puppet: &mut Puppet) -> Duration {
    until(puppet, |puppet, _| puppet.host.connection_count() == 0)
}

/// A server with a first subflow and a second.
fn two(config: Config) -> (Puppet, Line, Line) {
    let (mut puppet, line) = Puppet::confirmed(config);
    let second = puppet.join(1);
    puppet.take();
    (puppet, line, second)
}

fn one() -> (Puppet, Line) {
    Puppet::confirmed(config([server_ip(0)]))
}

fn accepted_plain(puppet: &Puppet) -> bool {
    puppet.has(|event| *event == Event::Accepted { multipath: false })
}

/// A server whose client's keys are lost.
fn without_keys() -> (Puppet, Line) {
    let mut puppet = Puppet::new(config([server_ip(0)]));
    let line = puppet.syn(MpOption::Capable(MpCapable::OFFER), 0);
    let line = puppet.answered(line);
    (puppet, line)
}

fn syn() -> Duration {
    let mut puppet = Puppet::new(config([client_ip(0)]));
    puppet.id = puppet.host.open(puppet.now, client_ip(0), SocketAddr::new(server_ip(0), PORT)).ok();
    puppet.pump();
    until_gone(&mut puppet)
}

fn join_syn_ack() -> Duration {
    let (mut puppet, _) = one();
    puppet.begin_join(1);
    until(&mut puppet, |puppet, _| puppet.host.subflow_stats(puppet.id.unwrap()).len() == 1)
}

fn keys_at_the_beginning() -> Duration {
    let (mut puppet, line) = without_keys();
    let map = puppet.map(1, 0, 100);
    puppet.data(line, 1, &PATTERN[..100], Some(map));
    until(&mut puppet, |puppet, _| accepted_plain(puppet))
}

fn keys_later() -> Duration {
    let (mut puppet, line) = without_keys();
    let map = puppet.map(101, 100, 100);
    puppet.data(line, 101, &PATTERN[100..200], Some(map));
    until(&mut puppet, |puppet, out| {
        if out.iter().any(|segment| segment.flags.has(Flags::SYN)) {
            puppet.data(line, 101, &PATTERN[100..200], Some(map));
        }
        accepted_plain(puppet)
    })
}

fn first_dss_of_a_silent_server() -> Duration {
    let (mut puppet, _) = Puppet::connected(config((0..2).map(client_ip)), MpCapable::OFFER);
    puppet.write(&PATTERN[..100]);
    until(&mut puppet, |_, out| out.iter().any(is_join_syn))
}

fn first_dss_after_a_data_fin() -> Duration {
    let (mut puppet, line) = Puppet::connected(config([client_ip(0)]), MpCapable::OFFER);
    puppet.shutdown();
    until(&mut puppet, |puppet, out| {
        if out.iter().any(|segment| segment.seq == line.irs) {
            puppet.send(line.ack(1), |_| {});
        }
        puppet.has(|event| matches!(event, Event::Fallback(_)))
    })
}

fn first_dss_without_keys() -> Duration {
    let (mut puppet, line) = Puppet::connected(config([client_ip(0)]), MpCapable::OFFER);
    puppet.write(&PATTERN[..100]);
    until(&mut puppet, |puppet, out| {
        for _ in out.iter().filter(|segment| segment.payload.is_empty() && segment.seq == line.irs) {
            puppet.send(line.ack(1), |_| {});
        }
        out.iter().any(|segment| !segment.payload.is_empty() && segment.options.has_dss())
    })
}

fn first_dss_in_silence() -> Duration {
    let (mut puppet, _) = Puppet::connected(config([client_ip(0)]), MpCapable::OFFER);
    until(&mut puppet, |puppet, _| puppet.host.poll_timeout().is_none())
}

fn fourth_ack() -> Duration {
    until_reset(&mut unconfirmed_join().0, ResetReason::UnacceptablePerformance)
}

fn mapping() -> Duration {
    let (mut puppet, _, second) = two(config([server_ip(0)]));
    puppet.data(second, 1, &PATTERN[10..1000], None);
    until_reset(&mut puppet, ResetReason::Middlebox)
}

fn data_ack() -> Duration {
    let (mut puppet, line, second) = two(config([server_ip(0)]));
    let mut acked = [1; 2];
    puppet.write(&PATTERN[..100]);
    until(&mut puppet, |puppet, out| {
        for segment in out.iter().filter(|segment| !segment.payload.is_empty()) {
            let (at, line, ours) = if second.carries(segment) { (1, second, 1) } else { (0, line, 11) };
            acked[at] += segment.payload.len() as u64;
            puppet.confirm(line.acking(acked[at]), ours, 0);
        }
        out.iter().any(|segment| reason(segment) == Some(ResetReason::Middlebox))
    })
}

fn data_fin(answers: bool) -> Duration {
    let (mut puppet, line) = one();
    puppet.shutdown();
    until(&mut puppet, |puppet, out| {
        for _ in out.iter().filter(|segment| answers && segment.options.dss().is_none_or(|dss| !dss.data_fin)) {
            puppet.confirm(line, 11, 0);
        }
        out.iter().any(|segment| segment.flags.has(Flags::FIN)) || puppet.host.connection_count() == 0
    })
}

fn data() -> Duration {
    let (mut puppet, _) = one();
    puppet.write(&PATTERN[..100]);
    until_reset(&mut puppet, ResetReason::UnacceptablePerformance)
}

fn window() -> Duration {
    let (mut puppet, line) = one();
    let dss = puppet.data_ack(0);
    puppet.send(line.ack(11), |segment| {
        segment.window = 0;
        segment.options.set_dss(Some(dss));
    });
    puppet.write(&PATTERN[..100]);
    until_reset(&mut puppet, ResetReason::UnacceptablePerformance)
}

fn echo() -> Duration {
    let (mut puppet, _) = Puppet::accepted(config((0..3).map(server_ip)));
    let names = |segment: &Segment| {
        segment.options.mptcp().iter().any(|it| matches!(it, MpOption::AddAddr(add) if add.address == server_ip(2)))
    };
    until(&mut puppet, |_, out| out.iter().any(names))
}

fn life() -> Duration {
    let (mut puppet, line, _) = two(config([server_ip(0)]));
    let ids = std::iter::once(AddressId(1)).collect();
    puppet.send(line.ack(11), |s| s.options.push_mptcp(MpOption::RemoveAddr(RemoveAddr { ids })));
    until_reset(&mut puppet, ResetReason::Unspecified)
}

fn fast_close() -> Duration {
    let (mut puppet, _) = Puppet::confirmed(Config { fast_close: FastClose::Ack, ..config([server_ip(0)]) });
    puppet.host.abort(puppet.now, puppet.id.unwrap());
    puppet.pump();
    until_gone(&mut puppet)
}

fn other_fin() -> Duration {
    let (mut puppet, _, second) = two(config([server_ip(0)]));
    puppet.host.close_subflow(puppet.now, puppet.id.unwrap(), SubflowId(1));
    puppet.confirm(second.acking(2), 1, 0);
    until_reset(&mut puppet, ResetReason::Unspecified)
}

fn new_subflow() -> Duration {
    let (mut puppet, line) = one();
    puppet.send(line.ack(11), |segment| segment.flags = Flags::RST);
    until_gone(&mut puppet)
}

fn syn_ack() -> Duration {
    let (mut puppet, _) = without_keys();
    until_gone(&mut puppet)
}

fn fail_answer() -> Duration {
    let mut puppet = Puppet::new(Config { checksum: true, ..config([server_ip(0)]) });
    puppet.checksum = true;
    let line = puppet.open();
    puppet.wait(Duration::from_secs(2));
    let mut wrong = puppet.map(1, 0, 100);
    wrong.map = wrong.map.map(|map| Map { checksum: Some(1), ..map });
    puppet.data(line, 1, &PATTERN[..100], Some(wrong));
    let fails = |s: &Segment| s.options.mptcp().iter().any(|it| matches!(it, MpOption::Fail { .. }));
    assert!(puppet.out.iter().any(fails), "{:?}", puppet.events);
    until(&mut puppet, |puppet, _| puppet.host.poll_timeout().is_none())
}

fn unknowing_peer() -> Duration {
    let (mut puppet, line) = one();
    puppet.data(line, 11, &PATTERN[10..20], None);
    assert!(puppet.has(|event| matches!(event, Event::Fallback(_))));
    puppet.wait(Duration::from_secs(1));
    puppet.data(line, 21, &PATTERN[..10], None);
    until_reset(&mut puppet, ResetReason::Middlebox)
}

fn silent_application() -> Duration {
    let (mut puppet, _) = one();
    puppet.wait(Duration::from_secs(2));
    until(&mut puppet, |puppet, _| puppet.host.poll_timeout().is_none())
}

/// Three timeouts, on a path of 20 ms.
const LONG: Duration = Duration::from_millis(660);

/// Provokes a wait, and returns the time that it took.
type Provoke = fn() -> Duration;

/// The rows of the table: what each waits for, and how long at most, in milliseconds.
const WAITS: &[(&str, (Provoke, u64))] = &[
    ("answer to a SYN", (syn, 127_000)),
    ("answer to the SYN/ACK of a connection", (syn_ack, 127_000)),
    ("answer to the SYN/ACK of a join", (join_syn_ack, 15_000)),
    ("the client's keys, when its stream begins without them", (keys_at_the_beginning, 0)),
    ("the client's keys, when later segments come without them", (keys_later, 600)),
    (
        "the server's first DSS, when the keys go with data and it answers a question, but has neither",
        (first_dss_without_keys, 600),
    ),
    ("the server's first DSS, when a lone DATA_FIN is unanswered", (first_dss_after_a_data_fin, 400)),
    ("the server's first DSS, when we have nothing to send", (first_dss_in_silence, 6200)),
    ("the server's first DSS, when nothing comes at all", (first_dss_of_a_silent_server, 200)),
    ("the fourth ACK of a join", (fourth_ack, 3000)),
    ("the mapping of data that arrived", (mapping, 200)),
    ("the DATA_ACK of data that the subflow acknowledged", (data_ack, 6000)),
    ("the DATA_ACK of a DATA_FIN, from a peer that answers", (|| data_fin(true), 600)),
    ("the DATA_ACK of a DATA_FIN, from a silent peer", (|| data_fin(false), 281_201)),
    ("the acknowledgment of data", (data, 924_601)),
    ("a closed window", (window, 140_600)),
    ("the echo of an ADD_ADDR", (echo, 1400)),
    ("life on an address that was withdrawn", (life, 400)),
    ("the answer to an MP_FAIL after a wrong checksum", (fail_answer, 0)),
    ("a peer that does not know that we fell back", (unknowing_peer, 0)),
    ("the answer to an MP_FASTCLOSE", (fast_close, 800)),
    ("the other FIN of a subflow that we closed alone", (other_fin, 60_000)),
    ("a new subflow when all are gone", (new_subflow, 60_000)),
    ("the application of the peer", (silent_application, 0)),
];

/// Cells of a row of the table.
fn cells(line: &str) -> Vec<&str> {
    line.trim_matches('|').split(" | ").map(str::trim).collect()
}

/// Each wait of the table ends when its row says, and each that takes more than three timeouts has its reason there.
#[test]
fn every_wait_ends_as_the_table_in_wire_md_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/wire.md");
    let text = fs::read_to_string(&path).unwrap();
    let (head, table) = text.split_once("| waits for |").unwrap();
    let rows: Vec<_> = table.lines().skip(2).take_while(|line| line.starts_with('|')).collect();
    let known: Vec<_> = WAITS.iter().map(|(name, _)| *name).collect();
    assert_eq!(rows.iter().map(|row| cells(row)[0]).collect::<Vec<_>>(), known, "rows of docs/wire.md, and of WAITS");
    let mut wanted = table.to_owned();
    for (row, (name, wait)) in rows.iter().zip(WAITS) {
        let [_, bound, then, _, why] = cells(row)[..] else { panic!("five cells: {row}") };
        let (provoke, most) = wait;
        let took = provoke();
        // Round trips of the puppet take a microsecond or so.
        assert!(took < Duration::from_millis(most + 1), "{name}: {took}, and at most {most} ms");
        assert_eq!(took > LONG, why != "–", "{name}: {took}, because: {why}");
        let measured = format!("{:.2} s", took.as_secs_f64());
        wanted = wanted.replace(row, &format!("| {name} | {bound} | {then} | {measured} | {why} |"));
    }
    if env::var_os("BLESS").is_some() {
        fs::write(path, format!("{head}| waits for |{wanted}")).unwrap();
    } else {
        let remedy = "BLESS=1 cargo test -p anabranch-engine --test protocol every_wait_ends";
        assert!(wanted == table, "other times than in docs/wire.md; if that is meant: {remedy}\n{wanted}");
    }
}
