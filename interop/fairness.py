#!/usr/bin/env python3
"""Share of an MPTCP connection of the kernel beside one TCP connection, with each congestion control.

    sudo interop/fairness.py target/release/anabranch [--controls reno,lia,olia,balia] [--seeds 10] [--seed 1] \\
        [--seconds 20] [--scenario shared-bottleneck] [--set KEY=VALUE]... [--alone] [--schedulers default] \\
        [--kernel-only]

Both connections begin together over a scenario of the testbed and send as fast as they can; counted is what their
receivers have after that many seconds. The other connection is plain TCP with Reno on the first path. With `--alone`
there is none, and the table has goodputs. Beside the kernel stands the simulator, with the same policy, scenario and
seeds, and hosts as in `calibrate`: with the kernel's scheduler, `linux-burst`, under the limits that our controls set,
and with `min-rtt`. `--schedulers default,min-rtt` also loads ours into a kernel that takes them (`anabranch kernel list`).

Sockets have their congestion control before they connect. One that begins under BBR, where that is the machine's
default, is paced by the kernel until its end, whatever control it is given later: iperf3's `-C` comes too late.
"""
import argparse
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PORTS = {"mptcp": 5301, "tcp": 5302}
# Hosts of the simulator.
LINUX = [
    'host.profile="linux"',
    'host.hystart="off"',
]


def receive(kind, seconds):
    """Prints how many bytes a connection brought in that time."""
    protocol = socket.IPPROTO_MPTCP if kind == "mptcp" else 0
    # It listens until the end: the kernel refuses further subflows where nobody does.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)
    listener.bind((os.environ["ANABRANCH_SERVER"], PORTS[kind]))
    listener.listen()
    connection, _ = listener.accept()
    count, end = len(connection.recv(1)), time.monotonic() + seconds
    while time.monotonic() < end and (data := connection.recv(1 << 16)):
        count += len(data)
    Path(f"{kind}.json").write_text(json.dumps(count))
    while connection.recv(1 << 16):
        pass


def send(kind, seconds, control, scheduler):
    """Sends a little longer than the other end counts."""
    Path("/proc/sys/net/mptcp/scheduler").write_text(scheduler)
    protocol = socket.IPPROTO_MPTCP if kind == "mptcp" else 0
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol) as sender:
        sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
        sender.connect((os.environ["ANABRANCH_SERVER"], PORTS[kind]))
        end, data = time.monotonic() + seconds + 0.5, bytes(1 << 16)
        while time.monotonic() < end:
            sender.sendall(data)


