#![allow(clippy::unwrap_used)]
use super::*;
use crate::ecn::{EcnRule, Feedback};
use anabranch_units::{Ecn, Entropy, Seed};
use anabranch_wire::{Flags, Timestamps};

const START: Instant = Instant::from_nanos(1_000 * 64_000_000_000);

fn cookies(byte: u8) -> Cookies {
    Cookies::new(Entropy::new([byte; 32]).secret("cookies"))
}

fn flow(port: u16) -> FlowKey {
    FlowKey::new(([10, 0, 0, 1], port).into(), ([10, 1, 0, 1], 80).into())
}

fn terms(mss: u16, window_scale: Option<u8>, sack: bool, timestamps: bool) -> Terms {
    Terms { mss, window_scale, sack, timestamps, ecn: Feedback::Off, of_syn: Ecn::NotEct }
}

/// Answer to a SYN/ACK with this cookie, and the timestamp it echoes.
fn ack(flow: FlowKey, isn: u32, cookie: &Cookie) -> (Segment, Option<u32>) {
    let syn = Segment::new(flow, Flags::SYN, SubflowSeq::new(isn), SubflowSeq::new(0));
    let mut syn = Segment { options: Default::default(), ..syn };
    syn.options.set_timestamps(Some(Timestamps { value: 77, echo: 0 }));
    let answer = cookie.terms.syn_ack(&syn, cookie.iss, 123_456_789, 7, 1460);
    let ack = Segment::new(flow, Flags::ACK, SubflowSeq::new(isn) + 1, answer.seq + 1);
    (ack, answer.options.timestamps().map(|timestamps| timestamps.value))
}

#[test]
fn terms_come_back_as_far_as_they_can_be_said() {
    for (offered, agreed) in [
        // With timestamps all of it but an odd MSS, which is rounded down.
        (terms(1460, Some(7), true, true), terms(1460, Some(7), true, true)),
        (terms(1459, Some(14), true, true), terms(1452, Some(14), true, true)),
        (terms(65_535, Some(0), false, true), terms(8940, Some(0), false, true)),
        (terms(536, None, true, true), terms(536, None, true, true)),
        (terms(1380, Some(99), true, true), terms(1380, Some(14), true, true)),
        // Without them four sizes and four sets.
        (terms(1460, Some(8), true, false), terms(1460, Some(7), true, false)),
        (terms(1400, Some(6), true, false), terms(1300, Some(2), true, false)),
        (terms(8940, Some(1), true, false), terms(1460, None, true, false)),
        (terms(1440, None, true, false), terms(1440, None, true, false)),
        (terms(1300, Some(8), false, false), terms(1300, None, false, false)),
        (terms(600, None, false, false), terms(536, None, false, false)),
    ] {
        let mut cookies = cookies(7);
        let cookie = cookies.answer(START, &flow(4000), SubflowSeq::new(5), offered).unwrap();
        assert_eq!(cookie.terms, agreed, "{offered:?}");
        let (ack, echo) = ack(flow(4000), 5, &cookie);
        assert_eq!(cookies.answered(START, &ack, echo), Some(cookie), "{offered:?}");
    }
    for timestamps in [false, true] {
        let small = terms(535, Some(7), true, timestamps);
        assert_eq!(cookies(7).answer(START, &flow(4000), SubflowSeq::new(5), small), None);
    }
}

/// Classic feedback comes back with timestamps, the accurate one by the answer to the SYN/ACK (RFC 9768 §5.1).
#[test]
fn what_was_agreed_on_marks_comes_back() {
    let rule = EcnRule::ACCEPT_ACCURATE;
    for (ecn, timestamps, ace, expected) in [
        (Feedback::Off, true, 0b000, Feedback::Off),
        (Feedback::Classic, true, 0b000, Feedback::Classic),
        (Feedback::Classic, false, 0b000, Feedback::Off),
        (Feedback::Accurate, true, 0b010, Feedback::Accurate),
        (Feedback::Accurate, false, 0b110, Feedback::Accurate),
    ] {
        let mut cookies = cookies(7);
        let offered = Terms { ecn, ..terms(1460, Some(7), true, timestamps) };
        let cookie = cookies.answer(START, &flow(4000), SubflowSeq::new(5), offered).unwrap();
        let (mut ack, echo) = ack(flow(4000), 5, &cookie);
        ack.set_ace(ace);
        let answered = cookies.answered(START, &ack, echo.filter(|_| timestamps)).unwrap();
        let agreed = rule.on_syn(&answered.terms.syn(Some(rule), &ack));
        assert_eq!(agreed, expected, "{ecn:?}, timestamps {timestamps}");
    }
}

