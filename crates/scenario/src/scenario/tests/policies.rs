//! Policies of scenario files and profiles.

use super::*;
use anabranch_policy::scheduler::{Entry, MinRtt};

#[test]
fn the_policies_reported_are_those_of_the_host_that_sends() {
    let text = format!("{PATHS}[client]\nscheduler = \"ecf\"\n{}direction = \"up\"\n", BULK);
    let scenario = read(&text).unwrap();
    assert_eq!((&*scenario.policies().scheduler.name, &*scenario.receiver().scheduler.name), ("ecf", "anabranch"));
}

#[test]
fn a_scheduler_of_ones_own_is_found_by_its_name() {
    let text = format!("{PATHS}[host]\nscheduler = \"mine\"\n{BULK}");
    let origin = || Origin { scenario: "test.toml".into(), sets: vec![] };
    let trace = |_: &str, _| Ok("1\n".to_owned());
    let mut catalogue = Catalogue::default();
    catalogue.schedulers.add(Entry::new("mine", "for this test", "", |_| Box::new(MinRtt))).unwrap();
    let catalogue = Arc::new(catalogue);
    let scenario = Scenario::read(&catalogue, "test", "test.toml", &text, origin(), &trace).unwrap();
    assert_eq!(scenario.policies().scheduler.name, "mine");
    assert!(scenario.default_schedulers().contains(&"mine".to_owned()));
    assert!(scenario.with_scheduler("mine").is_ok());
    assert!(read(&text).is_err(), "the registry itself knows nothing of it");
}

#[test]
fn policies_change_hands_in_the_course_of_a_run() {
    let change = r#"
        [[change]]
        at = "3s"
        scheduler = { name = "ecf", beta = 0.5 }
        congestion = "reno"
        [[change]]
        at = "4s"
        host = "client"
        reinjection = "none"
        ack-path = "own"
        window = "shared"
        [[change]]
        at = "5s"
        path = "wlan"
        rate = "1mbit"
        scheduler = "round-robin"
        [run]
        spread = "10s"
    "#;
    let scenario = read(&format!("{PATHS}{BULK}{change}")).unwrap();
    let said: Vec<_> = scenario.switched.iter().map(|s| (s.at_s, s.host, s.seam, &*s.policy.name)).collect();
    let both = "both hosts";
    let expected = [
        (3.0, both, "scheduler", "ecf"),
        (3.0, both, "congestion", "reno"),
        (4.0, "client", "window", "shared"),
        (4.0, "client", "ack-path", "own"),
        (4.0, "client", "reinjection", "none"),
        (5.0, both, "scheduler", "round-robin"),
    ];
    assert_eq!(said, expected);
    assert_eq!(scenario.switched[0].policy.parameters.0[0], ("beta".to_owned(), Value::Number(0.5)));
    let spec = scenario.spec(1);
    assert_eq!((spec.switches.len(), spec.network.changes.len()), (6, 1));
    assert!(matches!(spec.switches[1].switch, Switch::Congestion(_)));
    assert_eq!(spec.switches[4].host, Some(anabranch_sim::Host::Client));
    // The switches move with all other changes.
    assert_eq!(spec.switches[5].at, spec.network.changes[0].at);
    assert!(spec.switches[0].at >= Duration::from_secs(3));
    for (wrong, said) in [
        ("at = \"3s\"\n", "this change sets no value"),
        (
            "at = \"3s\"\nhost = \"client\"\npath = \"wlan\"\nrate = \"1mbit\"\n",
            "this change names a host but no policy",
        ),
        ("at = \"3s\"\nrate = \"1mbit\"\n", "`path` is missing"),
        ("at = \"3s\"\npath = \"wlan\"\nscheduler = \"ecf\"\n", "this change sets no value of its path"),
        ("at = \"3s\"\nscheduler = \"efc\"\n", "there is no scheduler called `efc`"),
    ] {
        let error = read(&format!("{PATHS}{BULK}[[change]]\n{wrong}")).err().unwrap();
        assert_eq!(error.to_string(), said);
    }
}

