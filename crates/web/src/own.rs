//! A scheduler that is written in the page: the catalogue has it by the name [`NAME`], and a script decides.
//!
//! ```text
//! Scheduler -> Written -- words of the view -> Script: the worker calls its `decide`
//!           <- Decision <- Answer, checked --
//! ```
//!
//! An instance of the script is made for each connection, and all that it draws comes from the connection's seed:
//! scenario, seed and script are the whole run. The engine watches it as it watches other schedulers. A script that
//! fails does not come back from its call in WebAssembly: the worker ends the request and says why.

mod words;

pub use words::fields;

use anabranch_policy::scheduler::{Capabilities, Entry, Scheduler};
use anabranch_policy::{Catalogue, Decision, Event, Failure, View};
use anabranch_units::{Bytes, Dsn, Instant, Seed, SubflowId};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The name in scenarios and comparisons.
pub const NAME: &str = "own";
/// The line that says what it is.
const ABOUT: &str = "the scheduler that is written in this page";

/// Abilities that a script declares.
#[derive(Clone, Copy, Debug, Default)]
pub struct Abilities {
    /// It answers with `repeat`.
    pub repeats: bool,
    /// It has a function `observe`.
    pub observes: bool,
}

/// Answer of a script, as three numbers carry it over the boundary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// 0: wait, 1: wait until a time, 2: send, 3: repeat.
    pub kind: u32,
    /// Id of the subflow.
    pub on: u32,
    /// Time to ask again \[ns of the run\], bytes to skip, or first data sequence number to repeat.
    pub more: u64,
}

/// Calls a script; each connection has an instance of it.
pub trait Script: Send + Sync + 'static {
    /// Makes the instance of a connection.
    fn begin(&self, connection: u32, seed: u64);
    /// Asks it with the words of a view.
    fn decide(&self, connection: u32, words: &[u64]) -> Answer;
    /// Tells it the words of an event.
    fn observe(&self, connection: u32, words: &[u64]);
    /// Forgets it.
    fn end(&self, connection: u32);
}

/// Returns all policies of the command, and this one.
pub fn catalogue(script: impl Script, abilities: Abilities) -> Arc<Catalogue> {
    let script = Arc::new(script);
    let last = AtomicU32::new(0);
    let entry = Entry::found(NAME.to_owned(), ABOUT.to_owned(), move |_| {
        let connection = last.fetch_add(1, Ordering::Relaxed);
        let script = Arc::clone(&script);
        Box::new(Written { script, connection, begun: false, observes: abilities.observes, words: Vec::new() })
    });
    let entry = if abilities.repeats { entry.capabilities(|_| Capabilities { repeats: true }) } else { entry };
    let mut catalogue = Catalogue::default();
    catalogue.schedulers.add(entry).expect("no policy of the registry has the name of the page's own");
    Arc::new(catalogue)
}

/// The instance of a script for one connection.
struct Written<S: Script> {
    script: Arc<S>,
    connection: u32,
    begun: bool,
    observes: bool,
    /// Room for the words of a view, kept between calls.
    words: Vec<u64>,
}

impl<S: Script> Scheduler for Written<S> {
    fn decide(&mut self, now: Instant, view: &View<'_>) -> Decision {
        words::of_view(now, view, &mut self.words);
        let answer = self.script.decide(self.connection, &self.words);
        decision(answer, view).unwrap_or_else(|why| Failure { policy: NAME.to_owned(), at: Some(now), why }.raise())
    }

    fn observe(&mut self, now: Instant, event: &Event) {
        if self.observes {
            self.script.observe(self.connection, &words::of_event(now, event));
        }
    }

    fn seed(&mut self, seed: Seed) {
        self.begun = true;
        self.script.begin(self.connection, seed.stream("script").next_u64());
    }
}

impl<S: Script> Drop for Written<S> {
    fn drop(&mut self) {
        if self.begun {
            self.script.end(self.connection);
        }
    }
}

/// Reads an answer. The error says what would be right.
fn decision(answer: Answer, view: &View<'_>) -> Result<Decision, String> {
    let on = || {
        let found = view.subflows.iter().find(|subflow| u32::from(subflow.id.0) == answer.on);
        found.map(|subflow| subflow.id).ok_or_else(|| {
            let ids: Vec<String> = view.subflows.iter().map(|subflow| subflow.id.0.to_string()).collect();
            format!("there is no subflow {} in the view; accepted: {}", answer.on, ids.join(", "))
        })
    };
    match answer.kind {
        0 => Ok(Decision::WAIT),
        1 => Ok(Decision::Wait { until: Some(Instant::ZERO + anabranch_units::Duration::from_nanos(answer.more)) }),
        2 => Ok(Decision::Send { on: on()?, skip: Bytes::new(answer.more) }),
        3 => Ok(Decision::Repeat { on: on()?, from: Dsn::new(answer.more) }),
        kind => Err(format!("answer {kind} is no decision; accepted: 0 to 3")),
    }
}

/// Id of a subflow as words have it.
fn id(subflow: SubflowId) -> f64 {
    f64::from(subflow.0)
}

#[cfg(test)]
mod tests;
