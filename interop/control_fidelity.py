#!/usr/bin/env python3
"""Goodput and queueing delay of one TCP connection: the kernel on the testbed, and the simulator with the same control.

    sudo interop/control_fidelity.py target/release/anabranch [--control bbr] [--seconds 20] [--runs 1]
        [--rates 10,40,100] [--rtts 20,80] [--queues 0.5,4]

Each rate is measured with each round trip; queues (in bandwidth-delay products) take turns over these. The client
sends as fast as it can over one path; goodput is counted by the receiver over that many seconds, and the queueing delay
is the median over packets that the link reports, or over samples of its queue. The kernel must have the control
(`/proc/sys/net/ipv4/tcp_available_congestion_control`). Bars: goodput within 5 %, delay within 20 %.
"""
import argparse
import itertools
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PORT = 5301
GOODPUT, DELAY = 0.05, 0.20
SCENARIO = """
[path.a]
rate = "{rate}mbit"
delay = "{delay}ms"
queue = "{queue}bdp"
[host]
profile = "linux"
congestion = "{control}"
[[workload]]
kind = "bulk"
direction = "up"
duration = "{seconds}s"
"""


def receive(seconds):
    """Counts what a connection brings in that time."""
    listener = socket.socket()
    listener.bind((os.environ["ANABRANCH_SERVER"], PORT))
    listener.listen()
    connection, _ = listener.accept()
    count, end = len(connection.recv(1)), time.monotonic() + seconds
    while time.monotonic() < end and (data := connection.recv(1 << 16)):
        count += len(data)
    Path("count.json").write_text(json.dumps(count))
    while connection.recv(1 << 16):
        pass


def send(seconds, control):
    """Sends a little longer than the other end counts."""
    with socket.socket() as sender:
        # Before it connects: a connection keeps the pacing of the control it began with.
        sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
        sender.connect((os.environ["ANABRANCH_SERVER"], PORT))
        end, data = time.monotonic() + seconds + 0.2, bytes(1 << 16)
        while time.monotonic() < end:
            sender.sendall(data)


def run(words, folder):
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}\n{done.stdout}{done.stderr}")
    return done.stdout


def kernel_delay(links):
    """Median over packets [ms], from offer to last bit, in the direction of the data."""
    return next(link for link in links if link["name"] == "a/up")["queue_ms"]["p50"]


def simulated_delay(run, rate):
    """The same from the packets in the queue, sampled each millisecond; full packets of 1500 bytes leave one by one."""
    return statistics.median(run["samples"]["paths"][0]["queue"]) * 12 / rate


def measure(options, folder, rate, seed):
    """Goodput [Mbit/s] and delay [ms] of the kernel, then of the simulator, and if the testbed vouches for itself."""
    own = f"{sys.executable} {Path(__file__).resolve()}"
    script = f"{own} send {options.seconds} {options.control}; until test -s count.json; do sleep 0.1; done"
    words = [options.anabranch, "testbed", "net.toml", "--seed", str(seed), "--duration", f"{options.seconds + 60}s"]
    words += ["--json", "testbed.json", "--server", f"{own} receive {options.seconds}", "--", "sh", "-c", script]
    run(words, folder)
    testbed = json.loads((folder / "testbed.json").read_text())
    count = json.loads((folder / "count.json").read_text())
    (folder / "count.json").unlink()
    kernel = count * 8e-6 / options.seconds, kernel_delay(testbed["links"])
    # Plain TCP, as the sockets are.
    words = [options.anabranch, "run", "net.toml", "--seed", str(seed), "--json", "--set", "host.multipath=false"]
    words += ["--set", 'run.sample="1ms"']
    simulated = json.loads(run(words, folder))["runs"][0]
    return kernel, (simulated["goodput_bps"] * 1e-6, simulated_delay(simulated, rate)), testbed["valid"]


def main():
    if sys.argv[1:2] == ["receive"]:
        return receive(float(sys.argv[2]))
    if sys.argv[1:2] == ["send"]:
        return send(float(sys.argv[2]), sys.argv[3])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("anabranch", type=lambda path: str(Path(path).resolve()))
    parser.add_argument("--control", default="bbr")
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--runs", type=int, default=1)
    for name, default in [("rates", "10,40,100"), ("rtts", "20,80"), ("queues", "0.5,4")]:
        parser.add_argument(f"--{name}", default=default)
    options = parser.parse_args()
    available = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    if options.control not in available:
        sys.exit(f"the kernel has no {options.control}, only {' '.join(available)}")
    numbers = [[float(word) for word in text.split(",")] for text in (options.rates, options.rtts, options.queues)]
    conditions = list(itertools.product(*numbers[:2]))
    print("  rate    rtt  queue   goodput [Mbit/s]                 median queueing delay [ms]")
    print("  [Mbit/s] [ms] [BDP]   kernel  simulator  difference    kernel  simulator  difference")
    kept = 0
    for number, (rate, rtt) in enumerate(conditions):
        queue = numbers[2][(number + number // len(numbers[1])) % len(numbers[2])]
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            values = {"rate": rate, "delay": rtt / 2, "queue": queue, "control": options.control}
            (folder / "net.toml").write_text(SCENARIO.format(seconds=options.seconds, **values))
            runs = [measure(options, folder, rate, seed) for seed in range(1, options.runs + 1)]
        means = [[statistics.mean(part) for part in zip(*(run[side] for run in runs))] for side in (0, 1)]
        (kernel, waits), (ours, waited) = means
        goodput, delay = ours / kernel - 1, waited / waits - 1
        kept += abs(goodput) <= GOODPUT and abs(delay) <= DELAY
        late = "" if all(run[2] for run in runs) else "  (testbed: late)"
        print(f"  {rate:7g} {rtt:5g} {queue:5g}   {kernel:7.2f}  {ours:8.2f}  {goodput:+9.1%}", end="")
        print(f"   {waits:7.2f}  {waited:8.2f}  {delay:+9.1%}{late}", flush=True)
    print(f"  {kept} of {len(conditions)} conditions within {GOODPUT:.0%} of goodput and {DELAY:.0%} of delay")


if __name__ == "__main__":
    main()
