//! Messages of a script that fails: the line, the expectation, the actual value, and the events before it.
#![allow(clippy::unwrap_used)]

use anabranch_script::{Failed, ScriptError, run_text};

const SERVER: &str = "\
subflow a host 10.1.0.1:80 peer 10.0.0.1:4000
listen 80
a < S wscale=7 mp_capable
a > S. seq=0 ack=1 mp_capable(flags=H, sender=host)
a < . mp_capable
";

fn failed(rest: &str) -> Failed {
    let text = format!("{SERVER}{rest}");
    let error = run_text("t.script", &text).expect_err("it cannot hold");
    error.failed().unwrap_or_else(|| panic!("{error:?}")).clone()
}

fn refused(text: &str) -> String {
    let error = run_text("t.script", text).expect_err("it is no script");
    assert!(error.is_refused(), "{error}");
    format!("{:?}", miette::Report::new(error))
}

#[test]
fn another_segment_is_compared_field_by_field() {
    let failed = failed("a < P. data=1:101 mp_capable\na > . ack=201 win=7 dss(ack=102)\n");
    assert_eq!(failed.place, "t.script:7");
    assert_eq!(failed.expected.as_deref(), Some("a > . ack=201 win=7 dss(ack=102)"));
    assert_eq!(failed.got.as_deref(), Some("@0 a > . seq=1 ack=101 win=32767 dss(ack=101)"));
    let wanted = ["ack: expected 201, got 101", "win: expected 7, got 32767", "dss ack: expected 102, got 101"];
    assert_eq!(failed.differences, wanted);
    assert!(failed.around.last().unwrap().starts_with("@0 a < P. seq=1 ack=1 win=65535 data=1:101"));
    assert_eq!(failed.around.len(), 5);
}

/// Everything shown is in the language of the scripts: pasted, it holds.
#[test]
fn what_came_can_be_pasted() {
    let steps = "a < P. data=1:101 mp_capable\n{}\nwrite 50\n{}\na < . remove_addr(7) dss(ack=51)\nabort\n{}\n";
    let mut script = steps.to_owned();
    for _ in 0..3 {
        let probe = script.replacen("{}", "a > U", 1).split("{}").next().unwrap().to_owned();
        let got = failed(&probe).got.unwrap();
        assert!(got.starts_with("@0 a > "), "{got}");
        script = script.replacen("{}", &got, 1);
    }
    assert!(script.contains("mp_fastclose"), "{script}");
    run_text("t.script", &format!("{SERVER}{script}")).unwrap();
}

#[test]
fn segments_that_nobody_expected_fail() {
    let middle = failed("a < P. data=1:101 mp_capable\na < P. data=101:201 dss(map)\n");
    assert!(middle.problem.contains("the script does not expect"), "{middle}");
    assert_eq!(middle.place, "t.script:7");
    let end = failed("write 100\n");
    assert!(end.problem.contains("after the end"), "{end}");
}

#[test]
fn silence_and_wrong_times_fail() {
    let silence = failed("+5s a > .\n");
    assert!(silence.problem.contains("nothing was sent on `a` until 5s"), "{silence}");
    let late = failed("write 100\na > P. data=1:101 mptcp=*\n+5s..6s a > P. data=1:101 mptcp=*\n");
    assert!(late.differences[0].starts_with("time: expected @5s..6s, got @"), "{late}");
    let other = failed("subflow x host 10.1.0.1:80 peer 10.9.9.9:1\na < P. data=1:101 mp_capable\nx > .\n");
    assert!(other.got.unwrap().contains("a > ."));
}

#[test]
fn options_and_payload_that_are_not_stated_count() {
    let option = failed("write 100\na > P. data=1:101\n");
    assert_eq!(option.differences, ["dss: expected none, got dss(ack8=1, dsn8=1, ssn=1, len=100)"].map(short));
    let payload = failed("write 100\na > P. mptcp=*\n");
    assert_eq!(payload.differences, ["payload: expected none, got data=1:101"]);
    let map = failed("write 100\na > P. data=1:101 dss(ack=1)\n");
    assert_eq!(map.differences, ["dss dsn8: expected no mapping, got 1"]);
}

fn short(text: &str) -> String {
    text.replace("ack8", "ack").replace("dsn8", "dsn")
}

