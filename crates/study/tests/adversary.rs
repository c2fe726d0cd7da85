//! The adversary finds a planted weakness, and none where there is none.
#![allow(clippy::unwrap_used)]

use anabranch_policy::scheduler::{Entry, Scheduler};
use anabranch_policy::{Catalogue, Decision, SubflowView, View};
use anabranch_study::rank::{Condition, Find, Hunt};
use anabranch_units::Instant;
use std::sync::Arc;

/// Scheduler of the lowest RTT with room. Where one subflow's RTT is more than eight times another's, it ignores the
/// shortest.
struct Lame {
    /// True to have the weakness; otherwise this is min-RTT.
    weak: bool,
}

impl Scheduler for Lame {
    fn decide(&mut self, _now: Instant, view: &View<'_>) -> Decision {
        let rtts = || view.subflows.iter().map(|subflow| subflow.srtt);
        let (Some(shortest), Some(longest)) = (rtts().min(), rtts().max()) else { return Decision::WAIT };
        let ignored = |subflow: &&SubflowView| self.weak && longest > shortest * 8 && subflow.srtt == shortest;
        let usable = view.subflows.iter().filter(|subflow| subflow.has_room() && !ignored(subflow));
        usable.min_by_key(|subflow| subflow.srtt).map_or(Decision::WAIT, |subflow| Decision::send(subflow.id))
    }
}

fn catalogue() -> Arc<Catalogue> {
    let mut catalogue = Catalogue::default();
    let about = "min-RTT that ignores the shortest of very different subflows";
    let plain = Entry::new("lame", about, "", |_| Box::new(Lame { weak: true }));
    let sound = Entry::new("sound", "min-RTT again", "", |_| Box::new(Lame { weak: false }));
    catalogue.schedulers.add(sound).unwrap();
    catalogue.schedulers.add(plain).unwrap();
    Arc::new(catalogue)
}

fn hunt(target: &str, other: &str) -> Vec<Find> {
    let hunt = Hunt {
        target: target.to_owned(),
        others: vec![other.to_owned()],
        seed: 7,
        tries: 160,
        wanted: 1,
        repeat: 2,
        // Small, so that many can be tried.
        sets: vec!["workload=[{kind=\"files\",size=\"500kB\"}]".to_owned()],
    };
    hunt.run(&catalogue(), None, 0, &|| {}).unwrap()
}

#[test]
fn a_planted_weakness_is_found_where_it_is() {
    let found = hunt("lame", "min-rtt");
    let find = &found[0];
    assert!(find.verified.ratio > 1.5, "{} {}", find.verified.ratio, find.condition.about());
    assert!(find.condition.rtt_ratio() > 4.0, "{}", find.condition.about());
    assert!(find.seen > find.drawn, "the search goes beyond the draw at which it begins: {}", find.seen);
    assert_ne!(find.condition.paths, Condition::drawn(7, find.from).paths);
}

#[test]
fn where_there_is_no_weakness_none_is_found() {
    let found = hunt("sound", "min-rtt");
    assert_eq!((found[0].seen, found[0].verified.ratio), (1.0, 1.0), "{}", found[0].condition.about());
}
