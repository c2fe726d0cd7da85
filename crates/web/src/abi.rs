//! The boundary to JavaScript, by hand: text in, text out needs four functions and no generator of bindings.
//!
//! The page asks `reserve` for room, writes a request and the bytes of captures there, and calls `ask`. The answer lies
//! at `text`, as many bytes as `ask` returned. After a panic, which ends the instance, its words lie there instead and
//! `length` tells how many.

use crate::request::answer;
use anabranch_policy::Catalogue;
use std::cell::RefCell;
use std::sync::Arc;

thread_local! {
    static INPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static TEXT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

#[link(wasm_import_module = "anabranch")]
unsafe extern "C" {
    /// Tells the page how many runs of all are made.
    safe fn progress(made: u32, all: u32);
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
    let report = |made: usize, all: usize| progress(made as u32, all as u32);
    TEXT.set(answer(&Arc::new(Catalogue::default()), &request, files, &report).into_bytes());
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
