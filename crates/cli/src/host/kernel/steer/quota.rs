//! Quotas of a day or a month, which outlive the command: `--state FILE`.

use crate::failure::Failure;
use crate::output;
use anabranch_kernel::steer::{Period, Policy, Steering};
use anabranch_units::input;
use chrono::{DateTime, NaiveDate, Utc};
use miette::miette;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Contents of the file.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    /// By the name of the path.
    quotas: BTreeMap<String, Used>,
}

/// Data that a path used in a period.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Used {
    /// Day `2026-11-26` or month `2026-11`, in UTC.
    period: String,
    /// Data \[bytes\].
    bytes: u64,
}

/// Quotas that begin anew with the calendar.
pub(super) struct Quotas {
    file: Option<PathBuf>,
    kept: Kept,
    /// Contents of the file.
    written: Kept,
    /// The file is only read.
    dry: bool,
}

impl Quotas {
    /// Reads what is kept. A file that is not there counts as an empty one.
    pub(super) fn open(policy: &Policy, file: Option<&Path>, dry: bool) -> Result<Self, Failure> {
        let needs = policy.paths.iter().find(|it| it.quota.is_some_and(|(_, period)| period != Period::Run));
        let Some(file) = file else {
            return match needs {
                None => Ok(Quotas { file: None, kept: Kept::default(), written: Kept::default(), dry }),
                Some(path) => Err(Failure::Refused(miette!(
                    help = "accepted: --state FILE, such as /var/lib/anabranch-steer.json; or per = \"run\"",
                    "the quota of path {} is for longer than a run, and nothing says where to keep what is used",
                    path.name
                ))),
            };
        };
        let refuse = |problem: String| {
            let help = "correct or delete the file, which is then made anew, or name another one";
            Failure::Refused(miette!(help = help, "--state {}: {problem}", file.display()))
        };
        let kept = match input::text(file, input::WRITTEN) {
            Ok(text) => serde_json::from_str(&text).map_err(|error| refuse(error.to_string()))?,
            Err(error) if error.kind() == ErrorKind::NotFound => Kept::default(),
            Err(error) => return Err(refuse(error.to_string())),
        };
        Ok(Quotas { file: Some(file.to_owned()), written: kept.clone(), kept, dry })
    }

    /// Begins with what was used before, of periods that still last.
    pub(super) fn begin(&mut self, steering: &mut Steering) {
        let today = today();
        for (index, path) in steering.policy().paths.clone().iter().enumerate() {
            let Some(period) = path.quota.and_then(|(_, period)| name(period, today)) else { continue };
            let kept = self.kept.quotas.remove(&path.name).filter(|kept| kept.period == period);
            let kept = kept.unwrap_or(Used { period, bytes: 0 });
            steering.set_used(index, kept.bytes);
            self.kept.quotas.insert(path.name.clone(), kept);
        }
    }

    /// Begins anew where a period has ended.
    pub(super) fn roll(&mut self, steering: &mut Steering) {
        let today = today();
        let paths = steering.policy().paths.clone();
        for (index, path) in paths.iter().enumerate() {
            let Some(period) = path.quota.and_then(|(_, period)| name(period, today)) else { continue };
            let kept = self.kept.quotas.entry(path.name.clone());
            let kept = kept.or_insert_with(|| Used { period: period.clone(), bytes: 0 });
            if kept.period != period {
                *kept = Used { period, bytes: 0 };
                steering.set_used(index, 0);
            }
            kept.bytes = steering.used(index);
        }
    }

    /// Writes the file, if it would say something else.
    pub(super) fn save(&mut self) -> Result<(), Failure> {
        match &self.file {
            Some(file) if !self.dry && self.kept != self.written => {
                let text = serde_json::to_string_pretty(&self.kept).expect("names and numbers are JSON");
                output::write_private(file, format!("{text}\n").as_bytes())
                    .map_err(|error| Failure::writing_to(file, &error))?;
                self.written = self.kept.clone();
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// Date in UTC.
fn today() -> NaiveDate {
    DateTime::<Utc>::from(SystemTime::now()).date_naive()
}

/// Name of the period that a day is in; `None` for a run, which has none.
fn name(period: Period, day: NaiveDate) -> Option<String> {
    match period {
        Period::Run => None,
        Period::Day => Some(day.format("%Y-%m-%d").to_string()),
        Period::Month => Some(day.format("%Y-%m").to_string()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const POLICY: &str = "[path.lte]\naddress = \"10.0.2.2\"\nquota = \"2GB\"\nper = \"month\"\n";

    #[test]
    fn a_month_outlives_the_command_and_another_begins_anew() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("state.json");
        let policy = || Policy::read("policy.toml", POLICY).unwrap();
        assert!(Quotas::open(&policy(), None, false).is_err(), "nothing says where to keep it");
        let run = |used: u64| {
            let (mut quotas, mut steering) =
                (Quotas::open(&policy(), Some(&file), false).unwrap(), Steering::new(policy()));
            quotas.begin(&mut steering);
            let before = steering.used(0);
            steering.set_used(0, before + used);
            quotas.roll(&mut steering);
            quotas.save().unwrap();
            before
        };
        assert_eq!((run(1_000), run(500), run(0)), (0, 1_000, 1_500));
        let text = std::fs::read_to_string(&file).unwrap();
        let past = text.replace(&name(Period::Month, today()).unwrap(), "2026-01");
        assert_ne!(past, text);
        std::fs::write(&file, past).unwrap();
        assert_eq!((run(7), run(0)), (0, 7));
        std::fs::write(&file, "{}").unwrap();
        assert!(Quotas::open(&policy(), Some(&file), false).is_err(), "another program's file is left alone");
    }

    #[test]
    fn periods_are_named_by_their_date() {
        let day = NaiveDate::from_ymd_opt(2026, 11, 6).unwrap();
        assert_eq!(name(Period::Month, day).as_deref(), Some("2026-11"));
        assert_eq!(name(Period::Day, day).as_deref(), Some("2026-11-06"));
        assert_eq!(name(Period::Run, day), None);
    }
}
