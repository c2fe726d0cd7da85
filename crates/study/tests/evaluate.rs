//! Faults that are planted in congestion controls fail the cases that are there to find them, and Reno and CUBIC pass
//! those that compare with Reno and CUBIC.
#![allow(clippy::unwrap_used)]

use anabranch_lab::{Flows, Journal};
use anabranch_policy::Catalogue;
use anabranch_policy::congestion::{Ack, CongestionControl, Entry, Flow, Model, ModelBased, Reno, WindowBased};
use anabranch_study::evaluate::{Candidate, Case, Evaluation, Plan, Row, RowVerdict, Suite};
use anabranch_units::{Duration, Instant, Rate, Window};
use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

/// Knowledge of a control that sets its window by a simple rule.
#[derive(Default)]
struct Known {
    begun: Option<Instant>,
    reductions: u32,
    least_rtt: Option<Duration>,
    rtt: Option<Duration>,
}

/// Control with a window of so many segments, whatever the network says.
struct Ruled {
    rule: fn(&Known) -> f64,
    known: Known,
}

impl ModelBased for Ruled {
    fn on_ack(&mut self, now: Instant, flow: &Flow, _ack: &Ack) -> Window {
        self.known.begun.get_or_insert(now);
        self.known.rtt = flow.srtt;
        self.known.least_rtt = [self.known.least_rtt, flow.srtt].into_iter().flatten().min();
        flow.segments((self.rule)(&self.known))
    }

    fn model(&self, _flow: &Flow, _srtt: Option<Duration>) -> Model {
        Model { pacing: Rate::from_mbps(10_000), bdp: None }
    }

    fn on_fast_retransmit(&mut self, _now: Instant, _flow: &Flow) {
        self.known.reductions += 1;
    }

    fn on_rto(&mut self, _now: Instant, _flow: &Flow) {
        self.known.reductions += 1;
    }

    fn on_rto_again(&mut self, _now: Instant, _flow: &Flow) {}
    fn on_recovered(&mut self, _now: Instant, _flow: &Flow) {}
    fn on_spurious(&mut self, _now: Instant, _flow: &Flow) {}
    fn on_restart(&mut self, _now: Instant, _flow: &Flow) -> Option<Window> {
        None
    }
}

/// Reno without its half of the bargain: a loss leaves the window as it is.
struct Deaf;

impl WindowBased for Deaf {
    fn avoidance(&mut self, now: Instant, on: usize, acked: Window, flows: &[Flow]) -> Window {
        Reno.avoidance(now, on, acked, flows)
    }

    fn on_fast_retransmit(&mut self, _now: Instant, on: usize, _in_flight: Window, flows: &[Flow]) -> Window {
        flows[on].cwnd
    }
}

/// Control with phases that are not those of BBR: one for good, or another every twenty ACKs.
struct Phased {
    restless: bool,
    acks: usize,
}

const PHASES: [&str; 8] =
    ["startup", "drain", "probe-bw-cruise", "probe-bw-refill", "probe-bw-up", "probe-rtt", "startup", "probe-bw-down"];

impl ModelBased for Phased {
    fn on_ack(&mut self, _now: Instant, flow: &Flow, _ack: &Ack) -> Window {
        self.acks += 1;
        flow.segments(100.0)
    }

    fn model(&self, _flow: &Flow, _srtt: Option<Duration>) -> Model {
        Model { pacing: Rate::from_mbps(10_000), bdp: None }
    }

    fn on_fast_retransmit(&mut self, _now: Instant, _flow: &Flow) {}
    fn on_rto(&mut self, _now: Instant, _flow: &Flow) {}
    fn on_rto_again(&mut self, _now: Instant, _flow: &Flow) {}
    fn on_recovered(&mut self, _now: Instant, _flow: &Flow) {}
    fn on_spurious(&mut self, _now: Instant, _flow: &Flow) {}

    fn on_restart(&mut self, _now: Instant, _flow: &Flow) -> Option<Window> {
        None
    }

    fn phase(&self, _flow: &Flow) -> Option<&'static str> {
        Some(PHASES[if self.restless { self.acks / 20 % PHASES.len() } else { 0 }])
    }

    fn variables(&self, _flow: &Flow) -> Vec<(&'static str, f64)> {
        let names = ["max-bw", "full-bw-reached", "pacing-gain", "cwnd-gain", "inflight-longterm", "extra-acked"];
        names.map(|name| (name, 0.0)).to_vec()
    }
}

/// A rule that makes a window of what is known.
type Rule = fn(&Known) -> f64;

