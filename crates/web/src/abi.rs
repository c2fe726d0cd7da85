//! The boundary to JavaScript, by hand: text in, text out needs a few functions and no generator of bindings.
//!
//! The page asks `reserve` for room, writes a request and the bytes of captures there, and calls `ask`. The answer lies
//! at `text`, as many bytes as `ask` returned. After a panic, which ends the instance, its words lie there instead and
//! `length` tells how many.
//!
//! A scheduler that is written in the page is called through imports. One that fails throws through all of this: no
//! destructor runs, and the page drops the instance.

use crate::own::{self, Abilities, Answer, Script};
use crate::request::{Listener, answer};
use anabranch_policy::Catalogue;
use std::cell::RefCell;
use std::sync::Arc;

thread_local! {
    static INPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static TEXT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

#[link(wasm_import_module = "anabranch")]
unsafe extern "C" {
    /// Tells the page how many runs of all are made. Returns 1 if it is time for an early form of the answer.
    safe fn progress(made: u32, all: u32) -> u32;
    /// Hands over an early form of the answer: `length` bytes at `text`.
    safe fn show(text: *const u8, length: usize);
    /// Returns 0 if the page has no scheduler of its own; else 1, and 2 more if it repeats, and 4 if it observes.
    safe fn own() -> u32;
    /// Makes the instance of a connection.
    safe fn begin(connection: u32, seed: u64);
    /// Asks it with `length` words at `words`. Returns the kind of the answer, and 8 times the id of its subflow.
    safe fn decide(connection: u32, words: *const u64, length: usize) -> u32;
    /// Returns the third number of that answer.
    safe fn more() -> u64;
    /// Tells it an event.
    safe fn observe(connection: u32, words: *const u64, length: usize);
    /// Forgets it.
    safe fn end(connection: u32);
}

/// The worker.
struct Worker;

impl Listener for Worker {
    fn progress(&self, made: usize, all: usize) -> bool {
        progress(made as u32, all as u32) != 0
    }

    fn show(&self, early: &str) {
        show(early.as_ptr(), early.len());
    }
}

/// The script of the worker.
struct Imported;

impl Script for Imported {
    fn begin(&self, connection: u32, seed: u64) {
        begin(connection, seed);
    }

    fn decide(&self, connection: u32, words: &[u64]) -> Answer {
        let said = decide(connection, words.as_ptr(), words.len());
        Answer { kind: said & 7, on: said >> 3, more: more() }
    }

    fn observe(&self, connection: u32, words: &[u64]) {
        observe(connection, words.as_ptr(), words.len());
    }

    fn end(&self, connection: u32) {
        end(connection);
    }
}

/// Returns the policies that the page knows.
fn catalogue() -> Arc<Catalogue> {
    match own() {
        0 => Arc::new(Catalogue::default()),
        has => own::catalogue(Imported, Abilities { repeats: has & 2 != 0, observes: has & 4 != 0 }),
    }
}

/// Makes room for a request and what comes with it, and returns its address.
#[unsafe(no_mangle)]
extern "C" fn reserve(length: usize) -> *mut u8 {
    std::panic::set_hook(Box::new(|panic| TEXT.set(panic.to_string().into_bytes())));
    INPUT.with_borrow_mut(|input| {
        input.clear();
        input.resize(length, 0);
        input.as_mut_ptr()
    })
}

/// Answers the request in the first `length` bytes; the rest are captures. Returns the length of the answer.
#[unsafe(no_mangle)]
extern "C" fn ask(length: usize) -> usize {
    let input = INPUT.take();
    let (request, files) = input.split_at(length.min(input.len()));
    let request = String::from_utf8_lossy(request);
    TEXT.set(answer(&catalogue(), &request, files, &Worker).into_bytes());
    self::length()
}

/// Takes the first `length` bytes for the build that results name. Comes before all requests.
#[unsafe(no_mangle)]
extern "C" fn named(length: usize) {
    let input = INPUT.take();
    let build = String::from_utf8_lossy(&input[..length.min(input.len())]);
    if !build.is_empty() {
        anabranch_lab::build_is(build.into_owned());
    }
}

/// Lays the names of the words of a view and of an event out, as JSON, and returns their length.
#[unsafe(no_mangle)]
extern "C" fn fields() -> usize {
    TEXT.set(own::fields().to_string().into_bytes());
    self::length()
}

/// Returns the length of the answer, or of the words of a panic.
#[unsafe(no_mangle)]
extern "C" fn length() -> usize {
    TEXT.with_borrow(Vec::len)
}

/// Returns the address of the answer.
#[unsafe(no_mangle)]
extern "C" fn text() -> *const u8 {
    TEXT.with_borrow(|text| text.as_ptr())
}
