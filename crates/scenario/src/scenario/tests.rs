#![allow(clippy::unwrap_used)]
use super::*;
use anabranch_engine::{Profile, ReceiveTuning, RtoRule, Switch};
use anabranch_net::{LossModel, QueueLimit};
use anabranch_paths::{
    Affected, Direction, Fault, Faults, MIDDLEBOXES, Middlebox, MiddleboxSpec, Nat, Stripped, Unmapped,
};
use anabranch_policy::congestion::{HyStart, LossResponse};
use anabranch_policy::registry::Value;
use anabranch_sim::page::Protocol;
use anabranch_sim::{Extent, FileOrder, Spacing};
use anabranch_units::{Bytes, Rate};

mod models;
mod policies;
mod recordings;
mod settings;
mod workloads;

const PATHS: &str = "[path.wlan]\nrate = \"25mbit\"\ndelay = \"10ms\"\n\
                     [path.lte]\ndown = \"lte.down\"\nup = \"5mbit\"\nrtt = \"60ms\"\n";
const BULK: &str = "[[workload]]\nkind = \"bulk\"\nduration = \"5s\"\n";

fn read_with(text: &str, sets: &[&str]) -> Result<Scenario, ScenarioError> {
    let origin = Origin { scenario: "test.toml".into(), sets: sets.iter().map(|set| (*set).to_owned()).collect() };
    Scenario::read(&built_in(), "test", "test.toml", text, origin, &|name, from_set| match (name, from_set) {
        ("lte.down", false) => Ok("1\n2\n2\n".to_owned()),
        ("mine.down", true) => Ok("5\n".to_owned()),
        ("broken.down", _) => Ok("1\nx\n".to_owned()),
        ("broken.har", _) => Ok("{\"log\": {\"entries\": [{\"startedDateTime\": 7}]}}".to_owned()),
        _ => Err(std::io::ErrorKind::NotFound.into()),
    })
}

fn built_in() -> Arc<Catalogue> {
    Arc::new(Catalogue::default())
}

fn read(text: &str) -> Result<Scenario, ScenarioError> {
    read_with(text, &[])
}

#[test]
fn the_shipped_scenarios_are_read() {
    for shipped in SHIPPED {
        let scenario = Scenario::load(&built_in(), shipped.name, &[]).unwrap();
        assert!(scenario.about.is_some() && scenario.paths().len() == 2, "{}", shipped.name);
        assert_eq!(scenario.digest.len(), 64);
    }
}

#[test]
fn paths_stand_in_the_order_of_the_file_with_what_it_says() {
    let text = r#"
        [link.core]
        rate = "50mbit"
        [path.wlan]
        down = "25mbit"
        up = "5mbit"
        rtt = "20ms"
        jitter = "1ms"
        loss = "1%"
        loss-up = { model = "list", packets = [3, 9] }
        queue = "1.5bdp"
        reorder = { probability = "2%", delay = "3ms" }
        duplicate = "0.1%"
        corrupt = "0.2%"
        nic = "1gbit"
        via = "core"
        middlebox = [{ kind = "strip", from = "syn-ack" }, { kind = "nat", rebind = "2s", end = "server" }]
        [path.dsl]
        rate = "10mbit"
        delay = "20ms"
        backup = true
    "#;
    let spec = read(&format!("{text}{BULK}")).unwrap().spec(1);
    let (wlan, dsl) = (&spec.network.paths[0], &spec.network.paths[1]);
    assert_eq!((wlan.name.as_str(), dsl.name.as_str()), ("wlan", "dsl"));
    assert_eq!((wlan.down.service.mean_rate(), wlan.up.service.mean_rate()), (Rate::from_mbps(25), Rate::from_mbps(5)));
    let ms = Duration::from_millis;
    assert_eq!((wlan.down.delay, wlan.up.delay, wlan.up.jitter), (ms(10), ms(10), ms(1)));
    assert_eq!(wlan.down.loss, LossModel::Bernoulli { p: 0.01 });
    assert_eq!(wlan.up.loss, LossModel::List(vec![3, 9]));
    assert_eq!(wlan.down.queue, QueueLimit::Bdp { factor: 1.5, round_trip: ms(20) });
    assert_eq!((wlan.down.duplication, wlan.down.corruption), (0.001, 0.002));
    assert_eq!(wlan.down.reordering.unwrap().extra, ms(3));
    assert_eq!((wlan.nic, wlan.via.as_deref()), (Some(Rate::from_mbps(1000)), Some("core")));
    assert_eq!((wlan.backup, dsl.backup), (false, true));
    let nat = Middlebox::Nat(Nat { rebind: Some(Duration::from_secs(2)), unmapped: Unmapped::Dropped });
    let strip = MiddleboxSpec::new(Middlebox::strip(Stripped::SynAck));
    assert_eq!((wlan.middleboxes.as_slice(), dsl.middleboxes.len()), (&[strip, MiddleboxSpec::at_server(nat)][..], 0));
    assert_eq!((dsl.down.queue, dsl.down.loss.clone()), (QueueLimit::Packets(100), LossModel::None));
    assert_eq!(spec.network.shared[0].down.service.mean_rate(), Rate::from_mbps(50));
}

