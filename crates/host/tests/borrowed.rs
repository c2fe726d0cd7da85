//! Borrowed addresses are given back, also by a program with a bug.
#![allow(clippy::unwrap_used)]

use anabranch_host::addresses::{Borrowed, Loan, Pool};
use anabranch_host::{Namespace, Tun};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Everything in a namespace that borrowing changes.
fn settings() -> String {
    let run = |words: &[&str]| {
        let output = std::process::Command::new(words[0]).args(&words[1..]).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let sysctl = |key: &str| std::fs::read_to_string(format!("/proc/sys/net/{key}")).unwrap_or_default();
    let routes = ["ip", "-4", "route", "show", "table", "all", "type", "unicast"];
    [run(&["nft", "list", "ruleset"]), run(&["ip", "-4", "rule"]), run(&routes)].concat()
        + &sysctl("ipv4/conf/lan/forwarding")
        + &sysctl("ipv4/ip_local_reserved_ports")
}

#[test]
fn a_panic_gives_borrowed_addresses_back() {
    if std::process::Command::new("nft").arg("--version").output().is_err() {
        return println!("SKIPPED: there is no nft here");
    }
    let namespace = match Namespace::new("borrowed") {
        Ok(namespace) => namespace,
        Err(error) => return println!("SKIPPED: no network namespaces here: {error}"),
    };
    let tun = match namespace.run(|| Tun::open("engine")) {
        Ok(tun) => tun,
        Err(error) => return println!("SKIPPED: no TUN devices here: {error}"),
    };
    for words in [
        "link add lan type veth peer name far",
        "link set far up",
        "link set lan up",
        "address add 192.0.2.1/24 dev lan",
        "route add default via 192.0.2.2",
        "link set engine up",
    ] {
        namespace.command("ip", &words.split(' ').collect::<Vec<_>>()).unwrap();
    }
    let before = namespace.run(settings);
    let loan = Loan {
        device: tun.name().to_owned(),
        outer: vec![[192, 0, 2, 1].into()],
        ports: 40_000..=40_010,
        pool: Pool::default(),
    };
    let (text, while_lent) = namespace.run(move || {
        let mut while_lent = String::new();
        let panic = catch_unwind(AssertUnwindSafe(|| {
            // The route to the inner address goes with the device.
            let _tun = tun;
            let _borrowed = Borrowed::take(&loan).unwrap();
            while_lent = settings();
            panic!("an invariant is broken");
        }));
        (panic.unwrap_err().downcast_ref::<&str>().map(|text| (*text).to_owned()), while_lent)
    });
    assert_eq!(text.as_deref(), Some("an invariant is broken"));
    assert_ne!(while_lent, before, "or this test cannot tell");
    assert_eq!(namespace.run(settings), before);
}