/// Windows in segments of the controls with a rule.
const RULES: [(&str, Rule); 6] = [
    // A huge window, whatever is lost.
    ("huge", |_| 400.0),
    // A window that never grows.
    ("small", |_| 6.0),
    // Whoever comes late gets nothing.
    ("first-come", |known| if known.begun < Some(Instant::ZERO + Duration::from_secs(4)) { 100.0 } else { 4.0 }),
    // Never grows again after what looks like a loss.
    ("timid", |known| if known.reductions > 0 { 2.0 } else { 60.0 }),
    // Waits for each delayed ACK.
    ("two", |_| 2.0),
    // Takes a longer path for a queue.
    ("first-rtt", |known| {
        let longer = known.rtt.zip(known.least_rtt).is_some_and(|(rtt, least)| rtt > least + least / 2);
        if longer { 2.0 } else { 60.0 }
    }),
];

fn ruled<const N: usize>() -> Entry {
    Entry::new(RULES[N].0, "a planted fault", "", |_| {
        CongestionControl::model_based(Ruled { rule: RULES[N].1, known: Known::default() })
    })
}

fn catalogue() -> Arc<Catalogue> {
    let mut catalogue = Catalogue::default();
    for entry in [ruled::<0>(), ruled::<1>(), ruled::<2>(), ruled::<3>(), ruled::<4>(), ruled::<5>()] {
        catalogue.congestion.add(entry).unwrap();
    }
    let deaf = Entry::new("deaf", "a planted fault", "", |_| CongestionControl::window_based(Deaf));
    catalogue.congestion.add(deaf).unwrap();
    let stuck = Entry::new("stuck", "a planted fault", "", |_| {
        CongestionControl::model_based(Phased { restless: false, acks: 0 })
    });
    let restless = Entry::new("restless", "a planted fault", "", |_| {
        CongestionControl::model_based(Phased { restless: true, acks: 0 })
    });
    catalogue.congestion.add(stuck).unwrap();
    catalogue.congestion.add(restless).unwrap();
    Arc::new(catalogue)
}

/// Evaluates in the conditions of `--quick`, in all cases or in those that are named.
fn evaluated(candidate: Candidate, cases: &[&str]) -> Evaluation {
    evaluated_by("rfc9743", candidate, cases)
}

fn evaluated_by(suite: &str, candidate: Candidate, cases: &[&str]) -> Evaluation {
    let cases: Vec<String> = cases.iter().map(|case| (*case).to_owned()).collect();
    let suite = Suite::load(suite).unwrap().only(&cases).unwrap();
    let plan = Plan::new(suite, candidate, true, &catalogue()).unwrap();
    // Runs of standard controls are the same for all.
    static JOURNAL: LazyLock<Journal<Flows>> = LazyLock::new(Journal::in_memory);
    plan.run(&JOURNAL, 0, &|| {}).unwrap();
    plan.result(&JOURNAL, &|_| "anabranch evaluate".to_owned())
}

fn control(name: &str) -> Candidate {
    Candidate { control: name.to_owned(), scheduler: None, sets: Vec::new(), peer: None }
}

fn described(row: &Row) -> String {
    let worst = |it: &anabranch_study::evaluate::Judged| {
        let worst = it.worst.as_ref();
        format!("{} {:?} limit {:?}", it.metric, worst.map(|it| it.value), worst.map(|it| it.limit))
    };
    format!("{:?}: {:?}", row.case, row.criteria.iter().map(worst).collect::<Vec<_>>())
}

/// Fault and the cases that find it.
const FAULTS: [(&str, &[&str]); 6] = [
    (
        "huge",
        &[
            "high-loss",
            "many-flows",
            "bufferbloat",
            "shallow-buffers",
            "starvation",
            "harm-drop-tail",
            "harm-unequal-rtt",
            "real-time",
            "short-rivals",
            "long-rival",
            "short-flows",
            "aqm",
            "harm-aqm",
            "circuit-breaker",
            "misbehaving",
            "onset",
            "reroute",
            "iot",
            "data-centre",
            "shared-bottleneck",
            "failover-harm",
        ],
    ),
    ("deaf", &["shallow-buffers", "harm-drop-tail", "starvation"]),
    ("small", &["high-delay", "range", "wireless"]),
    ("first-come", &["own-kind"]),
    ("timid", &["reordering", "outage"]),
    ("first-rtt", &["varying-delay"]),
];

