//! Parts common to the suites over the registry.
#![allow(clippy::unwrap_used)]

use anabranch_policy::registry::{Built, Domain, Entry, Kind, Value};
use std::collections::BTreeMap;

/// Makes a policy with settings that were chosen before.
pub type Build<T> = Box<dyn Fn() -> Built<T>>;

/// Each policy of `table` with its defaults, with every flag turned over, and with every number at both ends of its
/// range.
pub fn each_setting<T: Kind + ?Sized>(table: &'static [Entry<T>]) -> Vec<(String, Build<T>)> {
    let mut all: Vec<(String, Build<T>)> = Vec::new();
    for entry in table {
        let mut settings = vec![BTreeMap::new()];
        for parameter in entry.parameters {
            let values = match parameter.domain {
                Domain::Number { min, max, .. } => vec![Value::Number(min), Value::Number(max)],
                Domain::Flag { default } => vec![Value::Flag(!default)],
                Domain::Text { .. } => vec![],
            };
            settings.extend(values.into_iter().map(|value| BTreeMap::from([(parameter.name.to_owned(), value)])));
        }
        for given in settings {
            let params = entry.params(&given).unwrap();
            all.push((format!("{} {given:?}", entry.name), Box::new(move || entry.build(&params))));
        }
    }
    all
}
