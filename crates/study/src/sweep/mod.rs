//! Sweeps: systems over many conditions, run by any number of processes, and their summary.
//!
//! ```text
//! SweepFile    axes, systems, repetitions as TOML           ── or the drawn conditions of rank
//!    │ Campaign::read                                          checked; conditions have numbers
//! Campaign     Campaign::run(range) -> Row                     any range, on any machine: the same rows
//!    │ Campaign::work, Store                                   what is missing, in parts of a few seconds
//! Store        manifest.json and Parquet parts                 shards and resuming are this directory
//!    │ Summary::of                                             condition by condition
//! Summary      ratios to the best, and their distribution
//! ```

mod axis;
mod campaign;
mod draw;
mod file;
mod load;
mod measure;
mod row;
mod score;
mod store;
mod summary;
mod versus;
mod work;

pub use axis::AxisInfo;
pub use campaign::{Baselines, Campaign};
#[cfg(not(target_arch = "wasm32"))]
pub(crate) use draw::Draws;
#[cfg(not(target_arch = "wasm32"))]
pub(crate) use file::Method;
pub use file::schema;
pub(crate) use load::{has_scenario, inline};
pub use row::{Layout, Numbers, Role, Row, RowDigest, Trial};
pub use score::Trials;
pub(crate) use score::{REGRETTED, SLOWER, Score, geometric_mean, quantile, scores, slices};
pub use store::{Manifest, Part, Parts, Store, StoreError, SystemInfo};
pub use summary::{Failed, HeatCell, HeatMap, Loss, Standing, Summary};
pub use versus::Share;
pub(crate) use versus::versus;
pub use work::Work;

#[cfg(test)]
mod tests;