/// Faults are named by kind; each segment has at most one of them.
#[test]
fn a_plan_of_faults_names_segments() {
    let text = |keys: &str| {
        format!("[path.a]\nrate = \"1mbit\"\ndelay = \"1ms\"\nmiddlebox = [{{ kind = \"faults\", {keys} }}]\n{BULK}")
    };
    let scenario = read(&text("drop = [3, 0], swap = [1], wait = \"1s\", direction = \"up\"")).unwrap();
    let plan = vec![(0, Fault::Drop), (1, Fault::Swap), (3, Fault::Drop)];
    let faults = Middlebox::Faults(Faults { plan, wait: Duration::from_secs(1), direction: Some(Direction::Up) });
    assert_eq!(scenario.spec(1).network.paths[0].middleboxes, [MiddleboxSpec::new(faults)]);
    assert!(read(&text("drop = [1], delay = [1]")).is_err());
}

/// Every kind of middlebox is in the list under the name that the file accepts, with the defaults in the list.
#[test]
fn the_list_of_middleboxes_is_what_a_file_accepts() {
    for info in MIDDLEBOXES {
        let scenario = read(&format!(
            "[path.a]\nrate = \"1mbit\"\ndelay = \"1ms\"\nmiddlebox = [{{ kind = \"{}\" }}]\n{BULK}",
            info.name
        ));
        assert_eq!(scenario.unwrap().spec(1).network.paths[0].middleboxes[0].kind.name(), info.name);
    }
    let help = read("[path.a]\nrate = \"1mbit\"\ndelay = \"1ms\"\nmiddlebox = [{ kind = \"\" }]").err().unwrap();
    for info in MIDDLEBOXES {
        assert!(help.help().unwrap().contains(info.name), "{}", info.name);
    }
    assert_eq!(help.help().unwrap().split(", ").count(), MIDDLEBOXES.len());
}

/// A key, a word or a number that a kind does not accept is shown where it stands, with the accepted ones.
#[test]
fn keys_of_middleboxes_are_checked_against_their_declaration() {
    let refused = |keys: &str| {
        let path = "[path.a]\nrate = \"1mbit\"\ndelay = \"1ms\"\n";
        let error = read(&format!("{path}middlebox = [{{ {keys} }}]\n{BULK}")).err().unwrap();
        (error.to_string(), error.quoted().unwrap().to_owned(), error.help().unwrap().to_owned())
    };
    let (problem, quoted, help) = refused("kind = \"split\", sise = \"5B\"");
    assert_eq!((problem.as_str(), quoted.as_str()), ("unknown key `sise`", "sise"));
    assert_eq!(help, "did you mean `size`? accepted: size, options, direction, end");
    let (problem, quoted, help) = refused("options = \"furst\", kind = \"split\"");
    assert_eq!((problem.as_str(), quoted.as_str()), ("unknown value `furst`", "\"furst\""));
    assert_eq!(help, "did you mean `first`? accepted: copied, first");
    let (_, quoted, help) = refused("kind = \"alter-payload\", remove = 65536");
    assert_eq!((quoted.as_str(), help.as_str()), ("65536", "accepted: a whole number up to 65535"));
    let (_, quoted, help) = refused("kind = \"alter-payload\", offset = -1");
    assert_eq!((quoted.as_str(), help.as_str()), ("-1", "accepted: a whole number up to 4294967295"));
    let (_, quoted, help) = refused("kind = \"split\", size = \"64KiB\"");
    assert_eq!((quoted.as_str(), help.as_str()), ("\"64KiB\"", "accepted: up to 65535B"));
    let (_, _, help) = refused("kind = \"split\", size = \"0B\"");
    assert_eq!(help, "accepted: a piece holds at least one byte");
}

#[test]
fn hosts_take_a_profile_then_single_knobs_then_what_is_their_own() {
    let hosts = r#"
        [host]
        profile = "newreno"
        sack = true
        delayed-ack = false
        min-rto = "300ms"
        receive-buffer = "64KiB"
        scheduler = "round-robin"
        [client]
        receive-buffer = "32KiB"
        rejoin = false
        dss-checksum = true
    "#;
    let scenario = read(&format!("{PATHS}{hosts}{BULK}")).unwrap();
    let spec = scenario.spec(1);
    assert_eq!(
        (spec.client.config.receive_buffer, spec.server.config.receive_buffer),
        (Bytes::new(32_768), Bytes::new(65_536))
    );
    assert_eq!((spec.client.config.rejoin, spec.server.config.rejoin), (None, Some(Duration::from_secs(1))));
    assert_eq!((spec.client.config.checksum, spec.server.config.checksum), (true, false));
    let profile = spec.server.config.profile;
    assert_eq!((profile.name, profile.sack, profile.rack, profile.delayed_ack), ("newreno", true, false, None));
    assert_eq!(scenario.policies().scheduler.name, "round-robin");
}

