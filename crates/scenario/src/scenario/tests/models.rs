//! Models: what follows them, and what a run makes of them.

use super::{BULK, Origin, Scenario, ScenarioError, built_in};
use anabranch_net::{Change, Service};
use anabranch_sim::{Spec, run};

fn read(text: &str) -> Result<Scenario, ScenarioError> {
    let origin = Origin { scenario: "test.toml".into(), sets: Vec::new() };
    let none = |_: &str, _: bool| Err(std::io::ErrorKind::NotFound.into());
    Scenario::read(&built_in(), "test", "test.toml", text, origin, &none)
}

/// A path with these keys beside a slow one.
fn path(keys: &str) -> String {
    format!("[path.sat]\n{keys}\n[path.dsl]\nrate = \"1mbit\"\ndelay = \"20ms\"\n{BULK}")
}

fn delays(spec: &Spec) -> usize {
    let of = |change: &&anabranch_paths::TimedChange| change.path == "sat" && matches!(change.change, Change::Delay(_));
    spec.network.changes.iter().filter(of).count()
}

#[test]
fn a_path_follows_its_model_and_what_it_states_itself_counts() {
    let scenario = read(&path("model = \"leo\"\nup = \"5mbit\"")).unwrap();
    assert!(scenario.is_random());
    let (one, two) = (scenario.spec(1), scenario.spec(2));
    let text = |spec: &Spec| format!("{:?}", (&spec.network.changes, &spec.network.paths[0].down.service));
    assert_eq!(text(&one), text(&scenario.spec(1)));
    assert_ne!(text(&one), text(&two));
    assert!(matches!(one.network.paths[0].down.service, Service::Trace(_)));
    assert!(matches!(one.network.paths[0].up.service, Service::Rate(_)));
    assert!(delays(&one) > 100 && one.network.changes.iter().all(|change| change.path == "sat"));
    let spec = read(&path("model = \"leo\"\nrate = \"5mbit\"\ndelay = \"9ms\"\n")).unwrap().spec(1);
    assert!(delays(&spec) == 0 && !spec.network.changes.is_empty(), "loss is left");
    assert!(matches!(spec.network.paths[0].down.service, Service::Rate(_)));
}

#[test]
fn two_paths_of_one_model_draw_apart() {
    let text = format!("[path.a]\nmodel = \"5g\"\n[path.b]\nmodel = \"5g\"\n{BULK}");
    let spec = read(&text).unwrap().spec(1);
    assert_ne!(spec.network.paths[0].down.service, spec.network.paths[1].down.service);
}

#[test]
fn a_model_without_service_in_a_run_is_silent() {
    // At -80 dBm most seconds have no service: in some of 40 runs of a second nothing passes at all.
    let text = path("model = { name = \"wifi\", signal-dbm = -80 }") + "[run]\nstop = \"5s\"\n";
    let scenario = read(&text).unwrap();
    let dead = (1..=40).filter(|seed| match &scenario.spec(*seed).network.paths[0].down.service {
        Service::Rate(rate) => rate.is_zero(),
        Service::Trace(_) => false,
    });
    let dead = dead.count();
    assert!((1..40).contains(&dead), "{dead}");
}

/// Goodput of a bulk download over the path alone, in Mbit/s, over four seeds.
fn goodput(model: &str) -> f64 {
    let text = format!(
        "[path.sat]\n{model}\nqueue = \"1000p\"\n\
         [[workload]]\nkind = \"bulk\"\nduration = \"10s\"\n[run]\nstop = \"10s\"\n"
    );
    let scenario = read(&text).unwrap();
    let of = |seed| run(&scenario.spec(seed)).unwrap().transfers[0].bytes as f64 * 8.0 / 10e6;
    (1..=4).map(of).sum::<f64>() / 4.0
}

/// Each model changes what a download gets, against the same mean rate and delay without it, and the parameter that
/// makes it harder gets less.
#[test]
fn a_run_gets_what_its_model_gives() {
    for (model, harder, most) in [
        ("{ name = \"leo\", rate = \"40mbit\" }", "{ name = \"leo\", rate = \"40mbit\", obstructed = \"40%\" }", 80.0),
        ("{ name = \"5g\", rate = \"80mbit\" }", "{ name = \"5g\", rate = \"80mbit\", blockers = 9 }", 80.0),
        ("{ name = \"wifi\", rate = \"150mbit\" }", "{ name = \"wifi\", rate = \"150mbit\", stations = 6 }", 140.0),
        ("{ name = \"lte\", rate = \"60mbit\" }", "{ name = \"lte\", rate = \"60mbit\", signal-db = 4 }", 60.0),
    ] {
        let [easy, hard] = [model, harder].map(|model| goodput(&format!("model = {model}")));
        assert!(easy < most && easy > 5.0 && hard < 0.8 * easy && hard > 0.5, "{model}: {easy} and {hard} Mbit/s");
    }
}

