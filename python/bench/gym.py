"""Steps per second of the environment, and what a step adds to the run below it.

    python python/bench/gym.py

Alternates an episode with the same run under `anabranch.gym.scheduler`, which asks the same policy without waiting for
anybody; their digests are the same. Each figure is the median of 5 rounds of 40 episodes.
"""

import statistics
import time

import anabranch as ab
from anabranch.gym import SchedulerEnv, scheduler

ACTION = [0.6, 0.4]
SEEDS = range(1, 41)


def main() -> None:
    s = ab.scenario("lossy")
    env, steps = SchedulerEnv(s), 0
    alone = s.with_({"server.scheduler": scheduler(lambda seen: ACTION)})
    rust = s.with_({"server.scheduler": "round-robin"})
    times: dict[str, list[float]] = {"episodes": [], "runs": [], "rust": []}
    for _ in range(5):
        begin, steps = time.perf_counter(), 0
        for seed in SEEDS:
            env.reset(options={"seed": seed})
            over = False
            while not over:
                _, _, terminated, truncated, _ = env.step(ACTION)
                steps += 1
                over = terminated or truncated
        times["episodes"].append(time.perf_counter() - begin)
        for name, scenario in (("runs", alone), ("rust", rust)):
            begin = time.perf_counter()
            for seed in SEEDS:
                scenario.run(seed)
            times[name].append(time.perf_counter() - begin)
    env.close()
    episodes, runs, native = (statistics.median(times[name]) for name in ("episodes", "runs", "rust"))
    print(f"{steps / episodes:,.0f} steps/s, {len(SEEDS) / episodes:.1f} episodes/s")
    print(f"episodes over the same runs without an environment: {episodes / runs:.2f}")
    print(f"these over runs with Rust's round-robin: {runs / native:.2f}")


if __name__ == "__main__":
    main()
