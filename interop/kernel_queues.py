#!/usr/bin/env python3
"""Linux' queue disciplines beside ours: the same packets through both, the kernel's in an emulated machine.

    cargo build -p anabranch-net --example queue
    apt-get download linux-{base,binary,modules}-7.2.13+deb14-amd64
    sudo interop/kernel_queues.py target/debug/examples/queue linux-*.deb [--runs 3] [--cases codel-bursts ...]

Arrivals are those of `queues.py`. A process in the machine of `other_kernel.py` sends each at its time, as a datagram with
its size and ECN field, to a dummy device whose htb class has the rate and the discipline below it; fq_codel and cake get the
flow as well. The kernel stamps each packet twice, by one clock that counts instructions: before the discipline
(SOF_TIMESTAMPING_TX_SCHED), which is its arrival for our side, and as a packet socket sees it go out, 2 us later where
nothing waits.

Cases without chance are compared packet by packet, with ours asked for a packet at the times at which htb asked: each must be
dropped or marked here as there, and leave at the same of those times. `at rate` is the same with ours on a link of that rate,
and how much later than Linux' it leaves there [us]: median and most; cake with a shaper of its own is compared so alone.
Cases that draw, on such links alone, have the means of the runs: here, in Linux, and in brackets by how many standard errors
of the difference they differ.

--write keeps arrivals and what Linux made of them, as `crates/net/tests/linux/*.csv` are, which the test `witnesses` reads.
Exits with 1 if a case differs that should not; those of fq_codel and cake do, by rules that `docs/queues.md` lists. Debian
builds no dualpi2, and its cases are left out unless named or there is a --module; the same page says how to build it.
"""

import argparse
import copy
import json
import os
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from queues import SECOND, Case, arrivals, beside, bursts, measures, on_off, ours, overload, write

DEVICE = "wire"
# <linux/socket.h> and <linux/if_packet.h>, where Python has no names.
SO_SNDBUFFORCE, SO_RCVBUFFORCE, SO_TIMESTAMPNS, SO_TIMESTAMPING = 32, 33, 35, 37
SOL_PACKET, PACKET_TX_TIMESTAMP = 263, 16
# SOF_TIMESTAMPING_TX_SCHED, by the kernel's clock (SOFTWARE), with a number (OPT_ID), without the packet (OPT_TSONLY).
STAMPS = 1 << 8 | 1 << 4 | 1 << 7 | 1 << 11
# Time that htb may save up [us], so that a timer that comes late does not lower the rate.
SAVED_US = 16
# Packets of different sides left at one time if their times are less than this apart [ns].
SAME = 2

