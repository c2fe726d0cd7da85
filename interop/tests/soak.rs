//! For as long as `ANABRANCH_SOAK` says, in minutes: the engine against the kernel with everything drawn by lot, over
//! all policies of the registry. Not for every day: without the variable nothing happens.
//!
//! Each round has a seed of its own, which is printed with what failed; `ANABRANCH_SOAK_ROUND=SEED` plays that round
//! alone. With `ANABRANCH_SOAK_CAPTURES=DIRECTORY` the engine's device is recorded there, and the captures of rounds
//! that failed stay.

use anabranch_engine::{Config, Factory};
use anabranch_interop::links::{self, Bounds};
use anabranch_interop::{Adjust, Close, Family, Meeting, Party, Plan, Stack, missing, seed};
use anabranch_policy::registry::{ACK_PATHS, CONGESTION, Entry, Kind, REINJECTIONS, SCHEDULERS, WINDOWS};
use anabranch_units::{Bytes, Seed, Stream};
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

fn main() -> ExitCode {
    let number = |name: &str| std::env::var(name).ok().map(|text| (text.parse::<u64>().ok(), text));
    let (minutes, only) = (number("ANABRANCH_SOAK"), number("ANABRANCH_SOAK_ROUND"));
    for (name, given) in [("ANABRANCH_SOAK", &minutes), ("ANABRANCH_SOAK_ROUND", &only)] {
        if let Some((None, text)) = given {
            eprintln!("{name} is `{text}`; a whole number is accepted");
            return ExitCode::FAILURE;
        }
    }
    if minutes.is_none() && only.is_none() {
        eprintln!("SKIPPED: the soak runs only with ANABRANCH_SOAK=MINUTES");
        return ExitCode::SUCCESS;
    }
    if let Some(missing) = missing() {
        eprintln!("FAILED: {missing}");
        return ExitCode::FAILURE;
    }
    if let Some((Some(round), _)) = only {
        let (what, result) = play(Seed(round));
        println!("{what}\n{result:#?}");
        return if result.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let seed = match seed("soak") {
        Ok(seed) => seed,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let minutes = minutes.and_then(|(minutes, _)| minutes).unwrap_or(0);
    let end = Instant::now() + Duration::from_secs(60 * minutes);
    let (next, failed) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while Instant::now() < end {
                    let round = seed.child(&format!("round {}", next.fetch_add(1, Ordering::Relaxed)));
                    let (what, result) = play(round);
                    if let Err(error) = result {
                        failed.fetch_add(1, Ordering::Relaxed);
                        println!("FAILED: ANABRANCH_SOAK_ROUND={}\n{what}\n{error}\n", round.0);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner();
    println!("soak: {} rounds, {failed} failed", next.into_inner());
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// One round: what it was, and what went wrong.
fn play(seed: Seed) -> (String, Result<(), String>) {
    let mut chance = seed.stream("round");
    let paths = links::draw(seed, &BOUNDS);
    let (policies, adjust) = settings(&mut chance);
    let engine = Party {
        adjust,
        multipath: chance.chance(0.9),
        checksum: chance.chance(0.3),
        ..Party::new(Stack::Engine, Plan::send(size(&mut chance)))
    };
    let kernel = Party {
        multipath: chance.chance(0.9),
        checksum: chance.chance(0.3),
        receive_buffer: chance.chance(0.3).then(|| chance.between(1 << 20, 4 << 20) as usize),
        ..Party::new(Stack::Kernel, Plan::send(size(&mut chance)))
    };
    let (mut client, mut server) = match chance.chance(0.5) {
        true => (engine, kernel),
        false => (kernel, engine),
    };
    match chance.below(3) {
        0 => client.plan = client.plan.closing(Close::AfterPeer),
        1 => server.plan = server.plan.closing(Close::AfterPeer),
        _ => {}
    }
    let family = if chance.chance(0.5) { Family::V4 } else { Family::V6 };
    let says = |party: &Party| {
        let Party { stack, multipath, checksum, plan, receive_buffer, .. } = party;
        format!("{stack:?} multipath {multipath} checksum {checksum} {plan:?} receive buffer {receive_buffer:?}")
    };
    let what = format!(
        "{family:?}\nclient: {}\nserver: {}\nengine: {policies}\n{}\n{}",
        says(&client),
        says(&server),
        paths[0],
        paths[1]
    );
    let capture = std::env::var_os("ANABRANCH_SOAK_CAPTURES")
        .map(|directory| Path::new(&directory).join(format!("{}.pcapng", seed.0)));
    for party in [&mut client, &mut server] {
        party.capture = capture.clone().filter(|_| party.stack == Stack::Engine);
    }
    let meeting = Meeting {
        network: links::network(&paths),
        seed,
        family,
        client,
        server,
        subflows: 1,
        incidents: Vec::new(),
        limit: LIMIT,
    };
    let result = meeting.hold().and_then(|outcome| {
        let (client, server) = (&meeting.client, &meeting.server);
        let both = [(&outcome.client, client, server), (&outcome.server, server, client)];
        for (end, party, peer) in both {
            let checked = end.transfer.check(&party.plan, &peer.plan);
            checked.map_err(|error| format!("the {:?} {error}\n{outcome}", party.stack))?;
            let mut trouble = end.counters.mptcp_trouble();
            // A join that comes when the kernel's application has closed is refused, by a RST too; never more of them
            // than there are joins. For a RST of ours there is no reason.
            let count = |name| end.counters.mptcp(name);
            let joins = count("MPJoinSynRx") + count("MPJoinSynTx");
            let refusals = ["MPJoinRejected", "MPJoinNoTokenFound", "MPRstTx"];
            if refusals.iter().map(|name| count(name)).sum::<u64>() <= joins {
                trouble.retain(|name, _| !refusals.contains(name));
            }
            // With one end that speaks plain TCP, MPTCP falls back as it should.
            if !trouble.is_empty() && client.multipath && server.multipath {
                return Err(format!("the kernel counted {trouble:?}\n{outcome}"));
            }
        }
        Ok(())
    });
    if let (Ok(()), Some(capture)) = (&result, capture) {
        // Of hundreds of rounds only those that failed are of interest.
        let _ = fs::remove_file(capture);
    }
    (what, result)
}

/// An engine's settings, and their names.
fn settings(chance: &mut Stream) -> (String, Adjust) {
    let (scheduler, scheduler_name) = pick(SCHEDULERS, chance);
    let (congestion, congestion_name) = pick(CONGESTION, chance);
    let (receive_window, window_name) = pick(WINDOWS, chance);
    let (ack_path, ack_path_name) = pick(ACK_PATHS, chance);
    let (reinjection, reinjection_name) = pick(REINJECTIONS, chance);
    let [send, receive] = [(); 2].map(|()| 1 << chance.between(17, 23));
    let names = [scheduler_name, congestion_name, window_name, ack_path_name, reinjection_name].join(", ");
    let adjust = move |config: &mut Config| {
        config.policies.scheduler = Arc::clone(&scheduler);
        config.policies.congestion = Arc::clone(&congestion);
        config.policies.receive_window = Arc::clone(&receive_window);
        config.policies.ack_path = Arc::clone(&ack_path);
        config.policies.reinjection = Arc::clone(&reinjection);
        config.send_buffer = Bytes::new(send);
        config.receive_buffer = Bytes::new(receive);
    };
    (format!("{names}; buffers of {send} and {receive}"), Arc::new(adjust))
}

fn pick<T: Kind + ?Sized>(table: &'static [Entry<T>], chance: &mut Stream) -> (Factory<T>, &'static str) {
    let entry = &table[chance.below(table.len() as u64) as usize];
    (Arc::new(|| entry.build_default()), &*entry.name)
}

/// From nothing to 8 MiB, small ones as often as large ones.
fn size(chance: &mut Stream) -> u64 {
    let most = 1 << chance.between(0, 23);
    chance.below(most)
}

const LIMIT: Duration = Duration::from_secs(90);
const AT_ONCE: usize = 4;
const BOUNDS: Bounds = Bounds { rate: (5, 80), delay: 80, loss: 0.01, reordering: 0.02, first_path: 3.0 };
