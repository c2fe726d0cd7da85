"""Decisions per second of a scheduler in Python, beside the same scheduler in Rust.

    python python/bench/decisions.py

Each figure is the best of five runs, in processor time: a run works on one thread. The cost of a decision is the time
that its run takes beyond the run with Rust's min-rtt, which has the same digest, over the number of decisions.
"""

import time

import anabranch as ab

COUNT = [0]


class Counting(ab.Scheduler):
    """min-rtt that counts."""

    def decide(self, now: float, view: ab.View) -> ab.Subflow | None:
        COUNT[0] += 1
        return view.fastest_with_room()


class Trivial(ab.Scheduler):
    """min-rtt by the helper of the view."""

    def decide(self, now: float, view: ab.View) -> ab.Subflow | None:
        return view.fastest_with_room()


class Fields(ab.Scheduler):
    """min-rtt by the fields of each subflow."""

    def decide(self, now: float, view: ab.View) -> ab.Subflow | None:
        best = None
        for subflow in view.subflows:
            if subflow.has_room and (best is None or subflow.srtt_s < best.srtt_s):
                best = subflow
        return best


SCENARIO = ab.scenario(
    {
        "path": {"a": {"rate": "400mbit", "delay": "5ms"}, "b": {"rate": "200mbit", "delay": "20ms"}},
        "workload": [{"kind": "files", "size": "500MB"}],
    }
)


def measure(scheduler: ab.Policy) -> tuple[float, str]:
    """The least processor time of a run [s], and its digest."""
    scenario = SCENARIO.with_({"host.scheduler": scheduler})
    best = float("inf")
    for _ in range(5):
        begin = time.process_time()
        run = scenario.run(seed=1)
        best = min(best, time.process_time() - begin)
    return best, run.events_digest


def main() -> None:
    """Prints one line per scheduler."""
    SCENARIO.with_({"host.scheduler": Counting}).run(seed=1)
    decisions = COUNT[0]
    rust, digest = measure("min-rtt")
    with_all_else = f"{decisions / rust:,.0f} decisions/s with all else"
    print(f"{decisions} decisions a run; in Rust the run takes {rust:.3f} s, {with_all_else}")
    for scheduler in (Trivial, Fields):
        took, own = measure(scheduler)
        assert own == digest, f"{scheduler.__name__} decides otherwise than min-rtt"
        each = (took - rust) / decisions
        print(f"{scheduler.__name__:8} {took:.3f} s, {each * 1e9:.0f} ns a decision: {1 / each:,.0f} decisions/s")


if __name__ == "__main__":
    main()
