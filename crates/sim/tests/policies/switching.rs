//! Policies swapped in the middle of a transfer.
