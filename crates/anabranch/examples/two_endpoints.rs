//! The driver of two endpoints in memory. Packets are bytes on two paths of 20 Mbit/s, with 10 and 40 ms one way.
//!
//! ```text
//! cargo run --example two_endpoints
//! ```

use anabranch::prelude::*;
use anabranch::wire::{Checksums, emit, parse};
use bytes::{Bytes as Payload, BytesMut};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::error::Error;
use std::net::IpAddr;

const LENGTH: usize = 4 << 20;

/// Address of a host on a path.
fn address(host: u8, path: u8) -> IpAddr {
    IpAddr::from([10, host, path, 1])
}

/// Runs the example.
pub fn main() -> Result<(), Box<dyn Error>> {
    let endpoint = |host: u8| {
        let addresses = [0, 1].map(|path| LocalAddress { ip: address(host, path), backup: false });
        Endpoint::new(Config::new(Profile::tcp(), addresses.to_vec()), Seed(u64::from(host)))
    };
    let mut ends = [endpoint(0)?, endpoint(1)?];
    let mut now = Instant::ZERO;
    ends[1].listen(80);
    let client = ends[0].open(now, address(0, 0), (address(1, 0), 80).into())?;

    let data = Payload::from(vec![7; LENGTH]);
    let (mut written, mut read) = (0, 0);
    // By time of arrival and number: to whom, and the packet.
    let mut wire: BinaryHeap<Reverse<(Instant, u64, usize, Payload)>> = BinaryHeap::new();
    let mut sent = 0;
    // When each direction of each path has sent what it was given.
    let mut free = [[now; 2]; 2];
    loop {
        for host in 0..ends.len() {
            let mut idle = false;
            while !idle {
                idle = true;
                while let Some((id, event)) = ends[host].poll_event() {
                    idle = false;
                    match event {
                        Event::Connected { .. } | Event::Writable if host == 0 && written < LENGTH => {
                            written += ends[0].write(id, &data.slice(written..))?;
                            if written == LENGTH {
                                ends[0].shutdown(id);
                            }
                        }
                        Event::Readable => {
                            while let Read::Data(piece) = ends[host].read(id)? {
                                read += piece.len();
                            }
                        }
                        Event::PeerFinished => ends[host].shutdown(id),
                        _ => {}
                    }
                }
                while let Some(transmit) = ends[host].poll_transmit(now) {
                    idle = false;
                    let mut packet = BytesMut::new();
                    emit(&transmit.segment, &mut packet)?;
                    let flow = transmit.segment.flow;
                    let is_slow = [flow.src, flow.dst].iter().any(|ip| [address(0, 1), address(1, 1)].contains(ip));
                    let delay = Duration::from_millis(if is_slow { 40 } else { 10 });
                    let line = &mut free[host][usize::from(is_slow)];
                    *line = now.max(*line) + Rate::from_mbps(20).time_for(transmit.size);
                    wire.push(Reverse((*line + delay, sent, 1 - host, packet.freeze())));
                    sent += 1;
                    // The memory of the segment serves for another.
                    ends[host].reuse(transmit.segment);
                }
            }
        }
        let timers = ends.iter().filter_map(Endpoint::poll_timeout);
        let Some(next) = timers.chain(wire.peek().map(|Reverse((at, ..))| *at)).min() else { break };
        now = next;
        while wire.peek().is_some_and(|Reverse((at, ..))| *at <= now) {
            let Some(Reverse((_, _, to, packet))) = wire.pop() else { break };
            let mut segment = parse(&packet, Checksums::Verify)?;
            ends[to].handle_segment(now, &mut segment);
        }
        ends.iter_mut().for_each(|end| end.handle_timeout(now));
    }
    println!("{} s: wrote {written}, read {read} bytes", now.as_secs_f64());
    for subflow in ends[0].subflow_stats(client) {
        println!("{} to {}: {} bytes first sent here", subflow.local, subflow.remote, subflow.bytes_first_sent);
    }
    assert_eq!(read, LENGTH);
    Ok(())
}
