//! The JSON of irtt.

use crate::error::RecordingError;
use crate::rows::{Loss, Row, Rows};
use anabranch_units::Duration;
use serde::Deserialize;

#[derive(Deserialize)]
struct Output {
    round_trips: Vec<RoundTrip>,
}

#[derive(Deserialize)]
struct RoundTrip {
    /// `false`, `true`, `true_down` or `true_up`.
    #[serde(default)]
    lost: serde_json::Value,
    timestamps: Timestamps,
    #[serde(default)]
    delay: Delay,
}

#[derive(Deserialize)]
struct Timestamps {
    client: Client,
}

#[derive(Deserialize)]
struct Client {
    send: Stamp,
}

#[derive(Deserialize)]
struct Stamp {
    #[serde(default)]
    wall: Option<i64>,
    #[serde(default)]
    monotonic: Option<i64>,
}

#[derive(Default, Deserialize)]
struct Delay {
    /// Round trip in nanoseconds.
    #[serde(default)]
    rtt: Option<i64>,
}

/// Reads round trips by the client's clock.
pub(crate) fn read(text: &str) -> Result<Rows, RecordingError> {
    let output: Output = serde_json::from_str(text).map_err(|error| {
        RecordingError::at(error.line(), error.to_string()).help("accepted: the JSON that `irtt client -o` writes")
    })?;
    let is_clock = output.round_trips.iter().all(|trip| trip.timestamps.client.send.wall.is_some());
    let mut rows = Rows { is_clock, ..Rows::default() };
    for trip in output.round_trips {
        let Stamp { wall, monotonic } = trip.timestamps.client.send;
        let Some(at) = (if is_clock { wall } else { monotonic }) else { continue };
        let is_lost = match &trip.lost {
            serde_json::Value::String(text) => text != "false",
            serde_json::Value::Bool(is_lost) => *is_lost,
            _ => false,
        };
        let round_trip = trip.delay.rtt.filter(|_| !is_lost).and_then(|rtt| u64::try_from(rtt).ok());
        let delay = round_trip.map(|rtt| Duration::from_nanos(rtt) / 2);
        rows.rows.push(Row { line: 0, at, delay, loss: Some(Loss::Probe { is_lost }), ..Row::default() });
    }
    Ok(rows)
}
