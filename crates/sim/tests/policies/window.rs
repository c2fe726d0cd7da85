//! Receive windows.
