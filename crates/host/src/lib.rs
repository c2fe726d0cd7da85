//! Real time and Linux: packet devices, network namespaces, the link emulator, the engine on the wire.
//!
//! Everything below this crate is pure; here are the clock, the sockets and the threads. System calls that need
//! `unsafe` are all in `sys.rs`.
#![deny(unsafe_code)]

pub mod addresses;
mod clock;
mod device;
mod driver;
pub mod emulator;
mod intake;
mod interface;
mod ip;
mod names;
mod namespace;
mod netlink;
mod packet_socket;
mod path_manager;
mod privileges;
mod reactor;
mod signals;
mod sock_diag;
mod socket;
pub mod steered;
mod supervisor;
#[allow(unsafe_code)]
mod sys;
pub mod testbed;
mod train;
mod translate;
mod tun;
mod virtio;

pub use clock::Clock;
pub use device::{Device, LONGEST_PACKET, MOST_PIECES};
pub use driver::{Driver, DriverCounters, Sent};
pub use emulator::{Emulator, EmulatorError, EmulatorReport, PathEnds};
pub use names::check_interface;
pub use namespace::{CommandError, Namespace};
pub use netlink::Interface;
pub use packet_socket::{PacketSocket, VethError};
pub use path_manager::{Endpoint, PathManager};
pub use privileges::{Keep, drop_privileges, hide_memory, pass_on_net_admin, raise_open_files, release_memory};
pub use reactor::{Application, Context, FIRST_TOKEN, Reactor, Ready, Stop};
pub use signals::Caught;
pub use sock_diag::{SockDiag, sockets_of};
pub use socket::unacknowledged;
pub use supervisor::{Inside, IsolationError, Outcome, Received, Signals, supervise};
pub use translate::{Pair, Translated};
pub use tun::Tun;
pub use virtio::{VirtioFault, VirtioHeader};
