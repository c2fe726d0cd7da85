//! Queue disciplines: the delay of a bottleneck that one transfer fills, and of a second beside it.

use crate::common::*;
use crate::policy;
use anabranch_net::{Discipline, QueueLimit};
use anabranch_paths::Direction;
use anabranch_policy::registry::QUEUES;
use anabranch_sim::{Outcome, run};

/// A download of 20 MB over 20 Mbit/s and 20 ms, and files of 15 kB on connections of their own all the while.
fn under(name: &str) -> Outcome {
    let mut link = path("a", 20, 10);
    let make = policy(QUEUES, name, &[]);
    link.down.queue = QueueLimit::Packets(make().capabilities.limit.max(1000));
    link.down.discipline = Some(Discipline::new(name, move || make().policy));
    let mut spec = spec(vec![link], vec![download(20_000_000), files(Direction::Down, &[15_000; 10], false)]);
    spec.client.config.multipath = false;
    let outcome = complete(&spec);
    spec.codec = true;
    assert_eq!(run(&spec).unwrap().digest, outcome.digest, "{name}: bytes have the same flows and marks");
    outcome
}

/// Mean delay of the queue in milliseconds, and of the small files in seconds.
fn delays(outcome: &Outcome) -> (f64, f64) {
    let link = outcome.links.iter().find(|link| link.name == "a/down").unwrap();
    let small = || outcome.transfers.iter().filter(|transfer| transfer.bytes == 15_000);
    let times = small().map(|transfer| transfer.finished.unwrap().since(transfer.started).as_secs_f64());
    let mean = times.sum::<f64>() / small().count() as f64;
    (link.stats.mean_queue_delay().unwrap().as_millis_f64(), mean)
}

/// A queue of 1000 packets stands at hundreds of milliseconds; a controlled one at its target, about; and behind fair
/// queueing a file does not see the queue of the other.
#[test]
fn a_controlled_queue_is_short() {
    let [tail, codel, fq_codel, fq, pie, dualpi2] =
        ["drop-tail", "codel", "fq-codel", "fq", "pie", "dualpi2"].map(|name| delays(&under(name)));
    println!("{tail:?} {codel:?} {fq_codel:?} {fq:?} {pie:?} {dualpi2:?}");
    assert!(tail.0 > 100.0);
    for (name, (queue, _), most) in [("codel", codel, 20.0), ("pie", pie, 40.0), ("dualpi2", dualpi2, 40.0)] {
        assert!(queue < most, "{name}: {queue} ms");
    }
    for (name, (_, file)) in [("fq-codel", fq_codel), ("fq", fq)] {
        assert!(file < 0.5 * tail.1 && file < 0.15, "{name}: {file} s");
    }
}
