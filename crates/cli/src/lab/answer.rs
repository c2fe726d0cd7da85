//! Answer to one request of the page inside: the request and its captures on standard input, lines of JSON on standard
//! output. The lines are the messages of the page's worker (`web/src/worker.ts`).

use crate::failure::Failure;
use anabranch_policy::Catalogue;
use anabranch_web::Listener;
use serde_json::{Value, json};
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Runs are short: to tell of each would cost more than they do.
const BETWEEN: Duration = Duration::from_millis(50);
/// Time between early forms of an answer, at least.
const EARLY: Duration = Duration::from_millis(500);
/// Share of the time that early forms take, at most: one in so many.
const SHARE: u32 = 10;

/// Reads a request, a line behind which its captures stand, and answers it.
pub fn answer(catalogue: &Arc<Catalogue>) -> Result<(), Failure> {
    let mut input = Vec::new();
    let read = io::stdin().lock().read_to_end(&mut input);
    read.map_err(|error| Failure::Failed(miette::miette!("cannot read the request: {error}")))?;
    let end = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
    let (request, rest) = input.split_at(end);
    let files = rest.get(1..).unwrap_or_default();
    let page = Page(Mutex::new(Told::new()));
    let text = anabranch_web::answer(catalogue, &String::from_utf8_lossy(request), files, &page);
    say(&json!({ "answer": text }));
    Ok(())
}

/// The page, to which standard output leads.
struct Page(Mutex<Told>);

/// Progress as the page knows it.
struct Told {
    /// Runs made, and to be made.
    runs: (usize, usize),
    at: Instant,
    /// Begin and end of the last early form.
    begun: Instant,
    shown: Instant,
}

impl Told {
    fn new() -> Self {
        let now = Instant::now();
        Told { runs: (0, 0), at: now, begun: now, shown: now }
    }
}

impl Listener for Page {
    fn progress(&self, made: usize, all: usize) -> bool {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        told.runs = (made, all);
        if made == all || now - told.at >= BETWEEN {
            told.at = now;
            say(&json!({ "made": made, "all": all }));
        }
        let took = told.shown - told.begun;
        let is_time = now - told.shown >= EARLY.max(took * SHARE);
        if is_time {
            told.begun = now;
        }
        is_time
    }

    fn show(&self, early: &str) {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (made, all) = told.runs;
        say(&json!({ "made": made, "all": all, "early": early }));
        told.shown = Instant::now();
    }
}

/// Writes a line. If nobody reads it, nobody waits for the rest.
fn say(line: &Value) {
    let mut output = io::stdout().lock();
    if writeln!(output, "{line}").and_then(|()| output.flush()).is_err() {
        std::process::exit(1);
    }
}
