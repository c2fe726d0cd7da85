//! `anabranch calibrate`: a file, bursts and a page in all three worlds.

use super::kernel::{LOADING, registered, turn};
use super::{lacks, place, stderr, stdout, until};
use serde_json::Value;
use std::fs;
use std::process::{Command, Stdio};

/// Workloads, each small enough for a busy machine.
const WORKLOADS: [(&str, &str); 3] = [
    ("file", "kind = \"files\"\nsize = \"300kB\""),
    ("bursts", "kind = \"bursts\"\nsize = \"20kB\"\ncount = 3\ninterval = \"200ms\"\nwarm-up = \"50kB\""),
    ("page", "kind = \"web\"\npage = { objects = 12, total = \"200kB\", wave = 4, computation = \"5ms\" }"),
];

#[test]
fn a_file_bursts_and_a_page_finish_in_all_worlds() {
    let Some(here) = place("calibrate") else { return };
    let network = fs::read_to_string(here.join("two.toml")).unwrap();
    let (network, _) = network.split_once("[[workload]]").unwrap();
    let mut args = vec!["calibrate".to_owned(), "--json".to_owned(), "--repeat=1".to_owned()];
    for (name, workload) in WORKLOADS {
        fs::write(here.join(format!("{name}.toml")), format!("{network}[[workload]]\n{workload}\n")).unwrap();
        args.push(format!("{name}.toml"));
    }
    let mut http2 = network.to_owned();
    http2 += &format!("[[workload]]\n{}\nprotocol = \"http2\"\n", WORKLOADS[2].1);
    fs::write(here.join("http2.toml"), http2).unwrap();
    args.push("http2.toml".to_owned());

    let output = Command::new(env!("CARGO_BIN_EXE_anabranch")).current_dir(&here).args(&args).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let result: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let rows = result["rows"].as_array().unwrap();
    let cases: Vec<_> =
        rows.iter().map(|row| (row["case"].as_str().unwrap(), row["protocol"].as_str().unwrap())).collect();
    let protocols = ["file", "bursts", "page", "http2"].map(|case| [(case, "tcp"), (case, "mptcp")]);
    assert_eq!(cases, protocols.concat());
    for row in rows {
        let about = format!("{} {}", row["case"], row["protocol"]);
        for world in ["simulator", "testbed", "kernel"] {
            let samples = &row[world];
            assert_eq!(samples["failures"].as_array().unwrap().len(), 0, "{about}, {world}: {samples:#}");
            assert!(samples["values"][0].as_f64().unwrap() > 0.0, "{about}, {world}: {samples:#}");
            let shares: Vec<f64> =
                samples["shares"].as_array().unwrap().iter().map(|it| it.as_f64().unwrap()).collect();
            // The second path may join too late for this size; the first is always used, and TCP has no other.
            assert!(shares.len() == 2 && (shares[0] + shares[1] - 1.0).abs() < 1e-9, "{about}, {world}: {shares:?}");
            assert!(
                shares[0] > 0.0 && (shares[1] == 0.0 || row["protocol"] == "mptcp"),
                "{about}, {world}: {shares:?}"
            );
            let is_page = row["case"] == "page" || row["case"] == "http2";
            assert_eq!(samples["object_s"].as_array().map_or(0, Vec::len), usize::from(is_page), "{about}, {world}");
        }
    }
}

