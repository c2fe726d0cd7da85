//! What a thousand connections of a kernel client occupy in the engine's process.

use crate::server::SOURCE;
use crate::world::{SERVER, Setup, World, connect};
use socket2::Socket;
use std::io::Read;
use std::time::{Duration, Instant};

/// Resident kilobytes per connection.
pub struct Measured {
    pub idle: f64,
    pub busy: f64,
}

/// Opens `count` connections, lets them idle, and then all download at once.
pub fn measure(count: usize) -> Measured {
    Measured { idle: growth(count, crate::server::DISCARD), busy: growth(count, SOURCE) }
}

fn growth(count: usize, port: u16) -> f64 {
    let world = World::new(Setup { offload: true, subflows: 2 }, port);
    // What there is of everything once is there before.
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
