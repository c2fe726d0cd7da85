//! Schedulers that rank subflows by a number, take turns, or send everything everywhere.

use crate::common::*;
use crate::policy;
use anabranch_engine::ConnectionStats;
use anabranch_net::{Change, QueueLimit};
use anabranch_paths::{Affected, Direction, PathSpec, TimedChange};
use anabranch_policy::registry::{SCHEDULERS, Value};
use anabranch_sim::{Outcome, Workload};
use anabranch_units::{Bytes, Duration, Seed};

/// Makes 40 bursts of `segments` segments, this far apart. After two seconds windows are back at 10 segments (RFC
/// 2861).
fn bursts(segments: u64, apart_ms: u64, warm_up: u64) -> Workload {
    Workload::Bursts {
        direction: Direction::Down,
        size: Bytes::new(segments * 1400),
        count: 40,
        interval: ms(apart_ms),
        start: Duration::ZERO,
        warm_up: Bytes::new(warm_up),
    }
}

/// Runs the workload with this scheduler, none of whose decisions may be overruled.
fn under(scheduler: &str, given: &[(&str, Value)], queue: u32, paths: &[PathSpec], workload: Workload) -> Outcome {
    seeded(Seed(1), scheduler, given, queue, paths, workload)
}

fn seeded(
    seed: Seed,
    scheduler: &str,
    given: &[(&str, Value)],
    queue: u32,
    paths: &[PathSpec],
    workload: Workload,
) -> Outcome {
    let mut spec = spec(paths.to_vec(), vec![workload]);
    spec.network.paths.iter_mut().for_each(|path| path.down.queue = QueueLimit::Packets(queue));
    spec.server.config.policies.scheduler = policy(SCHEDULERS, scheduler, given);
    // The figures are those of a window that falls at the beginning of a recovery.
    spec.server.config.profile.prr = false;
    spec.seed = seed;
    let outcome = complete(&spec);
    assert_eq!(outcome.connections[0].sender.as_ref().unwrap().overruled.total(), 0, "{scheduler}");
    outcome
}

fn sender(outcome: &Outcome) -> &ConnectionStats {
    outcome.connections[0].sender.as_ref().unwrap()
}

fn receiver(outcome: &Outcome) -> &ConnectionStats {
    outcome.connections[0].receiver.as_ref().unwrap()
}

/// New data on the second subflow, as a part of all.
fn second_share(outcome: &Outcome) -> f64 {
    let [first, second] = [0, 1].map(|at| outcome.connections[0].subflows[at].stats.bytes_first_sent as f64);
    second / (first + second)
}

/// Mean time of a burst [ms].
fn mean(outcome: &Outcome) -> f64 {
    let times = outcome.transfers.iter().map(|transfer| transfer.duration().unwrap().as_millis_f64());
    times.sum::<f64>() / outcome.transfers.len() as f64
}

/// Bursts of ten segments over windows of ten, RTTs of 20 and 80 ms. Time alone keeps them on the fast path; time per
/// space gives the slow path two (20/2 > 80/10, 20/2 > 80/9, 20/2 = 80/8); space alone gives it five.
#[test]
fn time_and_space_share_out_a_burst_differently() {
    let paths = [path("fast", 20, 10), path("slow", 20, 40)];
    let of_ten = |scheduler| {
        let outcome = under(scheduler, &[], 100, &paths, bursts(10, 2000, 100_000));
        10.0 * second_share(&outcome) * sender(&outcome).sent as f64 / (40.0 * 10.0 * 1400.0)
    };
    assert_eq!(["min-rtt", "hsr"].map(of_ten), [0.0, 0.0]);
    let [time_per_space, space] = ["lts", "lws"].map(of_ten);
    assert!((time_per_space - 2.0).abs() < 0.1, "{time_per_space}");
    assert!((space - 5.0).abs() < 0.1, "{space}");
}

/// The highest rate is a longer way off: minRTT keeps the near path busy, HSR takes the wide one. Where the long path
/// is thin, HSR leaves it alone, and LWS sees its large empty window.
#[test]
fn rate_and_space_choose_different_paths() {
    let wide = [path("near", 5, 10), path("wide", 20, 40)];
    let share = |scheduler| second_share(&under(scheduler, &[], 20, &wide, bursts(10, 100, 3_000_000)));
    let [rtt, rate] = ["min-rtt", "hsr"].map(share);
    assert!(rate > rtt + 0.05, "{rate} against {rtt}");

    let thin = [path("near", 20, 10), path("long", 5, 100)];
    let share = |scheduler| second_share(&under(scheduler, &[], 20, &thin, bursts(10, 100, 3_000_000)));
    let [rtt, rate, space] = ["min-rtt", "hsr", "lws"].map(share);
    assert_eq!(rate, rtt);
    assert!(space > rate + 0.03, "{space} against {rate}");
}