#[test]
fn a_cookie_is_good_in_its_period_and_the_next() {
    let offered = terms(1460, Some(7), true, true);
    for (after, good) in [(0, true), (63, true), (64, true), (127, true), (128, false), (10_000, false)] {
        let mut cookies = cookies(7);
        assert!(!cookies.are_out(START));
        let cookie = cookies.answer(START, &flow(4000), SubflowSeq::new(5), offered).unwrap();
        let (ack, echo) = ack(flow(4000), 5, &cookie);
        let now = START + Duration::from_secs(after);
        assert_eq!((cookies.are_out(now), cookies.answered(now, &ack, echo).is_some()), (good, good), "{after} s");
    }
}

#[test]
fn any_other_flow_number_secret_or_use_of_timestamps_is_refused() {
    let offered = terms(1460, Some(7), true, true);
    let mut ours = cookies(7);
    let cookie = ours.answer(START, &flow(4000), SubflowSeq::new(5), offered).unwrap();
    let (ack, echo) = ack(flow(4000), 5, &cookie);
    assert!(ours.answered(START, &ack, echo).is_some());
    assert_eq!(cookies(8).answered(START, &ack, echo), None, "another secret");
    assert_eq!(ours.answered(START, &ack, None), None, "without timestamps");
    for change in [
        |ack: &mut Segment| ack.flow = flow(4001),
        |ack: &mut Segment| ack.flow.src = [10, 0, 0, 2].into(),
        |ack: &mut Segment| ack.flow.dst_port = 81,
        |ack: &mut Segment| ack.seq = ack.seq + 1,
        |ack: &mut Segment| ack.ack = ack.ack + 16,
        |ack: &mut Segment| ack.ack = SubflowSeq::new(ack.ack.get().wrapping_sub(16)),
    ] {
        let mut changed = ack.clone();
        change(&mut changed);
        assert_eq!(ours.answered(START, &changed, echo), None, "{changed:?}");
    }
}

/// Of 2³² numbers 32 are right at any time: 16 codes in two periods.
#[test]
fn a_guess_hits_one_of_32_numbers() {
    let cookies = cookies(7);
    let mut ack = Segment::new(flow(4000), Flags::ACK, SubflowSeq::new(6), SubflowSeq::new(0));
    let bases = [0, 64].map(|ago| {
        let period = period(START) - ago / 64;
        first_word(&cookies.mac(&flow(4000), SubflowSeq::new(5), period, false))
    });
    let mut hits = 0;
    for base in bases {
        for near in 0..1000 {
            ack.ack = SubflowSeq::new(base.wrapping_sub(500).wrapping_add(near)) + 1;
            hits += u32::from(cookies.answered(START, &ack, None).is_some());
        }
    }
    assert_eq!(hits, 32);
    let mut chance = Seed(3).stream("guesses");
    let guesses = (0..200_000).filter(|_| {
        ack.ack = SubflowSeq::new(chance.next_u32());
        cookies.answered(START, &ack, None).is_some()
    });
    assert_eq!(guesses.count(), 0, "2⁻²⁷ each: 0.0015 expected");
}

#[test]
fn keys_are_all_different_and_say_nothing_of_each_other() {
    let mut cookies = cookies(7);
    let mut seen = std::collections::BTreeSet::new();
    for port in 0..1000 {
        let cookie = cookies.answer(START, &flow(port), SubflowSeq::new(5), terms(1460, Some(7), true, true)).unwrap();
        seen.extend(cookie.keys.map(Key::get));
    }
    assert_eq!(seen.len(), 3000);
}

/// The keys that a cookie holds go with it: without the crates' feature `zeroize` this does not compile.
#[test]
fn what_is_kept_of_a_cookie_is_overwritten_at_the_end() {
    fn is_wiped<T: zeroize::ZeroizeOnDrop>(_: &T) {}
    let mut cookies = cookies(7);
    let cookie = cookies.answer(START, &flow(4000), SubflowSeq::new(5), terms(1460, Some(7), true, true)).unwrap();
    is_wiped(&cookie);
    is_wiped(&cookies.mac(&flow(4000), SubflowSeq::new(5), 1, true));
}
