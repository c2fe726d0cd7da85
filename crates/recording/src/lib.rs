//! Recordings of networks: rate, delay and loss over time, read from the files that tools and papers leave.
//!
//! [`read`] recognises the form of a text: mahimahi's opportunities, a table (CSV and its kin, with or without a
//! header), the output of iperf and iperf3 as text or JSON, of ping, and of IRTT. [`Options`] says what a file does
//! not. What had to be guessed is said in [`Recording::remarks`].
//!
//! The parts of a file that were recorded without a pause are its *stretches*. They follow each other on one time line,
//! of which the pauses are no part; each stretch keeps the clock time of its beginning. [`align`] cuts several
//! recordings to the times that all of them cover.

#![cfg_attr(not(feature = "forms"), expect(dead_code, reason = "without forms nothing reads them"))]

mod align;
mod clock;
#[cfg(feature = "forms")]
mod drives;
mod error;
mod heading;
mod iperf;
mod irtt;
mod levels;
mod options;
mod ping;
mod recording;
mod rows;
mod summary;
mod table;
mod text;

pub use align::{align, window};
#[cfg(feature = "forms")]
pub use drives::{Drives, Window};
pub use error::RecordingError;
pub use levels::{Level, Levels};
pub use options::{Column, Form, Gaps, Options, RateUnit, TimeUnit};
pub use recording::{Recording, Stretch, Supply};
pub use summary::{Outage, PERCENTILES, Periodic, Spread, outages, periodic, spread};
pub use text::{clock_text, table_text};

use anabranch_net::Trace;

/// Reads a recording.
///
/// # Errors
///
/// If the form is none of [`Form`], or the text is not in its form; the error names line and column.
#[cfg(feature = "forms")]
pub fn read(text: &str, options: &Options) -> Result<Recording, RecordingError> {
    let form = match options.form {
        Some(form) => form,
        None => match Form::of(text).ok_or_else(|| error::unknown(text))? {
            // A column of numbers with a time between them.
            Form::Mahimahi if options.interval.is_some() => Form::Table,
            form => form,
        },
    };
    options.check(form)?;
    let rows = match form {
        Form::Mahimahi => return mahimahi(text),
        Form::Table => table::read(text, options)?,
        Form::Iperf => iperf::read(text)?,
        Form::IperfJson => iperf::read_json(text)?,
        Form::Ping => ping::read(text, options)?,
        Form::Irtt => irtt::read(text)?,
    };
    rows.recording(form, options)
}

/// Reads a recording in mahimahi's format, the only form without the feature `forms`.
///
/// # Errors
///
/// If the text is not in that form, or another one is asked for.
#[cfg(not(feature = "forms"))]
pub fn read(text: &str, options: &Options) -> Result<Recording, RecordingError> {
    match options.form.unwrap_or(Form::Mahimahi) {
        Form::Mahimahi => options.check(Form::Mahimahi).and_then(|()| mahimahi(text)),
        form => Err(RecordingError::plain(format!("recordings of form {form} are not read here"))),
    }
}

fn mahimahi(text: &str) -> Result<Recording, RecordingError> {
    let trace = Trace::parse(text).map_err(|error| RecordingError::plain(error.to_string()))?;
    Ok(Recording::of_opportunities(trace))
}
