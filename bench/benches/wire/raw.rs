//! The device alone: packets pushed into and read from a TUN by loops that do no protocol.

use crate::processor::{Sample, Stopwatch, this_thread};
use anabranch_host::{Device, LONGEST_PACKET, Namespace, Tun, VirtioHeader};
use anabranch_units::SubflowSeq;
use anabranch_wire::{Flags, FlowKey, Segment, Timestamps};
use bytes::{Bytes, BytesMut};
use rustix::event::{PollFd, PollFlags, poll};
use std::io::IoSlice;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Writes the same packet again and again; the kernel finds no connection for it and drops it behind its TCP checksum. As
/// large as the device takes: 1500 bytes, or 64 KiB to be cut.
pub fn source(offload: bool, span: Duration) -> Sample {
    let namespace = Namespace::new("raw").expect("tried before");
    let mut device = open(&namespace, "raw", offload, "10.99.1.2/24");
    let packet = Packet::new("10.99.1.1:1", "10.99.1.2:2", offload);
    let watch = Stopwatch::start(Some(this_thread()));
    let (begun, mut bytes) = (std::time::Instant::now(), 0);
    while begun.elapsed() < span {
        for _ in 0..BETWEEN_CLOCKS {
            assert!(packet.send(&mut device), "a TUN device takes what is written");
            bytes += packet.payload.len() as u64;
        }
    }
    watch.stop(bytes)
}

/// Reads what the kernel forwards to the device from another one, where a source writes as fast as it can.
pub fn sink(offload: bool, span: Duration) -> Sample {
    let namespace = Namespace::new("raw").expect("tried before");
    let mut input = open(&namespace, "input", true, "10.99.1.2/24");
    let mut output = open(&namespace, "output", offload, "10.99.2.2/24");
    namespace.sysctl("net.ipv4.ip_forward", "1").expect("a namespace of ours");
    let (stop, bytes) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let (id, thread_id) = std::sync::mpsc::channel();
    let reader = std::thread::spawn({
        let (stop, bytes) = (Arc::clone(&stop), Arc::clone(&bytes));
        move || {
            id.send(this_thread()).expect("someone waits for it");
            let mut buffer = vec![0; LONGEST_PACKET];
            while !stop.load(Ordering::Relaxed) {
                match output.receive_frame(&mut buffer).expect("the device is there") {
                    Some((_, length)) => {
                        bytes.fetch_add(length.saturating_sub(HEADERS) as u64, Ordering::Relaxed);
                    }
                    None => {
                        let mut wanted = [PollFd::new(&output, PollFlags::IN)];
                        // A signal only makes it look again.
                        let _ = poll(&mut wanted, Some(&TICK));
                    }
                }
            }
        }
    });
    // The source's thread is not what is measured; it must only be faster.
    let writer = std::thread::spawn({
        let stop = Arc::clone(&stop);
        move || {
            let packet = Packet::new("10.99.1.1:1", "10.99.2.1:2", true);
            while !stop.load(Ordering::Relaxed) {
                assert!(packet.send(&mut input), "a TUN device takes what is written");
            }
        }
    });
    let thread = thread_id.recv().expect("the reader has begun");
    std::thread::sleep(span / 4);
    let (watch, before) = (Stopwatch::start(Some(thread)), bytes.load(Ordering::Relaxed));
    std::thread::sleep(span);
    let sample = watch.stop(bytes.load(Ordering::Relaxed) - before);
    stop.store(true, Ordering::Relaxed);
    reader.join().expect("the reader does not fail");
    writer.join().expect("the writer does not fail");
    sample
}

fn open(namespace: &Namespace, name: &'static str, offload: bool, address: &str) -> Tun {
    let device = namespace.run(move || if offload { Tun::with_offload(name) } else { Tun::open(name) });
    let device = device.expect("tried before");
    namespace.command("ip", &["link", "set", name, "up"]).expect("it was just made");
    namespace.command("ip", &["address", "add", address, "dev", name]).expect("it is up");
    device
}

struct Packet {
    header: VirtioHeader,
    headers: BytesMut,
    payload: Bytes,
}

impl Packet {
    fn new(from: &str, to: &str, offload: bool) -> Self {
        let flow = FlowKey::new(from.parse().expect("an address"), to.parse().expect("an address"));
        // A RST is answered by nobody.
        let mut segment = Segment::new(flow, Flags::RST, SubflowSeq::new(1), SubflowSeq::new(0));
        segment.options.timestamps = Some(Timestamps { value: 1, echo: 1 });
        let mut headers = BytesMut::new();
        let payload = Bytes::from(vec![0x5a; if offload { 45 * MSS } else { MSS }]);
        let header = if offload {
            anabranch_wire::emit_train(&segment, payload.len(), &mut headers).expect("it fits");
            VirtioHeader::tcp(true, 20, HEADERS as u16, Some(MSS as u16))
        } else {
            segment.payload = payload.clone();
            anabranch_wire::emit_headers(&segment, anabranch_wire::TcpChecksum::Full, &mut headers).expect("it fits");
            VirtioHeader::default()
        };
        Packet { header, headers, payload }
    }

    fn send(&self, device: &mut dyn Device) -> bool {
        let pieces = [IoSlice::new(&self.headers), IoSlice::new(&self.payload)];
        device.send_frame(&self.header, &pieces).expect("the device is up")
    }
}

/// IPv4, TCP, timestamps.
const HEADERS: usize = 52;
const MSS: usize = 1500 - HEADERS;
const BETWEEN_CLOCKS: usize = 16;
const TICK: rustix::time::Timespec = rustix::time::Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
