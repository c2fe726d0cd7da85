//! The arithmetic of the BPF programs, compiled for the host, gives the windows of the policies of the simulator.
//!
//! 10,000 drawn traces of ACKs, losses and repairs over one to four subflows for each algorithm. Needs a C compiler; is
//! skipped where there is none, unless `ANABRANCH_REQUIRE_CC=1`.
#![allow(clippy::unwrap_used)]

use anabranch_policy::Catalogue;
use anabranch_policy::congestion::{Ack, Controller, InitialWindow, LossResponse, RateSample, Rules};
use anabranch_units::{Bytes, Duration, Instant, SubflowId};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const TRACES: u64 = 10_000;
/// Windows differ by less \[segments\].
const TOLERANCE: f64 = 1e-4;

#[test]
fn the_arithmetic_of_the_kernel_is_that_of_the_simulator() {
    if Command::new("cc").arg("--version").output().is_err() {
        assert!(std::env::var_os("ANABRANCH_REQUIRE_CC").is_none(), "there is no C compiler");
        eprintln!("skipped: there is no C compiler");
        return;
    }
    for algorithm in anabranch_kernel::ALGORITHMS {
        let program = compiled(algorithm.name);
        let mut chance = Chance(7);
        let (mut input, mut expected) = (String::new(), Vec::new());
        (0..TRACES).for_each(|_| trace(algorithm.name, &mut chance, &mut input, &mut expected));
        let windows = run(&program, input);
        assert_eq!(windows.len(), expected.len());
        let (mut largest, mut beyond) = (0.0_f64, 0);
        for (window, expected) in windows.iter().zip(&expected) {
            largest = largest.max((window - expected).abs());
            beyond += usize::from((window - expected).abs() >= TOLERANCE);
        }
        println!("{}: {} windows, largest difference {largest:e} segments", algorithm.name, windows.len());
        assert_eq!(beyond, 0, "{}: of {} windows; largest difference {largest}", algorithm.name, windows.len());
    }
}

fn compiled(algorithm: &str) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("trace-{algorithm}"));
    let status = Command::new("cc")
        .args(["-O2", "-std=gnu11", &format!("-DALGORITHM=\"{algorithm}.h\"")])
        .arg("-I")
        .args([here.join("bpf"), here.join("tests/trace.c")])
        .arg("-o")
        .arg(&program)
        .status();
    assert!(status.unwrap().success(), "{algorithm} does not compile");
    program
}

fn run(program: &Path, input: String) -> Vec<f64> {
    let mut child = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| line.parse::<u64>().unwrap() as f64 / (1u64 << 32) as f64).collect()
}

/// Draws a trace, writes it for the C program, and runs it through the simulator's controller. Segments are a byte.
fn trace(name: &str, chance: &mut Chance, input: &mut String, expected: &mut Vec<f64>) {
    let count = 1 + chance.below(4) as u16;
    let catalogue = Catalogue::default();
    let built = catalogue.congestion.find(name).unwrap().build_default();
    let mut controller = Controller::new(built, RULES);
    let mut bases = Vec::new();
    for id in 0..count {
        controller.add(SubflowId(id), Bytes::new(1));
        controller.set_counted(SubflowId(id), true);
        bases.push(2_000 + chance.below(100_000));
    }
    let mut repairs = vec![false; usize::from(count)];
    let mut delivered = vec![0; usize::from(count)];
    writeln!(input, "n {count}").unwrap();
    for step in 0..40 + chance.below(80) {
        let at = chance.below(count.into()) as usize;
        let (id, now) = (SubflowId(at as u16), Instant::ZERO + Duration::from_millis(step));
        if repairs[at] && chance.below(3) == 0 {
            writeln!(input, "r {at}").unwrap();
            controller.on_recovered(now, id);
            repairs[at] = false;
        } else if !repairs[at] && chance.below(25) == 0 {
            writeln!(input, "l {at}").unwrap();
            controller.on_fast_retransmit(now, id, controller.cwnd(id));
            repairs[at] = true;
        } else {
            let (acked, rtt) = (1 + chance.below(2), bases[at] + chance.below(1 + bases[at] / 2));
            let srtt = bases[at] + chance.below(1 + bases[at] / 2);
            let ends = chance.below(6) == 0;
            writeln!(input, "a {at} {acked} {rtt} {srtt} {}", u8::from(ends)).unwrap();
            // The acknowledged segment left after all that was delivered before, or before anything was.
            let prior_delivered = if ends { delivered[at] } else { 0 };
            delivered[at] += acked;
            let ack = Ack {
                acked: Bytes::new(acked),
                rtt: Some(Duration::from_micros(rtt)),
                srtt: Some(Duration::from_micros(srtt)),
                cwnd_limited: true,
                in_recovery: repairs[at],
                delivered: delivered[at],
                sample: Some(RateSample { prior_delivered, over: None, app_limited: false }),
                ..Ack::default()
            };
            controller.on_ack(now, id, &ack);
        }
        expected.push(controller.flows()[at].cwnd.as_f64());
    }
}

/// Those of Linux, without what Linux does outside of an algorithm.
const RULES: Rules = Rules {
    initial_window: InitialWindow::Segments(10),
    idle_restart: false,
    cwnd_limited_check: true,
    byte_counting_limit_segments: u32::MAX,
    max_cwnd: None,
    initial_ssthresh_segments: Some(20),
    hystart: None,
    prr: false,
    loss_response: LossResponse::Linux,
};

/// SplitMix64.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ (x >> 31)) % limit
    }
}
