//! Schedulers that rank subflows by a number, take turns, or send everything everywhere.
