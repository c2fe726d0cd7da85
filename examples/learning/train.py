"""Trains a scheduler on some seeds, and compares it with min-rtt on others.

    pip install './python[gym]'                   # trains by the cross-entropy method, in numpy
    pip install './python[gym]' stable-baselines3 # trains by PPO; torch and what it brings take several GB
    python examples/learning/train.py
    python examples/learning/train.py --scenario asymmetric-10-100 --method cem --seed 2

The policy of the cross-entropy method gives each subflow a score, linear in what is observed of it; the weights of the
split are the softmax of the scores. PPO is that of stable-baselines3, with a network of 32 and 32 neurons. Both see the
same environment, `anabranch.gym`, with a reward of minus the time. The seeds of training are 1 to 1,000, those of the
judgement begin at 100,001. Whatever comes out is printed.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Callable
from typing import Any

import anabranch as ab
import numpy
from anabranch.gym import FEATURES, SchedulerEnv, scheduler

Array = numpy.ndarray[Any, numpy.dtype[Any]]
Policy = Callable[[Array], Array]

TRAINING = range(1, 1001)
JUDGED_FROM = 100_001


def linear(weights: Array) -> Policy:
    """The softmax over the subflows of a score that is linear in what is observed of each."""

    def act(seen: Array) -> Array:
        rows = seen[: 2 * len(FEATURES)].reshape(2, len(FEATURES)).astype(numpy.float64)
        scores = rows @ weights
        shares = numpy.exp(scores - scores.max())
        return numpy.asarray(shares / shares.sum())

    return act


def time_of(env: SchedulerEnv, policy: Policy, seed: int) -> float:
    """Seconds from the first decision to the end of a run, which ``seed`` draws from those of training."""
    seen, _ = env.reset(seed=seed)
    total = 0.0
    while True:
        seen, reward, terminated, truncated, _ = env.step(policy(seen))
        total -= reward
        if terminated or truncated:
            return total


def cross_entropy(scenario: str, seed: int, effort: int) -> Policy:
    """Draws weights from a normal distribution, and moves it to the best of them, again and again."""
    chance = numpy.random.default_rng(seed)
    mean, spread = numpy.zeros(len(FEATURES)), numpy.full(len(FEATURES), 2.0)
    env = SchedulerEnv(scenario, TRAINING)
    for turn in range(effort):
        seeds = [int(each) for each in chance.choice(TRAINING, size=8, replace=False)]
        drawn = mean + spread * chance.standard_normal((24, len(FEATURES)))
        times = numpy.array([[time_of(env, linear(weights), each) for each in seeds] for weights in drawn])
        # Seeds differ more than policies do: each counts by its ratio to the mean of its seed.
        order = numpy.argsort((times / times.mean(axis=0)).mean(axis=1))
        best = drawn[order[:6]]
        mean, spread = best.mean(axis=0), best.std(axis=0) + 0.1
        print(f"{turn + 1:3}/{effort}: {times.mean():.3f} s, the best {times[order[0]].mean():.3f} s", flush=True)
    env.close()
    for name, weight in zip(FEATURES, mean, strict=True):
        print(f"  {name:10} {weight:+.2f}")
    return linear(mean)


def ppo(scenario: str, seed: int, effort: int) -> Policy:
    """Proximal policy optimisation, by stable-baselines3."""
    from stable_baselines3 import PPO

    env = SchedulerEnv(scenario, TRAINING)
    model = PPO(
        "MlpPolicy", env, seed=seed, n_steps=1024, gamma=1.0, policy_kwargs={"net_arch": [32, 32]}, device="cpu"
    )
    model.learn(total_timesteps=effort * 3072)
    env.close()
    return lambda seen: numpy.asarray(model.predict(seen, deterministic=True)[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenario", default="lossy", help="as anabranch.scenario takes it (default: %(default)s)")
    parser.add_argument("--method", choices=["ppo", "cem"], help="ppo if stable-baselines3 is there, otherwise cem")
    parser.add_argument("--seed", type=int, default=1, help="of the training (default: %(default)s)")
    parser.add_argument("--effort", type=int, default=12, help="turns of cem, 3072 steps of ppo (default: %(default)s)")
    parser.add_argument("--repeat", type=int, default=200, help="seeds of the judgement (default: %(default)s)")
    args = parser.parse_args()
    method = args.method or ("ppo" if importlib.util.find_spec("stable_baselines3") else "cem")
    begin = time.monotonic()
    policy = (ppo if method == "ppo" else cross_entropy)(args.scenario, args.seed, args.effort)
    print(f"trained by {method} on {args.scenario} in {time.monotonic() - begin:.0f} s")

    learned = scheduler(policy)
    comparison = ab.compare(args.scenario, ["min-rtt", "anabranch", learned], repeat=args.repeat, seed=JUDGED_FROM)
    for row in comparison.ranking:
        to, value = row["to_reference"], row["value"]["mean"]
        half = f" ± {to['half']:.3f}" if to and to["half"] is not None else ""
        beside = f", {to['mean']:+.3f}{half} s to min-rtt" if to else ""
        print(f"{row['rank']}. {row['scheduler']:10} {value:.3f} s{beside}")
    print(f"{args.repeat} seeds from {JUDGED_FROM:,} on, none of them seen in training; ±: paired 95 % interval")


if __name__ == "__main__":
    main()
