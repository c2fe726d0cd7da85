//! Texts that nobody would write are refused, or read, and nothing else happens.
#![allow(clippy::unwrap_used)]

use anabranch_recording::{Form, Gaps, Options, align, outages, periodic, read, table_text, window};
use anabranch_units::{Duration, Seed};
use proptest::prelude::*;

/// Does everything that can be done with a text.
fn exercise(text: &str, form: Option<Form>, gaps: Gaps) {
    let Ok(recording) = read(text, &Options { form, gaps, ..Options::default() }) else { return };
    let offset = window(&recording, Duration::from_secs(1), &mut Seed(1).stream("test"));
    assert!(offset < recording.length());
    assert_eq!(
        recording.stretches.iter().fold(Duration::ZERO, |sum, stretch| sum + stretch.length),
        recording.length()
    );
    let aligned = align(&[recording.clone(), recording.clone()]);
    assert!(aligned.is_none_or(|all| all[0].length() <= recording.length()));
    if let Some(rates) = recording.rates(Duration::from_secs(1)) {
        let _ = (outages(&rates), periodic(&rates, recording.interval, |rate| rate.as_bps() as f64));
        let _ = rates.from(offset, Duration::from_secs(1));
        let _ = recording.trace();
    }
    if recording.length() < Duration::from_secs(3600) {
        let _ = (table_text(&recording), recording.mahimahi_text());
    }
}

const GAPS: [Gaps; 4] = [Gaps::Short, Gaps::Hold, Gaps::Outage, Gaps::Close];

proptest! {
    #[test]
    fn any_text(text in "(?s).{0,200}") {
        exercise(&text, None, Gaps::Short);
    }

    /// Fields that are likely in a table, in any order.
    #[test]
    fn likely_tables(
        fields in prop::collection::vec(
            prop::sample::select(vec![
                "time", "t", "ms", "mbps", "rtt", "loss", "0", "1", "2", "-1",
                "1e300", "9223372036854775807", "0.5", "",
                "nan", "inf", "2030-01-01 10:00:00", "2030-01-01 10:00:01Z", "99999999999999999999", "1900000000", "\"",
                "*", "-9223372036854775808", "1e-300", "18446744073709551615",
            ]),
            0..40,
        ),
        width in 1usize..5,
        delimiter in prop::sample::select(vec![",", ";", "\t", " "]),
        gaps in prop::sample::select(GAPS.to_vec()),
    ) {
        let lines: Vec<String> = fields.chunks(width).map(|fields| fields.join(delimiter)).collect();
        exercise(&lines.join("\n"), Some(Form::Table), gaps);
    }

    #[test]
    fn likely_lines_of_tools(
        lines in prop::collection::vec(
            prop::sample::select(vec![
                "[  5]   0.00-1.00   sec  1.60 MBytes  13.4 Mbits/sec",
                "[  5]   1.00-1.00   sec  1.60 MBytes  13.4 Mbits/sec",
                "[  5]   9223372036.00-99999999999999.00   sec  1.60 MBytes  1e300 Tbits/sec",
                "[SUM]   0.0- 1.0 sec  x Mbits/sec  5/10 (50%)",
                "Time: Sun, 25 Jun 2030 19:32:10 GMT",
                "[1900182800.1] 64 bytes from h: icmp_seq=1 ttl=63 time=60.6 ms",
                "[99999999999999999] 64 bytes from h: icmp_seq=65535 ttl=63 time=99999999999999999999 ms",
                "64 bytes from h: icmp_seq=65535 ttl=63 time=0 ms",
                "64 bytes from h: icmp_seq=3 ttl=63 time=. ms",
                "64 bytes from h: icmp_seq= time=",
            ]),
            0..12,
        ),
        form in prop::sample::select(vec![Form::Iperf, Form::Ping]),
        gaps in prop::sample::select(GAPS.to_vec()),
    ) {
        exercise(&lines.join("\n"), Some(form), gaps);
    }
}