CODEL = "codel limit {limit}"
FQ_CODEL = "fq_codel limit {limit} noecn"
# Updates are at multiples of 4 ms here (tupdate is in jiffies).
PIE = "pie limit {limit} tupdate 16ms"
# In bytes, where ours counts packets; a burst of 55 makes the weight 1/512.
RED = "red limit 1000000 min 5000 max 15000 avpkt 1000 burst 55 probability 0.02 bandwidth 10mbit"
# L marks by a step and no ramp.
DUALPI2 = "dualpi2,threshold=1,range=0"
CAKE = "cake unlimited besteffort flows"
# With its own shaper, and not below htb.
SHAPED = "cake bandwidth {mbit}mbit besteffort flows"
CASES = [
    Case("codel-overload", "codel,integers=true", CODEL, overload(1.2)),
    Case("codel-bursts", "codel,integers=true", CODEL, bursts),
    Case("codel-on-off", "codel,integers=true", CODEL, on_off, packets=5000),
    Case("codel-slow", "codel,integers=true", CODEL, overload(1.1), mbit=1),
    Case("codel-full", "codel,integers=true", CODEL, overload(2.0), limit=40),
    Case("codel-marks", "codel,integers=true", f"{CODEL} ecn", overload(1.2), ecn="mixed", flows=5),
    Case("fq-codel-overload", "fq-codel,integers=true,ecn=false", FQ_CODEL, overload(1.2), flows=5),
    Case("fq-codel-bursts", "fq-codel,integers=true,ecn=false", FQ_CODEL, bursts, flows=8),
    Case("fq-codel-on-off", "fq-codel,integers=true,ecn=false", FQ_CODEL, on_off, flows=20, packets=5000),
    Case("fq-codel-marks", "fq-codel,integers=true", "fq_codel limit {limit}", overload(1.2), ecn="mixed", flows=5),
    Case("fq-codel-full", "fq-codel,integers=true,ecn=false", FQ_CODEL, overload(2.0), flows=5, limit=100),
    Case("pie-overload", "pie,update=20", PIE, overload(1.2), packets=10_000, exact=False),
    Case("pie-on-off", "pie,update=20", PIE, on_off, packets=10_000, exact=False),
    Case("pie-marks", "pie,update=20", f"{PIE} ecn", overload(1.05), ecn="mixed", flows=5, packets=10_000, exact=False),
    Case("dualpi2-classic", DUALPI2, "dualpi2", overload(1.05), limit=10_000, packets=10_000, exact=False),
    Case("dualpi2-low", DUALPI2, "dualpi2", overload(0.95), ecn=1, limit=10_000, packets=10_000, exact=False),
    Case("dualpi2-both", DUALPI2, "dualpi2", overload(1.05), ecn="mixed", flows=5, limit=10_000, packets=10_000, exact=False),
    Case("dualpi2-on-off", DUALPI2, "dualpi2", on_off, ecn="mixed", flows=5, limit=10_000, packets=10_000, exact=False),
    Case("cake-overload", "cake,hosts=false", CAKE, overload(1.2), limit=10_000),
    Case("cake-on-off", "cake,hosts=false", CAKE, on_off, limit=10_000, packets=5000),
    Case("cake-flows", "cake,hosts=false", CAKE, overload(1.2), limit=10_000, flows=5),
    Case("cake-marks", "cake,hosts=false", CAKE, overload(1.2), limit=10_000, ecn="mixed", flows=5),
    Case("cake-shaped", "cake,hosts=false,bandwidth=10", SHAPED, overload(1.2), limit=10_000, flows=5),
    Case("cake-slow", "cake,hosts=false,bandwidth=1", SHAPED, overload(1.2), mbit=1, limit=10_000, flows=5),
    Case("red-overload", "red,gentle=false,weight=0.001953125", RED, overload(1.05), packets=10_000, exact=False, sizes=[1000]),
    Case("red-on-off", "red,gentle=false,weight=0.001953125", RED, on_off, packets=10_000, exact=False, sizes=[1000]),
]
# Cases that --write keeps, and how much of each.
KEPT = "codel-overload codel-marks fq-codel-overload cake-overload".split()
KEPT_PACKETS = 600


def tool(text):
    done = subprocess.run(text.split(), capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{text}: {done.stderr or done.stdout}")


def set_up(job):
    """The device anew, with the job's discipline."""
    subprocess.run(["ip", "link", "del", DEVICE], capture_output=True)
    tool(f"ip link add name {DEVICE} type dummy")
    tool(f"ip link set {DEVICE} arp off up")
    if job["shapes"]:
        return tool(f"tc qdisc replace dev {DEVICE} root handle 2: {job['qdisc']}")
    rate, burst = f"{job['mbit']}mbit", job["mbit"] * SAVED_US // 8
    tool(f"tc qdisc replace dev {DEVICE} root handle 1: htb default 1")
    tool(f"tc class add dev {DEVICE} parent 1: classid 1:1 htb rate {rate} ceil {rate} burst {burst} cburst {burst}")
    tool(f"tc qdisc add dev {DEVICE} parent 1:1 handle 2: {job['qdisc']}")


def frame(number, size, flow, ecn):
    """Ethernet, IPv4 and UDP: a port for each flow, and the number as first data."""
    to = b"\x02\0\0\0\0\2\x02\0\0\0\0\1\x08\0"
    addresses = socket.inet_aton("10.0.0.1") + socket.inet_aton("10.0.0.2")
    ip = struct.pack("!BBHHHBBH", 0x45, ecn, size - 14, 0, 0x4000, 64, socket.IPPROTO_UDP, 0) + addresses
    return (to + ip + struct.pack("!HHHHI", 1000 + flow, 9, size - 34, 0, number)).ljust(size, b"\0")


def packet_socket(protocol):
    one = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(protocol))
    one.bind((DEVICE, protocol))
    for option in (SO_SNDBUFFORCE, SO_RCVBUFFORCE):
        one.setsockopt(socket.SOL_SOCKET, option, 1 << 29)
    return one