def measure(options, control, scheduler, seed):
    """Rates of the connections [Mbit/s], and what the testbed says of itself."""
    kinds = ["mptcp"] if options.alone else ["mptcp", "tcp"]
    own = f"{sys.executable} {Path(__file__).resolve()}"
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        receivers = " & ".join(f"{own} receive {kind} {options.seconds}" for kind in kinds)
        senders = [f"{own} send {kind} {options.seconds}" for kind in kinds]
        senders[0] += f" {control} {scheduler}"
        senders[1:] = [f"{sender} reno default" for sender in senders[1:]]
        words = ["testbed", options.scenario, "--seed", str(seed), "--duration", f"{options.seconds + 60}s"]
        words += [word for one in options.set for word in ("--set", one)]
        words += ["--json", "testbed.json", "--server", f"{receivers} & wait"]
        script = " & ".join(senders) + " & wait; until " + " && ".join(f"test -s {kind}.json" for kind in kinds)
        words += ["--", "sh", "-c", f"{script}; do sleep 0.1; done"]
        done = subprocess.run([options.anabranch, *words], cwd=folder, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{done.stdout}{done.stderr}")
        rates = [json.loads((folder / f"{kind}.json").read_text()) * 8e-6 / options.seconds for kind in kinds]
        return rates, json.loads((folder / "testbed.json").read_text())["valid"]


class Loaded:
    """A control or scheduler of ours, registered for as long as it is measured; those of the kernel are there."""

    def __init__(self, anabranch, name, available, *option):
        own = name in ("reno", "default")
        self.words = None if own else [anabranch, "kernel", "load", *option, name]
        self.name = name if own else "ab_" + name.replace("-", "_")
        self.available = Path("/proc/sys/net", available)

    def __enter__(self):
        self.process = self.words and subprocess.Popen(self.words, stdout=subprocess.DEVNULL)
        until = time.monotonic() + 20
        while self.name not in self.available.read_text().split():
            if time.monotonic() > until or self.process and self.process.poll() is not None:
                sys.exit(f"{self.name} cannot be loaded")
            time.sleep(0.1)
        return self.name

    def __exit__(self, *_):
        if self.process:
            self.process.terminate()
            self.process.wait()


def simulate(options, control, scheduler, seed):
    """The same of the simulator."""
    own = control != "reno" and scheduler == "linux-burst"
    scheduler = '{name="linux-burst",subflow_lowat=1448,sndbuf_expand=8}' if own else f'"{scheduler}"'
    sets = [f'host.congestion="{control}"', f"host.scheduler={scheduler}", *LINUX]
    # The client sends, as in `send`: a shared link is behind the paths' own links then, not before them.
    workloads = [f'{{kind="bulk",direction="up",duration="{options.seconds}s"}}']
    if not options.alone:
        rival = f'kind="tcp",path="a",direction="up",duration="{options.seconds + 10}s",congestion="reno"'
        workloads.append(f"{{{rival}}}")
    sets.append(f"workload=[{','.join(workloads)}]")
    words = ["run", options.scenario, "--seed", str(seed)]
    words += [word for one in [*sets, *options.set] for word in ("--set", one)]
    done = subprocess.run([options.anabranch, *words], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    # Of all that `run` prints, the table of transfers alone has both: what the other had got when the first was through.
    rows = re.findall(r"^ +(bulk|tcp) .*?([0-9]{3,})(?: +[0-9.]+)?$", done.stdout, re.MULTILINE)
    return [int(count) * 8e-6 / options.seconds for _, count in rows]


def describe(values):
    """Mean, standard deviation, and the least to the largest."""
    spread = statistics.stdev(values) if len(values) > 1 else 0
    return f"{statistics.mean(values):5.2f} +- {spread:.2f} ({min(values):.2f} to {max(values):.2f})"


def main():
    if sys.argv[1:2] == ["receive"]:
        return receive(sys.argv[2], float(sys.argv[3]))
    if sys.argv[1:2] == ["send"]:
        return send(sys.argv[2], float(sys.argv[3]), sys.argv[4], sys.argv[5])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("anabranch", type=lambda name: Path(name).resolve())
    parser.add_argument("--controls", default="reno,lia,olia,balia")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1, help="the first")
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--scenario", default="shared-bottleneck")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="changes the scenario")
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--schedulers", default="default")
    parser.add_argument("--kernel-only", action="store_true", help="without the simulator")
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.seeds)
    value = (lambda rates: rates[0]) if options.alone else (lambda rates: rates[0] / rates[1])
    print("goodput [Mbit/s]" if options.alone else "share beside one TCP connection", "(mean +- deviation)")
    controls, schedulers = options.controls.split(","), options.schedulers.split(",")
    for control, scheduler in ((control, scheduler) for control in controls for scheduler in schedulers):
        with (
            Loaded(options.anabranch, control, "ipv4/tcp_available_congestion_control") as name,
            Loaded(options.anabranch, scheduler, "mptcp/available_schedulers", "--scheduler") as kernel_scheduler,
        ):
            runs = [measure(options, name, kernel_scheduler, seed) for seed in seeds]
        invalid = sum(not valid for _, valid in runs)
        note = f"; {invalid} runs in which the testbed was late" if invalid else ""
        both = statistics.mean(sum(rates) for rates, _ in runs)
        kind = "kernel" if scheduler == "default" else f"kernel, {scheduler}"
        shares = describe([value(rates) for rates, _ in runs])
        print(f"{control:8} {kind:11} {shares}, all {both:.1f} Mbit/s{note}", flush=True)
        for simulated in () if options.kernel_only or scheduler != "default" else ("linux-burst", "min-rtt"):
            runs = [simulate(options, control, simulated, seed) for seed in seeds]
            print(f"{'':8} {simulated:11} {describe([value(rates) for rates in runs])}", flush=True)


if __name__ == "__main__":
    main()
