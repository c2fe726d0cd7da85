//! Planted faults: the first sentence names each, and its remedy keeps its promise when it is applied alone.
#![allow(clippy::unwrap_used)]

use anabranch_lab::{Keep, run};
use anabranch_policy::Catalogue;
use anabranch_scenario::{Origin, Scenario, ScenarioError};
use anabranch_why::{Alternatives, Answer, Inquiry, Kind, Others};
use std::sync::Arc;

/// Repetitions of each run.
const REPEAT: usize = 3;

fn load(text: &str, sets: &[String]) -> Result<Scenario, ScenarioError> {
    let origin = Origin { scenario: "fault.toml".to_owned(), sets: sets.to_vec() };
    let none = |_: &str, _| Err(std::io::ErrorKind::NotFound.into());
    // Coupled windows, under which each of these faults costs enough to be named.
    const HOST: &str = "[host]\ncongestion = \"lia\"\n";
    let text = match text.contains("[host]\n") {
        true => text.replace("[host]\n", HOST),
        false => format!("{text}{HOST}"),
    };
    Scenario::read(&Arc::new(Catalogue::default()), "fault", "fault.toml", &text, origin, &none)
}

fn ask(text: &str, seed: u64) -> Answer {
    let (scenario, catalogue) = (load(text, &[]).unwrap(), Arc::new(Catalogue::default()));
    let load = |more: &[String]| load(text, more);
    let few = Others { schedulers: vec!["min-rtt".to_owned()], congestion: vec!["bbr".to_owned()] };
    let alternatives = Alternatives::of(&scenario, &catalogue, &few, &load);
    Inquiry::new(&scenario, alternatives, seed, REPEAT).run(2, &load, &|_, _| {}).unwrap()
}

/// A network of two paths, the faster with this in its table.
fn two(fast: u32, slow: u32, rtt: u32, wlan: &str) -> String {
    format!(
        "[path.wlan]\nrate = \"{fast}mbit\"\nrtt = \"{rtt}ms\"\n{wlan}\n\
         [path.lte]\nrate = \"{slow}mbit\"\nrtt = \"{}ms\"\nqueue = \"150p\"\n",
        2 * rtt
    )
}

fn file(size: &str) -> String {
    format!("[[workload]]\nkind = \"files\"\nsize = \"{size}\"\n")
}

/// The name of a fault, the kind that takes it away, a word of its sentence, and two scenarios that have it.
fn planted() -> Vec<(&'static str, Kind, &'static str, [String; 2])> {
    let on_wlan = |wlan: &str| [two(30, 20, 20, wlan) + &file("4MB"), two(50, 10, 30, wlan) + &file("6MB")];
    let of_hosts = |hosts: &str| {
        let hosts = format!("[host]\n{hosts}\n");
        [two(30, 20, 20, "") + &file("400kB") + &hosts, two(40, 10, 60, "") + &file("600kB") + &hosts]
    };
    let small = |hosts: &str| {
        let bursts = |size: &str| {
            format!("[[workload]]\nkind = \"bursts\"\nsize = \"{size}\"\ncount = 20\ninterval = \"5ms\"\n")
        };
        let hosts = format!("[host]\nquick-acks = 0\n{hosts}\n");
        [two(30, 20, 20, "") + &bursts("2kB") + &hosts, two(20, 10, 16, "") + &bursts("2200B") + &hosts]
    };
    let others = |flow: &str| {
        let flow = format!("[[workload]]\n{flow}\n");
        [two(30, 20, 20, "") + &file("4MB") + &flow, two(30, 10, 40, "") + &file("6MB") + &flow]
    };
    let shared = |rate: u32| {
        two(30, 20, 20, "via = \"home\"").replace("queue = \"150p\"", "via = \"home\"")
            + &format!("[link.home]\nrate = \"{rate}mbit\"\ndelay = \"1ms\"\nqueue = \"60p\"\n")
            + &file("4MB")
    };
    let hole = "middlebox = [{ kind = \"mtu-blackhole\", size = \"1280B\" }]";
    vec![
        ("loss", Kind::NoLoss, "loses", on_wlan("loss = \"2%\"")),
        ("reordering", Kind::NoReordering, "reorders", on_wlan("reorder = { probability = \"5%\", delay = \"30ms\" }")),
        ("jitter", Kind::NoJitter, "at random", on_wlan("jitter = \"60ms\"\njitter-reorders = true")),
        ("damage", Kind::NoDamage, "damages", on_wlan("corrupt = \"2%\"")),
        ("black hole for large packets", Kind::NoMiddlebox, "MTU black hole", on_wlan(hole)),
        ("tiny queue", Kind::LongerQueue, "queue of 4 packets", on_wlan("queue = \"4p\"")),
        (
            "UDP",
            Kind::NoTraffic,
            "traffic takes a part of wlan",
            others("kind = \"udp\"\npath = \"wlan\"\nrate = \"26mbit\""),
        ),
        (
            "competing TCP",
            Kind::NoTraffic,
            "traffic takes a part of wlan",
            others("kind = \"tcp\"\npath = \"wlan\"\nsize = \"100MB\""),
        ),
        ("shared bottleneck", Kind::FasterLink, "share the bottleneck home", [shared(8), shared(12)]),
        ("low ssthresh", Kind::InitialSsthresh, "initial ssthresh", of_hosts("initial-ssthresh = 4")),
        ("initial window", Kind::InitialWindow, "begins with a window", of_hosts("initial-window = 1")),
        ("Nagle", Kind::NoNagle, "Nagle", small("nagle = true\ndelayed-ack = \"40ms\"")),
        ("delayed ACKs", Kind::NoNagle, "which the client delays by up to 400ms", {
            let odd = |text: String| text.replace("\"2kB\"", "\"2200B\"").replace("\"5ms\"", "\"1s\"");
            small("nagle = true\ndelayed-ack = \"400ms\"").map(odd)
        }),
        ("outage", Kind::NoChange, "goes down", {
            let down = "[[change]]\nat = \"200ms\"\npath = \"wlan\"\nstate = \"down\"\n";
            on_wlan("").map(|text| text + down)
        }),
    ]
}