#[test]
fn old_kernels_bring_their_receive_side_and_each_rule_can_be_set_alone() {
    let profile =
        |hosts: &str| read(&format!("{PATHS}[host]\n{hosts}\n{BULK}")).map(|it| it.spec(1).server.config.profile);
    let old = profile("profile = \"linux-4.1\"").unwrap();
    assert_eq!((old.receive_tuning, old.adv_win_scale, old.tsq_segments), (ReceiveTuning::Stepwise, Some(1), 3));
    assert_eq!((old.rack, old.early_retransmit, old.initial_ssthresh), (false, true, None));
    assert_eq!(profile("profile = \"linux-3.14\"").unwrap().tsq_segments, 57);
    let knobs = "receive-tuning = \"stepwise\"\nadv-win-scale = -2\ntsq-segments = 4\ninitial-ssthresh = 10\n\
                 temporal-sharing = true";
    let set = profile(knobs).unwrap();
    assert_eq!((set.name, set.receive_tuning, set.adv_win_scale), ("anabranch", ReceiveTuning::Stepwise, Some(-2)));
    assert_eq!((set.tsq_segments, set.initial_ssthresh), (4, Some(10)));
    assert_eq!((old.temporal_sharing, set.temporal_sharing), (false, true));
    assert_eq!(
        (old.hystart, old.prr, set.hystart, set.prr),
        (Some(HyStart::Eighth), true, Some(HyStart::PlusPlus), true)
    );
    let set = profile("profile = \"linux-4.1\"\nhystart = \"off\"\nprr = false").unwrap();
    assert_eq!((set.hystart, set.prr), (None, false));
    let responses = ["linux", "linux-3.14", "newreno", "rfc"]
        .map(|name| profile(&format!("profile = \"{name}\"")).unwrap().loss_response);
    assert_eq!(responses, [LossResponse::Linux, LossResponse::Linux, LossResponse::Standard, LossResponse::Standard]);
    for (name, response) in [("standard", LossResponse::Standard), ("linux", LossResponse::Linux)] {
        assert_eq!(profile(&format!("loss-response = \"{name}\"")).unwrap().loss_response, response);
    }
    let ns3 = profile("profile = \"mptcp-ns3\"\nmin-rto = \"300ms\"").unwrap();
    assert_eq!((ns3.loss_response, ns3.single_repair, ns3.coupled_acks), (LossResponse::Halve, true, true));
    assert_eq!((ns3.initial_window, ns3.rto), (1, RtoRule::MptcpNs3 { min: Duration::from_millis(300) }));
    let set = profile("loss-response = \"halve\"\nsingle-repair = true\ncoupled-acks = true").unwrap();
    assert_eq!((set.loss_response, set.single_repair, set.coupled_acks), (LossResponse::Halve, true, true));
    for (wrong, help) in [
        ("adv-win-scale = 32", "accepted: -31 to 31"),
        ("tsq-segments = 0", "accepted: 1 segments or more"),
        ("initial-ssthresh = 1", "accepted: 2 segments or more"),
        ("profile = \"ns3\"", "it was renamed to `newreno`"),
        ("profile = \"linux-4.2\"", "did you mean"),
    ] {
        let error = profile(wrong).unwrap_err();
        assert!(error.help().unwrap().contains(help), "{wrong}: {:?}", error.help());
    }
}

#[test]
fn a_queue_in_packets_may_count_what_is_under_delay() {
    let path = |queue: &str| read(&format!("[path.a]\nrate = \"1mbit\"\ndelay = \"1ms\"\n{queue}\n{BULK}"));
    let counts = |queue: &str| path(queue).unwrap().spec(1).network.paths[0].down.queue_counts_delay;
    assert!(counts("queue-counts-delay = true") && counts("queue = \"9p\"\nqueue-counts-delay = true"));
    assert!(!counts("queue-counts-delay = false") && !counts(""));
    let error = path("queue = \"64KiB\"\nqueue-counts-delay = true").err().unwrap();
    assert!(error.help().unwrap().contains("in packets"), "{:?}", error.help());
}

