//! Plans of evaluations in real time: what can be asked of programs, what cannot and why, and whose runs are whose.
#![allow(clippy::unwrap_used)]

use anabranch_lab::{Flows, Journal, flows};
use anabranch_policy::Catalogue;
use anabranch_study::evaluate::{Candidate, Evaluation, Kernel, Peer, Plan, Program, RowVerdict, Suite};
use std::collections::BTreeSet;
use std::sync::Arc;

fn candidate(is_program: bool, controls: &[&str]) -> Candidate {
    let program = Program { server: "serve it".into(), client: vec!["fetch".into(), "it's".into()] };
    let kernel = Kernel {
        release: "Linux 6.18.0".into(),
        controls: controls.iter().map(|&name| name.to_owned()).collect(),
        default_control: "cubic".into(),
        multipath: true,
    };
    let peer = Peer { program: is_program.then_some(program), multipath: false, kernel };
    Candidate { control: "cubic".into(), scheduler: None, sets: Vec::new(), peer: Some(peer) }
}

fn plan(suite: &str, cases: &[&str], candidate: Candidate, quick: bool) -> Plan {
    let cases: Vec<String> = cases.iter().map(|&case| case.to_owned()).collect();
    let suite = Suite::load(suite).unwrap().only(&cases).unwrap();
    Plan::new(suite, candidate, quick, &Arc::new(Catalogue::default())).unwrap()
}

/// Makes the runs in the simulator, which stands for the testbed, and judges them.
fn judged(plan: &Plan) -> Evaluation {
    let journal = Journal::<Flows>::in_memory();
    for run in plan.live_runs(&journal) {
        journal.put(&run.key, flows(run.scenario, run.seed, run.span).unwrap()).unwrap();
    }
    plan.result(&journal, &|place| format!("repeat {place:?}"))
}

#[test]
fn what_no_program_can_be_asked_is_left_out_by_name_with_the_reason() {
    let plan = plan("rfc9743", &[], candidate(true, &["reno", "cubic", "bbr"]), true);
    let left_out: Vec<(&str, &str)> = plan.left_out().collect();
    let names: Vec<&str> = left_out.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["failover", "failover-harm", "shared-bottleneck", "data-centre"]);
    assert!(left_out[0].1.contains("`--multipath`") && left_out[3].1.contains("1000 Mbit/s"), "{left_out:?}");
    let all = Journal::in_memory();
    assert!(plan.live_runs(&all).iter().all(|run| !names.contains(&run.case)));
}

/// A system that uses several paths is asked for all of it, unless the kernel beside it cannot.
#[test]
fn cases_with_several_paths_are_for_systems_that_use_them() {
    let names = |kernel_too: bool| -> Vec<String> {
        let mut candidate = candidate(true, &["reno", "cubic", "bbr"]);
        let peer = candidate.peer.as_mut().unwrap();
        (peer.multipath, peer.kernel.multipath) = (true, kernel_too);
        plan("rfc9743", &[], candidate, true).left_out().map(|(name, _)| name.to_owned()).collect()
    };
    assert_eq!(names(true), ["data-centre"]);
    assert_eq!(names(false), ["failover", "failover-harm", "shared-bottleneck", "data-centre"]);
}

/// Cases about phases have no number that is seen from outside, others have one.
#[test]
fn phases_are_not_asked_of_programs() {
    let plan = plan("bbr", &[], candidate(true, &["reno", "cubic", "bbr"]), true);
    let left_out: BTreeSet<&str> = plan.left_out().map(|(name, _)| name).collect();
    assert!(left_out.contains("drain-time"), "{left_out:?}");
    let journal = Journal::in_memory();
    let asked: BTreeSet<&str> = plan.live_runs(&journal).iter().map(|run| run.case).collect();
    assert!(!asked.is_empty() && asked.is_disjoint(&left_out), "{asked:?}");
}

