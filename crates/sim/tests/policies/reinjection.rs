//! Reinjection.