#[test]
fn a_receive_buffer_is_fixed_or_tunes_itself() {
    let buffers = |hosts: &str| {
        read(&format!("{PATHS}{hosts}{BULK}")).map(|scenario| {
            let spec = scenario.spec(1);
            [spec.client, spec.server].map(|host| (host.config.initial_receive_buffer, host.config.receive_buffer))
        })
    };
    let (kib, mib) = (|n: u64| Bytes::new(n << 10), |n: u64| Bytes::new(n << 20));
    let both = "[host]\nreceive-buffer = { initial = \"16KiB\", max = \"2MiB\" }\n";
    assert_eq!(buffers(both).unwrap(), [(Some(kib(16)), mib(2)); 2]);
    let client = format!("{both}[client]\nreceive-buffer = \"1MiB\"\n[server]\nreceive-buffer = {{}}\n");
    assert_eq!(buffers(&client).unwrap(), [(None, mib(1)), (Some(kib(64)), mib(32))]);
    for (wrong, place) in [
        ("{ initial = \"2MiB\", max = \"1MiB\" }", "begins with"),
        ("{ initial = \"0B\" }", "is empty"),
        ("\"0B\"", "is empty"),
        ("{ start = \"1KiB\" }", "start"),
        ("5", "unit"),
    ] {
        let error = buffers(&format!("[host]\nreceive-buffer = {wrong}\n")).unwrap_err();
        assert!(error.to_string().contains(place), "{wrong}: {error}");
    }
}

/// Default after RFC 8684 §3.3.5. A given buffer is kept, and noted if the data goes in that direction.
#[test]
fn a_send_buffer_that_is_not_given_follows_the_receive_buffer() {
    let scenario = |hosts: &str| read(&format!("{PATHS}{hosts}{BULK}")).unwrap();
    for (hosts, client, server, remarks) in [
        ("", 32, 32, 0),
        ("[host]\nreceive-buffer = \"1MiB\"\n", 32, 32, 0),
        ("[host]\nreceive-buffer = \"60MiB\"\n", 60, 60, 0),
        ("[client]\nreceive-buffer = { max = \"60MiB\" }\n", 32, 60, 0),
        ("[client]\nreceive-buffer = \"60MiB\"\n[server]\nsend-buffer = \"40MiB\"\n", 32, 40, 1),
        ("[host]\nsend-buffer = \"4MiB\"\n", 4, 4, 1),
        ("[client]\nsend-buffer = \"4MiB\"\n", 4, 32, 0),
    ] {
        let scenario = scenario(hosts);
        let spec = scenario.spec(1);
        let found = [spec.client.config.send_buffer, spec.server.config.send_buffer].map(|buffer| buffer.get() >> 20);
        assert_eq!((found, scenario.notes().len()), ([client, server], remarks), "{hosts}");
    }
    let note = &scenario("[host]\nsend-buffer = \"5B\"\nreceive-buffer = \"6B\"\n").notes()[0];
    assert!(
        note.starts_with("the server's send buffer, 5B, is smaller than the client's receive buffer, 6B,"),
        "{note}"
    );
}

