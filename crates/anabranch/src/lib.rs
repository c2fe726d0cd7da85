#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub use anabranch_capture as capture;
pub use anabranch_engine as engine;
pub use anabranch_net as net;
pub use anabranch_paths as paths;
pub use anabranch_policy as policy;
pub use anabranch_sim as sim;
pub use anabranch_units as units;
pub use anabranch_wire as wire;

/// Names that most programs need.
///
/// ```
/// use anabranch::prelude::*;
/// let half = Duration::from_millis(500);
/// assert_eq!(Rate::from_mbps(8).bytes_in(half), Bytes::new(500_000));
/// ```
pub mod prelude {
    pub use crate::engine::{Config, Endpoint, Event, LocalAddress, Policies, Profile, Read};
    pub use crate::net::LinkConfig;
    pub use crate::paths::{Direction, PathSpec};
    pub use crate::sim::{HostSpec, Outcome, Spec, Workload, run};
    pub use crate::units::{Bytes, Duration, Instant, Rate, Seed, SubflowId};
}
