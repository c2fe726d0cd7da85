//! Real time and Linux: packet devices, network namespaces, the link emulator, the engine on the wire.
//!
//! Everything below this crate is pure; here are the clock, the sockets and the threads.
