//! Scenario files: reads and checks them, and resolves each to the specification of its runs.
//!
//! ```text
//! file::File   the TOML as it is written, strict         ── the JSON schema is made from it
//!    │ resolve                                              defaults, contradictions, names
//! Scenario     one Spec per seed
//! ```
#![forbid(unsafe_code)]

mod error;
pub mod file;
pub mod model;
mod named;
mod page;
mod recorded;
mod remembered;
mod resolve;
mod scenario;
mod schema;
pub mod shipped;
mod shown;
mod tree;
mod variant;
mod vary;
mod watch;

pub use error::{Problem, ScenarioError, Sources};
pub use named::{named, named_ack_path, split as split_policies};
pub use resolve::{Given, HostSettings};
pub use scenario::{Origin, ReadTrace, Scenario, beside, in_shell, not_found};
pub use schema::schema;
pub use shown::Shown;
pub use tree::{Layer, merged};
pub use variant::{Chosen, Settings, Switched, Variant};
pub use vary::Vary;
pub use watch::Watch;
