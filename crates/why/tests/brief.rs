//! Brief inquiries: the answer within five times the work of the run that it explains, and what a stop leaves.
#![allow(clippy::unwrap_used)]

use anabranch_engine::Purpose;
use anabranch_paths::{End, PacketId};
use anabranch_policy::Catalogue;
use anabranch_scenario::{Origin, Scenario, ScenarioError};
use anabranch_sim::{Condition, Loss, Observer, Sight, run_observed};
use anabranch_why::{Alternatives, Answer, Inquiry, Others};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Two paths without a fault.
const PATHS: &str = "[path.wlan]\nrate = \"30mbit\"\nrtt = \"20ms\"\nqueue = \"100p\"\n\
                     [path.lte]\nrate = \"20mbit\"\nrtt = \"50ms\"\nqueue = \"150p\"\n";
/// A download.
const FILE: &str = "[[workload]]\nkind = \"files\"\nsize = \"8MB\"\n";
/// Thirty seconds of 240 and 60 Mbit/s.
const DRIVE: &str = "[path.a]\nrate = \"240mbit\"\nrtt = \"30ms\"\nqueue = \"500p\"\n\
                     [path.b]\nrate = \"60mbit\"\nrtt = \"50ms\"\nqueue = \"500p\"\n\
                     [[workload]]\nkind = \"bulk\"\nduration = \"30s\"\n";

fn load(text: &str, sets: &[String]) -> Result<Scenario, ScenarioError> {
    let origin = Origin { scenario: "brief.toml".to_owned(), sets: sets.to_vec() };
    let none = |_: &str, _| Err(std::io::ErrorKind::NotFound.into());
    Scenario::read(&Arc::new(Catalogue::default()), "brief", "brief.toml", text, origin, &none)
}

fn ask(text: &str, jobs: usize, repeat: Option<usize>, stop: (&Arc<AtomicBool>, usize)) -> Answer {
    let (scenario, catalogue) = (load(text, &[]).unwrap(), Arc::new(Catalogue::default()));
    let load = |more: &[String]| load(text, more);
    let alternatives = Alternatives::of(&scenario, &catalogue, &Others::default(), &load);
    let inquiry = match repeat {
        Some(repeat) => Inquiry::new(&scenario, alternatives, 1, repeat),
        None => Inquiry::brief(&scenario, alternatives, 1),
    };
    let progress = |done: usize, _: usize| {
        stop.0.fetch_or(done == stop.1, Ordering::Relaxed);
    };
    inquiry.stoppable(stop.0).run(jobs, &load, &progress).unwrap()
}

fn brief(text: &str) -> Answer {
    ask(text, 2, None, (&Arc::default(), usize::MAX))
}

/// Counts the events of a run.
struct Count(u64);