/// Bursts that fit into the windows, on paths of 20 and 5 Mbit/s: round robin halves them, weights follow the rates, a
/// ratio of 3 to 1 is what was asked for.
#[test]
fn weights_move_the_shares_of_round_robin() {
    let paths = [path("near", 20, 10), path("far", 5, 40)];
    let share = |scheduler, given: &[_]| second_share(&under(scheduler, given, 20, &paths, bursts(8, 2000, 20_000)));
    let (turns, weighted) = (share("round-robin", &[]), share("weighted", &[]));
    let three_to_one = share("ratio", &[("weights", Value::Text("0=3, 1=1".to_owned()))]);
    assert!((turns - 0.5).abs() < 0.05, "{turns}");
    assert!(weighted < turns - 0.1, "{weighted} against {turns}");
    assert!((three_to_one - 0.25).abs() < 0.05, "{three_to_one}");
    assert_eq!(share("ratio", &[]), turns);
}

/// In bulk every window is full, and the ACKs decide. Only a policy that waits for the other path keeps to 3 to 1.
#[test]
fn a_ratio_holds_in_bulk_if_full_windows_are_waited_for() {
    let paths = [path("a", 10, 10), path("b", 10, 10)];
    let run = |limited| {
        let given = [("weights", Value::Text("0=3".to_owned())), ("cwnd_limited", Value::Flag(limited))];
        let outcome = under("ratio", &given, 50, &paths, bulk(5));
        (second_share(&outcome), goodput(&outcome))
    };
    let ((passed_over, sum), (waited_for, less)) = (run(true), run(false));
    assert!((passed_over - 0.5).abs() < 0.02, "{passed_over}");
    assert!((waited_for - 0.25).abs() < 0.005, "{waited_for}");
    // 10 Mbit/s and a third of that.
    assert!((less / sum - 4.0 / 6.0).abs() < 0.02, "{less} against {sum}");
}

/// Messages of two segments, each of which is lost with 10 %: sent twice, one in a hundred is missed, and as a few of
/// these wait for a timeout it takes several seeds to see the mean. For bulk the second path is then worth nothing.
#[test]
fn redundancy_buys_latency_with_throughput() {
    let lossy = |p| [lossy_path("a", 20, 20, p), lossy_path("b", 20, 25, p)];
    let both = ["min-rtt", "redundant"];
    let messages = both.map(|scheduler| {
        let run = |seed| seeded(Seed(seed), scheduler, &[], 200, &lossy(0.1), bursts(2, 2000, 30_000));
        (0..20).map(run).collect::<Vec<_>>()
    });
    let [once, twice] = messages.each_ref().map(|runs| runs.iter().map(mean).sum::<f64>() / runs.len() as f64);
    assert!(twice < 0.6 * once, "{twice} ms against {once}");
    assert!(twice < 30.0, "{twice} ms: 20 ms one way, and what is lost on both is rare");
    assert!(messages[1].iter().map(sender).all(|sender| sender.reinjected > sender.sent / 2));

    let [sum, best] = both.map(|scheduler| goodput(&under(scheduler, &[], 50, &lossy(0.0), bulk(5))));
    assert!(best < 0.55 * sum && best > 0.45 * sum, "{best} Mbit/s against {sum}");
}

