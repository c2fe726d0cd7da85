//! Several recordings at one time.

use crate::recording::Recording;
use anabranch_units::{Duration, Stream};

/// Cuts recordings to the times that all of them cover by their clocks, so that one time in all is one moment. Returns
/// `None` if one of them has no clock, or there is no such time.
pub fn align(recordings: &[Recording]) -> Option<Vec<Recording>> {
    let mut common: Option<Vec<(i64, i64)>> = None;
    for recording in recordings {
        let mut covered = Vec::new();
        for stretch in &recording.stretches {
            let clock = stretch.clock?;
            covered.push((clock, clock.saturating_add(nanos(stretch.length))));
        }
        common = Some(match common {
            None => covered,
            Some(common) => intersection(&common, &covered),
        });
    }
    let common = common.filter(|common| !common.is_empty())?;
    let place = |recording: &Recording, (from, to): (i64, i64)| {
        // Those with clocks are in their order.
        let after = recording.stretches.partition_point(|stretch| stretch.clock.is_some_and(|clock| clock <= from));
        let stretch = &recording.stretches[after.checked_sub(1).expect("a common time lies within a stretch of each")];
        let since = u64::try_from(from - stretch.clock.unwrap_or(from)).unwrap_or(0);
        let begin = stretch.at + Duration::from_nanos(since);
        (begin, begin + Duration::from_nanos(u64::try_from(to - from).unwrap_or(0)))
    };
    let cut = |recording: &Recording| {
        let parts: Vec<_> = common.iter().map(|&part| place(recording, part)).collect();
        recording.cut(&parts)
    };
    Some(recordings.iter().map(cut).collect())
}

/// Draws the beginning of a window of this length: whole milliseconds after the beginning of a stretch that holds it,
/// or else anywhere in the recording, which then goes round.
pub fn window(recording: &Recording, length: Duration, draw: &mut Stream) -> Duration {
    let places: Vec<(Duration, u64)> = recording
        .stretches
        .iter()
        .filter(|stretch| stretch.length >= length)
        .map(|stretch| (stretch.at, (stretch.length - length).as_millis() + 1))
        .collect();
    let all: u64 = places.iter().map(|(_, places)| places).sum();
    if all == 0 {
        return Duration::from_nanos(draw.below(recording.length().as_nanos()));
    }
    let mut drawn = draw.below(all);
    for (at, places) in places {
        if drawn < places {
            return at + Duration::from_millis(drawn);
        }
        drawn -= places;
    }
    unreachable!("the drawn place is below the sum of places")
}

/// Both lists are in order.
fn intersection(a: &[(i64, i64)], b: &[(i64, i64)]) -> Vec<(i64, i64)> {
    let (mut i, mut j, mut all) = (0, 0, Vec::new());
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        let (from, to) = (x.0.max(y.0), x.1.min(y.1));
        if from < to {
            all.push((from, to));
        }
        if x.1 <= y.1 {
            i += 1;
        } else {
            j += 1;
        }
    }
    all
}

fn nanos(span: Duration) -> i64 {
    i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)
}
