//! Middleboxes: keys are read as their kind declares them, and the box is checked.

use super::settings::typed;
use crate::error::Problem;
use crate::file::{Assignment, At, EndName, MiddleboxTable, Unit};
use anabranch_paths::declaration::{Domain, Given, Key, Value};
use anabranch_paths::{End, MiddleboxSpec};
use anabranch_units::{Bytes, Duration, suggest};

pub(super) fn middlebox(at: &At<MiddleboxTable>) -> Result<MiddleboxSpec, Problem> {
    let MiddleboxTable { kind: info, end, keys } = &at.value;
    let mut given = Given::default();
    for Assignment { key, value } in keys {
        let Some(known) = info.keys.iter().find(|known| known.name == key.value) else {
            let accepted = info.keys.iter().map(|known| known.name).chain(["end"]);
            return Err(Problem::at(&key.span, format!("unknown key `{}`", key.value), suggest(&key.value, accepted)));
        };
        let refused = |accepted| {
            Problem::at(
                &value.span,
                format!("`{}` cannot be {}", key.value, value.value),
                format!("accepted: {accepted}"),
            )
        };
        given.put(known, read(known, value)?).map_err(refused)?;
    }
    let refused = |what: &str| {
        Problem::at(&at.span, format!("these settings of {} are refused", info.name), format!("accepted: {what}"))
    };
    let kind = (info.read)(&given).map_err(|what| refused(&what))?;
    kind.check().map_err(refused)?;
    let end = match end {
        EndName::Client => End::Client,
        EndName::Server => End::Server,
    };
    Ok(MiddleboxSpec { kind, end })
}

/// Reads the value of a key.
fn read(key: &Key, at: &At<toml::Value>) -> Result<Value, Problem> {
    match key.domain {
        Domain::Whole { .. } => {
            let accepted = |problem| Problem { help: Some(format!("accepted: {}", key.domain)), ..problem };
            typed::<u32>(at).map(Value::Whole).map_err(accepted)
        }
        Domain::Size { .. } => {
            let Unit(size) = typed::<Unit<Bytes>>(at)?;
            let accepted = |_| Problem::at(&at.span, format!("no packet has {size}"), "accepted: up to 65535B");
            u16::try_from(size.get()).map(Value::Size).map_err(accepted)
        }
        Domain::Time { .. } => typed::<Unit<Duration>>(at).map(|time| Value::Time(time.0)),
        Domain::Segments => typed(at).map(Value::Segments),
        Domain::Choice { words, .. } => {
            let name: String = typed(at)?;
            let names = || words.iter().map(|(word, _)| *word);
            let place = names().position(|word| word == name).map(Value::Word);
            place.ok_or_else(|| Problem::at(&at.span, format!("unknown value `{name}`"), suggest(&name, names())))
        }
    }
}
