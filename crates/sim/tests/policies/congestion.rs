//! Congestion controls.
