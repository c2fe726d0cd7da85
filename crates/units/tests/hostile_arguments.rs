//! No argument makes a function panic. The operators `-` and `/` are those of numbers: their documentation says when.
#![allow(clippy::unwrap_used)]

use anabranch_units::{Bytes, Dsn, Duration, Instant, Key, Rate, Seed, SubflowSeq, hex, nearest, quantity, suggest};
use proptest::prelude::*;

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        1 => 0..3u64,
        1 => Just(u64::MAX),
        1 => Just(u64::MAX - 1),
        1 => (0..64u32).prop_map(|bit| 1 << bit),
        2 => any::<u64>(),
    ]
}

fn real() -> impl Strategy<Value = f64> {
    prop_oneof![
        1 => Just(f64::NAN),
        1 => Just(f64::INFINITY),
        1 => Just(f64::NEG_INFINITY),
        1 => Just(-0.0),
        3 => any::<f64>(),
    ]
}

proptest! {
    #[test]
    fn of_quantities(a in number(), b in number(), x in real()) {
        let (span, other) = (Duration::from_nanos(a), Duration::from_nanos(b));
        let shown = format!("{span} {other:?} {} {:?}", Instant::from_nanos(a), Instant::MAX + other);
        prop_assert!(!shown.is_empty());
        prop_assert!(Instant::from_nanos(a) + other - other <= Instant::MAX);
        prop_assert_eq!(Instant::from_nanos(a).since(Instant::MAX), Duration::ZERO);
        for span in [span + other, span * b, span.mul_f64(x), Duration::from_secs_f64(x), Duration::from_secs(a)] {
            prop_assert!(span.saturating_sub(other) <= span.abs_diff(other));
            let _ = (span.per(other), span.as_millis_f64(), Duration::from_millis(a), Duration::from_micros(b));
        }
        let (amount, rate) = (Bytes::new(a), Rate::from_bps(b));
        let _ = (amount.per(Bytes::new(b)), amount.times(b) + amount, rate.time_for(amount), rate.bytes_in(span));
        let _ = (Rate::of(amount, other), format!("{amount} {rate} {}", Rate::from_mbps(a)), rate.as_mbps());
    }

    #[test]
    fn of_sequence_numbers(a in any::<u64>(), b in any::<u64>(), near in number()) {
        let (dsn, other) = (Dsn::new(a), Dsn::new(b));
        let _ = (dsn + near, dsn.before(other), dsn.after(other), dsn.distance(other), format!("{dsn} {other:?}"));
        prop_assert_eq!(Dsn::from_low(dsn.low(), other).low(), dsn.low());
        let seq = SubflowSeq::new(a as u32);
        if let Some(offset) = seq.offset_near(SubflowSeq::new(b as u32), near) {
            prop_assert_eq!(SubflowSeq::new(b as u32) + offset, seq);
        }
        let _ = (Key::new(a).token(), Key::new(b).idsn());
    }

    #[test]
    fn of_chance(seed in any::<u64>(), name in ".*", a in number(), b in number(), p in real()) {
        let mut stream = Seed(seed).child(&name).stream(&name);
        let _ = (stream.chance(p), stream.below(a));
        let drawn = stream.between(a, b);
        prop_assert!(drawn == a || (a..=b).contains(&drawn));
    }

    #[test]
    fn of_texts(text in ".*", number in "[0-9.]{0,30}", unit in "[a-zA-Z%/ ]{0,5}", bytes: Vec<u8>) {
        for text in [text.clone(), format!("{number}{unit}"), format!("{number}KiB"), format!("{number}ms")] {
            let _ = (quantity::duration(&text), quantity::rate(&text), quantity::size(&text), quantity::share(&text));
            let _ = (quantity::queue(&text), quantity::is_quantity_like(&text));
            let _ = (nearest(&text, [text.as_str(), ""]), suggest(&text, ["rate", &number]));
        }
        prop_assert_eq!(hex(&bytes).len(), 2 * bytes.len());
    }
}
