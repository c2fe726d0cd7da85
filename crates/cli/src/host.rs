//! Commands that work with Linux: its namespaces, TUN devices, sockets and kernel. On other systems `elsewhere.rs`
//! stands in the place of this module, and says so.

mod calibrate;
mod evaluate;
mod event_files;
mod fetch;
mod follow;
mod kernel;
mod path_memory;
mod proxy;
mod serve;
mod setting_options;
mod socket_tables;
mod testbed;
mod wire_device;
mod wire_options;

use crate::args::HostCommand;
use crate::failure::Failure;
use crate::schema::{Row, built, document, lines};
use anabranch_events::ConnectionEvent;
use anabranch_lab::calibration::Calibration;
use anabranch_lab::format::{self, NoContents};
use anabranch_policy::Catalogue;
use std::sync::Arc;

pub use calibrate::CalibrateArgs;
pub use evaluate::evaluate;
pub use fetch::FetchArgs;
pub use follow::follow;
pub use kernel::KernelArgs;
pub use proxy::ProxyArgs;
pub use serve::ServeArgs;
pub use testbed::TestbedArgs;

/// Formats that these commands write.
pub static SCHEMAS: &[Row] = &[
    (&format::CALIBRATION, document::<Calibration>),
    (&format::KERNEL_FEATURES, built::<kernel::Abilities>),
    (&format::KERNEL_STATUS, built::<kernel::InKernel>),
    (&format::TESTBED, built::<testbed::TestbedRun<'_>>),
    (&format::SERVICE, built::<serve::Served>),
    (&format::TRANSFER, built::<fetch::Transfer<'_>>),
    (&format::WHY_LIVE, lines::<NoContents, anabranch_why::LiveAnswer>),
    (&format::CONNECTION_EVENTS, lines::<NoContents, ConnectionEvent>),
    (&format::KERNEL_ACKS, lines::<NoContents, anabranch_kernel::acks::Round>),
    (&format::KERNEL_WATCH, lines::<NoContents, anabranch_kernel::watch::Event>),
    (&format::KERNEL_STEER, lines::<NoContents, anabranch_kernel::steer::Event>),
    (&format::PROXY_LOG, lines::<NoContents, proxy::LogLine>),
];

/// Undoes the loans of killed processes; without permission it does nothing.
pub fn begin() {
    anabranch_host::addresses::clean_up();
}

/// Runs a command.
pub fn run(catalogue: &Arc<Catalogue>, command: &HostCommand) -> Result<(), Failure> {
    match command {
        HostCommand::Calibrate(args) => calibrate::run(catalogue, args),
        HostCommand::Testbed(args) => testbed::testbed(catalogue, args),
        HostCommand::Kernel(args) => kernel::kernel(catalogue, args),
        HostCommand::Serve(args) => serve::serve(catalogue, args),
        HostCommand::Fetch(args) => fetch::fetch(catalogue, args),
        HostCommand::Proxy(args) => proxy::proxy(catalogue, args),
    }
}
