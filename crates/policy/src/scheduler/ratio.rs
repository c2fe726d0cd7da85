//! Fixed ratio: turns in proportion to weights that the user sets.
//!
//! After the `ratio` scheduler in forks of Linux MPTCP, on which MuSher rests: S. K. Saha, S. Aggarwal, R. Pathak, D.
//! Koutsonikolas, J. Widmer. *MuSher: An Agile Multipath-TCP Scheduler for Dual-Band 802.11ad/ac Wireless LANs.* ACM
//! MobiCom 2019. MuSher's search for the ratio is not here.
//!
//! `weights = "0=3, 1=1"` gives subflow 0 three turns of a segment for each of subflow 1; ids count subflows in the
//! order of their creation. Subflows that are not named weigh 1. The turns are spread out (smooth weighted round
//! robin).
//!
//! By default who has no room is passed over, as in round robin, and in bulk transfers the windows rule instead of the
//! weights. With `cwnd_limited = false` it is waited for, and the ratio is exact: the connection goes as fast as its
//! slowest share allows. A subflow in RTO recovery, or without anything in flight, is passed over in either mode.

use super::per_subflow::PerSubflow;
use super::turns::{Turn, take};
use super::{Entry, Scheduler};
use crate::registry::{Flag, Params, Text, flag, text};
use crate::{Decision, View};
use anabranch_units::{Instant, SubflowId};

/// Entry in the table of its kind.
pub const ENTRY: Entry =
    Entry::new("ratio", "turns in a fixed ratio", include_str!("ratio.rs"), |p| Box::new(Ratio::new(p)))
        .paper("Saha et al. 2019, the scheduler below MuSher")
        .parameters(&[WEIGHTS.parameter(), CWND_LIMITED.parameter()]);

/// Turns in a fixed ratio.
pub struct Ratio {
    weights: Vec<(SubflowId, u64)>,
    /// Pass over a subflow without room.
    cwnd_limited: bool,
    turns: PerSubflow<Turn>,
}

impl Ratio {
    /// Reads `weights` and `cwnd_limited` from `parameters`.
    pub fn new(parameters: &Params) -> Self {
        // The registry has let only a text through that can be read.
        let weights = parse(WEIGHTS.of(parameters)).unwrap_or_default();
        Ratio { weights, cwnd_limited: CWND_LIMITED.of(parameters), turns: PerSubflow::default() }
    }
}

impl Scheduler for Ratio {
    fn decide(&mut self, _now: Instant, view: &View<'_>) -> Decision {
        self.turns.follow(view.subflows, |subflow| {
            let named = self.weights.iter().find(|(id, _)| *id == subflow.id);
            Turn::new(named.map_or(1, |(_, weight)| *weight))
        });
        take(&mut self.turns, |turn| turn, view.subflows, self.cwnd_limited)
    }
}

/// The weights that a text such as `0=3, 1=1` names; what is wrong with it otherwise.
fn parse(text: &str) -> Result<Vec<(SubflowId, u64)>, String> {
    let mut weights: Vec<(SubflowId, u64)> = Vec::new();
    for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
        let (id, weight) = pair.split_once('=').ok_or_else(|| format!("`{pair}` has no `=`"))?;
        let id: u16 = id.trim().parse().map_err(|_| format!("`{}` is no subflow's id", id.trim()))?;
        let weight = weight.trim();
        let heavy = weight.parse().ok().filter(|heavy| (1..=HEAVIEST).contains(heavy));
        let heavy = heavy.ok_or_else(|| format!("`{weight}` is no whole number from 1 to {HEAVIEST}"))?;
        if weights.iter().any(|(known, _)| known.0 == id) {
            return Err(format!("subflow {id} has two weights"));
        }
        weights.push((SubflowId(id), heavy));
    }
    Ok(weights)
}

/// Largest weight, so that shares can be as small as a millionth.
const HEAVIEST: u64 = 1_000_000;
const WEIGHTS: Text = text(
    "weights",
    "turns per subflow, by id in the order of creation; a subflow that is not named has 1",
    "",
    "weights by subflow id such as \"0=3, 1=1\"",
    |text| parse(text).map(|_| ()),
);
const CWND_LIMITED: Flag =
    flag("cwnd_limited", "pass over a subflow whose window is full instead of waiting for it", true);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SubflowView;
    use crate::registry::{ParamError, Value, find};
    use crate::scheduler::SCHEDULERS;
    use crate::scheduler::testing::*;
    use std::collections::BTreeMap;

    fn params(weights: &str, cwnd_limited: bool) -> Result<Params, ParamError> {
        let entry = find(SCHEDULERS, "scheduler", "ratio")?;
        let weights = ("weights".to_owned(), Value::Text(weights.to_owned()));
        entry.params(&BTreeMap::from([weights, ("cwnd_limited".to_owned(), Value::Flag(cwnd_limited))]))
    }

    fn ratio(weights: &str, cwnd_limited: bool) -> Ratio {
        Ratio::new(&params(weights, cwnd_limited).expect("these weights can be read"))
    }

    fn turns(ratio: &mut Ratio, subflows: &[SubflowView], n: usize) -> Vec<u16> {
        let mut next = || match ratio.decide(at(0), &view(subflows, 50)) {
            Decision::Send { on, .. } => on.0,
            _ => 99,
        };
        (0..n).map(|_| next()).collect()
    }

    #[test]
    fn turns_follow_the_weights_whatever_the_paths_are() {
        let subflows = [subflow(FAST, 10, 10, 0), subflow(SLOW, 400, 10, 0)];
        assert_eq!(turns(&mut ratio("0=3, 1=1", true), &subflows, 8), [0, 0, 1, 0, 0, 0, 1, 0]);
        assert_eq!(turns(&mut ratio(" 1 = 3 ", true), &subflows, 4), [1, 0, 1, 1]);
        assert_eq!(turns(&mut ratio("", true), &subflows, 4), [0, 1, 0, 1]);
        assert_eq!(turns(&mut ratio("7=5,1=2,", true), &subflows, 3), [1, 0, 1]);
    }

    #[test]
    fn a_full_window_is_passed_over_or_waited_for() {
        let subflows = [subflow(FAST, 10, 10, 10), subflow(SLOW, 400, 10, 0)];
        assert_eq!(turns(&mut ratio("0=3", true), &subflows, 3), [1, 1, 1]);
        assert_eq!(turns(&mut ratio("0=3", false), &subflows, 3), [99, 99, 99]);
    }

    #[test]
    fn a_text_that_cannot_be_read_is_refused_with_the_reason() {
        for (text, reason) in [
            ("3, 1", "`3` has no `=`"),
            ("0=3; 1=1", "`3; 1=1` is no whole number from 1 to 1000000"),
            ("wifi=3", "`wifi` is no subflow's id"),
            ("70000=3", "`70000` is no subflow's id"),
            ("0=0", "`0` is no whole number from 1 to 1000000"),
            ("0=1000001", "`1000001` is no whole number from 1 to 1000000"),
            ("0=0.5", "`0.5` is no whole number from 1 to 1000000"),
            ("0=1, 0=2", "subflow 0 has two weights"),
        ] {
            let error = params(text, true).expect_err("these cannot").to_string();
            let expected = format!(
                "`ratio.weights` is {text:?}; it must be weights by subflow id such as \"0=3, 1=1\", and {reason}"
            );
            assert_eq!(error, expected);
        }
    }
}
