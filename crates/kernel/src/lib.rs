//! Congestion controls for the stock Linux kernel, BPF programs that see all subflows of an MPTCP connection, ACKs on
//! the shortest path ([`acks`]), the decisions of its scheduler ([`watch`]), rules for its paths ([`steer`]), and
//! schedulers that wait for a kernel that takes them ([`SCHEDULERS`]).
//!
//! An [`Algorithm`] is a BPF object that clang built at packaging time (`packaging/bpf`); [`load`] registers it as a
//! `tcp_congestion_ops` or an `mptcp_sched_ops` of the running kernel, without a compiler and without a C library. The
//! kernel verifies the programs, moves their accesses to where its own structs have the fields (CO-RE), and takes the
//! registration back when the [`Loaded`] one is dropped, whatever ends the process, unless it is pinned.
#![deny(unsafe_code)]

pub mod acks;
mod algorithm;
mod btf;
mod elf;
mod features;
mod gate;
mod group;
mod load;
mod object;
mod pin;
mod scheduler;
pub mod steer;
#[allow(unsafe_code)]
mod sys;
pub mod watch;

pub use algorithm::{ALGORITHMS, Algorithm, AlgorithmKind};
pub use features::{Feature, features};
pub use gate::{Gates, load_with_gates};
pub use group::{Grouped, give_to_group};
pub use load::{Access, LoadError, Loaded, load, load_for};
pub use pin::{Status, UnloadError, sees_pins, status, unload};
pub use scheduler::{SCHEDULERS, SchedulerState, SchedulerStatus, rehearse, schedulers};
