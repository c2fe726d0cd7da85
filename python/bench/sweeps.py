"""A sweep of short runs through Dask with two workers, beside the command on two threads, and the coordinator's memory.

    ANABRANCH=target/release/anabranch python python/bench/sweeps.py

Five rounds, the two alternately; both write their parts to a new directory. Memory is the growth of the peak of a fresh
process that coordinates 10,000 and 100,000 runs, the summary not read.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import anabranch as ab

SWEEP = """
schedulers = ["min-rtt", "redundant"]

[[axis]]
key = "path.b.delay"
uniform = ["5ms", "50ms"]

[draw]
count = {count}

[repeat]
count = 5

[scenario.path.a]
rate = "8mbit"
delay = "10ms"
loss = "1%"

[scenario.path.b]
rate = "4mbit"
delay = "20ms"

[[scenario.workload]]
kind = "files"
size = "100kB"
"""


def through_dask(client: Any, file: Path, out: Path) -> float:
    begun = time.perf_counter()
    ab.sweep(file, out=out, executor=client)
    return time.perf_counter() - begun


def by_command(program: str, file: Path, out: Path) -> float:
    begun = time.perf_counter()
    call = [program, "sweep", str(file), "--out", str(out), "--jobs", "2"]
    subprocess.run(call, check=True, capture_output=True)
    return time.perf_counter() - begun


def coordinate(file: str, out: str) -> None:
    """Prints by how much the peak of this process grew [KiB] while it coordinated two other processes."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    def peak() -> int:
        # Of this program alone: getrusage would count the process that started it.
        line = next(it for it in Path("/proc/self/status").read_text().splitlines() if it.startswith("VmHWM"))
        return int(line.split()[1])

    before = peak()
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        ab.sweep(file, out=out, executor=pool)
    print(peak() - before)


def main() -> None:
    import distributed

    program = os.environ.get("ANABRANCH", "target/release/anabranch")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = {}
        for count in (1_000, 10_000):
            files[count] = folder / f"{count}.toml"
            files[count].write_text(SWEEP.format(count=count))
        ratios = []
        cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
        with cluster, distributed.Client(cluster) as client:
            for number in range(5):
                dask = through_dask(client, files[1_000], folder / f"dask{number}")
                command = by_command(program, files[1_000], folder / f"command{number}")
                ratios.append(dask / command)
                print(f"10,000 runs: Dask {dask:.2f} s, command {command:.2f} s, ratio {ratios[-1]:.2f}")
        print(f"median ratio {sorted(ratios)[2]:.2f}")
        for count, file in files.items():
            call = [sys.executable, __file__, str(file), str(folder / f"memory{count}")]
            grown = int(subprocess.run(call, check=True, capture_output=True, text=True).stdout)
            print(f"{10 * count:,} rows: the coordinator's peak grew by {grown / 1024:.1f} MiB")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        coordinate(sys.argv[1], sys.argv[2])
    else:
        main()
