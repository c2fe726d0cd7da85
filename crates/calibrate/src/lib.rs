//! The simulator held against reality: the same transfers in the simulator, by our engine on the testbed, and by the
//! kernel on the testbed.
//!
//! Each run has its own namespaces, devices and links, made anew, so that nothing is learnt from one run to the next.
//! Both worlds take their links from the same specification with the same seed: as far as the same packets are offered,
//! the same are lost.

mod browser;
mod course;
mod drives;
mod end;
mod engine_peer;
pub mod engine_run;
pub mod kernel_peer;
mod results;
mod rivals;
mod site;
mod stream;
pub mod suite;
pub mod transfer;
mod witnesses;
mod worlds;

pub use drives::{Draw, drives};
pub use suite::{Case, controlled, suite};
pub use witnesses::witnesses;
pub use worlds::{CalibrateError, Settings, calibrate, runs};
