#!/usr/bin/env python3
"""Cost of reinjection policies where nothing is lost: time and bytes sent twice, over two veth pairs.

    sudo interop/reinjection_cost.py target/release/anabranch [--rounds 7] [--size 50000000] [--policies on-rto,insured]
        [--delay 0ms,0ms] [--borrowed]

`anabranch proxy --listen` stands in front of nginx, and curl with the kernel's MPTCP downloads through it over two
paths between two network namespaces that go with the script. Rounds take each policy once, in an order that changes
from round to round. The table has the median and the quartiles of the time of a download, the median of its ratio to
the first policy's in the same round, and the share of the bytes that were sent twice. It ends with 1 if a policy takes
more than 1.05 of the first one's time or sends more than 1 % twice.

`--delay` gives both paths a delay (netem at both ends: half of the RTT). With `--borrowed` the address is the machine's
own, and there is no offload.
"""
import argparse
import json
import os
import random
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MOST_TIME = 1.05
MOST_TWICE = 0.01


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def inside(namespace, *words):
    return ["ip", "netns", "exec", namespace, *words]


def processor_time():
    """Processor time of the children that have ended [s]."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Hosts:
    """Two namespaces with two veth pairs between them, and nginx in one."""

    def __init__(self, anabranch, size, delays, borrowed):
        self.names = [f"ab-twice-{os.getpid()}-{end}" for end in ("client", "server")]
        self.anabranch, self.size, self.delays, self.borrowed = anabranch, size, delays, borrowed
        self.folder = tempfile.TemporaryDirectory()
        self.nginx = None

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
            ip("-n", name, "link", "set", "dev", "lo", "up")
            ip("-n", name, "mptcp", "limits", "set", "subflows", "2", "add_addr_accepted", "2")
        for path, delay in enumerate(self.delays, 1):
            ends = ((client, f"c{path}", 2), (server, f"s{path}", 1))
            ip("link", "add", f"c{path}", "netns", client, "type", "veth", "peer", "name", f"s{path}", "netns", server)
            for name, device, last in ends:
                ip("-n", name, "address", "add", f"10.98.{path}.{last}/24", "dev", device)
                ip("-n", name, "link", "set", "dev", device, "up")
                if delay.rstrip("mus") != "0":
                    queue = ["qdisc", "add", "dev", device, "root", "netem", "delay", delay, "limit", "1000000"]
                    subprocess.run(["tc", "-n", name, *queue], check=True)
            ip("-n", client, "route", "add", "default", "via", f"10.98.{path}.1", "dev", f"c{path}", "metric", str(path))
            table = str(100 + path)
            ip("-n", client, "route", "add", "default", "via", f"10.98.{path}.1", "dev", f"c{path}", "table", table)
            ip("-n", client, "rule", "add", "from", f"10.98.{path}.2", "lookup", table)
        ip("-n", client, "mptcp", "endpoint", "add", "10.98.2.2", "dev", "c2", "subflow")
        subprocess.run(inside(server, "sysctl", "-qw", "net.ipv4.ip_forward=1"), check=True)
        folder = Path(self.folder.name)
        folder.chmod(0o755)
        (folder / "file").write_bytes(os.urandom(self.size))
        (folder / "nginx.conf").write_text(
            f"daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log; events {{}}\n"
            f"http {{ access_log off; client_body_temp_path {folder}/b; proxy_temp_path {folder}/p;\n"
            f"fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s; sendfile on;\n"
            f"server {{ listen 127.0.0.1:8080; root {folder}; }} }}\n"
        )
        self.nginx = subprocess.Popen(inside(server, "nginx", "-e", "stderr", "-c", str(folder / "nginx.conf")))
        time.sleep(0.5)

    def __exit__(self, *_):
        if self.nginx is not None:
            self.nginx.terminate()
            self.nginx.wait()
        for name in self.names:
            subprocess.run(["ip", "netns", "delete", name], stderr=subprocess.DEVNULL)
        self.folder.cleanup()

    def download(self, policy):
        """Time of one download [s], the proxy's processor time [s], and its line about the connection."""
        client, server = self.names
        address = "10.98.1.1" if self.borrowed else "10.97.0.1"
        words = ["proxy", "--listen", f"{address}:80", "--to", "127.0.0.1:8080", "--log-format", "json"]
        command = inside(server, self.anabranch, *words, "--reinjection", policy)
        proxy = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            for line in proxy.stderr:
                if "ready" in line:
                    break
            else:
                sys.exit("the proxy did not start")
            curl = ["mptcpize", "run", "curl", "-sSf", "-o", "/dev/null", "-w", "%{time_total} %{size_download}"]
            said = subprocess.run(inside(client, *curl, f"http://{address}/file"), check=True, text=True, capture_output=True)
            seconds, size = said.stdout.split()
            if int(size) != self.size:
                sys.exit(f"{size} bytes of {self.size} came")
            before = processor_time()
            proxy.send_signal(signal.SIGTERM)
            lines = [json.loads(line) for line in proxy.stderr]
            proxy.wait()
            spent = processor_time() - before
        finally:
            proxy.kill()
            proxy.wait()
        ends = [line for line in lines if line.get("outcome") == "closed"]
        if len(ends) != 1:
            sys.exit(f"the proxy's log has {len(ends)} connections")
        return float(seconds), spent, ends[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("anabranch")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--size", type=int, default=50_000_000)
    parser.add_argument("--policies", default="on-rto,insured")
    parser.add_argument("--delay", default="0ms,0ms")
    parser.add_argument("--borrowed", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    policies = options.policies.split(",")
    results = {policy: [] for policy in policies}
    with Hosts(options.anabranch, options.size, options.delay.split(","), options.borrowed) as hosts:
        hosts.download(policies[0])
        dice = random.Random(1)
        for _ in range(options.rounds):
            for policy in dice.sample(policies, len(policies)):
                seconds, spent, line = hosts.download(policy)
                if options.verbose:
                    print(policy, seconds, spent, json.dumps(line))
                results[policy].append((seconds, spent, line["reinjected"] / options.size))
    print("policy        time [s]                  ratio   processor [s]  ratio   twice")
    missed = False
    times, processors, _ = zip(*results[policies[0]])
    for policy, rows in results.items():
        seconds, spent, shares = zip(*rows)
        low, middle, high = statistics.quantiles(seconds, n=4, method="inclusive")
        ratio, work = to_first(seconds, times), to_first(spent, processors)
        twice = statistics.median(shares)
        timing = f"{middle:.3f} ({low:.3f} to {high:.3f})    {ratio:5.2f}"
        print(f"{policy:<13} {timing}   {statistics.median(spent):.3f}          {work:5.2f}  {twice:6.2%}")
        missed |= ratio > MOST_TIME or twice > MOST_TWICE
    sys.exit(1 if missed else 0)


def to_first(own, first):
    """Median of the ratios of each round."""
    return statistics.median(one / other for one, other in zip(own, first))


if __name__ == "__main__":
    main()
