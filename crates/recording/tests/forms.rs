//! Small files of our own making, in the layouts in which recordings are published and printed.
#![allow(clippy::unwrap_used)]

use anabranch_recording::{Column, Form, Gaps, Options, RateUnit, Recording, TimeUnit, align, read, table_text};
use anabranch_units::Duration;

fn plain(text: &str) -> Recording {
    read(text, &Options::default()).unwrap()
}

fn refusal(text: &str, options: &Options) -> String {
    let error = read(text, options).unwrap_err();
    format!("{error}; {}", error.help.as_deref().unwrap_or_default())
}

/// Rates in kbit/s with the times in milliseconds at which they end.
fn rates(recording: &Recording) -> Vec<(u64, u64)> {
    let levels = recording.rates(Duration::from_millis(100)).unwrap();
    levels.iter().map(|level| (level.until.as_millis(), level.value.as_bps() / 1000)).collect()
}

/// One-way delays in microseconds with the times in milliseconds at which they end.
fn delays(recording: &Recording) -> Vec<(u64, u64)> {
    let levels = recording.delay.as_ref().unwrap();
    levels.iter().map(|level| (level.until.as_millis(), level.value.as_micros())).collect()
}

/// Losses in thousandths of a percent with the times in milliseconds at which they end.
fn losses(recording: &Recording) -> Vec<(u64, u64)> {
    let levels = recording.loss.as_ref().unwrap();
    levels.iter().map(|level| (level.until.as_millis(), (level.value * 1e5).round() as u64)).collect()
}

/// Link pairs of *A Data Set and Reference Experiments for Multipath Wireless Emulation on Public Testbeds* (INFOCOM'23
/// CNERT): a number of a second and bytes, without a header.
#[test]
fn seconds_and_bytes_without_a_header() {
    let recording = plain("1,1250000\r\n2,2500000\r\n3,0\r\n4,125000\r\n");
    assert_eq!(recording.form, Some(Form::Table));
    assert_eq!(rates(&recording), [(1000, 10_000), (2000, 20_000), (3000, 0), (4000, 1000)]);
    assert!(!recording.has_clock());
    assert!(recording.remarks[0].contains("bytes until the next row"), "{:?}", recording.remarks);
}

