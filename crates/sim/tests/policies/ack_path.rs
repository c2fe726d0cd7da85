//! ACK paths.
