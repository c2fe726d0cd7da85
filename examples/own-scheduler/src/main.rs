//! The `anabranch` command with one scheduler more.
//!
//! ```text
//! cargo run --release -p own-scheduler -- compare --schedulers min-rtt,least-queue
//! ```

mod least_queue;

use anabranch_policy::Catalogue;

fn main() -> std::process::ExitCode {
    let mut catalogue = Catalogue::default();
    catalogue.schedulers.add(least_queue::ENTRY).expect("no other scheduler is called so");
    anabranch_cli::main_with(catalogue)
}
