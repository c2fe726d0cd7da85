//! Schedulers that forecast.