#[test]
fn what_is_wrong_is_shown_with_what_would_be_accepted() {
    let path = |keys: &str| format!("[path.wlan]\n{keys}\n{BULK}");
    let more = |keys: &str| format!("{PATHS}{keys}\n{BULK}");
    let only = |keys: &str| format!("{PATHS}[[workload]]\n{keys}");
    let udp = |keys: &str| more(&format!("[[workload]]\nkind = \"udp\"\npath = \"wlan\"\nrate = \"1mbit\"\n{keys}"));
    let mut said = String::new();
    for text in [
        // Keys and values.
        path("rate = \"25mbit\"\ndealy = \"10ms\""),
        path("rate = \"25Mbps\"\ndelay = \"10ms\""),
        path("rate = \"25mbit\"\ndelay = 10"),
        path("rate = \"25mbit\"\ndelay = \"10ms\"\nloss = 0.01"),
        path("rate = \"25mbit\"\ndelay = \"10ms\"\nbackup = \"yes\""),
        path("rate = \"25mbit\"\ndelay = \"10ms\"\nmiddlebox = \"strip\""),
        path("rate = \"25mbit\"\ndelay = \"10ms\"\nmiddlebox = [{ kind = \"stripp\" }]"),
        path("rate = \"25mbit\"\ndelay = \"10ms\"\nmiddlebox = [{ kind = \"strip\", from = \"sin\" }]"),
        path("rate = \"25mbit\"\ndelay = \"10ms\"\nmiddlebox = [{ kind = \"nat\", size = \"5B\" }]"),
        path("rate = \"25mbit\"\ndelay = \"10ms\"\nmiddlebox = [{ kind = \"split\", size = \"0B\" }]"),
        path("rate = \"25mbit\"\ndelay = \"10ms\"\nmiddlebox = [{ kind = \"split\", size = \"1MiB\" }]"),
        path("rate = \"25mbit\"\ndelay = \"10ms\"\nloss = { model = \"gilbert-elliott\", p-good-bad = \"1%\" }"),
        path("rate = \"25mbit\"\ndelay = \"10ms\"\ndelay = \"11ms\""),
        path("rate = 25mbit"),
        // Contradictions.
        path("rate = \"25mbit\"\ndown = \"5mbit\"\ndelay = \"10ms\""),
        path("down = \"5mbit\"\ndelay = \"10ms\""),
        path("rate = \"5mbit\"\ndelay = \"10ms\"\nrtt = \"20ms\""),
        path("rate = \"5mbit\""),
        path("delay = \"5ms\""),
        more("[link.x]\nrate = \"1mbit\"\nqueue = \"1bdp\""),
        // Names.
        path("rate = \"5mbit\"\ndelay = \"10ms\"\nvia = \"core\""),
        path("down = \"nowhere.down\"\nup = \"1mbit\"\ndelay = \"10ms\""),
        path("down = \"broken.down\"\nup = \"1mbit\"\ndelay = \"10ms\""),
        more("[host]\nscheduler = \"min-rt\""),
        more("[host]\nscheduler = { name = \"ecf\", bta = 0.3 }"),
        more("[host]\nscheduler = { name = \"ecf\", beta = -1 }"),
        more("[host]\nscheduler = { name = \"ratio\", weights = \"0=3; 1=1\" }"),
        more("[host]\nscheduler = { name = \"ratio\", weights = 3 }"),
        more("[host]\nprofile = \"linus\""),
        more("[host]\nmax-subflows = 99"),
        more("[run]\nprimary = \"wan\""),
        more("[run]\nmeasure = \"completion-time\""),
        more("[run]\nsample = \"1us\""),
        more("[run]\nwindows = [[\"5s\", \"70s\"]]"),
        more("[run]\nwindows = [[\"5s\", \"3s\"]]"),
        path("rate = \"5mbit\"\ndelay = \"10ms\"\nvary = {}"),
        path("rate = \"5mbit\"\ndelay = \"10ms\"\nvary = { rate = [\"5mbit\", \"3mbit\"] }"),
        path("rate = \"5mbit\"\ndelay = \"10ms\"\nvary = { rate = [\"0mbit\", \"3mbit\"] }"),
        path("rate = \"5mbit\"\ndelay = \"10ms\"\nvary = { every = \"1us\", rate = [\"1mbit\", \"3mbit\"] }"),
        path("rate = \"5mbit\"\ndelay = \"10ms\"\nvary = { every = \"1s\", loss = [\"0%\", \"1%\"] }"),
        path("rate = \"5mbit\"\ndelay = \"10ms\"\nvary = { rtt = [\"1ms\", \"2ms\"], delay = [\"1ms\", \"2ms\"] }"),
        more(
            "[path.x]\ndown = \"lte.down\"\nup = \"1mbit\"\ndelay = \"1ms\"\nvary = { rate = [\"1mbit\", \"2mbit\"] }",
        ),
        udp("spacing = \"poisson\""),
        more("[run]\nmeasure = \"page-load-time\""),
        path("rate = \"0mbit\"\ndelay = \"10ms\""),
        path("rate = \"-10mbit\"\ndelay = \"10ms\""),
        path("rate = \"5mbit\"\ndelay = \"10ms\"\nloss = \"100%\""),
        more("[[change]]\nat = \"1s\"\npath = \"wlan\"\nrate = \"0mbit\""),
        more("[[change]]\nat = \"65s\"\npath = \"wlan\"\nrate = \"1mbit\""),
        more("[host]\nscheduler = \"ecf:bta=0.3\""),
        // Pages and sessions.
        only("kind = \"web\""),
        only("kind = \"web\"\npage = \"gogle\""),
        only("kind = \"web\"\npage = \"nowhere.har\""),
        only("kind = \"web\"\npage = \"broken.har\""),
        only("kind = \"web\"\npage = 7"),
        only("kind = \"web\"\npage = { objects = 0, total = \"1kB\" }"),
        only("kind = \"web\"\npage = { objects = 3, total = \"2B\" }"),
        only("kind = \"web\"\npage = { objects = 3, total = \"2kB\", wave = 2 }"),
        only("kind = \"web\"\npage = { objects = 3, total = \"2kB\", wave = 0, computation = \"1ms\" }"),
        only("kind = \"web\"\npage = \"google\"\nconnections = 0"),
        only("kind = \"web\"\npage = \"google\"\nprotocol = \"http2\"\nconnections = 2"),
        only("kind = \"web\"\npage = \"google\"\ndirection = \"up\""),
        only("kind = \"web\"\npage = \"google\"\nsize = \"1MB\""),
        only("kind = \"interactive\"\npage = \"google\""),
        only("kind = \"interactive\"\ntrace = \"broken.down\""),
        more("[run]\nstop = \"4s\""),
        only("kind = \"files\"\nsize = \"1B\"\ncount = 3\nthink = \"40s\"\n[run]\nstop = \"79s\""),
        only("kind = \"bursts\"\nsize = \"1B\"\ncount = 3\ninterval = \"20s\"\n[run]\nstop = \"59s\""),
        more("[path.b]\nrate = \"1mbit\"\ndelay = \"1ms\"\nvia = [\"x\"]"),
        only("kind = \"interactive\"\ntrace = \"lte.down\"\nduration = \"60s\""),
        only("kind = \"interactive\"\nduration = \"1s\""),
        more("[[change]]\nat = \"1s\"\npath = \"wlan\""),
        more("[[change]]\nat = \"1s\"\npath = \"wlan\"\nloss = \"1%\"\nnotify = true"),
        // Workloads.
        only("kind = \"bulk\""),
        only("kind = \"bulk\"\nduration = \"5s\"\nsize = \"1MB\""),
        only("kind = \"files\"\nsizes = []"),
        only("kind = \"files\"\nsize = \"1MB\"\nconcurrent = true\nwarm = true"),
        only("kind = \"files\"\nsize = \"1MB\"\nconcurrent = true\nthink = \"1s\""),
        only("kind = \"files\"\nsize = \"1MB\"\ninterval = \"1s\""),
        only("kind = \"files\"\nsize = \"1MB\"\nconcurrent = true\nwarm-up = \"100kB\""),
        only("kind = \"udp\"\npath = \"wlan\"\nrate = \"1mbit\""),
        udp("off = \"1s\""),
        udp("on = \"1s\""),
        udp("phases = \"exponential\""),
        udp("on = \"1ns\"\noff = \"1s\""),
        only("kind = \"bulk\"\nduration = \"5s\"\nphases = \"even\""),
        only("kind = \"webb\""),
        PATHS.to_owned(),
        BULK.to_owned(),
        format!("[path]\n{BULK}"),
    ] {
        let error = read(&text).err().unwrap_or_else(|| panic!("this was accepted:\n{text}"));
        let (quoted, help) = (error.quoted().unwrap_or("-"), error.help().unwrap_or("-"));
        said += &format!("[{quoted}] {error}\n    {help}\n");
    }
    // The names of schedulers are left out; docs/policies.md has them.
    let catalogue = built_in();
    let schedulers: Vec<&str> = catalogue.schedulers.names().collect();
    insta::assert_snapshot!(said.replace(&schedulers.join(", "), "[all of them]"));
}

