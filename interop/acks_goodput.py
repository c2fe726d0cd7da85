#!/usr/bin/env python3
"""Goodput of the kernel's Reno with `anabranch kernel acks` at both ends, against the paper's Eq. (5).

    interop/acks_goodput.py target/release/anabranch [--runs 8] [--seconds 40] [--loss 1%] \\
        [--at-once 2] [--options=--no-caution]

Paths of 10 and 100 ms on the testbed, with random losses that keep Reno far below their rates. Runs with and without
`kernel acks` are made in pairs, with the same seed. Eq. (5) (J. Cheng et al., 2019): a subflow's goodput is inverse to
its round trip, which is 100 ms on the long path, and 55 ms with its ACKs on the short one. `--options` are handed to
`kernel acks`. Root, or a user who may make namespaces and load BPF programs.
"""
import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

PATHS = """
[path.short]
rate = "100mbit"
delay = "5ms"
loss = "{loss}"
[path.long]
rate = "100mbit"
delay = "50ms"
loss = "{loss}"
[host]
congestion = "reno"
[[workload]]
kind = "files"
size = "1MiB"
"""
CLIENT = "--path 10.77.1.2,10.77.0.1 --path 10.77.2.2,10.77.0.1"
SERVER = "--path 10.77.0.1,10.77.1.2 --path 10.77.0.1,10.77.2.2"
AGREED = """until tail -n 1 client.log | grep -q 'agrees.*acks-on":1.*acks-on":1'; do sleep 0.1; done"""
# The short path gains nothing; the long one's round trip is half its own delay and half the other's. Eq. (5) itself is
# for both together.
EXPECTED = {"short": 1.0, "long": 100 / 55, "both": (1 / 10 + 1 / 55) / (1 / 10 + 1 / 100)}


def transfer(options, seed, acks):
    """Data that each path carried [bytes], each byte once but for what Reno repeated."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        (folder / "paths.toml").write_text(PATHS.format(loss=options.loss))
        command = f"{options.anabranch} kernel acks --json {options.options}"
        server = "exec mptcpize run iperf3 -s"
        script = f"mptcpize run iperf3 -c server -t {options.seconds} > iperf.log || exit 1\n"
        if acks:
            server = f"{command} {SERVER} > server.log 2>&1 & {server}"
            script = f"{command} {CLIENT} > client.log 2>&1 & acks=$!\n{AGREED}\n{script}kill $acks; wait $acks\n"
        (folder / "client.sh").write_text(script)
        words = ["testbed", "paths.toml", "--seed", str(seed), "--duration", "600s", "--json", "testbed.json"]
        words += ["--server", server, "--", "sh", "client.sh"]
        done = subprocess.run([options.anabranch, *words], cwd=folder, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{done.stdout}{done.stderr}")
        paths = json.loads((folder / "testbed.json").read_text())["paths"]
        carried = {path["name"]: path["up"]["delivered_payload"] for path in paths}
        return carried | {"both": sum(carried.values())}


def mean(values):
    """Mean, and its standard error."""
    return statistics.mean(values), statistics.stdev(values) / math.sqrt(len(values))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("anabranch", type=lambda name: Path(name).resolve())
    parser.add_argument("--runs", type=int, default=8)
    parser.add_argument("--seconds", type=int, default=40)
    parser.add_argument("--loss", default="1%%")
    parser.add_argument("--at-once", type=int, default=2)
    parser.add_argument("--options", default="")
    options = parser.parse_args()
    options.loss = options.loss.replace("%%", "%")
    with ThreadPoolExecutor(options.at_once) as pool:
        pairs = [[pool.submit(transfer, options, seed, acks) for acks in (False, True)] for seed in range(options.runs)]
        pairs = [[it.result() for it in pair] for pair in pairs]
    print("path    without [Mbit/s]   with [Mbit/s]    ratio             Eq. (5)")
    for path, expected in EXPECTED.items():
        rates = [[run[path] * 8e-6 / options.seconds for run in pair] for pair in pairs]
        (without, without_error), (with_acks, with_error) = (mean(list(column)) for column in zip(*rates))
        ratio = with_acks / without
        error = ratio * math.hypot(without_error / without, with_error / with_acks)
        print(
            f"{path:<7} {without:6.2f} +- {without_error:.2f}     {with_acks:6.2f} +- {with_error:.2f}"
            f"   {ratio:.3f} +- {error:.3f}   {expected:.3f}  ({ratio / expected - 1:+.1%})"
        )


if __name__ == "__main__":
    main()
