//! The arithmetic of the BPF programs, compiled for the host, gives the windows of the policies of the simulator.
//!
//! 10,000 drawn traces of ACKs, losses and repairs over one to four subflows for each algorithm. Needs a C compiler; is
//! skipped where there is none, unless `ANABRANCH_REQUIRE_CC=1`.
#![allow(clippy::unwrap_used)]

#[path = "common/compiled.rs"]
mod compiled;

use anabranch_policy::Catalogue;
use anabranch_policy::congestion::{Ack, Controller, InitialWindow, LossResponse, RateSample, Rules};
use anabranch_units::{Bytes, Duration, Instant, SubflowId};
use compiled::{Chance, compiled, has_compiler, run};
use std::fmt::Write as _;

const TRACES: u64 = 10_000;
/// Windows differ by less \[segments\].
const TOLERANCE: f64 = 1e-4;

#[test]
fn the_arithmetic_of_the_kernel_is_that_of_the_simulator() {
    if !has_compiler() {
        return;
    }
    for algorithm in anabranch_kernel::ALGORITHMS {
        let mut chance = Chance(7);
        let (mut input, mut expected) = (String::new(), Vec::new());
        (0..TRACES).for_each(|_| trace(algorithm.name, &mut chance, &mut input, &mut expected));
        let numbers = run(&compiled("trace", algorithm.name), input);
        let windows: Vec<f64> = numbers.iter().map(|number| *number as f64 / (1u64 << 32) as f64).collect();
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
                sample: Some(RateSample { prior_delivered, ..RateSample::default() }),
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
