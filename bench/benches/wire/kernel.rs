//! The kernel's own MPTCP, from one namespace to another over veth pairs.

use crate::processor::Sample;
use crate::world::{Direction, connect, exchange, socket};
use anabranch_host::Namespace;
use socket2::SockAddr;
use std::io::Read;
use std::net::SocketAddr;
use std::time::Duration;

/// Bulk transfer with one or two subflows, each over a pair of its own.
pub fn transfer(subflows: usize, span: Duration) -> Sample {
    let client = Namespace::new("client").expect("tried before");
    let server = Namespace::new("server").expect("tried before");
    for n in 1..=subflows {
        pair(&client, &server, n);
    }
    for namespace in [&client, &server] {
        let limits = ["mptcp", "limits", "set", "subflows", "8", "add_addr_accepted", "8"];
        namespace.command("ip", &limits).expect("the kernel has MPTCP");
    }
    for n in 2..=subflows {
        let endpoint = ["mptcp", "endpoint", "add", &format!("10.99.{n}.1"), "signal"];
        server.command("ip", &endpoint).expect("the address is there");
    }
    let listening = server.run(|| {
        let listening = socket();
        let any: SocketAddr = "0.0.0.0:9".parse().expect("an address");
        listening.bind(&SockAddr::from(any)).expect("the port is free");
        listening.listen(1).expect("it is bound");
        listening
    });
    let sink = std::thread::spawn(move || {
        let (mut accepted, _) = listening.accept().expect("a client comes");
        let mut buffer = vec![0; 256 << 10];
        while accepted.read(&mut buffer).is_ok_and(|count| count > 0) {}
    });
    let sample = exchange(connect(&client, "10.99.1.1", 9), Direction::Up, None, span);
    sink.join().expect("the sink ends with the stream");
    sample
}

fn pair(client: &Namespace, server: &Namespace, n: usize) {
    let (ours, theirs) = (format!("c{n}"), format!("s{n}"));
    // Made in the client, the other end moved to the server by a descriptor that the child inherits as /proc shows it.
    let file = std::os::fd::AsRawFd::as_raw_fd(server.file());
    let netns = format!("/proc/{}/fd/{file}", std::process::id());
    let add = ["link", "add", &ours, "type", "veth", "peer", "name", &theirs, "netns", &netns];
    client.command("ip", &add).expect("the kernel has veth");
    for (namespace, device, last) in [(client, &ours, 2), (server, &theirs, 1)] {
        let address = format!("10.99.{n}.{last}/24");
        namespace.command("ip", &["address", "add", &address, "dev", device]).expect("a valid address");
        namespace.command("ip", &["link", "set", device, "up"]).expect("it was just made");
    }
}