/// Drives of *Dissecting Starlink and Cellular Networks on the Road* (CoNEXT'23): dates with a zone, Mbit/s, and
/// columns that are no business of ours; several drives in a file, not in the order of time.
#[test]
fn drives_with_dates() {
    let text = "time,throughput,speed,latitude,longtitu\n\
        2030-04-13 10:00:00 CDT,5.5,60.1,45.0,-93.0\n\
        2030-04-13 10:00:01 CDT,6,60.2,45.0,-93.0\n\
        2030-04-12 10:40:20 CDT,147.0,62.9,45.4,-93.2\n\
        2030-04-12 10:40:21 CDT,260.0,62.2,45.4,-93.2\n\
        2030-04-12 10:40:24 CDT,1.25\n";
    let recording = plain(text);
    let expected = [(1000, 147_000), (4000, 260_000), (5000, 1250), (6000, 5500), (7000, 6000)];
    assert_eq!(rates(&recording), expected);
    assert_eq!(recording.stretches.len(), 2);
    assert_eq!(recording.stretches[1].at, Duration::from_secs(5));
    let day_later = recording.stretches[1].clock.unwrap() - recording.stretches[0].clock.unwrap();
    assert_eq!(day_later, (86_400 - 40 * 60 - 20) * 1_000_000_000);
    let said = recording.remarks.join("\n");
    for part in ["were sorted", "is taken as Mbit/s", "1 gap of 2s together", "it has 2 stretches"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

/// Fused runs of *Exploring the 5G Digital Divide* (SIGMETRICS'26): two operators side by side, each with its own
/// clock.
#[test]
fn two_operators_in_one_file() {
    let text = "A,A_run,A_time,A_actual_tech,A_throughput_mbps,B,B_run,B_time,B_actual_tech,B_throughput_mbps\n\
        starlink,r1,2030-06-21T10:00:00.0-08:00,,100,att,r2,2030-06-21T10:00:00.1-08:00,LTE,10\n\
        starlink,r1,2030-06-21T10:00:00.5-08:00,,120,att,r2,2030-06-21T10:00:00.6-08:00,,12\n\
        starlink,r1,2030-06-21T10:00:01.0-08:00,,80,att,r2,2030-06-21T10:00:01.1-08:00,LTE,8\n";
    let of = |of: &str| read(text, &Options { of: Some(of.to_owned()), ..Options::default() }).unwrap();
    let (starlink, att) = (of("starlink"), of("att"));
    assert_eq!(rates(&starlink), [(500, 100_000), (1000, 120_000), (1500, 80_000)]);
    assert_eq!(rates(&att), [(500, 10_000), (1000, 12_000), (1500, 8_000)]);
    assert_eq!(rates(&of("B")), rates(&att), "by the name of its column");
    let aligned = align(&[starlink, att]).unwrap();
    assert_eq!(rates(&aligned[0]), [(400, 100_000), (900, 120_000), (1400, 80_000)]);
    assert_eq!(rates(&aligned[1]), [(500, 10_000), (1000, 12_000), (1400, 8_000)]);
    let several = refusal(text, &Options::default());
    assert!(several.contains("A_throughput_mbps, B_throughput_mbps") && several.contains("`of`"), "{several}");
    let none = refusal(text, &Options { of: Some("verizon".to_owned()), ..Options::default() });
    assert!(none.contains("nothing in the file belongs to `verizon`; accepted: att, starlink"), "{none}");
}

#[test]
fn round_trips_of_two_operators() {
    let text = "A,A_time,A_rtt_ms,B,B_time,B_rtt_ms\n\
        starlink,2030-06-21 10:00:00Z,40,att,2030-06-21 10:00:00Z,60\n\
        starlink,2030-06-21 10:00:01Z,50.5,att,2030-06-21 10:00:01Z,61\n";
    let recording = read(text, &Options { of: Some("starlink".to_owned()), ..Options::default() }).unwrap();
    assert_eq!(delays(&recording), [(1000, 20_000), (2000, 25_250)]);
    assert!(recording.rate.is_none());
}

/// Probes of *LENS* (MMSys'24) as published: nanoseconds since 1970, and -1 where an answer is missing.
#[test]
fn probes_without_an_answer_are_lost() {
    let mut text = String::from("timestamp,rtt,uplink,downlink\n");
    for n in 0..400u64 {
        let values = if n % 100 == 7 { "0,0,-1" } else { "40.5,20.1,20.4" };
        text += &format!("{},{values}\n", 1_905_744_800_000_000_000 + n * 10_000_000);
    }
    let recording = plain(&text);
    assert_eq!(recording.interval, Duration::from_millis(10));
    assert_eq!(delays(&recording), [(4000, 20_250)]);
    // One of a hundred round trips in each second: 0.5013 % in each direction.
    assert_eq!(losses(&recording), [(4000, 501)]);
    assert_eq!(recording.stretches[0].clock, Some(1_905_744_800_000_000_000));
}

#[test]
fn opportunities_of_mahimahi() {
    let recording = plain("1\n1\n4\n10\n");
    assert_eq!(recording.form, Some(Form::Mahimahi));
    assert_eq!(recording.length(), Duration::from_millis(10));
    assert_eq!(recording.mahimahi_text().unwrap(), "1\n1\n4\n10\n");
}

#[test]
fn iperf_as_text() {
    let text = "iperf 3.10.1\nTime: Sun, 25 Jun 2030 19:32:10 GMT\n[ ID] Interval           Transfer     Bitrate\n\
        [  5]   0.00-1.00   sec  1.60 MBytes  13.4 Mbits/sec                  \n\
        [  5]   1.00-2.01   sec  3.89 MBytes   800 Kbits/sec    2   12 KBytes\n\
        [  5]   2.01-3.00   sec  0.00 Bytes  0.00 bits/sec                  \n\
        - - - - - - - - - - - - - - - - - - - - - - - - -\n\
        [  5]   0.00-3.07   sec  8.03 GBytes   230 Mbits/sec  5147             sender\n\
        [  5]   0.00-3.00   sec  8.00 GBytes   229 Mbits/sec                  receiver\n";
    let recording = plain(text);
    assert_eq!(recording.form, Some(Form::Iperf));
    assert_eq!(rates(&recording), [(1000, 13_400), (2010, 800), (3000, 0)]);
    assert!(recording.has_clock());
    let streams = "[  5]  0.00-1.00  sec  1 MBytes  8.0 Mbits/sec\n[  7]  0.00-1.00  sec  1 MBytes  8.0 Mbits/sec\n\
        [SUM]  0.00-1.00  sec  2 MBytes  16.0 Mbits/sec\n[SUM]  1.00-2.00  sec  2 MBytes  17.0 Mbits/sec\n";
    assert_eq!(rates(&plain(streams)), [(1000, 16_000), (2000, 17_000)]);
    // iperf 2 over UDP: a space after the dash, megabytes of 1024, lost datagrams, and a last line over all.
    let older = "[  3]  0.0- 1.0 sec  1.25 MBytes  1.00 MBytes/sec  0.123 ms   10/ 1000 (1%)\n\
        [  3]  1.0- 2.0 sec  1.25 MBytes  2.00 MBytes/sec  0.123 ms   0/ 1000 (0%)\n\
        [  3]  0.0- 2.0 sec  2.50 MBytes  1.50 MBytes/sec  0.123 ms   10/ 2000 (0.5%)\n";
    let recording = plain(older);
    assert_eq!(rates(&recording), [(1000, 8388), (2000, 16_777)]);
    assert_eq!(losses(&recording), [(1000, 1000), (2000, 0)]);
}

#[test]
fn iperf_as_json() {
    let text = r#"{"start": {"timestamp": {"timesecs": 1900000000}}, "intervals": [
        {"streams": [], "sum": {"start": 0, "end": 1.0, "bits_per_second": 1000000, "omitted": true}},
        {"streams": [], "sum": {"start": 0, "end": 1.0, "bits_per_second": 5000000, "lost_percent": 2}},
        {"streams": [], "sum": {"start": 1.0, "end": 2.0, "bits_per_second": 7000000.4,
         "lost_percent": 0}}], "end": {}}"#;
    let recording = plain(text);
    assert_eq!(recording.form, Some(Form::IperfJson));
    assert_eq!(rates(&recording), [(1000, 5000), (2000, 7000)]);
    assert_eq!(losses(&recording), [(1000, 2000), (2000, 0)]);
    assert_eq!(recording.stretches[0].clock, Some(1_900_000_000_000_000_000));
    assert!(refusal("{\"intervals\": [\n{}]}", &Options::default()).starts_with("line 2: missing field `sum`"));
}