def received(one, flags=0):
    """Packets that wait at a socket, their time stamps [ns] and other ancillary data."""
    while True:
        try:
            data, extra, _, _ = one.recvmsg(64, 256, flags | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        extra = {(level, kind): value for level, kind, value in extra}
        stamp = extra.get((socket.SOL_SOCKET, SO_TIMESTAMPNS)) or extra[socket.SOL_SOCKET, SO_TIMESTAMPING]
        seconds, ns = struct.unpack_from("qq", stamp)
        yield data, seconds * SECOND + ns, extra


def send(job):
    """Sends a job's packets; when each came to the discipline and, unless it was dropped, left, and with which ECN field."""
    set_up(job)
    tap, sender = packet_socket(3), packet_socket(0)
    tap.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    sender.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING, STAMPS)
    packets = [(at, flow, frame(number, size, flow, ecn)) for number, (at, size, flow, ecn) in enumerate(job["packets"])]
    time.sleep(0.6)  # Until the kernel stamps, and pie has made its first update, half a second after it was made.
    begin = time.monotonic_ns() + 20_000_000
    for at, flow, data in packets:
        if job["qdisc"].startswith("fq_codel"):
            # It takes it as the number of the queue (fq_codel_classify), so that no flows collide.
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, 0x20000 + flow + 1)
        if (left := begin + at - time.monotonic_ns()) > 0:
            time.sleep(left / 1e9)
        try:
            sender.send(data)
        except OSError as error:
            if error.errno != 105:  # ENOBUFS: it was dropped.
                raise
    time.sleep(sum(packet[1] for packet in job["packets"]) * 8e-6 / job["mbit"] + 0.5)
    came, left = [None] * len(packets), [None] * len(packets)
    for _, at, extra in received(sender, socket.MSG_ERRQUEUE):
        came[struct.unpack_from("I", extra[SOL_PACKET, PACKET_TX_TIMESTAMP], 12)[0]] = at
    for data, at, _ in received(tap):
        left[struct.unpack_from("!I", data, 42)[0]] = at, data[15] & 3
    return {"came": came, "left": left}


def inside():
    """Does the jobs of /mnt, in the machine."""
    # Sleeps end in time, and nobody else has the processor.
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    tool("sysctl -qw net.ipv6.conf.default.disable_ipv6=1")
    jobs = json.loads(Path("/mnt/jobs.json").read_text())
    for module in jobs["modules"]:
        tool(f"insmod {module}")
    for number, job in enumerate(jobs["jobs"]):
        Path(f"/mnt/{number}.json").write_text(json.dumps(send(job)))
        print(f"{number + 1} of {len(jobs['jobs'])}", end="\r", file=sys.stderr, flush=True)


def emulate(options, work, keep):
    """Has the kernel send the packets of each run, unless it has."""
    jobs = [
        {
            "qdisc": case.theirs.format(limit=case.limit, mbit=case.rate),
            "mbit": int(case.rate),
            "shapes": case.theirs == SHAPED,
            "packets": packets,
        }
        for case, _, packets in work
    ]
    modules = [os.path.abspath(module) for module in options.module]
    jobs = json.dumps({"jobs": jobs, "modules": modules})
    file = Path(keep, "jobs.json")
    if file.exists() and file.read_text() == jobs and Path(keep, f"{len(work) - 1}.json").exists():
        return
    file.write_text(jobs)
    words = [sys.executable, Path(__file__).with_name("other_kernel.py"), *options.kernel, "--keep", keep]
    words += ["--minutes", str(options.minutes), "--", sys.executable, os.path.abspath(__file__), "--inside"]
    if subprocess.run(words).returncode != 0:
        sys.exit("the emulated machine failed")


def outcome(packets, result):
    """The packets with the times at which they came, and kinds and times of their fates."""
    begin = result["came"][0] - SECOND
    packets = [(at - begin, *packet[1:]) for at, packet in zip(result["came"], packets)]
    kinds = {None: "dropped", False: "left", True: "marked"}
    changed = [left and left[1] != packet[3] for packet, left in zip(packets, result["left"])]
    return packets, [(kinds[mark], left[0] - begin if left else 0) for mark, left in zip(changed, result["left"])]