#[test]
fn an_override_is_checked_like_the_file_and_pointed_at() {
    let error = read_with(&format!("{PATHS}{BULK}"), &["path.wlan.delay=fast"]).err().unwrap();
    assert_eq!(error.quoted(), Some("\"fast\""));
    let error = read_with(&format!("{PATHS}{BULK}"), &["path.wlan.speed=\"1mbit\""]).err().unwrap();
    assert_eq!((error.quoted(), error.to_string().as_str()), (Some("speed"), "unknown key `speed`"));
}

#[test]
fn traces_are_looked_up_where_their_name_was_written() {
    let text = format!("{PATHS}{BULK}");
    let down = |sets: &[&str]| read_with(&text, sets).map(|s| s.spec(1).network.paths[1].down.service.mean_rate());
    assert_eq!(down(&[]).unwrap(), Rate::from_bps(18_000_000)); // 4500 bytes in 2 ms.
    assert_eq!(down(&["path.lte.down=\"mine.down\""]).unwrap(), Rate::from_bps(2_400_000));
    assert!(down(&["path.lte.down=\"lte.down\""]).unwrap_err().help().unwrap().contains("current directory"));
}

#[test]
fn the_digest_names_the_content() {
    let digest = |sets: &[&str]| read_with(&format!("{PATHS}{BULK}"), sets).unwrap().digest;
    let base = digest(&[]);
    assert_eq!(digest(&["run.seed=7"]), base);
    assert_eq!(digest(&["path.wlan.delay=10ms"]), base);
    assert_ne!(digest(&["path.wlan.delay=11ms"]), base);
    assert_ne!(digest(&["path.lte.down=\"mine.down\""]), base);
}

#[test]
fn the_digest_sees_an_order_that_a_run_sees_and_no_other() {
    let path =
        |name: &str, rtt: &str| format!("[path.{name}]\nrate = \"10mbit\"\nrtt = \"{rtt}\"\nvia = \"{name}-core\"\n");
    let link = |name: &str| format!("[link.{name}-core]\nrate = \"10mbit\"\ndelay = \"10ms\"\n");
    let (near, far) = (path("near", "20ms"), path("far", "80ms"));
    let links = format!("{}{}", link("near"), link("far"));
    let file = "[[workload]]\nkind = \"files\"\nsize = \"500kB\"\n";
    let host = "[host]\nfirst-path = \"as-listed\"\nmss = 1400\n";
    let both = |text: &str| {
        let scenario = read(text).unwrap();
        let run = anabranch_sim::run(&scenario.spec(1)).unwrap();
        (scenario.digest, run.transfers[0].duration())
    };
    let as_listed = both(&format!("{near}{far}{links}{file}{host}"));
    // The first path carries the first subflow.
    let far_first = both(&format!("{far}{near}{links}{file}{host}"));
    assert!(as_listed.0 != far_first.0 && as_listed.1 < far_first.1, "{as_listed:?} {far_first:?}");
    // Of links with something due at the same time the first listed acts first.
    let links_turned = format!("{}{}", link("far"), link("near"));
    assert_ne!(both(&format!("{near}{far}{links_turned}{file}{host}")).0, as_listed.0);
    // Order without meaning: of keys, of tables of different kinds, and of paths between which other tables stand.
    let keys_turned = near.replace("rate = \"10mbit\"\nrtt = \"20ms\"\n", "rtt = \"20ms\"\nrate = \"10mbit\"\n");
    assert_ne!(keys_turned, near);
    let host_turned = "[host]\nmss = 1400\nfirst-path = \"as-listed\"\n";
    for same in [
        format!("{keys_turned}{far}{links}{file}{host}"),
        format!("{near}{far}{links}{file}{host_turned}"),
        format!("{host}{file}{links}{near}{far}"),
        format!("{near}{host}{links}{far}{file}"),
    ] {
        assert_eq!(both(&same), as_listed, "{same}");
    }
    // A path that an override replaces as a whole counts as listed last; one whose value it replaces stays in place.
    let digest = |sets: &[&str]| read_with(&format!("{near}{far}{links}{file}{host}"), sets).unwrap().digest;
    assert_eq!(digest(&["path.near.rtt=20ms"]), as_listed.0);
    let whole = r#"path.near={rate="10mbit",rtt="20ms",via="near-core"}"#;
    assert_eq!(digest(&[whole]), far_first.0);
}

