//! Queue disciplines against those of others: the same arrivals, and what ns-3 3.44 and Linux 7.2 made of them.
//!
//! The tables are those of `interop/queues.py --write crates/net/tests/ns3`, which needs ns-3, and of
//! `interop/kernel_queues.py --write crates/net/tests/linux`, which needs an emulated machine; this test needs neither.
//! The first line of each names the fields, and after a colon the discipline, the rate and the limit of our side, and
//! `slots` if packets may leave at the times at which theirs left, and at no others.
#![allow(clippy::unwrap_used)]

#[path = "../examples/queue/replay.rs"]
mod replay;

use replay::{Arrival, Fate, Set, read, replay};

/// Packets of the table, what the others made of them, and our set-up.
fn table(name: &str) -> (Set, Vec<Arrival>, Vec<Fate>) {
    let path = format!("{}/tests/{name}.csv", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap();
    let (head, lines) = text.split_once('\n').unwrap();
    let words: Vec<&str> = head.split_once(": ").unwrap().1.split(' ').collect();
    let fate = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        let kind = ["left", "marked", "dropped"].into_iter().find(|kind| *kind == fields[4]).unwrap();
        Fate { kind, at: fields[5].parse().unwrap() }
    };
    let fates: Vec<Fate> = lines.lines().map(fate).collect();
    let left = || fates.iter().filter(|fate| fate.kind != "dropped").map(|fate| fate.at);
    let mut slots: Vec<u64> = if words.get(3) == Some(&"slots") { left().collect() } else { Vec::new() };
    slots.sort_unstable();
    let set = Set {
        discipline: words[0].to_owned(),
        mbit: words[1].parse().unwrap(),
        limit: words[2].parse().unwrap(),
        seed: 1,
        slots,
    };
    (set, read(&text).unwrap().0, fates)
}

/// Fates of our side that are not as those of the others.
fn differences(set: &Set, arrivals: &[Arrival], theirs: &[Fate]) -> Vec<usize> {
    let ours = replay(set, arrivals).unwrap();
    let same = |one: &Fate, other: &Fate| match set.slots.is_empty() {
        true => one == other,
        // Linux says that a packet was dropped, and not when.
        false => one.kind == other.kind && (one.kind == "dropped" || one.at == other.at),
    };
    (0..theirs.len()).filter(|number| !same(&ours[*number], &theirs[*number])).collect()
}

/// Fails unless each of these packets was dropped, marked or sent as by the others, at the same nanosecond.
fn check(name: &str, packets: usize) {
    let (set, arrivals, theirs) = table(name);
    let differ = differences(&set, &arrivals, &theirs);
    let first = differ.first().map(|number| (number, arrivals[*number], theirs[*number]));
    assert!(differ.is_empty(), "{name}: {} of {} differ, first {first:?}", differ.len(), theirs.len());
    let dropped = theirs.iter().filter(|fate| fate.kind == "dropped").count();
    assert!(theirs.len() == packets && dropped >= 3, "{name}: {dropped} of {} dropped", theirs.len());
}

#[test]
fn codel_fq_codel_and_cobalt_do_as_those_of_ns3() {
    for name in [
        "codel-overload",
        "codel-on-off",
        "codel-slow",
        "fq-codel-overload",
        "fq-codel-on-off",
        "fq-codel-full",
        "cobalt-overload",
    ] {
        check(&format!("ns3/{name}"), 800);
    }
}

#[test]
fn codel_fq_codel_and_cake_do_as_those_of_linux() {
    for name in ["codel-overload", "codel-marks", "fq-codel-overload", "cake-overload"] {
        check(&format!("linux/{name}"), 600);
    }
}

/// A law that is not CoDel's is told from that of the others: with another interval many packets differ.
#[test]
fn another_interval_is_noticed() {
    for (name, least) in [("ns3/codel-overload", 100), ("linux/codel-overload", 30)] {
        let (set, arrivals, theirs) = table(name);
        let other = Set { discipline: "codel,integers=true,interval=99".to_owned(), ..set };
        let differ = differences(&other, &arrivals, &theirs).len();
        assert!(differ > least, "{name}: {differ}");
    }
}