#[test]
fn numbers_events_and_reads_are_checked() {
    assert!(failed("check subflows = 2\n").problem.contains("subflows is 1"));
    assert!(failed("event fallback\n").problem.contains("did not hear `fallback`"));
    assert!(failed("no event accepted\n").problem.contains("heard `accepted mptcp`"));
    assert!(failed("read 5\n").problem.contains("there were 0 bytes to read, expected 5"));
    assert!(failed("write 5 takes 3\n").problem.contains("the write took 5 bytes, expected 3"));
    assert!(failed("drain 1\n").problem.contains("0 segments were sent"));
}

/// The bytes that reach the application are compared with what the peer sent there.
#[test]
fn wrong_bytes_are_found() {
    let wrong = failed(
        "a < P. data=1:101 mp_capable\na > . mptcp=*\na < P. data=101:201 payload=bad dss(map)\ndrain\nread 200\n",
    );
    assert!(wrong.problem.contains("are not what the peer sent"), "{wrong}");
}

#[test]
fn scripts_that_are_wrong_are_refused_with_a_place() {
    for (text, parts) in [
        ("listen 80\nfrobnicate\n", ["t.script:2", "not a statement", "frobnicate"]),
        ("a < S\n", ["t.script:1", "there is no subflow `a`", "declare it"]),
        ("subflow a host 10.1.0.1:80 peer 10.0.0.1:1\na < . seq=1\n", ["t.script:2", "is not known yet", "expect"]),
        (
            "subflow a host 10.1.0.1:80 peer 10.0.0.1:1\na < S dss(ack=1)\n",
            ["t.script:2", "number is not known", "expect"],
        ),
        ("include nothing.inc\n", ["t.script:1", "cannot include others", "file"]),
        ("repeat 3 as i\nnothing\n", ["t.script:1", "without `end`", "close it"]),
        ("check {j} = 1\n", ["t.script:1", "`j` cannot be evaluated", "loop variables"]),
        ("host checksum=maybe\n", ["t.script:1", "is refused", "on or off"]),
        ("host chekcsum=on\n", ["t.script:1", "is refused", "did you mean `checksum`"]),
        ("nothing\nlisten 80\nhost checksum=on\n", ["t.script:3", "exists already", "move it"]),
        ("check fallbak = 1\n", ["t.script:1", "cannot be checked", "did you mean `fallback`"]),
        ("+1s..2s listen 80\n", ["t.script:1", "takes no range of times", "ranges"]),
    ] {
        let said = refused(text);
        for part in parts {
            assert!(said.contains(part), "{text}: `{part}` is missing in\n{said}");
        }
    }
}

/// A wrong line behind a failing one is found before anything runs.
#[test]
fn the_whole_script_is_read_first() {
    let error = run_text("t.script", "check subflows = 9\nlisten eighty\n").expect_err("it is no script");
    assert!(matches!(error, ScriptError::Refused(_)), "{error}");
}

/// An injected segment is shown so that it can be pasted to inject the same again.
#[test]
fn what_was_injected_can_be_pasted() {
    let lines = [
        "a < P. data=1:101 mp_capable",
        "a < P. seq=1 data=1:101 dss(dsn4=1, ack4=1, len=2000)",
        "a < P. data=5:105 payload=bad dss(map, fin, csum=bad)",
        "a < . seq=-5 ack=abs:77 win=3 dss(fin, dsn=1, csum)",
        "a < PU. urg=3 seq=abs:0x10 len=7 ts=5:6 sack=1:2,3:9",
        "a < R. mp_fastclose(key=bad) mp_tcprst(reason=9, transient=yes)",
        "a < . mp_prio(backup) mp_fail(dsn=-4)",
        "a < S mss=9 wscale=3 sack_ok mp_join(id=4, backup, token=0x11, nonce=0xff)",
        "a < . add_addr(id=1, addr=fd00::1, port=8, hmac=bad)",
        "a < . add_addr(id=1, addr=1.2.3.4, echo) remove_addr(1, 2, 255)",
        "a < FW. mp_capable(v=3, flags=ABCDEFG, receiver=bad, sender=0x11, len=5, csum=0x1234)",
        "a < - option(30, f0 01) option(254, 99) broken(1e 00)",
        "a < . dss(dsn=abs:0xffffffffffffffff, ssn=-3, len=0, csum=0, ack=abs:5)",
    ];
    let injected = |line: &str| {
        let failed = failed(&format!("{line}\ndrain\ncheck subflows = 99\n"));
        failed.around.iter().rev().find(|line| line.contains(" a < ")).unwrap().clone()
    };
    for line in lines {
        let shown = injected(line);
        // A changed byte, and an HMAC or checksum of no known value, are shown as different from the expected.
        let again = shown.replace("payload=other", "payload=bad");
        assert_eq!(injected(&again), shown, "{line}");
    }
}
