//! The device without any protocol: packets pushed into a TUN and read from one.

use crate::processor::{Sample, Stopwatch, this_thread};
use anabranch_host::{Device, LONGEST_PACKET, Namespace, Tun, VirtioHeader};
use anabranch_units::SubflowSeq;
use anabranch_wire::{Checksum, Flags, FlowKey, Segment, Timestamps};
use bytes::{Bytes, BytesMut};
use rustix::event::{PollFd, PollFlags, poll};
use std::io::IoSlice;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Writes the same UDP packet of 1500 bytes again and again; what a kernel socket behind the device gets is counted.
pub fn source(span: Duration) -> Sample {
    let namespace = Namespace::new("raw").expect("tried before");
    let mut device = open(&namespace, "raw", false, KERNEL_NET);
    let socket = udp(&namespace, KERNEL);
    let packet = Packet::udp();
    let source = Loop::start(move |_| assert!(packet.send(&mut device), "a TUN device takes what is written"));
    let sink = Loop::start(move |bytes| {
        let mut buffer = [0; 2048];
        // It looks up now and then whether it is to end.
        let length = socket.recv(&mut buffer).unwrap_or(0);
        bytes.fetch_add(length as u64, Ordering::Relaxed);
    });
    let sample = watch(source.thread, &sink.bytes, span);
    source.finish();
    sink.finish();
    sample
}

/// Reads what a kernel UDP socket sends, 1500 bytes a packet.
pub fn sink(span: Duration) -> Sample {
    let namespace = Namespace::new("raw").expect("tried before");
    let device = open(&namespace, "raw", false, KERNEL_NET);
    let socket = udp(&namespace, KERNEL);
    let payload = [0x5a; 1500 - 28];
    // Fails when the queue is full, which is what it is for.
    let source = Loop::start(move |_| drop(socket.send_to(&payload, OURS)));
    let sink = reader(device, 28);
    let sample = watch(sink.thread, &sink.bytes, span);
    source.finish();
    sink.finish();
    sample
}

/// Writes the same TCP packet as [`source`] does, of 64 KiB to be cut if `offload`; the kernel finds no connection for
/// it and drops it when it has seen to the checksum.
pub fn source_alone(offload: bool, span: Duration) -> Sample {
    let namespace = Namespace::new("raw").expect("tried before");
    let mut device = open(&namespace, "raw", offload, KERNEL_NET);
    let packet = Packet::tcp("10.99.1.1:1", "10.99.1.2:2", offload);
    let source = Loop::start(move |bytes| {
        assert!(packet.send(&mut device), "a TUN device takes what is written");
        bytes.fetch_add(packet.payload.len() as u64, Ordering::Relaxed);
    });
    let sample = watch(source.thread, &source.bytes, span);
    source.finish();
    sample
}

/// Reads what the kernel forwards to the device from another one, where 64 KiB packets are written; it cuts them itself
/// if this device has no offload.
pub fn sink_alone(offload: bool, span: Duration) -> Sample {
    let namespace = Namespace::new("raw").expect("tried before");
    let mut input = open(&namespace, "input", true, KERNEL_NET);
    let output = open(&namespace, "output", offload, "10.99.2.2/24");
    namespace.sysctl("net.ipv4.ip_forward", "1").expect("a namespace of ours");
    let packet = Packet::tcp("10.99.1.1:1", "10.99.2.1:2", true);
    let source = Loop::start(move |_| assert!(packet.send(&mut input), "a TUN device takes what is written"));
    let sink = reader(output, HEADERS);
    let sample = watch(sink.thread, &sink.bytes, span);
    source.finish();
    sink.finish();
    sample
}

/// Counts the bytes that a device gives, less `headers` bytes per packet.
fn reader(mut device: Tun, headers: usize) -> Loop {
    let mut buffer = vec![0; LONGEST_PACKET];
    Loop::start(move |bytes| match device.receive_frame(&mut buffer).expect("the device is there") {
        Some((_, length)) => drop(bytes.fetch_add(length.saturating_sub(headers) as u64, Ordering::Relaxed)),
        None => {
            let mut wanted = [PollFd::new(&device, PollFlags::IN)];
            // A signal only makes it look again.
            let _ = poll(&mut wanted, Some(&TICK));
        }
    })
}

fn watch(thread: i32, bytes: &AtomicU64, span: Duration) -> Sample {
    std::thread::sleep(span / 4);
    let (watch, before) = (Stopwatch::start(Some(thread)), bytes.load(Ordering::Relaxed));
    std::thread::sleep(span);
    watch.stop(bytes.load(Ordering::Relaxed) - before)
}

/// A thread that does one thing again and again.
struct Loop {
    thread: i32,
    bytes: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    handle: JoinHandle<()>,
}

impl Loop {
    fn start(mut turn: impl FnMut(&AtomicU64) + Send + 'static) -> Self {
        let (stop, bytes) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (id, thread) = std::sync::mpsc::channel();
        let handle = std::thread::spawn({
            let (stop, bytes) = (Arc::clone(&stop), Arc::clone(&bytes));
            move || {
                id.send(this_thread()).expect("someone waits for it");
                while !stop.load(Ordering::Relaxed) {
                    turn(&bytes);
                }
            }
        });
        Loop { thread: thread.recv().expect("the thread has begun"), bytes, stop, handle }
    }

    fn finish(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.handle.join().expect("the loop does not fail");
    }
}

fn udp(namespace: &Namespace, address: &'static str) -> UdpSocket {
    let socket = namespace.run(move || UdpSocket::bind(address)).expect("the address is there");
    socket.set_read_timeout(Some(Duration::from_millis(100))).expect("a valid timeout");
    socket
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
    fn udp() -> Self {
        let payload = Bytes::from(vec![0x5a; 1500 - 28]);
        let mut headers = [0; 28];
        headers[0] = 0x45;
        headers[2..4].copy_from_slice(&1500_u16.to_be_bytes());
        (headers[8], headers[9]) = (64, 17);
        headers[12..20].copy_from_slice(&[10, 99, 1, 1, 10, 99, 1, 2]);
        let mut sum = Checksum::new();
        sum.add(&headers[..20]);
        headers[10..12].copy_from_slice(&sum.value().to_be_bytes());
        // From port 9 to port 9, without a checksum (RFC 768).
        (headers[21], headers[23]) = (9, 9);
        headers[24..26].copy_from_slice(&1480_u16.to_be_bytes());
        Packet { header: VirtioHeader::default(), headers: BytesMut::from(&headers[..]), payload }
    }

    fn tcp(from: &str, to: &str, offload: bool) -> Self {
        let flow = FlowKey::new(from.parse().expect("an address"), to.parse().expect("an address"));
        // A RST needs no answer.
        let mut segment = Segment::new(flow, Flags::RST, SubflowSeq::new(1), SubflowSeq::new(0));
        segment.options.set_timestamps(Some(Timestamps { value: 1, echo: 1 }));
        let mut headers = BytesMut::new();
        let payload = Bytes::from(vec![0x5a; if offload { 45 * MSS } else { MSS }]);
        let header = if offload {
            anabranch_wire::emit_train(&segment, payload.len(), &mut headers).expect("it fits");
            VirtioHeader::tcp(true, 20, HEADERS as u16, Some(MSS as u16))
        } else {
            segment.payload = payload.clone().into();
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
const KERNEL_NET: &str = "10.99.1.2/24";
const KERNEL: &str = "10.99.1.2:9";
const OURS: &str = "10.99.1.1:9";
const TICK: rustix::time::Timespec = rustix::time::Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
