//! The judge of live connections of the stock kernel, from what sock_diag(7) tells of their sockets.
//!
//! [`Protocol`] makes requests and reads the answers (`message.rs`); whoever has a netlink socket carries them.
//! [`Follower`] is shown all sockets again and again and gives the time between two looks to a limit (`follower.rs`,
//! `judge.rs`); at the end of an interval it tells of each connection where the time went, in a sentence first.
//!
//! The kernel keeps account itself of the time in which a subflow was busy, and of that in which the receiver's window
//! or the send buffer was full (RFC 4898). The rest follows from the state at each look, so a look should come many
//! times in an interval.

mod answer;
mod follower;
mod judge;
mod message;
mod words;

pub use answer::{LiveAnswer, LiveConnection, LiveShare, LiveSubflow};
pub use follower::{Follower, Target};
pub use message::{Info, Memory, MptcpInfo, Protocol, Socket, TcpInfo};