#[test]
fn spread_moves_everything_but_links_and_traces() {
    let text =
        format!("{PATHS}{BULK}[run]\nspread = \"10s\"\n[[change]]\nat = \"1s\"\npath = \"wlan\"\nloss = \"1%\"\n");
    let scenario = read(&text).unwrap();
    let begin = |seed| {
        let spec = scenario.spec(seed);
        let Workload::Bulk { start, .. } = spec.workloads[0] else { panic!("the workload is bulk") };
        assert_eq!(
            (spec.network.changes[0].at - start, spec.stop - start),
            (Duration::from_secs(1), Duration::from_secs(65))
        );
        start
    };
    assert!(begin(1) != begin(2) && begin(1) == begin(1) && begin(3) < Duration::from_secs(10));
}

#[test]
fn a_run_stops_a_minute_after_what_its_workloads_state() {
    for (workload, seconds) in [
        ("kind = \"bulk\"\nduration = \"1000s\"\nstart = \"5s\"", 1065),
        ("kind = \"files\"\nsize = \"1GB\"", 60),
        ("kind = \"files\"\nsize = \"1B\"\ncount = 11\nthink = \"30s\"", 360),
        ("kind = \"files\"\nsize = \"1B\"\ncount = 3\nconcurrent = true\ninterval = \"100s\"", 260),
        ("kind = \"bursts\"\nsize = \"1B\"\ncount = 4\ninterval = \"50s\"", 260),
        ("kind = \"bulk\"\nduration = \"9s\"\n[[workload]]\nkind = \"tcp\"\npath = \"wlan\"\nduration = \"500s\"", 69),
        ("kind = \"bulk\"\nduration = \"9s\"\n[run]\nstop = \"9s\"", 9),
    ] {
        let scenario = read(&format!("{PATHS}[[workload]]\n{workload}\n")).unwrap();
        assert_eq!(scenario.stop(), Duration::from_secs(seconds), "{workload}");
    }
    let udp = format!("{PATHS}{BULK}[[workload]]\nkind = \"udp\"\npath = \"wlan\"\nrate = \"1mbit\"\n");
    let spec = read(&udp).unwrap().spec(1);
    assert!(spec.workloads.iter().any(|it| matches!(it, Workload::Udp { stop, .. } if *stop == spec.stop)));
}

#[test]
fn a_command_survives_the_shell() {
    let origin = Origin { scenario: "my file.toml".into(), sets: vec!["host.mss=1400".into(), "a=\"it's\"".into()] };
    let command = "anabranch run 'my file.toml' --seed 3 --set host.mss=1400 --set 'a=\"it'\\''s\"'";
    assert_eq!(origin.command(3), command);
}

#[test]
fn a_variant_is_repeated_by_its_command() {
    let scenario = read(&format!("{PATHS}[host]\nscheduler = {{ name = \"ecf\", beta = 0.5 }}\n{BULK}")).unwrap();
    let variant = scenario.with_scheduler("blest").unwrap();
    assert_eq!(variant.origin.sets, ["host.scheduler=\"blest\""]);
    let own = scenario.with_scheduler("ecf").unwrap();
    assert_eq!((own.policies().scheduler.parameters.0[0].1.clone(), own.origin.sets.len()), (Value::Number(0.5), 0));
    let single = scenario.single_path(1);
    let repeated =
        read_with(&format!("{PATHS}{BULK}"), &single.origin.sets.iter().map(String::as_str).collect::<Vec<_>>());
    let (a, b) = (single.spec(1), repeated.unwrap().spec(1));
    assert_eq!((a.network.primary, a.client.config.multipath, a.server.config.multipath), (1, false, false));
    assert_eq!((b.network.primary, b.client.config.multipath, b.server.config.multipath), (1, false, false));
    assert!(scenario.with_scheduler("bleest").err().unwrap().help().unwrap().contains("did you mean `blest`"));
}

