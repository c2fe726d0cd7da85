#!/usr/bin/env python3
"""Cost in processor time of the congestion controls that `anabranch kernel load` registers.

    sudo interop/controller_cost.py target/release/anabranch [--rounds 8] [--seconds 4] [--segments 1] \\
        [--controls lia,olia]

iperf3 sends over an MPTCP connection with two subflows, each over a veth pair of its own between two network namespaces
that go with the script. Rounds take each control once, the kernel's own Reno included, in an order that changes from
round to round. The price is the processor time of both iperf3, softirqs that ran in them included, per Gbit; the table
has its median and quartiles, and the median of the ratio to Reno in the same round. Beside it stands the time in our
programs themselves, from the kernel's statistics of BPF (`kernel.bpf_stats_enabled`, switched on for rounds of their
own and put back), which other work on the machine does not change.

Without `--segments`, packets between the namespaces are of up to 64 kB; with 1, each is a segment of 1,448 bytes and
each ACK for two of them: the most that a control can be asked for.
"""
import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path

STATS = Path("/proc/sys/kernel/bpf_stats_enabled")


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def inside(namespace, *words):
    return ["ip", "netns", "exec", namespace, *words]


class Hosts:
    """Two namespaces with two veth pairs between them."""

    def __init__(self, segments):
        self.names = [f"ab-cost-{os.getpid()}-{end}" for end in ("client", "server")]
        self.segments = segments

    def __enter__(self):
        try:
            self.make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def make(self):
        client, server = self.names
        for name in self.names:
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
            ip("-n", name, "mptcp", "limits", "set", "subflows", "2", "add_addr_accepted", "2")
            # iperf3 sets its control after the connection has begun; under BBR it would be paced until its end.
            begin = inside(name, "sysctl", "-qw", "net.ipv4.tcp_congestion_control=reno")
            subprocess.run(begin, check=True)
        for path in (1, 2):
            ip("link", "add", f"c{path}", "netns", client, "type", "veth", "peer", "name", f"s{path}", "netns", server)
            for name, device, last in ((client, f"c{path}", 1), (server, f"s{path}", 2)):
                ip("-n", name, "address", "add", f"10.98.{path}.{last}/24", "dev", device)
                if self.segments:
                    ip("-n", name, "link", "set", device, "gso_max_segs", str(self.segments))
                ip("-n", name, "link", "set", device, "up")
        ip("-n", server, "mptcp", "endpoint", "add", "10.98.2.2", "dev", "s2", "signal")

    def __exit__(self, *_):
        for name in self.names:
            subprocess.run(["ip", "netns", "delete", name], stderr=subprocess.DEVNULL)

    def transfer(self, control, seconds):
        """Processor time per Gbit [s], and segments that left."""
        client, server = self.names
        before = os.times()
        listening = subprocess.Popen(inside(server, "mptcpize", "run", "iperf3", "-s", "-1"), stdout=subprocess.DEVNULL)
        time.sleep(0.3)
        words = ["mptcpize", "run", "iperf3", "-c", "10.98.1.2", "-t", str(seconds), "-C", control, "-J"]
        result = subprocess.run(inside(client, *words), stdout=subprocess.PIPE, text=True)
        listening.wait(timeout=30)
        after = os.times()
        report = json.loads(result.stdout)
        if "error" in report:
            sys.exit(f"iperf3 with {control}: {report['error']}")
        gbit = report["end"]["sum_received"]["bytes"] * 8e-9
        cpu = after.children_user + after.children_system - before.children_user - before.children_system
        return cpu / gbit, gbit


def in_programs():
    """Time in all programs of struct_ops so far [s], and their calls."""
    listed = subprocess.run(["bpftool", "-j", "prog", "show"], check=True, stdout=subprocess.PIPE, text=True)
    ours = [it for it in json.loads(listed.stdout) if it["type"] == "struct_ops"]
    return sum(it.get("run_time_ns", 0) for it in ours) * 1e-9, sum(it.get("run_cnt", 0) for it in ours)


def quartiles(values):
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{middle:.4f} ({low:.4f} to {high:.4f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("anabranch")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--segments", type=int)
    parser.add_argument("--controls", default="lia,olia,balia,wvegas,veno,mveno-r")
    options = parser.parse_args()
    controls = options.controls.split(",")
    kernel_names = {name: "ab_" + name.replace("-", "_") for name in controls}
    holders = []
    enabled = STATS.read_text()
    try:
        for name in controls:
            command = [options.anabranch, "kernel", "load", name]
            holder = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            holders.append(holder)
            if not holder.stdout.readline().startswith("loaded"):
                sys.exit(f"cannot load {name}")
        with Hosts(options.segments) as hosts:
            hosts.transfer("reno", 1)
            prices = {name: [] for name in ["reno", *controls]}
            dice = random.Random(1)
            for _ in range(options.rounds):
                for name in dice.sample(sorted(prices), len(prices)):
                    prices[name].append(hosts.transfer(kernel_names.get(name, name), options.seconds)[0])
            print("control   processor time per Gbit [s]   against reno   of that in our programs")
            for name, values in prices.items():
                ratios = [own / reno - 1 for own, reno in zip(values, prices["reno"])]
                line = f"{name:<9} {quartiles(values)}"
                if name != "reno":
                    STATS.write_text("1")
                    before = in_programs()
                    _, gbit = hosts.transfer(kernel_names[name], options.seconds)
                    after = in_programs()
                    STATS.write_text(enabled)
                    spent, calls = after[0] - before[0], after[1] - before[1]
                    share = spent / gbit / statistics.median(prices["reno"])
                    spread = statistics.quantiles(ratios, n=4, method="inclusive")
                    line += f"   {statistics.median(ratios):+.1%} ({spread[0]:+.1%} to {spread[2]:+.1%})"
                    line += f"   {share:.2%}: {calls / gbit:,.0f} calls per Gbit, {spent / calls * 1e9:.0f} ns each"
                print(line, flush=True)
    finally:
        STATS.write_text(enabled)
        for holder in holders:
            holder.terminate()
            holder.wait()


if __name__ == "__main__":
    main()
