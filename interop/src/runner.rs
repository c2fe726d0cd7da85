//! Runs tests that need namespaces, or says why it does not.

use anabranch_host::{Namespace, Tun};
use libtest_mimic::{Arguments, Failed, Trial};
use std::process::ExitCode;

/// One test: its name and what it does. An error is what was wrong.
pub struct Case {
    name: String,
    test: Box<dyn FnOnce() -> Result<(), String> + Send>,
}

impl Case {
    /// A test.
    pub fn new(name: impl Into<String>, test: impl FnOnce() -> Result<(), String> + Send + 'static) -> Self {
        Case { name: name.into(), test: Box::new(test) }
    }
}

/// Runs the tests, at most `at_once` at the same time unless the command line says otherwise: most of their time they
/// wait.
///
/// If the system has no MPTCP or permits no namespaces, they count as ignored, with a message; with
/// `ANABRANCH_REQUIRE_NETNS` in the environment, as in CI, that is a failure.
pub fn run(cases: Vec<Case>, at_once: usize) -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(at_once);
    let missing = if arguments.list { None } else { missing() };
    if let Some(missing) = &missing {
        if std::env::var_os("ANABRANCH_REQUIRE_NETNS").is_some() {
            eprintln!("FAILED: ANABRANCH_REQUIRE_NETNS is set, and {missing}");
            return ExitCode::FAILURE;
        }
        eprintln!("SKIPPED: {} tests against the Linux kernel: {missing}", cases.len());
    }
    let trial = |case: Case| {
        Trial::test(case.name, || (case.test)().map_err(Failed::from)).with_ignored_flag(missing.is_some())
    };
    libtest_mimic::run(&arguments, cases.into_iter().map(trial).collect()).exit_code()
}

/// Names the first requirement of the tests that this system lacks.
pub fn missing() -> Option<String> {
    let namespace = match Namespace::new("check") {
        Ok(namespace) => namespace,
        Err(error) => return Some(format!("no network namespace can be made: {error} (run as root)")),
    };
    if let Err(error) = namespace.sysctl("net.mptcp.enabled", "1") {
        return Some(format!("the kernel has no MPTCP: {error}"));
    }
    if let Err(error) = namespace.command("ip", &["mptcp", "limits", "show"]) {
        return Some(format!("no `ip mptcp`: {error} (install iproute2)"));
    }
    if let Err(error) = namespace.run(|| Tun::open("check0").map(drop)) {
        return Some(format!("no TUN device can be opened: {error}"));
    }
    None
}
