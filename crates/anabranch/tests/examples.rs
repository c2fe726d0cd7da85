//! The examples run, and hold what they claim.

#[path = "../examples/codec.rs"]
mod codec;
#[path = "../examples/own_congestion.rs"]
mod own_congestion;
#[path = "../examples/own_scheduler.rs"]
mod own_scheduler;
#[path = "../examples/simulate.rs"]
mod simulate;
#[path = "../examples/two_endpoints.rs"]
mod two_endpoints;

type Outcome = Result<(), Box<dyn std::error::Error>>;

#[test]
fn simulate_runs() -> Outcome {
    simulate::main()
}

#[test]
fn two_endpoints_runs() -> Outcome {
    two_endpoints::main()
}

#[test]
fn codec_runs() -> Outcome {
    codec::main()
}

#[test]
fn own_scheduler_runs() -> Outcome {
    own_scheduler::main()
}

#[test]
fn own_congestion_runs() -> Outcome {
    own_congestion::main()
}
