//! Output files are tried before any work: the error names the place and a remedy, and nothing is left there.
#![allow(clippy::unwrap_used)]

mod common;

use common::{anabranch, directory, names};
use std::fs;

/// Commands that write a file, without its name.
const WRITERS: [&[&str]; 16] = [
    &["run", "symmetric", "--csv"],
    &["run", "symmetric", "--report"],
    &["run", "symmetric", "--events"],
    &["run", "symmetric", "--qlog"],
    &["compare", "symmetric", "--csv"],
    &["compare", "symmetric", "--report"],
    &["rank", "--count", "1", "--csv"],
    &["rank", "--count", "1", "--parquet"],
    &["rank", "--count", "1", "--report"],
    &["study", "late/fig02", "--quick", "--report"],
    &["study", "late/fig02", "--quick", "--reproduction"],
    &["fetch", "http://192.0.2.7/bytes/1", "--from", "10.178.1.2", "--output"],
    &["fetch", "http://192.0.2.7/bytes/1", "--from", "10.178.1.2", "--output", "/dev/null", "--events"],
    &["fetch", "http://192.0.2.7/bytes/1", "--from", "10.178.1.2", "--output", "/dev/null", "--qlog"],
    &["serve", "--listen", "10.178.0.1", "--http", "80", "--events"],
    &["serve", "--listen", "10.178.0.1", "--http", "80", "--qlog"],
];

#[test]
fn a_place_that_cannot_be_written_to_is_refused_at_once_with_a_remedy() {
    let here = directory("outputs");
    fs::write(here.join("file"), "as it was").unwrap();
    fs::create_dir(here.join("folder")).unwrap();
    for writer in WRITERS {
        for (place, remedy) in
            [("missing/x", "mkdir -p missing"), ("file/x", "`file` is a file"), ("folder", "name of a file in it")]
        {
            let output = anabranch(&here, &[writer, &[place]].concat());
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(!output.status.success() && output.stdout.is_empty(), "{writer:?} {place}: {said}");
            assert!(said.contains(place) && said.contains(remedy), "{writer:?} {place}: {said}");
        }
        assert_eq!(names(&here), ["file", "folder"], "{writer:?}");
    }
    assert_eq!(fs::read_to_string(here.join("file")).unwrap(), "as it was");
    assert_eq!(names(&here.join("folder")), [""; 0]);
}