/// Faults that are drawn or come in the course of the run, one box among several, and settings.
fn planted_later() -> Vec<(&'static str, Kind, &'static str, [String; 2])> {
    let less = |wlan: &str| [two(30, 20, 20, wlan) + &file("2MB"), two(50, 10, 30, wlan) + &file("3MB")];
    let between = "middlebox = [{ kind = \"nat\" }, { kind = \"strip\", from = \"syn-ack\" }, { kind = \"split\" }]\n";
    let first = |text: String| text + "[host]\nfirst-path = \"as-listed\"\n";
    vec![
        ("loss that is drawn", Kind::NoLoss, "drawn for each run", less("vary = { loss = [\"1%\", \"4%\"] }")),
        ("loss that begins later", Kind::NoChange, "changes its loss to 5 %", {
            let begins = "[[change]]\nat = \"300ms\"\npath = \"wlan\"\nloss = \"5%\"\n";
            less("").map(|text| text + begins)
        }),
        (
            "rate that is drawn",
            Kind::Steady,
            "varies its rate",
            less("vary = { rate = [\"2mbit\", \"30mbit\"], every = \"200ms\" }"),
        ),
        (
            "delay that is drawn",
            Kind::Steady,
            "varies its rtt",
            less("vary = { rtt = [\"20ms\", \"300ms\"], every = \"200ms\" }"),
        ),
        ("one box among three", Kind::NoMiddlebox, "removes MPTCP options", less(between).map(first)),
        ("narrow way back", Kind::WayBack, "way back on wlan", {
            let narrow = |text: String, fast: u32| {
                text.replacen(&format!("rate = \"{fast}mbit\""), &format!("down = \"{fast}mbit\"\nup = \"200kbit\""), 1)
            };
            let [a, b] = less("");
            [narrow(a, 30), narrow(b, 50)]
        }),
        ("slow interface", Kind::FasterInterface, "interface on wlan", less("nic = \"4mbit\"")),
        ("a setting", Kind::Setting, "coupled-acks = true, where the profile has false", {
            let lossy = |text: String| text + "[host]\ncoupled-acks = true\nscheduler = \"round-robin\"\n";
            less("loss = \"0.1%\"").map(lossy)
        }),
        ("another scheduler", Kind::NoChange, "scheduler becomes single", {
            let single = "[[change]]\nat = \"200ms\"\nscheduler = \"single\"\n";
            less("").map(|text| text + single)
        }),
    ]
}

/// Runs the scenario with the assignments of a counterfactual on top, and returns the mean of its measure.
fn apply(text: &str, sets: &[String], seed: u64, count: usize) -> f64 {
    let scenario = load(text, sets).unwrap();
    let measure = scenario.measure;
    let value = |n| run(&scenario, seed + n, &Keep::default()).unwrap().measured.value(measure);
    (0..count as u64).map(value).sum::<f64>() / count as f64
}

/// The promise of each counterfactual is that of exactly the assignments it prints.
#[track_caller]
fn keeps_promises(text: &str, answer: &Answer, seed: u64) {
    for tried in answer.counterfactuals.iter().filter(|it| it.unfinished_runs == 0) {
        let Some(promise) = tried.difference.filter(|it| it.mean < -0.02 * answer.value.mean) else { continue };
        let as_is = match promise.n {
            REPEAT => answer.value.mean,
            more => apply(text, &[], seed, more),
        };
        let had = apply(text, &tried.sets, seed, promise.n) - as_is;
        assert!(
            (had - promise.mean).abs() <= 1e-6 * promise.mean.abs(),
            "{}: promised {promise:?}, had {had}",
            tried.what
        );
    }
}

