#!/usr/bin/env python3
"""Transfers of kernels with known truth, for twins: draws scenarios, runs a download of the kernel's MPTCP behind each
(`anabranch testbed --pcap`), and keeps captures, scenario and completion time.

    interop/twins.py target/debug/anabranch DIRECTORY [--count 50] [--seed 1]
    TWINS_KERNEL=DIRECTORY cargo test --locked --test twins -- kernels --nocapture

The test makes a twin of each, runs it, and compares completion times; TWINS_AT=server takes the sender's capture alone.
Captures that are there are not made again. Root, or a user who may make namespaces.
"""
import argparse
import json
import random
import subprocess
import sys
from pathlib import Path

SERVER = """
import socket, sys, time
sizes, pause, congestion = [int(n) for n in sys.argv[1].split(',')], float(sys.argv[2]), sys.argv[3]
listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion.encode())
listener.bind(('0.0.0.0', 8080))
listener.listen()
peer, _ = listener.accept()
for number, size in enumerate(sizes):
    if pause == 0 or number == 0:
        peer.recv(100)
    elif pause > 0:
        time.sleep(pause)
    peer.sendall(b'x' * size)
peer.shutdown(socket.SHUT_WR)
while peer.recv(65536):
    pass
"""

CLIENT = """
import socket, sys, time
sizes, pause = [int(n) for n in sys.argv[1].split(',')], float(sys.argv[2])
start = time.monotonic()
sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
sock.connect(('server', 8080))
if pause != 0:
    sock.sendall(b'r' * 100)
for size in sizes:
    if pause == 0:
        sock.sendall(b'r' * 100)
    while size > 0:
        got = len(sock.recv(min(size, 1 << 18)))
        if got == 0:
            sys.exit('the server ended early')
        size -= got
print(time.monotonic() - start)
sock.close()
"""


def log_uniform(dice, low, high):
    return low * (high / low) ** dice.random()


def draw(dice):
    """One scenario: its TOML, sizes of the pieces, the pause between them (0: each is asked for), the control."""
    paths, able = [], 0.0
    for name in ["a", "b"] if dice.random() < 0.8 else ["a", "b", "c"]:
        rate, rtt = log_uniform(dice, 2, 40), log_uniform(dice, 8, 150)
        queue = max(10, round(rate * rtt / 12 * log_uniform(dice, 0.5, 4)))
        loss = log_uniform(dice, 0.0005, 0.02) if dice.random() < 0.4 else 0.0
        able += min(rate, 1.22 * 11.68 / rtt / loss ** 0.5) if loss else rate
        paths.append(f'[path.{name}]\nrate = "{rate:.2f}mbit"\nrtt = "{rtt:.1f}ms"\nqueue = "{queue}p"\n'
                     f'loss = "{100 * loss:.3f}%"\nloss-up = "0%"\n')
    buffer = round(log_uniform(dice, 128, 4096)) if dice.random() < 0.5 else 6144
    congestion = dice.choice(["cubic", "cubic", "cubic", "reno", "bbr"])
    host = f'[host]\nprofile = "linux"\ncongestion = "{congestion}"\nreceive-buffer = "{buffer}KiB"\n'
    kind = dice.random()
    if kind < 0.7:
        sizes, pause = [round(min(able * 125e3 * log_uniform(dice, 0.6, 6), 40e6))], -1.0
    else:
        sizes, pause = [round(log_uniform(dice, 30e3, 600e3))] * dice.randint(4, 10), 0.0
        if kind > 0.85:
            pause = round(dice.uniform(0.2, 0.8), 2)
    return "\n".join(paths + [host, '[[workload]]\nkind = "files"\nsize = "1MB"\n']), sizes, pause, congestion


def capture(anabranch, place, dice, number):
    """Runs the kernels, unless they ran before; returns what is known of the run."""
    text, sizes, pause, congestion = draw(dice)
    known = place / "known.json"
    if known.exists():
        return json.loads(known.read_text())
    place.mkdir(parents=True, exist_ok=True)
    for name, content in [("scenario.toml", text), ("server.py", SERVER), ("client.py", CLIENT)]:
        (place / name).write_text(content)
    words = [",".join(map(str, sizes)), str(pause), congestion]
    command = [anabranch, "testbed", "scenario.toml", "--seed", str(number), "--pcap", ".", "--json", "testbed.json",
               "--duration", "90s", "--server", " ".join(["python3 server.py", *words]), "--",
               "python3", "client.py", *words]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True)
    (place / "testbed.txt").write_text(done.stderr)
    if done.returncode != 0:
        sys.exit(f"{place}: {done.stderr}")
    result = json.loads((place / "testbed.json").read_text())
    facts = {"time_s": float(done.stdout), "valid": result["valid"], "sizes": sizes, "pause": pause}
    facts["congestion"] = congestion
    known.write_text(json.dumps(facts))
    return facts


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("anabranch", type=lambda name: str(Path(name).absolute()))
    parser.add_argument("directory", type=Path)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    for number in range(1, args.count + 1):
        place = args.directory / f"{args.seed}-{number}"
        facts = capture(args.anabranch, place, random.Random(f"{args.seed}/{number}"), number)
        note = "" if facts["valid"] else ", and the testbed was late"
        pieces = len(facts["sizes"])
        print(f"{number:3} {facts['time_s']:8.3f} s, {facts['congestion']}, {pieces} pieces{note}", flush=True)


if __name__ == "__main__":
    main()
