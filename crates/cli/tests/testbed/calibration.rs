//! `anabranch calibrate`: a file, bursts and a page in all three worlds.

use super::{place, stderr, stdout};
use serde_json::Value;
use std::fs;
use std::process::Command;

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
            assert!(samples["completion_s"][0].as_f64().unwrap() > 0.0, "{about}, {world}: {samples:#}");
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

#[test]
fn only_a_case_that_there_is() {
    let output =
        Command::new(env!("CARGO_BIN_EXE_anabranch")).args(["calibrate", "--only", "lossy 6MB"]).output().unwrap();
    let error = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("--only `lossy 6MB` matches no case") && error.contains("`lossy 50kB`"), "{error}");
}
