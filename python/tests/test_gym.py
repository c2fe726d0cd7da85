"""The environment for learned schedulers, and schedulers made of what was learned."""

import math
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import anabranch as ab
import gymnasium
import numpy
import pytest
from anabranch.gym import FEATURES, GLOBALS, SchedulerEnv, Step, describe, scheduler
from gymnasium.utils.env_checker import check_env

SINGLE = {"path": {"a": {"rate": "10mbit", "delay": "10ms"}}, "workload": [{"kind": "files", "size": "200KiB"}]}


def play(env: SchedulerEnv, action: Any, seed: int) -> tuple[list[Any], float, dict[str, Any]]:
    """Observations, return and the last info of an episode with one action; all acknowledged bytes in it."""
    seen, info = env.reset(options={"seed": seed})
    observations, total, acked = [seen], 0.0, info["acked_bytes"]
    while True:
        seen, reward, terminated, truncated, info = env.step(action)
        assert env.observation_space.contains(seen)
        observations.append(seen)
        total += reward
        acked += info["acked_bytes"]
        if terminated or truncated:
            return observations, total, {**info, "acked": acked, "terminated": terminated}


@pytest.mark.parametrize("action", ["split", "choice"])
def test_gymnasium_finds_nothing_to_complain_of(action: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = SchedulerEnv("wlan-lte", range(100), action=action)
        check_env(env, skip_render_check=True)
        env.close()
        made = gymnasium.make("anabranch/Scheduler-v0", scenario="lossy", seeds=range(9), action=action)
        check_env(made.unwrapped, skip_render_check=True)
        made.close()


def test_seed_and_actions_are_the_whole_episode() -> None:
    env = SchedulerEnv("wlan-lte", range(100))
    first, second = env.reset(seed=7), env.reset(seed=7)
    assert numpy.array_equal(first[0], second[0]) and first[1] == second[1]
    drawn = {env.reset()[1]["seed"] for _ in range(6)}
    assert len(drawn) > 3 and drawn <= set(range(100))
    one, two = play(env, [0.5, 0.5], seed=3), play(env, [0.5, 0.5], seed=3)
    assert all(numpy.array_equal(a, b) for a, b in zip(one[0], two[0], strict=True)) and one[1:] == two[1:]
    env.close()


def test_all_bytes_are_told_and_the_return_is_the_time() -> None:
    env = SchedulerEnv("wlan-lte", range(100))
    observations, total, info = play(env, [1.0, 1.0], seed=5)
    assert info["terminated"] and info["finished"] and info["acked"] == 2 << 20
    assert len(observations) > 5 and len(observations[0]) == 2 * len(FEATURES) + len(GLOBALS) == len(describe())
    # The first decision comes a little after the request.
    assert 0.0 < info["completion_s"] + total < 0.3
    goodput = SchedulerEnv("wlan-lte", range(100), reward="goodput")
    _, mbit, info = play(goodput, [1.0, 1.0], seed=5)
    assert mbit == pytest.approx((info["acked"] - goodput.reset(options={"seed": 5})[1]["acked_bytes"]) * 8e-6)
    for it in (env, goodput):
        it.close()


def test_an_action_moves_the_data() -> None:
    s = ab.scenario("asymmetric-10-100")
    env, choice = SchedulerEnv(s), SchedulerEnv(s, action="choice")
    fast, slow = play(env, [1.0, 0.0], seed=1)[2], play(env, [0.0, 1.0], seed=1)[2]
    assert fast["completion_s"] < 0.5 * slow["completion_s"]
    assert play(env, [0.0, 0.0], seed=1)[2]["events_digest"] == play(env, [1.0, 1.0], seed=1)[2]["events_digest"]
    # One weight is a choice.
    for number, split in enumerate((fast, slow)):
        assert play(choice, number, seed=1)[2]["events_digest"] == split["events_digest"]
    env.close()
    choice.close()


def test_shares_are_kept() -> None:
    two = {
        "path": {name: {"rate": "20mbit", "delay": "20ms"} for name in "ab"},
        "workload": [{"kind": "files", "size": "4MiB"}],
    }
    shares = []
    for weight in (0.1, 0.3, 0.5, 0.8):
        learned = scheduler(lambda seen, weight=weight: [weight, 1.0 - weight])  # type: ignore[misc]
        shares.append(ab.scenario(two).with_({"server.scheduler": learned}).run(seed=1).shares[0])
    # Data that leave before there is a choice go over the first path, and each interval lets a few segments more.
    assert shares == pytest.approx([0.1, 0.3, 0.5, 0.8], abs=0.12) and shares == sorted(shares)


def test_what_was_learned_stands_where_a_scheduler_does() -> None:
    calls: list[int] = []

    def policy(seen: Any) -> list[float]:
        calls.append(len(seen))
        return [0.7, 0.3]

    learned = scheduler(policy)
    s = ab.scenario("lossy")
    run = s.with_({"server.scheduler": learned}).run(seed=5)
    env = SchedulerEnv(s)
    assert play(env, [0.7, 0.3], seed=5)[2]["events_digest"] == run.events_digest and set(calls) == {len(describe())}
    env.close()
    ranked = {row["scheduler"]: row for row in ab.compare(s, ["min-rtt", learned], repeat=3).ranking}
    assert ranked["Learned"]["to_reference"]["mean"] != 0.0


def test_vectors() -> None:
    def make() -> SchedulerEnv:
        return SchedulerEnv("wlan-lte", range(100))

    for vector in (gymnasium.vector.SyncVectorEnv([make, make]), gymnasium.vector.AsyncVectorEnv([make, make])):
        first, _ = vector.reset(seed=[3, 4])
        assert not numpy.array_equal(first[0], first[1])
        for _ in range(40):
            seen, reward, _, _, _ = vector.step(numpy.array([[1.0, 0.5], [0.5, 1.0]], dtype=numpy.float32))
            assert seen.shape == (2, len(describe())) and reward.shape == (2,)
        vector.close()


def test_scenarios_are_drawn() -> None:
    names = [f"drawn/1/{n}" for n in range(3)]
    env = SchedulerEnv(names, [1])
    assert {env.reset(seed=seed)[1]["scenario"] for seed in range(12)} == set(names)
    env.close()
    asked: list[int] = []

    def draw(chance: numpy.random.Generator) -> ab.Scenario:
        asked.append(int(chance.integers(1000)))
        return ab.scenario("wlan-lte").with_({"path.wlan.delay": f"{5 + asked[-1] % 40}ms"})

    env = SchedulerEnv(draw, [1])
    one, two = env.reset(seed=1)[0], env.reset(seed=2)[0]
    assert asked[0] != asked[1] and not numpy.array_equal(one, two)
    env.close()


def test_a_run_without_decisions_is_drawn_again() -> None:
    env = SchedulerEnv([ab.scenario(SINGLE), "wlan-lte"], range(50))
    assert {env.reset(seed=seed)[1]["scenario"] for seed in range(8)} == {"wlan-lte"}
    env.close()
    env = SchedulerEnv(SINGLE, range(50))
    with pytest.raises(RuntimeError, match="asks the server's scheduler nothing"):
        env.reset(seed=1)
    with pytest.raises(RuntimeError, match=r"call reset\(\) first"):
        env.step([0.5, 0.5])
    env.close()


def test_an_own_reward_is_told_the_step_and_the_run() -> None:
    steps: list[Step] = []

    def reward(step: Step) -> float:
        steps.append(step)
        return float(len(steps))

    env = SchedulerEnv("wlan-lte", range(10), reward=reward)
    total = play(env, [0.2, 0.8], seed=2)[1]
    assert total == sum(range(1, len(steps) + 1)) and all(abs(step.elapsed_s - 0.05) < 0.005 for step in steps[:-1])
    assert [step.done for step in steps] == [False] * (len(steps) - 1) + [True]
    assert steps[0].run is None and steps[-1].run is not None and steps[-1].run.finished
    env.close()


def test_a_run_that_is_cut_off_is_truncated() -> None:
    s = ab.scenario("wlan-lte").with_({"workload.0.size": "200MiB", "run.stop": "1s", "run.spread": "0s"})
    env = SchedulerEnv(s, [1])
    info = play(env, [1.0, 1.0], seed=1)[2]
    assert not info["terminated"] and not info["finished"] and info["now_s"] == 1.0
    env.close()


def test_bad_input_is_named_and_the_episode_goes_on() -> None:
    env = SchedulerEnv("wlan-lte", range(10))
    with pytest.raises(RuntimeError, match=r"call reset\(\) first"):
        env.step([0.5, 0.5])
    env.reset(seed=1)
    actions: list[Any] = [[math.nan, 0.5], [0.5], [2.0, 0.0], [-0.1, 0.2], "both", 1, None]
    for nonsense in actions:
        with pytest.raises(ValueError, match="accepted: 2 numbers from 0 to 1"):
            env.step(nonsense)
    assert env.observation_space.contains(env.step([0.0, 0.0])[0])
    with pytest.raises(ValueError, match="options has sed; accepted: scenario and seed"):
        env.reset(options={"sed": 1})
    with pytest.raises(ab.ScenarioError, match="wlan-ltee"):
        env.reset(options={"scenario": "wlan-ltee"})
    with pytest.raises(RuntimeError, match="asks the server's scheduler nothing"):
        env.reset(options={"scenario": ab.scenario(SINGLE)})
    env.reset(seed=1)
    env.close()
    choice = SchedulerEnv("wlan-lte", action="choice")
    choice.reset(seed=1)
    actions = [2, -1, 0.5, [0, 1]]
    for nonsense in actions:
        with pytest.raises(ValueError, match="accepted: a whole number from 0 to 1"):
            choice.step(nonsense)
    choice.close()
    for wrong, said in [
        ({"reward": "fame"}, "reward is 'fame'; accepted: 'delay', 'goodput' or a function"),
        ({"action": "both"}, "accepted: 'split' or 'choice'"),
        ({"subflows": 1}, "accepted: 2 to 16"),
        ({"interval_s": 0.0}, "accepted: 0.001 to 60 seconds"),
        ({"host": "both"}, "accepted: 'server' or 'client'"),
        ({"seeds": []}, "seeds is empty"),
        ({"scenario": []}, "scenario is an empty list"),
    ]:
        with pytest.raises(ValueError, match=said):
            SchedulerEnv(**wrong)  # type: ignore[arg-type]


def test_a_policy_that_fails_ends_its_run() -> None:
    with pytest.raises(ab.RunError, match="accepted: 2 numbers from 0 to 1"):
        ab.scenario("wlan-lte").with_({"host.scheduler": scheduler(lambda seen: [7.0, 7.0])}).run(seed=1)


def test_no_episode_stays_behind(tmp_path: Path) -> None:
    before = threading.active_count()
    env = SchedulerEnv("wlan-lte", range(10))
    for seed in range(5):
        env.reset(seed=seed)
        env.step([0.5, 0.5])
    assert threading.active_count() == before + 1
    del env
    deadline = time.monotonic() + 60
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() == before
    code = "import anabranch.gym as g; env = g.SchedulerEnv(); env.reset(seed=1); env.step([1.0, 0.0])"
    left = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert (left.returncode, left.stdout, left.stderr) == (0, "", "")


def test_the_example_trains_and_judges(tmp_path: Path) -> None:
    example = Path(__file__).resolve().parents[2] / "examples" / "learning" / "train.py"
    quick = [sys.executable, str(example), "--method", "cem", "--effort", "1", "--repeat", "2"]
    done = subprocess.run(quick, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert "1/1: " in done.stdout and "trained by cem on lossy" in done.stdout
    assert sorted(line.split()[1] for line in done.stdout.splitlines() if line[:2] in ("1.", "2.", "3.")) == [
        "Learned",
        "anabranch",
        "min-rtt",
    ]
