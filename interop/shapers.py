#!/usr/bin/env python3
"""This kernel's tbf and htb beside our `token-bucket`: the same datagrams, and when each comes out.

    cargo build --release -p anabranch-net --example queue
    sudo interop/shapers.py target/release/examples/queue [--runs 3]

Two namespaces with a veth pair, the qdisc at one end, a packet socket with the kernel's time stamps at the other. Arrivals of our
side are the times before each `send`; its link is a hundred times as fast as the shaper. For each load the table has packets
that came out within a millisecond of the first (the burst), the rate of the others, packets dropped, and the differences between
the times at which packets came out, as a median and the largest. A busy machine shows in the largest. Needs root, iproute2, and
a kernel with sch_tbf and sch_htb.
"""

import argparse
import ctypes
import os
import socket
import statistics
import struct
import subprocess
import sys
import time

# Bytes on the veth: a datagram with its Ethernet, IPv4 and UDP headers.
SIZE = 1514
PAYLOAD = SIZE - 14 - 20 - 8
SECOND = 1_000_000_000
SO_TIMESTAMPNS = 35
# Rate in Mbit/s, burst in bytes.
RATE, BURST = 10, 10 * SIZE
QDISCS = {
    "tbf": "root tbf rate {rate}mbit burst {burst} limit {limit}",
    "htb": "root handle 1: htb default 1",
}
HTB = "parent 1: classid 1:1 htb rate {rate}mbit ceil {rate}mbit burst {burst} cburst {burst}"
# HTB's queue is a child; its limit is in packets.
CHILD = "parent 1:1 handle 2: pfifo limit {packets}"
# Gaps between packets [ms], repeated, how many, and packets that may wait.
LOADS = {
    "at once": ([0.0], 120, 1000),
    "overload": ([0.8], 600, 1000),
    "underload": ([1.5], 300, 1000),
    "bursts": ([0.0] * 19 + [40.0], 300, 1000),
    "full": ([0.3], 400, 20),
}


def tool(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: {done.stderr or done.stdout}")


def enter(name):
    """Makes what this process opens from now on belong to a namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open(f"/run/netns/{name}") as file:
        if libc.setns(file.fileno(), 0x40000000) != 0:
            sys.exit(f"namespace {name}: {os.strerror(ctypes.get_errno())}")


def set_up(kind, packets):
    values = {"rate": RATE, "burst": BURST, "limit": packets * SIZE, "packets": packets}
    base = ["ip", "netns", "exec", NEAR, "tc"]
    subprocess.run([*base, "qdisc", "del", "dev", "near", "root"], capture_output=True)
    tool(*base, "qdisc", "add", "dev", "near", *QDISCS[kind].format(**values).split())
    if kind == "htb":
        tool(*base, "class", "add", "dev", "near", *HTB.format(**values).split())
        tool(*base, "qdisc", "add", "dev", "near", *CHILD.format(**values).split())


NEAR, FAR, TO = f"near-{os.getpid()}", f"far-{os.getpid()}", ("10.99.0.2", 9)


def kernel(sender, receiver, gaps, count):
    """Times of sending [ns], and by number those of coming out."""
    receiver.settimeout(0)
    while True:
        try:
            receiver.recv(65536)
        except (BlockingIOError, TimeoutError):
            break
    sent, at = [], time.clock_gettime_ns(time.CLOCK_REALTIME) + 50_000_000
    for number in range(count):
        while time.clock_gettime_ns(time.CLOCK_REALTIME) < at:
            pass
        sent.append(time.clock_gettime_ns(time.CLOCK_REALTIME))
        sender.sendto(struct.pack("!I", number) + bytes(PAYLOAD - 4), TO)
        at = max(at + int(gaps[number % len(gaps)] * 1e6), sent[-1] if gaps == [0.0] else at)
    out, until = {}, time.monotonic() + count * SIZE * 8 / (RATE * 1e6) + 0.3
    receiver.settimeout(0.1)
    while time.monotonic() < until:
        try:
            data, extra, _, _ = receiver.recvmsg(2048, 256)
        except TimeoutError:
            continue
        if len(data) != SIZE or data[23] != 17:
            continue
        seconds, ns = next(struct.unpack("qq", value) for level, kind, value in extra if kind == SO_TIMESTAMPNS)
        out[struct.unpack("!I", data[42:46])[0]] = seconds * SECOND + ns
    return sent, out


def ours(program, sent, packets):
    """The same by our token bucket."""
    # Its clock begins with full buckets a second before.
    table = "at,size,flow,ecn\n" + "".join(f"{at - sent[0] + SECOND},{SIZE},0,0\n" for at in sent)
    words = [program, f"token-bucket,rate={RATE},burst={BURST}", str(100 * RATE), str(packets)]
    done = subprocess.run(words, input=table, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    fates = (line.split(",") for line in done.stdout.split()[1:])
    on_wire = SIZE * 8 * 1000 // (100 * RATE)
    return {n: int(at) - on_wire + sent[0] - SECOND for n, (kind, at) in enumerate(fates) if kind != "dropped"}


def summary(out):
    times = sorted(out.values())
    burst = sum(at < times[0] + 1_000_000 for at in times)
    rest = times[burst - 1 :]
    rate = (len(rest) - 1) * SIZE * 8e3 / (rest[-1] - rest[0]) if len(rest) > 1 else 0.0
    return burst, rate


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="the example `queue` of anabranch-net")
    parser.add_argument("--runs", type=int, default=3, help="of each load (3)")
    options = parser.parse_args()
    options.program = os.path.abspath(options.program)
    if os.geteuid() != 0:
        parser.error("needs root, for namespaces and qdiscs")
    for name in (NEAR, FAR):
        tool("ip", "netns", "add", name)
    try:
        tool("ip", "-n", NEAR, "link", "add", "near", "type", "veth", "peer", "name", "far", "netns", FAR)
        for name, device, number in ((NEAR, "near", 1), (FAR, "far", 2)):
            tool("ip", "-n", name, "link", "set", device, "up")
            tool("ip", "-n", name, "address", "add", f"10.99.0.{number}/24", "dev", device)
        enter(FAR)
        receiver = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
        receiver.bind(("far", 0))
        receiver.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
        enter(NEAR)
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 24)
        # The neighbour is known before anything counts.
        sender.sendto(b"", TO)
        time.sleep(0.3)
        print("qdisc load        burst: here kernel   rate [Mbit/s]: here kernel   dropped: here kernel   apart [ms]: median, most")
        for kind in QDISCS:
            for load, (gaps, count, packets) in LOADS.items():
                for _ in range(options.runs):
                    set_up(kind, packets)
                    # The device came up with the bucket full.
                    time.sleep(0.1)
                    sent, theirs = kernel(sender, receiver, gaps, count)
                    here = ours(options.program, sent, packets)
                    (burst, rate), (their_burst, their_rate) = summary(here), summary(theirs)
                    apart = [abs(at - theirs[n]) / 1e6 for n, at in here.items() if n in theirs]
                    lost = count - len(here), count - len(theirs)
                    print(
                        f"{kind:5} {load:11} {burst:11} {their_burst:6} {rate:20.3f} {their_rate:6.3f} {lost[0]:14} {lost[1]:6}"
                        f" {statistics.median(apart):16.3f} {max(apart):6.3f}",
                        flush=True,
                    )
    finally:
        for name in (NEAR, FAR):
            subprocess.run(["ip", "netns", "del", name])


if __name__ == "__main__":
    main()