impl Observer for Count {
    fn on_sent(&mut self, _sight: Sight<'_>, _purpose: Option<Purpose>) {}
    fn on_received(&mut self, _sight: Sight<'_>, _condition: Condition) {}
    fn on_lost(&mut self, _id: PacketId, _loss: Loss<'_>) {}
    fn on_kept(&mut self, _id: PacketId, _path: usize, _end: End) {}
    fn is_enough(&mut self) -> bool {
        self.0 += 1;
        false
    }
}

/// The runs of all changes have at most 3.05 times the events of the run, and 30,000 more. The judge costs less than as
/// much as the run again, so that all takes at most five times its processor time (bench figures: docs/why.md).
#[test]
fn the_work_is_at_most_five_times_that_of_the_run() {
    let small = DRIVE.replace("30s", "5s") + "[client]\nreceive-buffer = \"64KiB\"\n";
    let lossy = PATHS.replacen("queue", "loss = \"1%\"\nqueue", 1) + FILE;
    for text in [DRIVE, &small, &lossy, &format!("{PATHS}{FILE}")] {
        let mut count = Count(0);
        run_observed(&load(text, &[]).unwrap().spec(1), &mut count).unwrap();
        let answer = brief(text);
        assert!(answer.events <= answer.budget.unwrap(), "{} events of {:?}", answer.events, answer.budget);
        assert!(100 * answer.events <= 405 * count.0 + 3_000_000, "{} events for {}", answer.events, count.0);
        assert!(answer.runs >= 3, "{} runs", answer.runs);
        let beyond = |because: &str| because.contains("five times the work") || because.contains("more work");
        assert!(answer.left_out.iter().any(|left| beyond(&left.because)), "{:?}", answer.left_out);
    }
}

/// A run of a millisecond is as short as the start of the program: everything is tried.
#[test]
fn of_a_short_run_everything_is_tried() {
    let answer = brief(&(PATHS.to_owned() + &FILE.replace("8MB", "20kB")));
    assert!(answer.counterfactuals.len() > 10, "{:?}", answer.counterfactuals);
    assert!(answer.left_out.iter().all(|left| !left.because.contains("--repeat")), "{:?}", answer.left_out);
}

#[test]
fn any_number_of_threads_gives_the_same_answer() {
    let text = PATHS.replacen("queue", "loss = \"1%\"\nqueue", 1) + FILE + "[client]\nreceive-buffer = \"64KiB\"\n";
    let one = ask(&text, 1, None, (&Arc::default(), usize::MAX));
    assert_eq!(one, ask(&text, 4, None, (&Arc::default(), usize::MAX)));
    assert!(one.counterfactuals.len() > 1);
}

/// The first sentence without its numbers: what is named.
fn named(answer: &Answer) -> String {
    let first = answer.sentence.split(". ").next().unwrap();
    first.chars().filter(|it| !it.is_ascii_digit()).collect()
}

/// Faults that the whole inquiry names first, over several seeds, are named by the brief one too.
#[test]
fn what_is_named_first_is_what_all_runs_name() {
    let file = format!("{PATHS}{FILE}");
    let bursts = "[[workload]]\nkind = \"bursts\"\nsize = \"2kB\"\ncount = 20\ninterval = \"5ms\"\n\
                  [host]\ndelayed-ack = \"400ms\"\nquick-acks = 0\nnagle = true\n";
    let shared = "via = \"home\"\nqueue";
    for (text, words) in [
        (file.replacen("20mbit", "2mbit", 1).replacen("150p", "2000p", 1), "bufferbloat"),
        (PATHS.to_owned() + bursts, "Nagle's algorithm"),
        (file.replace("queue", shared) + "[link.home]\nrate = \"8mbit\"\ndelay = \"1ms\"\n", "share the bottleneck"),
        (file.replacen("queue", "reorder = { probability = \"5%\", delay = \"30ms\" }\nqueue", 1), "wlan reorders"),
        (file.clone() + "[host]\nsend-buffer = \"64KiB\"\n", "filled the send buffer"),
        (file.clone() + "[client]\nreceive-buffer = \"32KiB\"\n", "the receiver's window"),
        (file.clone() + "[[workload]]\nkind = \"udp\"\npath = \"wlan\"\nrate = \"26mbit\"\n", "Cross traffic"),
        (file.replacen("queue", "loss = \"3%\"\nqueue", 1), "wlan loses 3 %"),
        (file.replacen("queue", "backup = true\nqueue", 1), "marked as a backup"),
        (file.clone() + "[host]\nscheduler = \"single\"\n", "The scheduler is single"),
        (file + "[[change]]\nat = \"0.3s\"\npath = \"wlan\"\nstate = \"blackhole\"\n", "wlan becomes a black hole"),
    ] {
        let (some, all) = (brief(&text), ask(&text, 2, Some(2), (&Arc::default(), usize::MAX)));
        assert!(some.sentence.split(". ").next().unwrap().contains(words), "{words}: {}", some.sentence);
        assert_eq!(named(&some), named(&all), "{}\n{}", some.sentence, all.sentence);
    }
}

/// A larger buffer lets a bulk transfer carry many times as much, which takes as much more work: what is certain after
/// a part of it is said.
#[test]
fn a_change_that_takes_much_more_work_is_a_lower_bound() {
    let text = DRIVE.replace("30s", "5s") + "[client]\nreceive-buffer = \"64KiB\"\n";
    let answer = brief(&text);
    assert!(answer.sentence.contains("goodput would have been at least "), "{}", answer.sentence);
    let tried = answer.counterfactuals.iter().find(|tried| tried.at_least).unwrap();
    let bound = tried.value.mean;
    let with = load(&text, &tried.sets).unwrap();
    let whole = anabranch_lab::run(&with, 1, &anabranch_lab::Keep::default()).unwrap().measured.goodput_bps;
    assert!(answer.value.mean < bound && bound <= whole, "{} {bound} {whole}", answer.value.mean);
}

/// A stop after so many runs leaves the answer of those.
#[test]
fn a_stop_keeps_what_is_there() {
    let text = format!("{PATHS}{FILE}");
    for (repeat, runs) in [(None, 2), (Some(3), 3), (Some(3), 20)] {
        let answer = ask(&text, 1, repeat, (&Arc::default(), runs));
        assert!(answer.stopped && answer.sentence.ends_with("It was stopped: this is of the runs made until then."));
        assert!(answer.sentence.contains("of the time"), "{}", answer.sentence);
        assert!(answer.runs <= runs + 1, "{} runs", answer.runs);
        assert!(answer.left_out.iter().any(|left| left.because == "it was stopped before"), "{:?}", answer.left_out);
        let whole = ask(&text, 1, repeat, (&Arc::default(), usize::MAX));
        assert!(!whole.stopped && whole.counterfactuals.len() > answer.counterfactuals.len());
        // What there is is what the whole has, over the seeds that there are.
        assert_eq!(answer.value.mean, whole.value.mean);
    }
    // Within the first run: the time up to then.
    let stop = Arc::new(AtomicBool::new(true));
    let answer = ask(&text, 1, None, (&stop, usize::MAX));
    assert!(answer.stopped && answer.counterfactuals.is_empty(), "{}", answer.sentence);
}
