//! Loading into the running kernel, and nothing left behind. Needs root and a kernel that takes congestion controls
//! from BPF; is skipped where they are missing, unless `ANABRANCH_REQUIRE_BPF=1`.
#![allow(clippy::unwrap_used)]

mod common;

use anabranch_kernel::{ALGORITHMS, LoadError, load, load_with_gates};
use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;

/// Names in the kernel are one for the whole machine: the tests take turns, also with those of the command line.
fn turn() -> File {
    let file = File::create(std::env::temp_dir().join("anabranch-kernel-tests.lock")).unwrap();
    file.lock().unwrap();
    file
}

/// Says so and answers false where nothing can be loaded.
fn can_load() -> bool {
    common::has(&["btf", "struct-ops", "kernel-functions", "capabilities"])
}

fn registered(name: &str) -> bool {
    let names = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    names.split_whitespace().any(|other| other == name)
}

#[test]
fn every_congestion_control_passes_the_verifier_and_leaves_nothing() {
    let _turn = turn();
    if !can_load() {
        return;
    }
    let rounds = std::env::var("KERNEL_ROUNDS").map_or(3, |rounds| rounds.parse().unwrap());
    for _ in 0..rounds {
        for algorithm in ALGORITHMS.iter().filter(|algorithm| !registered(algorithm.kernel_name)) {
            let loaded = load(algorithm).unwrap();
            assert!(registered(algorithm.kernel_name));
            drop(loaded);
            assert!(!registered(algorithm.kernel_name));
        }
    }
}

#[test]
fn every_congestion_control_can_have_gates() {
    let _turn = turn();
    if !can_load() {
        return;
    }
    for algorithm in ALGORITHMS.iter().filter(|algorithm| !registered(algorithm.kernel_name)) {
        let gates = load_with_gates(algorithm).unwrap_or_else(|error| panic!("{}: {error}", algorithm.name));
        assert!(registered(algorithm.kernel_name));
        let address = [127, 0, 0, 1].into();
        gates.close(address, anabranch_units::Duration::from_millis(1)).unwrap();
        gates.open(address).unwrap();
        gates.open(address).unwrap();
        drop(gates);
        assert!(!registered(algorithm.kernel_name));
    }
}

/// A socket that chose it sends data, also after the registration was taken back.
#[test]
fn a_name_that_is_taken_is_refused_and_a_socket_keeps_its_choice() {
    let _turn = turn();
    let algorithm = &ALGORITHMS[0];
    if !can_load() || registered(algorithm.kernel_name) {
        return;
    }
    let loaded = load(algorithm).unwrap();
    assert!(matches!(load(algorithm), Err(LoadError::Taken(name)) if name == algorithm.kernel_name));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    rustix::net::sockopt::set_tcp_congestion(&sender, algorithm.kernel_name).unwrap();
    let (mut receiver, _) = listener.accept().unwrap();
    drop(loaded);
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        receiver.read_to_end(&mut bytes).unwrap();
        bytes.len()
    });
    let bytes = vec![7; 4 << 20];
    sender.write_all(&bytes).unwrap();
    drop(sender);
    assert_eq!(reader.join().unwrap(), bytes.len());
    assert!(!registered(algorithm.kernel_name));
}

/// Built objects are those of the sources beside them.
#[test]
fn the_objects_are_those_of_the_sources() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/bpf");
    let output = Command::new("sh").args([script, "--check"]).output().unwrap();
    let (said, complaint) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}{complaint}");
}