#[test]
fn ping_as_text() {
    let text = "PING host (192.0.2.1) 56(84) bytes of data.\n\
        [1900182800.000000] 64 bytes from 192.0.2.1: icmp_seq=1 ttl=63 time=60.6 ms\n\
        [1900182801.000000] 64 bytes from 192.0.2.1: icmp_seq=2 ttl=63 time=900 us\n\
        [1900182803.000000] 64 bytes from 192.0.2.1: icmp_seq=4 ttl=63 time=62.0 ms\n";
    let recording = plain(text);
    assert_eq!(recording.form, Some(Form::Ping));
    assert_eq!(delays(&recording), [(1000, 30_300), (3000, 450), (4000, 31_000)]);
    // One of four is lost: 13.4 % in each direction.
    assert_eq!(losses(&recording), [(4000, 13_397)]);
    let without = "64 bytes from h: icmp_seq=65535 ttl=63 time=10 ms\n64 bytes from h: icmp_seq=0 ttl=63 time=20 ms\n";
    let options = Options { interval: Some(Duration::from_millis(200)), ..Options::default() };
    let recording = read(without, &options).unwrap();
    assert_eq!(delays(&recording), [(200, 5000), (400, 10_000)], "the number goes round");
    assert!(plain(without).remarks[0].contains("one probe per second"));
}