#[test]
fn planted_faults_are_found() {
    let (mut found, mut passed): (BTreeSet<String>, Vec<String>) = (BTreeSet::new(), Vec::new());
    for (fault, cases) in FAULTS {
        let rows = evaluated(control(fault), cases).rows;
        assert_eq!(rows.len(), cases.len());
        for row in &rows {
            match row.verdict {
                RowVerdict::Fail => found.extend(row.case.clone()),
                _ => passed.push(format!("{fault} passes {}", described(row))),
            }
        }
    }
    // A timer that does not back off, and a connection without a second path, are faults of a host: no policy can bring
    // them about.
    for (set, case) in [("host.max-rto=1s", "black-hole"), ("host.multipath=false", "failover")] {
        let rows = evaluated(Candidate { sets: vec![set.to_owned()], ..control("reno") }, &[case]).rows;
        match rows[0].verdict {
            RowVerdict::Fail => found.extend(rows[0].case.clone()),
            _ => passed.push(described(&rows[0])),
        }
    }
    assert!(passed.is_empty(), "{passed:#?}");
    let suite = Suite::load("rfc9743").unwrap();
    let missing: Vec<&str> = suite.cases().map(|(name, _)| name).filter(|name| !found.contains(*name)).collect();
    assert!(missing.is_empty(), "no planted fault for {missing:?}");
}

/// Two controls pass what they are the measure of. A connection over two subflows of one link is another matter: there
/// Reno and CUBIC over one path are the measure, and two of them take two shares.
#[test]
fn reno_and_cubic_pass_what_they_are_the_measure_of() {
    for name in ["reno", "cubic"] {
        let result = evaluated(control(name), &[]);
        for row in result.rows.iter().filter(|row| row.case.is_some()) {
            let is_other = row.case.as_deref() == Some("rfc9743/shared-bottleneck");
            assert!(is_other || row.verdict == RowVerdict::Pass, "{name} fails {}", described(row));
        }
        assert!(result.counts.to_be_argued > 10 && result.counts.not_run == 0, "{:?}", result.counts);
    }
    let bbr = evaluated(control("bbr"), &["shallow-buffers", "harm-drop-tail"]);
    // RFC 9743 §5.1.3 says so of version 1.
    assert!(bbr.rows.iter().all(|row| row.verdict == RowVerdict::Fail));
    let worst = bbr.rows[0].deciding().unwrap().worst.clone().unwrap();
    assert!(worst.command.starts_with("anabranch run rfc9743/shallow-buffers --seed "), "{}", worst.command);
}

/// The draft's own control passes the cases of the draft, and each case finds one of five faults. Cases about phases do
/// not apply to a control without phases.
#[test]
fn the_cases_of_bbr_are_those_of_bbr3() {
    let of = |name: &str| evaluated_by("bbr", control(name), &[]).rows;
    let own = of("bbr3");
    assert_eq!(own.len(), 22);
    own.iter().for_each(|row| assert_eq!(row.verdict, RowVerdict::Pass, "{}", described(row)));
    let faults = ["stuck", "restless", "two", "timid", "huge"].map(of);
    for (place, row) in own.iter().enumerate() {
        let is_found = faults.iter().any(|rows| rows[place].verdict == RowVerdict::Fail);
        assert!(is_found, "no planted fault for {:?}", row.case);
    }
    let reno = of("reno");
    let without: Vec<&str> =
        reno.iter().filter(|row| row.verdict == RowVerdict::NotApplicable).map(|row| &*row.section).collect();
    assert_eq!(without, ["2", "3", "4", "6", "8", "9", "20", "21"]);
}

#[test]
fn every_case_is_whole_and_unknown_names_get_advice() {
    let suite = Suite::load("rfc9743").unwrap();
    for (name, _) in suite.cases() {
        assert!(Case::is_one(name));
        // All conditions, not those of `--quick` alone, and all competitors.
        let only = suite.clone().only(&[name.rsplit('/').next().unwrap().to_owned()]).unwrap();
        Plan::new(only, control("bbr"), false, &catalogue()).unwrap();
    }
    let refused = |candidate: Candidate| {
        Plan::new(suite.clone(), candidate, true, &catalogue()).map(drop).unwrap_err().to_string()
    };
    assert_eq!(refused(control("renu")), "there is no congestion control `renu`");
    let with = |set: &str| Candidate { sets: vec![set.to_owned()], ..control("reno") };
    assert_eq!(refused(with("path.a.rate=1mbit")), "`path.a.rate=1mbit` is no setting of a host");
    assert!(suite.clone().only(&["black-hol".to_owned()]).is_err() && Suite::load("rfc974").is_err());
}
