//! Schedulers that plan ahead or learn.
