//! Captures of two Linux 6.18 kernels talking to each other, which lie beside the repository where it is developed, and
//! what a stranger's capture of the same would look like.
#![allow(dead_code, clippy::unwrap_used)]

use anabranch_inspect::{Limits, Report, inspect};
use std::path::PathBuf;

pub const ADD_ADDR_JOIN: &str = "v4-add-addr-join.pcap";
pub const CSUM_PRIO: &str = "v4-csum-prio-rm-fastclose.pcap";
pub const V6: &str = "v6-add-addr-port.pcap";

/// Names the folder, where it is not beside the repository.
const FOLDER: &str = "ANABRANCH_KERNEL_PCAPS";

/// A record: nanoseconds, bytes as captured, original length.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Record {
    pub at: u64,
    pub bytes: Vec<u8>,
    pub original: u32,
}

/// Returns the path of a capture, if it exists.
pub fn path(name: &str) -> Option<PathBuf> {
    let beside = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/kernel-pcaps");
    let path = std::env::var_os(FOLDER).map_or_else(beside, PathBuf::from).join(name);
    if !path.exists() {
        eprintln!("SKIPPED: no kernel captures beside the repository; {FOLDER} names another folder");
        return None;
    }
    Some(path)
}

/// The records of a capture, little-endian with microseconds as these are.
pub fn records(name: &str) -> Option<Vec<Record>> {
    let file = std::fs::read(path(name)?).unwrap();
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    assert!(matches!(word(0), 0xa1b2_c3d4 | 0xa1b2_3c4d));
    let unit = if word(0) == 0xa1b2_c3d4 { 1_000 } else { 1 };
    let (mut at, mut records) = (24, Vec::new());
    while at < file.len() {
        let time = u64::from(word(at)) * 1_000_000_000 + u64::from(word(at + 4)) * unit;
        let length = word(at + 8) as usize;
        let bytes = file[at + 16..at + 16 + length].to_vec();
        records.push(Record { at: time, bytes, original: word(at + 12) });
        at += 16 + length;
    }
    Some(records)
}

/// A pcap file with nanoseconds.
pub fn pcap(link: u32, big: bool, records: &[Record]) -> Vec<u8> {
    let word = |n: u32| if big { n.to_be_bytes() } else { n.to_le_bytes() };
    let mut file = word(0xa1b2_3c4d).to_vec();
    file.extend(if big { [0, 2, 0, 4] } else { [2, 0, 4, 0] });
    file.extend([0, 0, 65_535, link].map(word).concat());
    for record in records {
        let (seconds, nanos) = (record.at / 1_000_000_000, record.at % 1_000_000_000);
        file.extend([seconds as u32, nanos as u32, record.bytes.len() as u32, record.original].map(word).concat());
        file.extend(&record.bytes);
    }
    file
}

/// Report of `inspect` on files with these bytes.
pub fn report(test: &str, files: &[Vec<u8>]) -> Report {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test);
    std::fs::create_dir_all(&directory).unwrap();
    let paths: Vec<PathBuf> = (0..files.len()).map(|n| directory.join(format!("{n}.pcap"))).collect();
    for (path, bytes) in paths.iter().zip(files) {
        std::fs::write(path, bytes).unwrap();
    }
    let mut report = inspect(&paths, Limits::default());
    report.files.iter_mut().for_each(|file| file.name.clear());
    report
}

/// Report of `inspect` on raw IP packets.
pub fn raw(test: &str, records: &[Record]) -> Report {
    report(test, &[pcap(101, false, records)])
}
