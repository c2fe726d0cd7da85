//! Queue disciplines against ns-3's: the same arrivals, and what ns-3 3.44 made of them.
//!
//! The tables are those of `interop/queues.py --write crates/net/tests/ns3`, which needs ns-3; this test does not. The
//! first line of each names the fields, and after a colon the discipline, the rate and the limit of our side.
#![allow(clippy::unwrap_used)]

#[path = "../examples/queue/replay.rs"]
mod replay;

use replay::{Fate, Set, read, replay};

/// Packets of the table, what ns-3 made of them, and our set-up.
fn table(name: &str) -> (Set, Vec<replay::Arrival>, Vec<Fate>) {
    let path = format!("{}/tests/ns3/{name}.csv", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap();
    let (head, lines) = text.split_once('\n').unwrap();
    let words: Vec<&str> = head.split_once(": ").unwrap().1.split(' ').collect();
    let set = Set {
        discipline: words[0].to_owned(),
        mbit: words[1].parse().unwrap(),
        limit: words[2].parse().unwrap(),
        seed: 1,
    };
    let fate = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        let kind = ["left", "marked", "dropped"].into_iter().find(|kind| *kind == fields[4]).unwrap();
        Fate { kind, at: fields[5].parse().unwrap() }
    };
    (set, read(&text).unwrap(), lines.lines().map(fate).collect())
}

/// Each packet is dropped where ns-3 drops it, and the others leave at the same nanosecond.
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
        let (set, arrivals, theirs) = table(name);
        let ours = replay(&set, &arrivals).unwrap();
        let differ: Vec<usize> = (0..theirs.len()).filter(|number| ours[*number] != theirs[*number]).collect();
        let first = differ.first().map(|number| (arrivals[*number], ours[*number], theirs[*number]));
        assert!(differ.is_empty(), "{name}: {} of {} differ, first {first:?}", differ.len(), theirs.len());
        let dropped = theirs.iter().filter(|fate| fate.kind == "dropped").count();
        assert!(theirs.len() == 800 && dropped >= 3, "{name}: {dropped} of {} dropped", theirs.len());
    }
}

/// A law that is not CoDel's is told from ns-3's: with another interval many packets differ.
#[test]
fn another_interval_is_noticed() {
    let (set, arrivals, theirs) = table("codel-overload");
    let other = Set { discipline: "codel,integers=true,interval=99".to_owned(), ..set };
    let ours = replay(&other, &arrivals).unwrap();
    assert!(ours.iter().zip(&theirs).filter(|(one, other)| one != other).count() > 100);
}