def on_link(program, case, packets, seed):
    """Fates by ours on a link of the case's rate, with times at which service begins."""
    link = copy.copy(case)
    if case.theirs == SHAPED:
        link.rate, link.per_byte = f"{100 * int(case.rate)}", case.per_byte // 100
    fates = ours(program, link, packets, seed)
    return [(kind, at - packet[1] * link.per_byte * (kind != "dropped")) for (kind, at), packet in zip(fates, packets)]


def compare(options, case, runs):
    """Prints a line for the case; whether it is as it should be."""
    rows, differ, total, at_rate, apart = [], 0, 0, 0, []
    for seed, packets, theirs in runs:
        by_rate = on_link(options.program, case, packets, seed)
        served = lambda fates: [(kind, at + packet[1] * case.per_byte) for (kind, at), packet in zip(fates, packets)]
        rows.append([measures(case, packets, served(fates)) for fates in (by_rate, theirs)])
        if not case.exact:
            continue
        slots = [at for kind, at in theirs if kind != "dropped"] if case.theirs != SHAPED else []
        here = ours(options.program, case, packets, seed, slots) if slots else by_rate
        total += len(packets)
        for one, link, other in zip(here, by_rate, theirs):
            dropped = one[0] == other[0] == "dropped"
            differ += one[0] != other[0] or bool(slots and not dropped and abs(one[1] - other[1]) > SAME)
            at_rate += link[0] == other[0]
            if "dropped" not in (link[0], other[0]):
                apart.append((link[1] - other[1]) / 1e3)
    exact = ""
    if case.exact:
        most = max(apart, key=abs)
        exact = f"{total - differ}/{total}  at rate {at_rate}, {statistics.median(apart):.1f} {most:.1f} us"
    # The stamp of an arrival is taken before softirqs are off: of some hundred thousand one is overtaken by a
    # departure.
    good = differ <= total // 100
    print(f"{case.name:19} {exact:44} {beside(rows)}{'' if good else '  DIFFERS'}", flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="the example `queue` of anabranch-net")
    parser.add_argument("kernel", nargs="+", help="packages of one kernel, or a bzImage")
    parser.add_argument("--runs", type=int, default=3, help="of each case (3); with 0 and --write, what is kept alone")
    parser.add_argument("--cases", nargs="+", metavar="CASE", help=f"of {', '.join(case.name for case in CASES)} (all)")
    parser.add_argument("--module", action="append", default=[], metavar="FILE", help="module that the kernel lacks")
    parser.add_argument("--keep", metavar="DIR", help="where times of the kernel stay, and are used again by the same command")
    parser.add_argument("--minutes", type=float, default=60, help="that the machine may take (60)")
    parser.add_argument("--write", metavar="DIR", help="where arrivals and fates of some cases go")
    options = parser.parse_args()
    names = options.cases or [case.name for case in CASES if options.module or case.theirs != "dualpi2"]
    if unknown := set(names) - {case.name for case in CASES}:
        parser.error(f"{', '.join(sorted(unknown))}: no such case; --help lists them")
    cases = [case for case in CASES if case.name in names]
    work = [(case, seed, arrivals(case, seed)) for case in cases for seed in range(1, options.runs + 1)]
    if options.write:
        work += [(case, 0, arrivals(case, 1)[:KEPT_PACKETS]) for case in cases if case.name in KEPT]
    keep = options.keep or tempfile.mkdtemp(prefix="kernel-queues-")
    emulate(options, work, keep)
    runs = {case.name: [] for case in cases}
    for number, (case, seed, packets) in enumerate(work):
        packets, fates = outcome(packets, json.loads(Path(keep, f"{number}.json").read_text()))
        if seed:
            runs[case.name].append((seed, packets, fates))
        else:
            write(Path(options.write) / f"{case.name}.csv", case, packets, fates, " slots")
    print("case                same (of), at a constant rate                 dropped, marked, waits: here, Linux (sigmas)")
    sys.exit(0 if all([compare(options, case, runs[case.name]) for case in cases if runs[case.name]]) else 1)


if __name__ == "__main__":
    inside() if sys.argv[1:] == ["--inside"] else main()
