//! The laboratory in the browser: what the page in `web/` asks the simulator for.
//!
//! ```text
//! the page ── a request as JSON ──▶ answer ── Request ──▶ scenario, lab, why, study, report
//!          ◀── an answer as JSON ──
//! ```
//!
//! Everything is text, so that the page and a test of this crate ask the same function. On `wasm32-unknown-unknown`,
//! `abi` hands the text over; results are those of the command to the bit.

#[cfg(target_arch = "wasm32")]
mod abi;
mod lesson;
mod movie;
mod own;
mod papers;
mod request;
mod results;
mod scenario;
mod why;

pub use lesson::{Claim, LESSONS, Lesson, Shown, System, lessons};
pub use own::{Abilities, Answer, NAME, Script, catalogue};
pub use papers::Chosen;
pub use request::{Listener, Progress, Request, answer};
