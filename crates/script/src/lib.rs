//! Conformance scripts: one endpoint in virtual time against a peer whose every segment is written down.
//!
//! A script is a text, one statement per line: inject this segment, expect that one, call this as the application.
//! Sequence numbers are relative, keys, tokens and HMACs symbolic, and all segments pass through the codec both ways,
//! so that what is tested are the bytes. `docs/scripts.md` describes the format; [`run_file`] and [`run_text`] run one.
#![forbid(unsafe_code)]

mod build;
mod compare;
mod describe;
mod error;
mod event;
mod expand;
mod names;
mod parse;
mod pattern;
mod peer;
mod runner;
mod settings;
mod statement;
mod stats;
mod text;
mod value;

pub use error::{Failed, ScriptError};
pub use runner::{Passed, run_file, run_text};