/// Two paths of 20 Mbit/s, of which one falls to 5; a rival on the other until 5 s.
#[test]
fn bulk_beside_a_rival_and_through_a_change_is_measured_in_all_worlds() {
    let Some(here) = place("calibrate-bulk") else { return };
    let path = |name: &str| format!("[path.{name}]\nrate = \"20mbit\"\nrtt = \"20ms\"\n");
    let workloads = "[[workload]]\nkind = \"bulk\"\nduration = \"7s\"\n\
                     [[workload]]\nkind = \"tcp\"\npath = \"a\"\nduration = \"5s\"\ncongestion = \"reno\"\n";
    let change = "[[change]]\nat = \"2s\"\npath = \"b\"\nrate = \"5mbit\"\n";
    let host = "[host]\ncongestion = \"reno\"\n";
    fs::write(here.join("bulk.toml"), format!("{}{}{host}{workloads}{change}", path("a"), path("b"))).unwrap();
    let args = ["calibrate", "--json", "--repeat=1", "bulk.toml"];
    let output = Command::new(env!("CARGO_BIN_EXE_anabranch")).current_dir(&here).args(args).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let result: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let rows = result["rows"].as_array().unwrap();
    let measures: Vec<_> =
        rows.iter().map(|row| (row["measure"].as_str().unwrap(), row["change_s"].as_f64())).collect();
    let after = |at| [("new-level", Some(at)), ("settling-time", Some(at))];
    assert_eq!(measures, [vec![("goodput", None), ("share", None)], after(2.0).to_vec(), after(5.0).to_vec()].concat());
    // Data that waited for a missing segment is read at once, so a level may be above what the links carry.
    for (row, likely) in rows.iter().zip([8.0..35.0, 0.2..9.0, 1.0..60.0, 0.0..3.0, 1.0..60.0, 0.0..2.0]) {
        for world in ["simulator", "testbed", "kernel"] {
            let samples = &row[world];
            let failures = samples["failures"].as_array().unwrap().len();
            assert_eq!(samples["shares"].as_array().unwrap().len(), 0, "the rival is on these links, too: {row:#}");
            match samples["values"][0].as_f64() {
                Some(value) => assert!(failures == 0 && likely.contains(&value), "{world}: {row:#}"),
                // On a busy machine a goodput may never come near its level; that is said.
                None => assert!(failures == 1 && row["measure"] == "settling-time", "{world}: {row:#}"),
            }
        }
    }
}

#[test]
fn only_a_case_that_there_is() {
    let output =
        Command::new(env!("CARGO_BIN_EXE_anabranch")).args(["calibrate", "--only", "lossy 6MB"]).output().unwrap();
    let error = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("--only `lossy 6MB` matches no case") && error.contains("`lossy 50kB`"), "{error}");
}

/// The kernel has the control while the calibration runs, and no longer; its sockets would fail without.
#[test]
fn a_control_of_ours_is_loaded_into_the_kernel_and_calibrated() {
    let Some(_turn) = turn("calibrate-controllers", &LOADING) else { return };
    let Some(here) = place("calibrate-controllers") else { return };
    let args = ["calibrate", "--controllers", "--only", "symmetric 5MB with lia", "--repeat", "1", "--json"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    command.current_dir(&here).args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    until("ab_lia is there", || registered("ab_lia"));
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    until("ab_lia is gone", || !registered("ab_lia"));
    let result: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let rows = result["rows"].as_array().unwrap();
    let protocols: Vec<_> = rows.iter().map(|row| (&row["case"], &row["protocol"])).collect();
    let case = Value::from("symmetric 5MB with lia");
    assert_eq!(protocols, [(&case, &"tcp".into()), (&case, &"mptcp".into())]);
    for row in rows {
        assert_eq!(row["kernel"]["failures"].as_array().unwrap().len(), 0, "{row:#}");
        let seconds = row["kernel"]["values"][0].as_f64().unwrap();
        assert!((1.0..10.0).contains(&seconds), "{row:#}");
    }
}

/// Root of a user namespace alone can make a testbed, and load nothing.
#[test]
fn a_control_that_cannot_be_loaded_is_skipped_and_said() {
    let Some(here) = place("calibrate-skipped") else { return };
    if lacks("unshare") {
        return eprintln!("SKIPPED: calibrate-skipped: it takes unshare");
    }
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", env!("CARGO_BIN_EXE_anabranch"), "calibrate", "--controllers"]);
    let output = command.args(["--only", "with veno"]).current_dir(&here).output().unwrap();
    let error = stderr(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(output.status.code(), Some(1), "{error}");
    for said in [
        "SKIPPED: symmetric 5MB with veno: loading BPF programs is not permitted",
        "SKIPPED: lossy 5MB with veno",
        "SKIPPED: shared-bottleneck with veno",
        "no case is left",
        "CAP_BPF",
    ] {
        assert!(error.contains(said), "{said}: {error}");
    }
}
