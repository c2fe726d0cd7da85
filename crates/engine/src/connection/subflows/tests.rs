//! Subflows beside a list of them.

use super::*;
use proptest::prelude::*;

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// The slots of subflows 0 and 1.
const ZERO: Slot = Slot::new(0, SubflowId(0));
const ONE: Slot = Slot::new(1, SubflowId(1));

/// Subflow 0 with an RTT of 40 ms and subflow 1 with one of 10 ms.
fn two() -> Subflows {
    let mut subflows = Subflows::default();
    let slots = [40, 10]
        .into_iter()
        .zip(0..)
        .map(|(ms, number)| subflows.push(Subflow::sample(number, Duration::from_millis(ms))));
    assert_eq!(slots.collect::<Vec<_>>(), [ZERO, ONE]);
    subflows
}

fn listed(subflows: &Subflows, set: Places) -> Vec<Slot> {
    subflows.in_order(set).collect()
}

#[test]
fn kinds_follow_each_change() {
    let mut subflows = two();
    assert!(subflows.all(Kind::Acknowledging).is_empty());
    subflows[ONE].rx.ack.now = true;
    assert_eq!(listed(&subflows, subflows.possible(Kind::Acknowledging)), [ONE]);
    let all = subflows.all(Kind::Acknowledging);
    assert_eq!(listed(&subflows, all), [ONE]);
    subflows[ONE].rx.ack.now = false;
    assert!(subflows.all(Kind::Acknowledging).is_empty());
}

/// Usable ones first, then backups, then all open ones.
#[test]
fn failed_subflows_are_shown_where_there_is_nothing_better() {
    let mut subflows = two();
    let eligible = |subflows: &mut Subflows| {
        let set = subflows.eligible();
        assert_eq!(subflows.eligible_now(), set);
        listed(subflows, set)
    };
    let mut shown = vec![eligible(&mut subflows)];
    subflows[ONE].backup_remote = true;
    shown.push(eligible(&mut subflows));
    subflows[ZERO].liveness.potentially_failed = true;
    shown.push(eligible(&mut subflows));
    subflows[ONE].liveness.stale = true;
    shown.push(eligible(&mut subflows));
    assert_eq!(shown, [vec![ZERO, ONE], vec![ZERO], vec![ONE], vec![ZERO, ONE]]);
    assert_eq!(subflows.control(), Some(ONE), "the fastest that has not failed carries control options");
    assert_eq!(subflows.control_beside(subflows[ONE].flow.src), Some(ZERO));
}

/// A change that nobody notices would leave a kind behind that does not hold.
#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "a change has been noticed")]
fn a_change_that_was_not_noticed_is_found() {
    let mut subflows = two();
    assert_eq!(subflows.all(Kind::Regular).len(), 2);
    subflows.iter_unnoticed().for_each(|subflow| subflow.liveness.stale = true);
    subflows.all(Kind::Regular);
}

#[test]
fn timers_are_seen_again_after_a_change_and_a_removal() {
    let (mut subflows, off) = (two(), Keepalive::default());
    assert_eq!(subflows.add_timers(Earliest::NONE, &off).get(), None);
    subflows[ONE].rx.ack.deadline = Some(at(5));
    assert_eq!(subflows.add_timers(Earliest::NONE, &off).get(), Some(at(5)));
    assert!(!subflows.is_due(at(9), ZERO, &off));
    subflows.remove(ZERO);
    assert!(subflows.is_due(at(5), ONE, &off) && !subflows.is_due(at(4), ONE, &off));
    subflows.settle();
    let second = subflows.first_slot().expect("one is left");
    assert!(subflows.is_due(at(5), second, &off) && !subflows.is_due(at(4), second, &off));
    subflows.remove(second);
    assert_eq!(subflows.add_timers(Earliest::NONE, &off).get(), None, "one that has gone has no timer");
}

