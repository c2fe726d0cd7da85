//! Captures of two Linux 6.18 kernels talking to each other, which lie beside the repository where it is developed.
#![allow(dead_code)]

pub mod segments;

use bytes::Bytes;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Once;

static SAID: Once = Once::new();

/// Names the folder, where it is not beside the repository.
const FOLDER: &str = "ANABRANCH_KERNEL_PCAPS";

/// The packets of a capture in order; `None`, and a line that says so, if it is not there.
pub fn capture(name: &str) -> Option<Vec<Bytes>> {
    let beside = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/kernel-pcaps");
    let path = std::env::var_os(FOLDER).map_or_else(beside, PathBuf::from).join(name);
    let Ok(file) = std::fs::read(&path) else {
        // Not `eprintln`, which the test harness keeps to itself.
        SAID.call_once(|| {
            let line = format!("\nSKIPPED: no kernel captures beside the repository; {FOLDER} names another folder\n");
            std::io::stderr().write_all(line.as_bytes()).expect("standard error takes a line");
        });
        return None;
    };
    Some(packets(&file.into()))
}

/// The records of a classic pcap file of raw IP packets (link type 101), little-endian as these are.
fn packets(file: &Bytes) -> Vec<Bytes> {
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().expect("four bytes are four bytes"));
    assert!(matches!(word(0), 0xa1b2_c3d4 | 0xa1b2_3c4d), "a classic pcap file");
    assert_eq!(word(20) & 0xffff, 101, "raw IP packets");
    let (mut at, mut packets) = (24, Vec::new());
    while at < file.len() {
        let (captured, length) = (word(at + 8) as usize, word(at + 12) as usize);
        assert_eq!(captured, length, "packets are captured whole");
        packets.push(file.slice(at + 16..at + 16 + captured));
        at += 16 + captured;
    }
    packets
}