/// Sixty processes are too many, and competitors are those that the kernel has.
#[test]
fn conditions_that_cannot_be_asked_are_named_in_the_row() {
    let row = |case: &str, controls: &[&str]| {
        let result = judged(&plan("rfc9743", &[case], candidate(true, controls), case != "many-flows"));
        result.rows.into_iter().find(|row| row.case.is_some()).unwrap()
    };
    let many = row("many-flows", &["reno", "cubic"]);
    assert_eq!(many.not_run, ["60 flows: 60 flows at once are more than 32 processes"]);
    assert!(many.verdict != RowVerdict::NotRun && many.criteria[0].checked == 1);
    let harm = row("harm-drop-tail", &["cubic"]);
    assert_eq!((harm.verdict, harm.criteria.len()), (RowVerdict::NotRun, 0));
    assert!(harm.note.unwrap().contains("the kernel has no `reno` (it has cubic; `modprobe tcp_reno`)"));
}

/// The command that repeats a number is that of its case in real time, and never one of the simulator.
#[test]
fn numbers_are_repeated_in_real_time() {
    let result = judged(&plan("rfc9743", &["shallow-buffers"], candidate(true, &["reno", "cubic"]), true));
    assert_eq!((result.control.as_str(), result.command.as_str()), ("fetch 'it'\\''s'", "repeat None"));
    assert!(result.about.contains("in real time") && !result.about.contains("simulated"), "{}", result.about);
    let worst = result.rows[0].criteria[0].worst.as_ref().unwrap();
    assert_eq!(worst.command, "repeat Some((\"shallow-buffers\", \"0.3 BDP, 6 flows\"))");
    assert!(result.testbed.unwrap().late.is_empty());
}

/// A program's runs are its own; those of standard controls serve all, and the kernel's cubic as well.
#[test]
fn runs_of_standard_controls_are_shared() {
    let journal = Journal::in_memory();
    let keys = |candidate| -> BTreeSet<String> {
        let plan = plan("rfc9743", &["shallow-buffers"], candidate, true);
        plan.live_runs(&journal).into_iter().map(|run| run.key).collect()
    };
    let (program, kernel) = (keys(candidate(true, &["reno", "cubic"])), keys(candidate(false, &["reno", "cubic"])));
    assert_eq!((program.len(), kernel.len(), program.intersection(&kernel).count()), (3, 2, 2));
    let own: Vec<&String> = program.difference(&kernel).collect();
    assert!(own[0].contains("Linux 6.18.0 'serve it' -- fetch 'it'\\''s' "), "{own:?}");
}

/// A condition that is named is run alone, whether or not it is one of `--quick`.
#[test]
fn a_condition_can_be_chosen() {
    let suite = || Suite::load("rfc9743").unwrap();
    let about = |suite: Suite| -> Vec<(String, String)> {
        let candidate = candidate(false, &["reno", "cubic"]);
        let plan = Plan::new(suite, candidate, true, &Arc::new(Catalogue::default())).unwrap();
        plan.live_runs(&Journal::in_memory()).iter().map(|run| (run.case.to_owned(), run.about.clone())).collect()
    };
    let case = ["shallow-buffers".to_owned()];
    let chosen = about(suite().only(&case).unwrap().in_condition("1 BDP, 2 flows").unwrap());
    assert_eq!(chosen[0], ("shallow-buffers".to_owned(), "1 BDP, 2 flows, seed 1".to_owned()));
    assert!(chosen.iter().all(|(_, about)| about.starts_with("1 BDP, 2 flows")), "{chosen:?}");
    let cases: BTreeSet<String> =
        about(suite().in_condition("CoDel").unwrap()).into_iter().map(|(case, _)| case).collect();
    assert_eq!(cases.into_iter().collect::<Vec<_>>(), ["aqm", "harm-aqm"]);
    let error = suite().only(&case).unwrap().in_condition("1 BDP").err().unwrap();
    assert!(format!("{error:?}").contains("1 BDP, 2 flows; 1 BDP, 6 flows"), "{error:?}");
}

#[test]
fn a_control_that_the_kernel_lacks_is_refused() {
    let suite = Suite::load("rfc9743").unwrap();
    let lacking = Candidate { control: "vegas".into(), ..candidate(false, &["reno", "cubic"]) };
    let error = Plan::new(suite, lacking, true, &Arc::new(Catalogue::default())).err().unwrap().to_string();
    assert!(error.contains("the kernel has no `vegas` (it has reno, cubic; `modprobe tcp_vegas`)"), "{error}");
}