/// Timeouts have data repeated by reinjection as well, which the scheduler is not told of, and a path goes and comes
/// back. No copy that is asked for on top of that is impossible: it passes over what the subflow has carried.
#[test]
fn copies_and_reinjections_do_not_get_in_each_others_way() {
    let mut spec = spec(
        vec![lossy_path("a", 5, 30, 0.08), lossy_path("b", 5, 40, 0.08), lossy_path("c", 2, 90, 0.05)],
        vec![download(600_000)],
    );
    spec.server.config.policies.scheduler = policy(SCHEDULERS, "redundant", &[]);
    let change =
        |at, change| TimedChange { at: ms(at), path: "b".to_owned(), affected: Affected::Both, change, notify: true };
    spec.network.changes = vec![change(700, Change::Down), change(1500, Change::Up)];
    let outcome = complete(&spec);
    let connection = &outcome.connections[0];
    let reinjections = connection.subflows.iter().map(|subflow| subflow.stats.rtos).sum::<u64>();
    assert!(reinjections > 0, "there was something to reinject: {:?}", connection.subflows);
    assert_eq!(sender(&outcome).overruled.total(), 0);
    assert!(sender(&outcome).reinjected < 3 * 600_000, "{}", sender(&outcome).reinjected);
}

/// RTTs of 10 and 200 ms: what the slow path carries is some hundred segments early under minRTT. The prediction leaves
/// room for what the fast path sends meanwhile, and the goodput stays.
#[test]
fn proportional_prediction_keeps_arrivals_in_order() {
    let paths = [path("fast", 10, 5), path("slow", 10, 100)];
    let [spilled, predicted] =
        ["min-rtt", "linux-proportional"].map(|scheduler| under(scheduler, &[], 50, &paths, bulk(5)));
    let (before, after) = (receiver(&spilled), receiver(&predicted));
    assert!(after.ofo_count < before.ofo_count * 2 / 3, "{} against {}", after.ofo_count, before.ofo_count);
    assert!(after.ofo_peak < before.ofo_peak * 2 / 3, "{} against {}", after.ofo_peak, before.ofo_peak);
    assert!(goodput(&predicted) > 0.98 * goodput(&spilled));
    assert!((second_share(&predicted) - second_share(&spilled)).abs() < 0.01);
}

/// Bursts of 15 over windows of 10, RTT 10 ms. With 100 ms beside it the margin of the kernel, 100 ms at least, ends
/// all waiting; the paper waits, except for the last piece, which it does not find worth it. With 160 ms the kernel
/// waits to the end, as it assumes a full window on the slow path; the paper again does not. That is the formula: with
/// the kernel's products of 32 bits the right side of (1), 14 kB · 320 ms, overflows, and it sends like the paper.
#[test]
fn ecf_of_the_kernel_waits_elsewhere() {
    let run_with = |scheduler, given: &[_], slow_ms| {
        let paths = [path("fast", 100, 5), path("slow", 100, slow_ms)];
        let outcome = under(scheduler, given, 200, &paths, bursts(15, 2000, 300_000));
        (mean(&outcome), sender(&outcome).blocked.scheduler, second_share(&outcome))
    };
    let run = |scheduler, slow_ms| run_with(scheduler, &[], slow_ms);
    let ((_, paper_waits, paper_share), (kernel, kernel_waits, kernel_share)) = (run("ecf", 50), run("ecf-kernel", 50));
    assert!(kernel_waits.is_zero() && paper_waits > ms(40 * 9), "{kernel_waits} against {paper_waits}");
    assert!(kernel_share > 3.0 * paper_share, "{kernel_share} against {paper_share}");
    assert!(kernel > 50.0, "half the slow RTT: {kernel}");
    let whole = run_with("ecf-kernel", &[("wrap", Value::Flag(false))], 80);
    let ((paper, ..), (wrapped, ..), (kernel, ..)) = (run("ecf", 80), run("ecf-kernel", 80), whole);
    assert!(kernel < 20.0 && paper > 80.0 && wrapped > 80.0, "{kernel} ms against {paper}, {wrapped}");
}

/// A-WRAP. Bulk data over 25 Mbit/s with 15 ms and 4 Mbit/s with 70 ms, some hundred segments in wait: the products of
/// ECF exceed 32 bits. Overflown they have it wait at moments where the formula sends, and the other way round. In
/// bursts of 15 they do not overflow, and nothing changes.
#[test]
fn overflow_changes_what_ecf_of_the_kernel_does_with_bulk_data_only() {
    let paths = [path("wlan", 25, 7), path("3g", 4, 35)];
    let run = |wrap, workload| {
        let outcome = under("ecf-kernel", &[("wrap", Value::Flag(wrap))], 500, &paths, workload);
        (sender(&outcome).blocked.scheduler, outcome.digest)
    };
    let ((whole, _), (wrapped, _)) = (run(false, bulk(10)), run(true, bulk(10)));
    let apart = whole.max(wrapped).saturating_sub(whole.min(wrapped));
    assert!(apart > ms(200), "{whole} against {wrapped}");
    assert_eq!(run(false, bursts(15, 500, 0)).1, run(true, bursts(15, 500, 0)).1);
}