#[test]
fn irtt_as_json() {
    let trip = |ms: u64, rtt: u64, lost: &str| {
        format!(
            r#"{{"lost": "{lost}", "timestamps": {{"client": {{"send": {{"wall": {}, "monotonic": 1}}}}}},
               "delay": {{"rtt": {rtt}}}}}"#,
            1_900_000_000_000_000_000 + ms * 1_000_000
        )
    };
    let trips = [trip(0, 20_000_000, "false"), trip(500, 1, "true_down"), trip(1000, 30_000_000, "false")];
    let recording = plain(&format!(r#"{{"version": {{}}, "round_trips": [{}]}}"#, trips.join(",")));
    assert_eq!(recording.form, Some(Form::Irtt));
    assert_eq!(delays(&recording), [(1000, 10_000), (1500, 15_000)]);
    assert!(recording.loss.is_some());
}

#[test]
fn separators_units_and_numbers_of_columns() {
    let rate = |n| Options { rate: Some(Column::Number(n)), ..Options::default() };
    for (text, options) in [
        ("t;MBit/s\n0;1,5\n1;2,5\n", Options::default()),
        ("Time\tRate [kbps]\n0\t1500\n1\t2500\n", Options::default()),
        (
            "# made by hand\n0 1.5e6\n1 2.5e6\n",
            Options { rate_unit: Some(RateUnit::PerSecond(1)), ..Options::default() },
        ),
        ("time_ms|x|bytes\n0|9|187500\n1000|9|312500\n", Options::default()),
        ("time,a_mbps,b_mbps\n0,9,1.5\n1,9,2.5\n", rate(3)),
        (
            "\u{feff}when,\"down, Mbit\"\n0,1.5\n1,2.5\n",
            Options { time: Some(Column::Number(1)), ..Options::default() },
        ),
        ("mbps\n1.5\n2.5\n", Options { interval: Some(Duration::from_secs(1)), ..Options::default() }),
        (
            "1500\n2500\n",
            Options {
                interval: Some(Duration::from_secs(1)),
                rate_unit: Some(RateUnit::PerSecond(1000)),
                ..Options::default()
            },
        ),
        ("time,mbps\n0,1.5\n1000,2.5\n", Options { time_unit: Some(TimeUnit::Milliseconds), ..Options::default() }),
        ("time,mbps\n1900000000000,1.5\n1900000001000,2.5\n", Options::default()),
    ] {
        assert_eq!(rates(&read(text, &options).unwrap()), [(1000, 1500), (2000, 2500)], "{text}");
    }
}

#[test]
fn rate_delay_and_loss_in_one_table() {
    let recording = plain("t,mbps,rtt_ms,loss_pct\n0,8,40,0\n1,9,,0.5\n2,7,50,\n");
    assert_eq!(rates(&recording), [(1000, 8000), (2000, 9000), (3000, 7000)]);
    assert_eq!(delays(&recording), [(2000, 20_000), (3000, 25_000)]);
    assert_eq!(losses(&recording), [(1000, 0), (3000, 500)]);
}

#[test]
fn gaps_follow_a_stated_rule() {
    let text = "t,mbps\n0,8\n1,9\n4,7\n5,6\n30,5\n31,4\n";
    for (gaps, expected) in [
        (Gaps::Short, vec![(1000, 8), (4000, 9), (5000, 7), (6000, 6), (7000, 5), (8000, 4)]),
        (Gaps::Hold, vec![(1000, 8), (4000, 9), (5000, 7), (30_000, 6), (31_000, 5), (32_000, 4)]),
        (Gaps::Close, vec![(1000, 8), (2000, 9), (3000, 7), (4000, 6), (5000, 5), (6000, 4)]),
        (
            Gaps::Outage,
            vec![(1000, 8), (2000, 9), (4000, 0), (5000, 7), (6000, 6), (30_000, 0), (31_000, 5), (32_000, 4)],
        ),
    ] {
        let recording = read(text, &Options { gaps, ..Options::default() }).unwrap();
        let expected: Vec<_> = expected.into_iter().map(|(ms, mbps)| (ms, mbps * 1000)).collect();
        assert_eq!(rates(&recording), expected, "{gaps}");
    }
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let of_table = |options: Options| Options { form: Some(Form::Table), ..options };
    for (text, options, expected) in [
        ("", Options::default(), "the recording is empty; accepted: mahimahi's milliseconds"),
        ("hello\nworld\n", Options::default(), "the form is not known: the first line is \"hello\""),
        ("t,mbps\n0,1\n1,x\n", Options::default(), "line 3, column `mbps`: `x` is no number"),
        ("t,mbps\n0,1\n1,-2\n", Options::default(), "line 3, column `mbps`: `-2` is less than nothing"),
        ("t,mbps\n0,1\nsoon,2\n", Options::default(), "line 3, column `t`: `soon` is no time"),
        ("t,mbps\n0,1\n2,2\n1,3\n", Options::default(), "line 4: the time goes back, from 2s to 1s"),
        ("t,mbps\n0,1\n", Options::default(), "there is one row with a time and a value; accepted: two rows"),
        ("t,mbps\n0,1\n500,2\n", Options::default(), "the rows are 500 s apart if column `t` is in seconds"),
        ("t,rate\n0,100000\n1,200000\n", Options::default(), "column `rate`: the rate has no unit"),
        ("0,1.5\n1,2.5\n", Options::default(), "column `2`: the rate has no unit"),
        ("0,1,2\n1,2,3\n", Options::default(), "the table has no header and 3 columns; accepted: numbers of columns"),
        ("a,b\n0,1\n1,2\n", Options::default(), "no column of a, b is a time by its name"),
        ("t,b\n0,1\n1,2\n", Options::default(), "no column of t, b is a rate, delay or loss by its name"),
        ("t,loss\n0,1\n1,200\n", Options::default(), "line 3, column `loss`: `200` is no loss; accepted: 0 to 100"),
        (
            "2030-01-01 10:00:00,50000\n2030-01-01 10:00,50000\n",
            Options::default(),
            "line 2, column `1`: `2030-01-01 10:00`",
        ),
        (
            "t,mbps\n0,1\n1,2\n",
            of_table(Options { rate: Some(Column::Name("Mbps".into())), ..Options::default() }),
            "`rate`: there is no column `Mbps`; accepted: 1 to 2, or one of t, mbps",
        ),
        (
            "1\n2\n",
            Options { rate: Some(Column::Number(1)), ..Options::default() },
            "`rate` has no meaning for a recording of form mahimahi",
        ),
        ("1\nx\n", Options::default(), "line 2 holds \"x\""),
        (
            "[  5]  0.00-1.00  sec  1 MBytes  8.0 Mbits/sec\n[  5]  2.00-1.00  sec  1 MBytes  8.0 Mbits/sec\n",
            Options::default(),
            "line 2: this interval ends where it begins",
        ),
        (
            "64 bytes from h: icmp_seq=70000 ttl=1 time=1 ms",
            Options::default(),
            "line 1: `icmp_seq=70000` is no number",
        ),
    ] {
        let said = refusal(text, &options);
        assert!(said.starts_with(expected), "{text}\n{said}");
    }
}

#[test]
fn what_is_written_is_read_back() {
    let text = "time,mbps,rtt_ms,loss\n2030-04-12 10:40:20Z,147,40,0\n2030-04-12 10:40:21Z,260.5,41,0.25\n\
        2030-04-12 10:40:22Z,260.5,41,0.25\n2030-04-12 11:40:22Z,1,41,0\n2030-04-12 11:40:23Z,2,41,0\n";
    let recording = plain(text);
    let again = plain(&table_text(&recording));
    assert_eq!((&again.rate, &again.delay, &again.loss), (&recording.rate, &recording.delay, &recording.loss));
    assert_eq!(again.stretches, recording.stretches);
    // 12 Mbit/s are a packet each millisecond, 6 every second one.
    let recording = plain("t,mbps\n0,12\n0.004,6\n0.008,0\n");
    assert_eq!(recording.mahimahi_text().unwrap(), "1\n2\n3\n4\n6\n8\n12\n");
}