/// Until the event ends the place of one that has gone is nobody's, and others keep theirs. Then it is another's, and
/// what was kept across is found out.
#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "a slot is used in its event")]
fn a_slot_kept_across_events_is_not_taken_for_another() {
    let mut subflows = two();
    subflows.remove(ZERO);
    let third = subflows.push(Subflow::sample(2, Duration::from_millis(5)));
    assert!(!subflows.has(ZERO) && subflows[ONE].id == SubflowId(1) && subflows[third].id == SubflowId(2));
    subflows.settle();
    assert_eq!(subflows.iter().map(|subflow| subflow.id.0).collect::<Vec<_>>(), [1, 2]);
    let _ = &subflows[ONE];
}

proptest! {
    /// Subflows come and go, beside a list of them in the order in which they came.
    #[test]
    fn agrees_with_a_list(ops in prop::collection::vec((0u8..7, any::<prop::sample::Index>()), 1..120)) {
        let (mut subflows, mut model, mut gone) = (Subflows::default(), Vec::<(Slot, SubflowId)>::new(), Vec::new());
        for (op, at) in ops {
            match op {
                0..=2 if model.len() < MAX_SUBFLOWS && subflows.list.len() < 40 => {
                    let id = subflows.new_id();
                    let mark = subflows.free_mark().expect("there are enough");
                    let mut subflow = Subflow::sample(mark, Duration::from_millis(1));
                    subflow.id = id;
                    model.push((subflows.push(subflow), id));
                }
                3 if !model.is_empty() => {
                    let (slot, id) = model.remove(at.index(model.len()));
                    prop_assert_eq!(subflows.remove(slot).id, id);
                    gone.push((slot, id));
                }
                4 if !model.is_empty() => {
                    let (slot, _) = model[at.index(model.len())];
                    subflows[slot].rx.ack.now ^= true;
                }
                5 => {
                    subflows.settle();
                    model.iter_mut().for_each(|(slot, id)| *slot = subflows.slot(*id).expect("it is there"));
                    gone.clear();
                    prop_assert_eq!(subflows.list.len(), model.len());
                }
                _ => {}
            }
            prop_assert!(subflows.slots().eq(model.iter().map(|(slot, _)| *slot)));
            prop_assert!(subflows.iter().map(|subflow| subflow.id).eq(model.iter().map(|(_, id)| *id)));
            let first = model.first().map(|(slot, _)| *slot);
            prop_assert_eq!((subflows.len(), subflows.first_slot()), (model.len(), first));
            for (rank, (slot, id)) in model.iter().enumerate() {
                prop_assert_eq!((subflows[*slot].id, subflows.slot(*id)), (*id, Some(*slot)));
                prop_assert_eq!(subflows.rank(subflows.there(), slot.place()), rank);
            }
            for (slot, id) in &gone {
                prop_assert!(!subflows.has(*slot) && subflows.slot(*id).is_none());
            }
            let owing: Vec<_> = model.iter().map(|(slot, _)| *slot).filter(|slot| subflows[*slot].rx.ack.now).collect();
            let likely = subflows.those(Kind::Acknowledging, |subflow| subflow.rx.ack.now);
            prop_assert_eq!(&listed(&subflows, likely), &owing);
            prop_assert_eq!(subflows.any(Kind::Acknowledging, |subflow| subflow.rx.ack.now), !owing.is_empty());
            prop_assert!(subflows.of(likely).map(|subflow| subflow.id).eq(owing.iter().map(|slot| subflows[*slot].id)));
            let found = subflows.all(Kind::Acknowledging);
            prop_assert_eq!(listed(&subflows, found), owing);
        }
    }
}

#[test]
fn suspects_are_cleared_once_older_data_has_arrived() {
    let mut subflows = two();
    subflows[ZERO].liveness.suspect_until = Some(1000);
    assert_eq!(subflows.eligible().len(), 1);
    assert_eq!([999, 1000, 1000].map(|una| subflows.clear_suspects(una)), [false, true, false]);
    assert_eq!(subflows.eligible().len(), 2);
}

#[test]
fn identifiers_begin_again_and_pass_over_those_in_use() {
    let mut subflows = two();
    subflows.next_id = u16::MAX;
    assert_eq!([(); 2].map(|()| subflows.new_id()), [SubflowId(u16::MAX), SubflowId(2)]);
}