/// The sum of repetitions is a delay that a single packet meets: round trips of LTE are 8 ms apart.
#[test]
fn blocks_in_error_show_in_round_trips() {
    let completion = |errors: &str| {
        let text = format!(
            "[path.lte]\nmodel = {{ name = \"lte\", errors = \"{errors}\", signal-db = 30 }}\n\
             [[workload]]\nkind = \"files\"\nsize = \"500B\"\ncount = 60\nwarm = true\nwarm-up = \"1kB\"\n\
             think = \"3ms\"\n[run]\nstop = \"30s\"\n"
        );
        let outcome = run(&read(&text).unwrap().spec(3)).unwrap();
        let times = outcome.transfers.iter().filter_map(|it| Some(it.finished?.since(it.started).as_millis_f64()));
        times.collect::<Vec<f64>>()
    };
    let (clean, noisy) = (completion("0%"), completion("30%"));
    let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len() as f64;
    assert!(clean.len() >= 60 && noisy.len() == clean.len(), "{} {}", clean.len(), noisy.len());
    assert!(mean(&noisy) > mean(&clean) + 2.0, "{} {}", mean(&noisy), mean(&clean));
}

#[test]
fn what_is_wrong_is_said() {
    for (keys, problem, help) in [
        ("model = \"geo\"", "there is no model `geo`", "did you mean `leo`? accepted: leo, 5g, wifi, lte"),
        ("model = { rate = \"5mbit\" }", "`name` is missing", "name = "),
        ("model = { name = \"wifi\", rat = \"5mbit\" }", "unknown key `rat`", "did you mean `rate`?"),
        ("model = { name = \"lte\", blockers = 2 }", "unknown key `blockers`", "rate, delay, signal-db, errors"),
        ("model = { name = \"leo\", rate = 5 }", "`5` has no unit", "mbit"),
        ("model = { name = \"leo\", interval = \"0s\" }", "`interval` is 0s", "accepted: 1s to 600s"),
        ("model = { name = \"5g\", blockers = 99 }", "`blockers` is 99", "accepted: 0 to 20"),
        ("model = { name = \"lte\", signal-db = nan }", "`signal-db` is NaN", "accepted: 0 to 40"),
        ("model = { name = \"lte\", errors = \"80%\" }", "`errors` is 80 %", "accepted: 0% to 50%"),
        ("model = { name = \"wifi\", signal-dbm = -90 }", "nothing passes", "a stronger signal"),
        ("model = \"leo\"\ntrace = \"x.csv\"", "both `trace` and `model` are given", "one of them"),
        (
            "model = \"lte\"\nrate = \"1mbit\"\ndelay = \"1ms\"",
            "nothing of the model is used: it has rate and delay, and the path has its own",
            "does not state",
        ),
        (
            "model = \"lte\"\nvary = { rate = [\"1mbit\", \"2mbit\"] }",
            "the rate of path `sat` follows a recording or a model, which does not vary",
            "a path that states its rate",
        ),
        (
            "model = \"leo\"\nvary = { delay = [\"1ms\", \"2ms\"] }",
            "the delay of path `sat` follows a recording or a model",
            "a path that states its delay",
        ),
        (
            "model = \"leo\"\nvary = { loss = [\"1%\", \"2%\"] }",
            "the loss of path `sat` follows a recording or a model",
            "a path that states its loss",
        ),
        (
            "model = \"lte\"\n[[change]]\nat = \"1s\"\npath = \"sat\"\ndelay = \"2ms\"",
            "the delay of `sat` follows a recording or a model, whose next value would undo this change",
            "a path that states its delay",
        ),
        ("model = 7", "", "leo"),
    ] {
        let error = read(&path(keys)).err().unwrap_or_else(|| panic!("{keys}"));
        let said = format!("{error} {}", error.help().unwrap_or_default());
        assert!(error.to_string().starts_with(problem) && said.contains(help), "{keys}\n{said}");
    }
}

/// Values that the path states itself may vary and change beside a model, and a change of the rate ends the model's.
#[test]
fn what_a_path_states_beside_a_model_may_vary() {
    for keys in [
        "model = \"lte\"\nrate = \"5mbit\"\nvary = { rate = [\"1mbit\", \"2mbit\"] }",
        "model = \"leo\"\ndelay = \"5ms\"\nvary = { delay = [\"1ms\", \"2ms\"] }",
        "model = \"leo\"\nloss = \"1%\"\n[[change]]\nat = \"1s\"\npath = \"sat\"\nloss = \"2%\"",
        "model = \"leo\"\n[[change]]\nat = \"1s\"\npath = \"sat\"\nrate = \"2mbit\"",
    ] {
        let spec = read(&path(keys)).unwrap_or_else(|error| panic!("{keys}\n{error}")).spec(1);
        assert!(!spec.network.changes.is_empty(), "{keys}");
    }
}
