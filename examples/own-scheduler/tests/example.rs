//! A scheduler that Anabranch has never heard of is compared, listed and refused like any other.

use std::process::Command;

fn run(args: &[&str]) -> (bool, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_own-scheduler")).args(args).output().expect("the example is built");
    let text = |bytes| String::from_utf8(bytes).expect("output is text");
    (output.status.success(), text(output.stdout), text(output.stderr))
}

fn succeed(args: &[&str]) -> String {
    let (success, out, error) = run(args);
    assert!(success, "{args:?}: {error}");
    out
}

#[test]
fn it_is_compared_with_the_known_ones() {
    let args = ["compare", "web", "--repeat", "2", "--json"];
    let all: serde_json::Value = serde_json::from_str(&succeed(&args)).expect("JSON");
    let runs = all["runs"].as_array().expect("rows");
    let digests = |name: &str| -> Vec<&str> {
        runs.iter().filter(|run| run["name"] == name).filter_map(|run| run["events_digest"].as_str()).collect()
    };
    assert_eq!(digests("least-queue").len(), 2, "it is among those that are compared by default");
    assert_eq!(digests("min-rtt").len(), 2);
    assert_ne!(digests("least-queue"), digests("min-rtt"), "it decides otherwise");
    let overruled = |run: &&serde_json::Value| run["name"] == "least-queue" && run["overruled"] != 0;
    assert_eq!(runs.iter().find(overruled), None);
    let entry = all["schedulers"].as_array().expect("variants").iter().find(|it| it["name"] == "least-queue");
    assert_eq!(entry.expect("its parameters are reported")["parameters"]["slack"], 5.0);
}

#[test]
fn its_parameters_are_set_and_checked_like_any_others() {
    let set = |slack: &str| format!("host.scheduler={{ name = \"least-queue\", slack = {slack} }}");
    let told = succeed(&["run", "wlan-lte", "--set", &set("20")]);
    assert!(told.contains("least-queue (slack=20)"), "{told}");
    let (success, _, error) = run(&["run", "wlan-lte", "--set", &set("-1")]);
    assert!(!success && error.contains("it must be a number from 0 to 1000"), "{error}");
    let (success, _, error) = run(&["run", "wlan-lte", "--set", "host.scheduler=least-que"]);
    assert!(!success && error.contains("did you mean `least-queue`"), "{error}");
}

#[test]
fn it_is_listed_with_its_documentation() {
    let text = succeed(&["list", "schedulers", "least-queue"]);
    for said in ["A packet's wait is SRTT less the smallest RTT", "slack = 5 ms", "accepted: 0 to 1000"] {
        assert!(text.contains(said), "{said} is missing in:\n{text}");
    }
    assert!(succeed(&["list", "schedulers"]).contains("least-queue"));
    assert!(succeed(&["schema"]).contains("least-queue"));
}

/// CONTRIBUTING.md shows the very file, and promises that one takes less than fifty lines.
#[test]
fn the_worked_example_is_this_one() {
    let (file, document) = (include_str!("../src/least_queue.rs"), include_str!("../../../CONTRIBUTING.md"));
    assert!(document.contains(&format!("```rust\n{file}```\n")), "CONTRIBUTING.md shows another file");
    assert!(file.lines().count() < 50);
}