/// Connections begin on the path that the client's policy chooses; a change can replace the policy for later ones.
#[test]
fn a_first_path_may_be_named() {
    const SLOW: &str = "[path.slow]\nrate = \"20mbit\"\ndelay = \"150ms\"\n";
    const FAST: &str = "[path.fast]\nrate = \"20mbit\"\ndelay = \"5ms\"\n";
    const FILES: &str = "[[workload]]\nkind = \"files\"\nsize = \"20kB\"\ncount = 3\nthink = \"1s\"\n";
    let times = |more: &str| {
        let scenario = read(&format!("{SLOW}{FAST}{more}{FILES}")).unwrap();
        let outcome = anabranch_sim::run(&scenario.spec(1)).unwrap();
        let transfers = outcome.transfers.iter();
        transfers.map(|transfer| transfer.duration().unwrap().as_millis() > 100).collect::<Vec<_>>()
    };
    assert_eq!(times(""), [false; 3], "raced");
    assert_eq!(times("[client]\nfirst-path = \"as-listed\"\n"), [true; 3]);
    assert_eq!(times("[host]\nprofile = \"linux\"\n"), [true; 3]);
    assert_eq!(times("[host]\nprofile = \"linux\"\n[client]\nfirst-path = \"raced\"\n"), [false; 3]);
    // The first path answers before the second is tried; its join shows that the second is faster.
    assert_eq!(times("[host]\nfirst-path = { name = \"raced\", delay = 320 }\n"), [true, false, false]);
    let later = "[host]\nprofile = \"linux\"\n[[change]]\nat = \"1s\"\nfirst-path = \"lowest-rtt\"\n";
    assert_eq!(times(later), [true, false, false]);
    let wrong = |policy: &str| read(&format!("{SLOW}{FAST}{FILES}[host]\nfirst-path = {policy}\n")).err().unwrap();
    assert_eq!(wrong("\"race\"").to_string(), "there is no first path called `race`");
    assert_eq!(wrong("{ name = \"raced\", delay = -1 }").to_string(), "`raced.delay` is -1");
}

/// Our own profile has policies of its own; profiles modelled on other stacks keep theirs.
#[test]
fn a_profile_brings_its_policies() {
    let policies = |hosts: &str| {
        let scenario = read(&format!("{PATHS}[host]\n{hosts}\n{BULK}")).unwrap();
        let Chosen { profile, scheduler, congestion, reinjection, first_path, .. } = scenario.policies().clone();
        [profile, scheduler.name, congestion.name, reinjection.name, first_path.name]
    };
    assert_eq!(policies(""), ["anabranch", "anabranch", "cubic-sbd", "insured", "raced"]);
    assert_eq!(policies("reinjection = \"tail\""), ["anabranch", "anabranch", "cubic-sbd", "tail", "raced"]);
    let linux = ["linux", "linux-burst", "cubic-kernel", "upstream", "as-listed"];
    assert_eq!(policies("profile = \"linux\""), linux);
    for other in Profile::NAMES.iter().filter(|name| ![Profile::DEFAULT, "linux"].contains(name)) {
        let found = policies(&format!("profile = \"{other}\""));
        assert_eq!(found, [*other, "min-rtt", "lia", "opportunistic", "as-listed"]);
    }
}

/// With one path there is no other to begin on or to send a copy over: with the same buffers, congestion control,
/// HyStart and DSS, and no send queue, all events are those of `linux`.
#[test]
fn with_one_path_the_profile_makes_no_difference() {
    const ONE: &str = "[path.only]\nrate = \"10mbit\"\ndelay = \"20ms\"\nloss = \"2%\"\nqueue = \"30p\"\n";
    const WORK: &str = "[[workload]]\nkind = \"files\"\nsize = \"100kB\"\ncount = 20\nthink = \"300ms\"\n";
    let digest = |hosts: &str| {
        let scenario = read(&format!("{ONE}{hosts}{WORK}")).unwrap();
        anabranch_sim::run(&scenario.spec(1)).unwrap().digest
    };
    for more in ["", "multipath = false\n"] {
        let own = "scheduler = \"min-rtt\"\ncongestion = \"cubic-sbd\"\nhystart = \"plus-plus\"\n\
                   short-dss = true\nreceive-buffer = \"32MiB\"\nsend-buffer = \"32MiB\"\n";
        let linux = digest(&format!("[host]\nprofile = \"linux\"\n{own}{more}"));
        assert_eq!(digest(&format!("[host]\n{more}")), linux, "{more}");
        assert_ne!(digest(&format!("[host]\ninitial-window = 4\n{more}")), linux, "or nothing could be told");
    }
}
