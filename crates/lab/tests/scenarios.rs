//! Scenarios are run, and what was measured shows what their files say.
#![allow(clippy::unwrap_used)]

use anabranch_lab::{Keep, Run, run};
use anabranch_policy::{Catalogue, registry};
use anabranch_scenario::shipped::SHIPPED;
use anabranch_scenario::{Origin, Scenario, ScenarioError};
use std::path::Path;
use std::sync::Arc;

const PATHS: &str = "[path.wlan]\nrate = \"25mbit\"\ndelay = \"10ms\"\n\
                     [path.lte]\ndown = \"lte.down\"\nup = \"5mbit\"\nrtt = \"60ms\"\n";
const BULK: &str = "[[workload]]\nkind = \"bulk\"\nduration = \"5s\"\n";

fn built_in() -> Arc<Catalogue> {
    Arc::new(Catalogue::default())
}

fn read_with(text: &str, sets: &[String]) -> Result<Scenario, ScenarioError> {
    let origin = Origin { scenario: "test.toml".into(), sets: sets.to_vec() };
    Scenario::read(&built_in(), "test", "test.toml", text, origin, &|name, _| match name {
        "lte.down" => Ok("1\n2\n2\n".to_owned()),
        _ => Err(std::io::ErrorKind::NotFound.into()),
    })
}

fn read(text: &str) -> Result<Scenario, ScenarioError> {
    read_with(text, &[])
}

/// The codec changes no result: the digest of every event, the measurements and the scenario's own digest are equal.
#[test]
fn the_codec_changes_no_result() {
    for shipped in SHIPPED {
        let run = |sets: &[&str]| {
            let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
            let scenario = Scenario::load(&built_in(), shipped.name, &sets).unwrap();
            let run = run(&scenario, 1, &Keep::default()).unwrap();
            (scenario.spec(1).codec, scenario.digest, run.outcome.digest, run.measured)
        };
        let (values, bytes) = (run(&[]), run(&["codec=true"]));
        assert_eq!((values.0, bytes.0), (false, true));
        assert_eq!((values.1, values.2, values.3), (bytes.1, bytes.2, bytes.3), "{}", shipped.name);
    }
}

/// A loaded page is measured: objects, time of loading, and shares of both paths.
#[test]
fn a_page_is_loaded_and_measured() {
    let keys = "page = \"wikipedia\"\nprotocol = \"http2\"\n[run]\nstop = \"20s\"\n";
    let vary = "vary = { every = \"100ms\", rate = [\"20mbit\", \"30mbit\"], rtt = [\"5ms\", \"25ms\"] }";
    let text = PATHS.replacen("delay = \"10ms\"", &format!("delay = \"8ms\"\n{vary}"), 1);
    let scenario = read(&format!("{text}[[workload]]\nkind = \"web\"\n{keys}")).unwrap();
    let run = |seed| run(&scenario, seed, &Keep::default()).unwrap().measured;
    let measured = run(1);
    assert!(measured.finished, "{measured:?}");
    let (load, object) = (measured.page_load_s.unwrap(), measured.object_download_s.unwrap());
    // Three levels, each a round trip and more, and twice 20 ms between them.
    assert!((0.08..1.0).contains(&load) && object < load, "{load} {object}");
    assert_eq!((measured.completion_s, measured.path_bytes.len()), (Some(object), 2));
    assert!(measured.completion_sd_s.is_some() && measured.mean_goodput_bps > 0.0);
    assert_eq!(run(1), measured);
    assert_ne!(run(2).page_load_s, Some(load), "another seed varies otherwise");
}

/// Runs the examples beside the shipped scenarios.
#[test]
fn the_examples_are_read_and_run() {
    for (name, pages, objects) in [("web", 1, 6), ("map-session", 0, 200)] {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../scenarios/{name}.toml"));
        let scenario = Scenario::load(&built_in(), &file.to_string_lossy(), &[]).unwrap();
        let run = run(&scenario, 1, &Keep::default()).unwrap();
        assert!(run.measured.finished && run.outcome.transfers.len() >= objects, "{name}: {:?}", run.measured);
        assert_eq!(run.outcome.pages.len(), pages);
    }
}

/// An ACK path is named as in the scenario, moves ACKs between hosts that both support it, and changes during a run.
#[test]
fn an_ack_path_may_be_named() {
    let scenario = |host: &str, more: &str| read(&format!("{PATHS}[host]\n{host}\n{more}{BULK}"));
    let fixed = r#"ack-path = { name = "fixed", path = "lte" }"#;
    let play = |scenario: &Scenario| run(scenario, 1, &Keep::default()).unwrap();
    let both = scenario(&format!("{fixed}\nack-rewrite = true"), "").unwrap();
    assert_eq!(both.receiver().ack_path.to_string(), "fixed (path=\"lte\")");
    let moved = play(&both);
    assert!(
        moved.measured.counted.count("acks_detoured") > 100 && moved.measured.counted.count("probes_sent") == 0,
        "{:?}",
        moved.measured
    );
    let unable = play(&scenario(fixed, "").unwrap()).measured;
    assert!(unable.counted.count("acks_detoured") == 0 && unable.counted.count("acks_kept") > 100, "{unable:?}");
    let later = "[[change]]\nat = \"3s\"\nack-path = \"probed\"\n";
    let switched = scenario(&format!("{fixed}\nack-rewrite = true"), later).unwrap();
    let tau = &switched.switched[0].policy.parameters.0;
    assert!(tau.contains(&("tau".to_owned(), registry::Value::Number(200.0))), "printed with its parameters: {tau:?}");
    let switched = play(&switched).measured;
    assert!(
        (20..100).contains(&switched.counted.count("probes_sent")),
        "two seconds of probes: {}",
        switched.counted.count("probes_sent")
    );
    let unknown = scenario(r#"ack-path = { name = "fixed", path = "ltee" }"#, "").err().unwrap();
    assert_eq!(unknown.to_string(), "`ack-path` names `ltee`, which is neither a path nor an address");
    assert!(unknown.help().unwrap().contains("`lte`"), "{:?}", unknown.help());
}

#[test]
fn the_results_of_clients_add_up() {
    let text = format!("{PATHS}\n[[workload]]\nkind = \"files\"\nsize = \"100kB\"\n");
    let [one, three] = ["clients=1", "clients=3"].map(|clients| {
        let scenario = read_with(&text, &[clients.to_owned()]).unwrap();
        run(&scenario, 1, &Keep::default()).unwrap()
    });
    assert_eq!(one.outcome.transfers[0], three.outcome.transfers[0]);
    let bytes = |run: &Run| run.measured.path_bytes.iter().sum::<u64>();
    assert_eq!(bytes(&three), 3 * bytes(&one), "results add up");
}
