//! A kernel and the engine face to face: the handshakes, two subflows, data both ways and the end, with nothing between
//! them. What goes wrong here has nothing to do with loss.

use anabranch_interop::{
    Case, Close, Connection, Direct, Engine, Family, Kernel, KernelCounters, Plan, Role, config, run,
};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

fn main() -> ExitCode {
    let mut cases = Vec::new();
    for role in [Role::Client, Role::Server] {
        for family in [Family::V4, Family::V6] {
            for multipath in [true, false] {
                let protocol = if multipath { "mptcp" } else { "tcp" };
                let name = format!("engine_{role:?}_{protocol}_{family:?}").to_lowercase();
                let setting = Setting { engine: role, family, multipath, cookies: false, timestamps: true };
                cases.push(Case::new(name, move || exchange(&setting)));
                for timestamps in [true, false].into_iter().filter(|_| role == Role::Server) {
                    let with = if timestamps { "with" } else { "without" };
                    let name = format!("cookies_{with}_timestamps_{protocol}_{family:?}").to_lowercase();
                    let setting = Setting { cookies: true, timestamps, ..setting };
                    cases.push(Case::new(name, move || exchange(&setting)));
                }
            }
        }
    }
    run(cases, 4)
}

/// Only a guard against hanging.
const LIMIT: Duration = Duration::from_secs(120);
const PORT: u16 = 8080;

/// One meeting.
#[derive(Clone, Copy)]
struct Setting {
    /// The role of the engine.
    engine: Role,
    family: Family,
    multipath: bool,
    /// The engine answers every SYN with a SYN cookie.
    cookies: bool,
    /// The kernel uses timestamps.
    timestamps: bool,
}

/// A megabyte each way.
fn exchange(setting: &Setting) -> Result<(), String> {
    let Setting { engine, family, multipath, cookies, timestamps } = *setting;
    let said = |error: std::io::Error| error.to_string();
    let direct = Direct::new("direct").map_err(said)?;
    let (ours, theirs) = (direct.engine.family(family), direct.kernel.family(family));
    if engine == Role::Server {
        direct.add_endpoint(Role::Client, family).map_err(said)?;
    }
    let before = KernelCounters::read(&direct.namespace).map_err(said)?;
    let kernel = Kernel { multipath, ..Kernel::new(&direct.namespace) };
    if !timestamps {
        direct.namespace.sysctl("net.ipv4.tcp_timestamps", "0").map_err(said)?;
    }
    let mut settings = config(&ours);
    settings.multipath = multipath;
    if cookies {
        settings.max_half_open = 0;
    }
    let peer = Engine::start(&direct.namespace, "anabranch0", settings).map_err(said)?;
    // The kernel writes, and so closes, only when all subflows are there: without delay a megabyte is gone in no time.
    let plan = Plan::send(1 << 20);
    let patient = plan.closing(Close::AfterPeer);
    // The engine as server announces its second address: the kernel joins there as well as from its own second.
    let expected = match (multipath, engine) {
        (false, _) => 1,
        (true, Role::Client) => 2,
        (true, Role::Server) => 3,
    };

    // Kept to the end: without a listener the kernel answers an MP_JOIN with RST.
    let listener = kernel.listen(SocketAddr::new(theirs[0], PORT)).map_err(said)?;
    let (id, socket) = match engine {
        Role::Client => {
            let id = peer.connect(ours[0], SocketAddr::new(theirs[0], PORT), patient);
            (id, listener.accept(LIMIT).map_err(said)?)
        }
        Role::Server => {
            peer.listen(PORT, patient);
            let socket = kernel.connect(Some(theirs[0]), SocketAddr::new(ours[0], PORT)).map_err(said)?;
            (peer.nth_connection(1, LIMIT)?, socket)
        }
    };
    let all_there =
        |connection: &Connection| connection.subflows.iter().filter(|subflow| subflow.established).count() == expected;
    let counted = || KernelCounters::read(&direct.namespace).map(|now| now.since(&before)).map_err(said);
    peer.wait_for(id, LIMIT, all_there).or_else(|error| Err(format!("{error}\nkernel: {}", counted()?)))?;
    socket.start(plan, LIMIT).finish(&plan).check(&plan, &plan).map_err(|error| format!("the kernel {error}"))?;
    let connection = peer.wait_for(id, LIMIT, |connection| connection.is_gone())?;
    connection.transfer.check(&plan, &plan).map_err(|error| format!("the engine {error}"))?;
    peer.check()?;

    let counters = counted()?;
    let trouble = counters.mptcp_trouble();
    let received = peer.counters().cookies_received;
    if received != u64::from(cookies) {
        return Err(format!("{received} connections from cookies"));
    }
    if connection.multipath != Some(multipath) || connection.subflows.len() != expected || !trouble.is_empty() {
        return Err(format!("{connection:#?}\nkernel: {counters}"));
    }
    Ok(())
}
