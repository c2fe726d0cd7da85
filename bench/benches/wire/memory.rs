//! Memory of the engine's process for a thousand connections of a kernel client.

use crate::server::SOURCE;
use crate::world::{SERVER, Setup, World, connect};
use socket2::Socket;
use std::io::Read;
use std::process::Command;
use std::time::{Duration, Instant};

/// Resident kilobytes per connection.
pub struct Measured {
    pub idle: f64,
    pub busy: f64,
}

/// Opens `count` connections, lets them idle, and in another run all download at once. Each in a process of its own:
/// what an earlier one has freed would be used again, and nothing would seem to grow.
pub fn measure(count: usize) -> Measured {
    let grow = |port: u16| {
        let arguments = [GROW.to_owned(), port.to_string(), count.to_string()];
        let output = std::env::current_exe().and_then(|program| Command::new(program).args(arguments).output());
        let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
        text.trim().parse().unwrap_or(f64::NAN)
    };
    Measured { idle: grow(crate::server::DISCARD), busy: grow(SOURCE) }
}

/// The argument with which this program is one such process.
pub const GROW: &str = "--grow";

/// Kilobytes per connection that `count` of them to `port` take.
pub fn growth(count: usize, port: u16) -> f64 {
    let world = World::new(Setup { offload: true, subflows: 2 }, port);
    // Allocations that happen once are made before.
    let first = connect(&world.namespace, SERVER, port);
    let mut buffer = vec![0; 64 << 10];
    std::thread::sleep(Duration::from_millis(100));
    let before = resident();
    let mut clients: Vec<Socket> = (0..count).map(|_| connect(&world.namespace, SERVER, port)).collect();
    clients.iter().for_each(|client| client.set_nonblocking(true).expect("a valid setting"));
    let begun = Instant::now();
    let mut peak = 0.0f64;
    while begun.elapsed() < Duration::from_secs(2) {
        if port == SOURCE {
            for client in &mut clients {
                // Nothing there is as good as something.
                let _ = client.read(&mut buffer);
            }
        } else {
            std::thread::sleep(Duration::from_millis(100));
        }
        peak = peak.max(resident());
    }
    drop(first);
    drop(clients);
    world.finish();
    (peak - before) / count as f64
}

/// Resident size of this process, in kB.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(f64::NAN)
}
