//! The `anabranch` command with one scheduler more.
//!
//! ```text
//! cargo run --release -p own-scheduler -- compare --schedulers min-rtt,least-queue
//! ```

mod least_queue;

use anabranch_policy::Catalogue;
use anabranch_policy::registry::{Build, Entry};
use least_queue::LeastQueue;

fn main() -> std::process::ExitCode {
    let mut catalogue = Catalogue::default();
    let added = catalogue.schedulers.add(Entry {
        name: "least-queue".into(),
        about: "the subflow whose packets wait the least on their way".into(),
        paper: None,
        parameters: least_queue::PARAMETERS,
        source: include_str!("least_queue.rs").into(),
        build: Build::Fixed(|params| Box::new(LeastQueue::new(params))),
    });
    added.expect("no other scheduler is called so");
    anabranch_cli::main_with(catalogue)
}
