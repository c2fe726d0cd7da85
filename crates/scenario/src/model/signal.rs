//! Rates of LTE and 5G by their signal: channel quality indicators.

use super::part;
use anabranch_units::Rate;

/// Efficiencies of the indicators 1 to 15 in bits per 10,000 symbols (TS 36.213 Table 7.2.3-1, TS 38.214 Table
/// 5.2.2.1-2).
const EFFICIENCY: [u64; 15] =
    [1523, 2344, 3770, 6016, 8770, 11758, 14766, 19141, 24063, 27305, 33223, 39023, 45234, 51152, 55547];

/// Ratio of signal to noise and interference \[dB\] from which on each can be had with one block in ten in error: the
/// ladder that LTE simulators share (Brueninghaus and others, *Link performance models for system level simulations of
/// broadband radio access systems*, PIMRC 2005).
const LADDER: [f64; 15] = [-6.7, -4.7, -2.3, 0.2, 2.4, 4.3, 5.9, 8.1, 10.3, 11.7, 14.1, 16.3, 18.7, 21.0, 22.7];

/// Returns the rate at this signal of a link with this rate at the best one; zero if the signal is out of range.
pub(super) fn rate(best: Rate, decibels: f64) -> Rate {
    match LADDER.partition_point(|least| *least <= decibels) {
        0 => Rate::from_bps(0),
        indicator => part(best, EFFICIENCY[indicator - 1], EFFICIENCY[14]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_has_the_rate_of_the_best_indicator_that_it_reaches() {
        let best = Rate::from_bps(55_547_000);
        for (decibels, kbps) in [(-6.8, 0), (-6.7, 1523), (8.0, 14_766), (8.1, 19_141), (22.7, 55_547), (60.0, 55_547)]
        {
            assert_eq!(rate(best, decibels), Rate::from_bps(kbps * 1000), "{decibels}");
        }
    }
}