/// RTTs of 10 and 200 ms: a queue of the slow path may linger only as long as one of the fast. minRTT gives the slow
/// path all that its window takes.
#[test]
fn the_burst_rule_uses_a_far_slower_path_for_less() {
    let paths = [path("fast", 10, 5), path("slow", 10, 100)];
    let [always, sparing] = ["min-rtt", "linux-burst"].map(|scheduler| under(scheduler, &[], 50, &paths, bulk(5)));
    assert!(sender(&always).blocked.scheduler.is_zero());
    assert!(sender(&sparing).blocked.scheduler > ms(500), "{:?}", sender(&sparing).blocked);
    assert!(second_share(&sparing) < 0.9 * second_share(&always));
    // On paths alike it has nothing to wait for.
    let alike = [path("a", 10, 10), path("b", 10, 10)];
    let [always, sparing] = ["min-rtt", "linux-burst"].map(|scheduler| under(scheduler, &[], 50, &alike, bulk(5)));
    assert!(goodput(&sparing) > 0.97 * goodput(&always));
}

/// Two paths that lose, so that windows are small. A queue of up to 64 kB takes a small window many round trips, in
/// which the other path has nothing to send; with a limit for each subflow, and more in all, it has.
#[test]
fn the_burst_rule_wastes_less_of_paths_that_lose_with_short_queues() {
    let paths = [lossy_path("a", 20, 10, 0.02), lossy_path("b", 20, 30, 0.02)];
    let limits = [("subflow_lowat", Value::Number(1448.0)), ("sndbuf_expand", Value::Number(8.0))];
    let [stock, short] = [&[][..], &limits].map(|given| under("linux-burst", given, 50, &paths, bulk(20)));
    let waits = [&stock, &short].map(|run| sender(run).blocked.scheduler);
    assert!(waits[1] < waits[0] / 4, "{waits:?}");
    assert!(goodput(&short) > 1.2 * goodput(&stock), "{} against {}", goodput(&short), goodput(&stock));
}

/// Bursts of 30 over windows of 10, RTTs of 10 and 100 ms. Under minRTT what exceeds the fast window takes the slow
/// path; in Linux it is in the fast subflow's send queue by then, and takes a round trip more. The kernel itself takes
/// 21 to 27 ms.
#[test]
fn the_burst_rule_keeps_a_short_burst_on_one_path() {
    let paths = [path("fast", 100, 5), path("slow", 100, 50)];
    let [spread, kept] = ["min-rtt", "linux-burst"]
        .map(|scheduler| mean(&under(scheduler, &[], 200, &paths, bursts(30, 2000, 100_000))));
    assert!(spread > 50.0 && kept < 20.0, "{spread} ms, {kept} ms");
}

/// Bursts of 60 over windows of 10, RTTs of 10 and 80 ms. Round robin and minRTT give the slow path segments from the
/// front; DAPS those that the fast path would reach only then.
#[test]
fn daps_plans_for_arrival_in_order() {
    let paths = [path("fast", 100, 5), path("slow", 100, 40)];
    let rough = [("smooth_cwnd", Value::Flag(false))];
    let run = |scheduler, given: &[_]| under(scheduler, given, 200, &paths, bursts(60, 2000, 100_000));
    let (planned, smooth) = (run("daps", &rough), run("daps", &[]));
    for unplanned in ["round-robin", "min-rtt"].map(|scheduler| run(scheduler, &[])) {
        let (early, hol) = (receiver(&unplanned).ofo_count, receiver(&unplanned).hol_blocked);
        assert!(receiver(&planned).ofo_count < early / 2, "{} against {early}", receiver(&planned).ofo_count);
        assert!(receiver(&planned).hol_blocked < hol.mul_f64(0.8), "{} against {hol}", receiver(&planned).hol_blocked);
        assert!(mean(&planned) < 1.05 * mean(&unplanned));
    }
    assert!(second_share(&planned) > 0.05, "{}", second_share(&planned));
    // An average knows of the restart after idling too late: the plan is for windows that are gone.
    assert!(mean(&smooth) > 1.05 * mean(&planned), "{} against {}", mean(&smooth), mean(&planned));
}
