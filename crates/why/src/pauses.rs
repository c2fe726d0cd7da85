//! Pauses of the application: the time between transfers, which belongs to none of them.

use crate::{Judged, Pauses};
use anabranch_sim::{FileOrder, Spec, Workload};

/// Finds the time of all runs in which no transfer was under way, between the first and the last of each.
pub(crate) fn pauses<'a>(spec: &Spec, runs: impl Iterator<Item = &'a [Judged]>) -> Option<Pauses> {
    let because = spec.workloads.iter().find_map(rhythm)?;
    let (mut idle, mut whole) = (0, 0);
    for judged in runs {
        let span = |it: &Judged| (it.bands.start().as_nanos(), (it.bands.start() + it.duration()).as_nanos());
        let mut spans: Vec<(u64, u64)> = judged.iter().map(span).collect();
        spans.sort_unstable();
        let Some(&(first, _)) = spans.first() else { continue };
        let mut reached = first;
        for (from, to) in spans {
            idle += from.saturating_sub(reached);
            reached = reached.max(to);
        }
        whole += reached - first;
    }
    (idle > 0).then(|| Pauses { share: idle as f64 / whole as f64, because })
}

/// The rhythm of a workload that pauses.
fn rhythm(workload: &Workload) -> Option<String> {
    match workload {
        Workload::Bursts { size, interval, count, .. } if *count > 1 => {
            Some(format!("it writes {count} bursts of {size}, one every {interval}"))
        }
        Workload::Files { order, sizes, .. } if sizes.len() > 1 => match order {
            FileOrder::InTurn(pause) | FileOrder::OneConnection { pause, .. } if !pause.is_zero() => {
                Some(format!("it thinks for {pause} after each file"))
            }
            FileOrder::AtOnce(_) | FileOrder::Established { .. } => {
                Some("it asks for one file after the other at intervals".to_owned())
            }
            _ => None,
        },
        Workload::Interactive { .. } => Some("its user thinks between requests".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_without_a_pause_has_no_rhythm() {
        let sizes = vec![anabranch_units::Bytes::new(1000); 2];
        let files = |order, sizes: &[_]| Workload::Files {
            direction: anabranch_paths::Direction::Down,
            sizes: sizes.to_vec(),
            order,
            start: anabranch_units::Duration::ZERO,
        };
        let pause = FileOrder::InTurn(anabranch_units::Duration::from_millis(50));
        assert_eq!(rhythm(&files(FileOrder::InTurn(anabranch_units::Duration::ZERO), &sizes)), None);
        assert_eq!(rhythm(&files(pause, &sizes[..1])), None);
        assert_eq!(rhythm(&files(pause, &sizes)).as_deref(), Some("it thinks for 50ms after each file"));
    }
}
