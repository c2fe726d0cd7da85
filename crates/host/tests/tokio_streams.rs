//! The example `tokio_streams` runs, and holds what it claims.

use anabranch_host::{Namespace, Tun};
use std::io;
use std::path::Path;

#[path = "../examples/tokio_streams/main.rs"]
mod tokio_streams;

#[test]
fn streams_over_the_engine_reach_the_kernel_and_are_reached() -> Result<(), Box<dyn std::error::Error>> {
    if let Err(missing) = needs() {
        assert!(std::env::var_os("ANABRANCH_REQUIRE_NETNS").is_none(), "ANABRANCH_REQUIRE_NETNS is set, and {missing}");
        println!("SKIPPED: {missing}");
        return Ok(());
    }
    tokio_streams::main()
}

fn needs() -> io::Result<()> {
    if !Path::new("/proc/sys/net/mptcp/enabled").exists() {
        return Err(io::Error::other("this kernel has no MPTCP"));
    }
    let tun = Namespace::new("probe").and_then(|namespace| namespace.run(|| Tun::open("probe")));
    let explain = |error| io::Error::other(format!("no namespace with a TUN device can be made here: {error}"));
    tun.map(drop).map_err(explain)
}
