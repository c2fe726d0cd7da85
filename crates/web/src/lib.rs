//! The laboratory: what the page in `web/` asks the simulator for, and the page as `anabranch lab` serves it.
//!
//! ```text
//! the page ── a request as JSON ──▶ answer ── Request ──▶ scenario, lab, why, study, report
//!          ◀── an answer as JSON ──
//! ```
//!
//! Everything is text, so that the page, `anabranch lab` and tests ask the same function. On `wasm32-unknown-unknown`,
//! `abi` hands the text over; results are those of the command to the bit.

#[cfg(target_arch = "wasm32")]
mod abi;
mod lesson;
mod movie;
mod own;
#[cfg(not(target_arch = "wasm32"))]
mod page;
mod papers;
mod request;
mod results;
mod scenario;
mod strangers;
mod why;

pub use lesson::{Claim, LESSONS, Lesson, Shown, System, lessons};
pub use own::{Abilities, Answer, NAME, Script, catalogue};
#[cfg(not(target_arch = "wasm32"))]
pub use page::{POLICY, Part, parts};
pub use papers::Chosen;
pub use request::{Listener, Progress, Request, answer};
