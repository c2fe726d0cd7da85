//! Captures as records, for tests that damage them.

#![allow(dead_code)]

use anabranch_capture::Reader;
use std::path::Path;

/// A record of a capture: nanoseconds, bytes.
pub type Record = (u64, Vec<u8>);

/// Returns the records of a file.
pub fn records(file: &Path) -> Vec<Record> {
    let mut reader = Reader::open(file).unwrap();
    let mut records = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        records.push((record.at.unwrap().as_nanos(), record.bytes.to_vec()));
    }
    records
}

/// Returns a pcap file of these records, of which at most `snap` bytes were captured.
pub fn pcap(records: &[Record], snap: usize) -> Vec<u8> {
    let word = u32::to_le_bytes;
    let mut file = [word(0xa1b2_3c4d), word(0x0004_0002), word(0), word(0), word(65_535), word(101)].concat();
    for (at, bytes) in records {
        let kept = &bytes[..bytes.len().min(snap)];
        let (seconds, nanos) = (at / 1_000_000_000, at % 1_000_000_000);
        file.extend([seconds as u32, nanos as u32, kept.len() as u32, bytes.len() as u32].map(word).concat());
        file.extend(kept);
    }
    file
}