#[test]
fn each_fault_is_named_first() {
    let mut missed = Vec::new();
    for (name, kind, word, scenarios) in planted().into_iter().chain(planted_later()) {
        for (number, text) in scenarios.iter().enumerate() {
            let seed = 11 + number as u64;
            let answer = ask(text, seed);
            keeps_promises(text, &answer, seed);
            let first = answer.sentence.split(". ").next().unwrap();
            let named = answer.fault.map(|index| answer.counterfactuals[index].kind);
            if named != Some(kind) || !first.contains(word) {
                missed.push(format!("{name} {number}: {named:?}: {}", answer.sentence));
            }
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

/// Faults of the application and of queues are named without a promise.
#[test]
fn the_application_and_a_long_queue_are_named_first() {
    // Slow start that overshoots fills it.
    let overshoots = "[host]\nhystart = \"off\"\n";
    let queue = |rate: u32| two(30, rate, 20, "").replace("150p", "2000p") + &file("8MB") + overshoots;
    for text in [queue(2), queue(1)] {
        assert!(ask(&text, 1).sentence.starts_with("lte has a queue"), "{}", ask(&text, 1).sentence);
    }
    let late = two(30, 20, 20, "") + "[[workload]]\nkind = \"files\"\nsize = \"40kB\"\ncount = 5\nthink = \"400ms\"\n";
    let bursts =
        two(30, 20, 20, "") + "[[workload]]\nkind = \"bursts\"\nsize = \"60kB\"\ncount = 20\ninterval = \"200ms\"\n";
    for (text, word) in [(late, "thinks for 400ms"), (bursts, "20 bursts of 60000B, one every 200ms")] {
        let sentence = ask(&text, 1).sentence;
        let first = sentence.split(". ").next().unwrap();
        assert!(first.contains("the application had nothing to send") && first.contains(word), "{sentence}");
    }
}

/// ACKs that are late from the first on delay a window of one segment, with and without Nagle's algorithm: it is said
/// alone what they cost, and both settings are taken back.
#[test]
fn delayed_acks_are_taken_away_alone() {
    let late = "[host]\ninitial-window = 1\n[client]\nquick-acks = 0\ndelayed-ack = \"300ms\"\n";
    let text = two(30, 20, 20, "") + &file("80kB") + late;
    let answer = ask(&text, 1);
    let acks = answer.counterfactuals.iter().find(|it| it.kind == Kind::PromptAcks).unwrap();
    assert_eq!(acks.sets, ["client.delayed-ack=\"40ms\"", "client.quick-acks=16"]);
    assert_eq!(acks.cause.as_deref(), Some("The client delays its ACKs by up to 300ms, from segment 1 on"));
    assert!(acks.difference.unwrap().mean < -0.2, "{acks:?}");
    keeps_promises(&text, &answer, 1);
}

/// A network without a fault has none: the paths are the limit.
#[test]
fn a_clean_run_has_no_fault() {
    for text in [two(30, 20, 20, "") + &file("8MB"), two(100, 5, 10, "") + &file("20MB")] {
        let answer = ask(&text, 1);
        assert_eq!(answer.fault, None, "{}", answer.sentence);
        assert!(answer.sentence.contains("carried all that they can"), "{}", answer.sentence);
    }
}

/// A remedy for one buffer changes this one only, and makes none smaller.
#[test]
fn a_remedy_changes_what_it_names() {
    let hosts = |host: &str, key: &str| format!("[host]\n{key} = \"4MiB\"\n[{host}]\n");
    let receive = two(30, 20, 20, "") + &file("8MB") + &hosts("client", "send-buffer") + "receive-buffer = \"64KiB\"\n";
    let send = two(30, 20, 20, "") + &file("8MB") + &hosts("server", "receive-buffer") + "send-buffer = \"64KiB\"\n";
    for (text, key, name) in [
        (receive, "client.receive-buffer=", "With a receive buffer of"),
        (send, "server.send-buffer=", "With a send buffer of"),
    ] {
        let answer = ask(&text, 1);
        assert!(answer.sentence.contains(name) && answer.sentence.contains(key), "{}", answer.sentence);
        let sized = answer.counterfactuals.last().unwrap();
        assert_eq!(sized.sets.len(), 1, "{:?}", sized.sets);
        assert!(sized.sets[0].starts_with(key), "{:?}", sized.sets);
        keeps_promises(&text, &answer, 1);
    }
}