const TWO: &str = r#"{"objs": [
    {"id": "r1", "download": {"id": "d1", "len": 3000}, "comps": [{"id": "c1", "time": 4}]},
    {"id": "r2", "size": 5000, "download": {"id": "d2"}}], "deps": [{"a1": "c1", "a2": "d2", "time": -1}]}"#;

/// Reads a scenario with files for a page and for the trace of a session.
fn read_beside_files(text: &str, page: &str) -> Result<Scenario, ScenarioError> {
    let origin = Origin { scenario: "test.toml".into(), sets: Vec::new() };
    let files = |name: &str, _: bool| match name {
        "two.json" => Ok(page.to_owned()),
        "map.txt" => Ok("0.5 15000\n1.25 20000\n".to_owned()),
        "lte.down" => Ok("1\n2\n2\n".to_owned()),
        _ => Err(std::io::ErrorKind::NotFound.into()),
    };
    Scenario::read(&built_in(), "test", "test.toml", text, origin, &files)
}

#[test]
fn pages_and_sessions_are_found_and_read() {
    let web = |keys: &str| read_beside_files(&format!("{PATHS}[[workload]]\nkind = \"web\"\n{keys}"), TWO).unwrap();
    for (keys, activities, bytes, protocol) in [
        ("page = \"two.json\"", 3, 8000, Protocol::Http1 { connections: 6 }),
        ("page = \"google\"\nprotocol = \"http2\"", 6, 906_000, Protocol::Http2),
        ("page = { objects = 15, total = \"72kB\" }\nconnections = 2", 15, 72_000, Protocol::Http1 { connections: 2 }),
    ] {
        let scenario = web(keys);
        assert_eq!(scenario.measure, MeasureName::PageLoadTime);
        let [Workload::Web { page, protocol: found, start }] = &scenario.spec(1).workloads[..] else {
            panic!("{keys}")
        };
        assert_eq!((page.activities.len(), page.total().get(), *found), (activities, bytes, protocol), "{keys}");
        assert!(start.is_zero());
    }
    let text = format!("{PATHS}[[workload]]\nkind = \"web\"\npage = \"two.json\"");
    let digest = |page: &str| read_beside_files(&text, page).unwrap().digest;
    assert_eq!(digest(TWO), digest(TWO));
    assert_ne!(digest(TWO), digest(&TWO.replace("5000", "5001")), "the content of the page counts");

    let interactive = |keys: &str| {
        let text = format!("{PATHS}[[workload]]\nkind = \"interactive\"\nstart = \"1s\"\n{keys}");
        let scenario = read_beside_files(&text, TWO).unwrap();
        assert_eq!(scenario.measure, MeasureName::CompletionTime);
        match &scenario.spec(1).workloads[..] {
            [Workload::Interactive { page, start }] if *start == Duration::from_secs(1) => page.clone(),
            _ => panic!("{keys}"),
        }
    };
    let page = interactive("trace = \"map.txt\"");
    assert_eq!((page.activities[1].begin, page.total().get()), (Duration::from_millis(1250), 35_000));
    let (one, two, long) = (interactive(""), interactive("trace-seed = 2"), interactive("duration = \"120s\""));
    assert!(one != two && one.activities.iter().all(|activity| activity.begin < Duration::from_millis(60_300)));
    assert!(long.activities.len() > one.activities.len() && long.activities.starts_with(&one.activities[..20]));
}

/// Reads recordings of other people, if `ANABRANCH_HARS` names their directory.
#[test]
fn recorded_pages_are_read() {
    let Some(directory) = std::env::var_os("ANABRANCH_HARS") else { return };
    for (file, entries, total) in [("humanssuck.net.har", 4, 62_204), ("cnn.har", 145, 0)] {
        let text = std::fs::read_to_string(Path::new(&directory).join(file)).unwrap();
        let page = crate::page::parse(file, &text).unwrap();
        assert_eq!(page.activities.len(), entries, "{file}");
        assert!(total == 0 || page.total().get() == total, "{file}: {}", page.total());
        let scenario =
            format!("{PATHS}[[workload]]\nkind = \"web\"\npage = \"two.json\"\n").replace("two.json", "x.har");
        for protocol in ["http1", "http2"] {
            let text_of =
                |name: &str, _: bool| if name == "x.har" { Ok(text.clone()) } else { Ok("1\n2\n2\n".to_owned()) };
            let scenario = format!("{scenario}protocol = \"{protocol}\"\n");
            let scenario = Scenario::read(&built_in(), "t", "t.toml", &scenario, Origin::default(), &text_of).unwrap();
            let outcome = anabranch_sim::run(&scenario.spec(1)).unwrap();
            assert!(outcome.transfers.iter().all(|transfer| transfer.finished.is_some()), "{file} {protocol}");
        }
    }
}
