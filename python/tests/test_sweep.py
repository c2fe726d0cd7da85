"""Sweeps: the same rows whoever runs them, whatever ends a call, and what is refused."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anabranch as ab
import polars
import pyarrow
import pytest
from conftest import interrupt

SPAWN = multiprocessing.get_context("spawn")
AXES = """
schedulers = ["min-rtt", "redundant", "anabranch"]
baselines = true
metrics = ["completion-time", "path-share:b"]

[[axis]]
key = "path.b.delay"
name = "delay"
values = ["5ms", "20ms", "50ms", "80ms"]

[[axis]]
key = "path.a.loss"
name = "loss"
loguniform = ["0.1%", "4%"]

[draw]
method = "sobol"
count = 10

[repeat]
count = 3

[scenario.path.a]
rate = "8mbit"
delay = "10ms"

[scenario.path.b]
rate = "4mbit"
delay = "20ms"

[[scenario.workload]]
kind = "files"
size = "300kB"
"""
CONDITIONS = 40


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory of its own: other processes find modules in theirs first, and `python/` has the package unbuilt."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("sweep") / "mine.toml"
    file.write_text(AXES)
    return file


@pytest.fixture(scope="module")
def digest(file: Path) -> str:
    """The digest of all rows, as one thread makes them."""
    return rows_digest(ab.sweep(file, jobs=1))


def rows_digest(sweep: ab.Sweep) -> str:
    assert sweep.as_dict()["done"] == CONDITIONS
    return str(sweep.as_dict()["rows_digest"])


def parts(directory: Path) -> list[tuple[int, int]]:
    """First and end of each part."""
    names = [part.stem.split("-")[1:] for part in directory.glob("*.parquet")]
    return sorted((int(first), int(end)) for first, end in names)


def assert_no_run_is_double(directory: Path) -> None:
    ends = parts(directory)
    assert [first for first, _ in ends] == [0, *(end for _, end in ends[:-1])] and ends[-1][1] == CONDITIONS


class KillOne:
    """Progress that kills a worker as soon as a chunk is through."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.killed = False
        self.told: list[tuple[int, int]] = []

    def __call__(self, done: int, total: int) -> None:
        self.told.append((done, total))
        if done and not self.killed:
            self.killed = True
            os.kill(self.pid, signal.SIGKILL)


def test_rows_are_those_of_the_command(command: Any, file: Path, tmp_path: Path) -> None:
    command("sweep", str(file), "--jobs", "1", "--parquet", str(tmp_path / "rows.parquet"))
    # Each program puts its own build beside a row. The rest is equal, to the bit.
    theirs = polars.read_parquet(tmp_path / "rows.parquet").drop("build")
    with ProcessPoolExecutor(2, mp_context=SPAWN) as pool:
        ours = ab.sweep(file, executor=pool)
    assert theirs.equals(polars.DataFrame(ours.runs).drop("build"))
    assert theirs.height == CONDITIONS * 5 * 3


def test_threads_give_the_same_rows(file: Path, digest: str) -> None:
    assert rows_digest(ab.sweep(file)) == digest
    with ThreadPoolExecutor(2) as pool:
        assert rows_digest(ab.sweep(file, executor=pool)) == digest


def test_a_pool_of_multiprocessing_gives_the_same_rows(file: Path, digest: str) -> None:
    with SPAWN.Pool(2) as pool:
        assert rows_digest(ab.sweep(file, executor=pool)) == digest


def test_dask_gives_the_same_rows_although_a_worker_is_killed(file: Path, digest: str, tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    os.environ.setdefault("DASK_LOGGING__DISTRIBUTED", "critical")
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with cluster, distributed.Client(cluster) as client:
        before = client.run(os.getpid)
        kill = KillOne(next(iter(before.values())))
        sweep = ab.sweep(file, out=tmp_path / "results", executor=client, progress=kill)
        assert kill.killed and rows_digest(sweep) == digest
        assert_no_run_is_double(tmp_path / "results")
        assert kill.told[0] == (0, CONDITIONS) and kill.told[-1] == (CONDITIONS, CONDITIONS)
        assert rows_digest(ab.sweep(file, executor=client.get_executor())) == digest


def test_ray_gives_the_same_rows(file: Path, digest: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    try:
        assert rows_digest(ab.sweep(file, executor=ray)) == digest
    finally:
        ray.shutdown()


def test_three_shards_at_once_give_the_same_rows(file: Path, digest: str, tmp_path: Path) -> None:
    code = "import sys, anabranch as ab; ab.sweep(sys.argv[1], out=sys.argv[2], shard=sys.argv[3], jobs=1)"
    shards = [
        subprocess.Popen([sys.executable, "-c", code, str(file), str(tmp_path / "results"), f"{number}/3"])
        for number in (1, 2, 3)
    ]
    assert [shard.wait() for shard in shards] == [0, 0, 0]
    assert rows_digest(ab.load(tmp_path / "results")) == digest
    assert_no_run_is_double(tmp_path / "results")


def test_a_killed_worker_of_a_pool_loses_nothing_that_was_through(file: Path, digest: str, tmp_path: Path) -> None:
    out = tmp_path / "results"
    with ProcessPoolExecutor(2, mp_context=SPAWN) as pool:
        kill = KillOne(pool.submit(os.getpid).result())
        with pytest.raises(ab.SweepError, match=r"conditions are in .*results, and the same call goes on") as broken:
            ab.sweep(file, out=out, executor=pool, progress=kill)
    kept = sum(end - first for first, end in parts(out))
    assert 0 < broken.value.done == kept < broken.value.total == CONDITIONS
    told: list[tuple[int, int]] = []
    with ProcessPoolExecutor(2, mp_context=SPAWN) as pool:
        sweep = ab.sweep(file, out=out, executor=pool, progress=lambda *it: told.append(it))
    assert told[0] == (0, CONDITIONS - kept), "what is there is not run again"
    assert rows_digest(sweep) == digest
    assert_no_run_is_double(out)


def test_a_killed_coordinator_loses_nothing_that_was_kept(file: Path, digest: str, tmp_path: Path) -> None:
    code = "import sys, anabranch as ab; ab.sweep(sys.argv[1], out=sys.argv[2], jobs=1)"
    out = tmp_path / "results"
    with subprocess.Popen([sys.executable, "-c", code, str(file), str(out)]) as coordinator:
        while not list(out.glob("*.parquet")) and coordinator.poll() is None:
            time.sleep(0.005)
        coordinator.kill()
    before = parts(out)
    assert 0 < sum(end - first for first, end in before) < CONDITIONS
    assert rows_digest(ab.sweep(file, out=out)) == digest
    assert set(before) <= set(parts(out))
    assert_no_run_is_double(out)


@pytest.mark.parametrize("pool", [None, ThreadPoolExecutor])
def test_an_interrupt_ends_a_sweep_and_leaves_whole_parts(pool: type[Executor] | None, tmp_path: Path) -> None:
    hours: dict[str, Any] = {"scenario": "wlan-lte", "schedulers": ["min-rtt"], "draw": {"count": 1_000_000}}
    hours["axis"] = [{"key": "path.lte.loss", "uniform": ["0.1%", "4%"]}]
    out = tmp_path / "results"
    executor = None if pool is None else ThreadPoolExecutor(2)
    interrupt(lambda: ab.sweep(hours, out=out, executor=executor))
    left = [path.name for path in out.iterdir() if path.suffix != ".parquet"]
    assert left == ["manifest.json"]
    sweep = ab.load(out)
    assert sweep.as_dict()["done"] == sum(end - first for first, end in parts(out))
    assert sweep.as_dict()["failures"] == 0, "a run that was stopped is no row"


def test_an_adaptive_sweep_repeats_more() -> None:
    noisy = {"scenario": "wlan-lte", "schedulers": ["min-rtt", "redundant"], "set": ["path.lte.loss=3%"]}
    few, many = (ab.sweep(noisy, until=until).as_dict()["rows"] for until in (None, "0.5%"))
    assert few == 2 * 4 < many <= 2 * 64


class Slowest(ab.Scheduler):
    """The slowest subflow and no other."""

    def decide(self, now: float, view: ab.View) -> ab.Subflow | None:
        slowest = max(view.subflows, key=lambda it: it.srtt_s)
        return slowest if slowest.has_room else None


class Raises(ab.Scheduler):
    """Raises at once."""

    def decide(self, now: float, view: ab.View) -> ab.Subflow | None:
        raise RuntimeError("no idea")


class Nonsense(ab.Scheduler):
    """Answers what is no decision."""

    def decide(self, now: float, view: ab.View) -> Any:
        return "the blue one"


def own(*schedulers: Any) -> dict[str, Any]:
    paths = {"a": {"rate": "8mbit", "delay": "10ms"}, "b": {"rate": "4mbit", "delay": "40ms"}}
    files = {"kind": "files", "size": "1MB", "warm": True, "count": 2}
    return {
        "schedulers": ["min-rtt", *schedulers],
        "repeat": {"count": 2},
        "axis": [{"key": "path.a.loss", "values": ["1%", "2%", "3%"]}],
        "scenario": {"path": paths, "workload": [files]},
    }


def test_schedulers_in_python_travel() -> None:
    here = ab.sweep(own(Slowest))
    with ProcessPoolExecutor(2, mp_context=SPAWN) as pool:
        there = ab.sweep(own(Slowest), executor=pool)
    assert here.as_dict()["rows_digest"] == there.as_dict()["rows_digest"]
    rows = polars.DataFrame(there.runs)
    assert rows["problem"].null_count() == rows.height == 12
    mean = dict(rows.group_by("name").agg(polars.col("time_s").mean()).iter_rows())
    assert mean["Slowest"] > 1.05 * mean["min-rtt"], mean


def test_a_scheduler_that_fails_becomes_rows() -> None:
    rows = polars.DataFrame(ab.sweep(own(Raises, Nonsense)).runs)
    problems = rows.group_by("name").agg(polars.col("problem").drop_nulls())
    of = {name: list(texts) for name, texts in problems.iter_rows()}
    assert of["min-rtt"] == [] and len(of["Raises"]) == len(of["Nonsense"]) == 6
    assert all("no idea" in text and " s into the run" in text for text in of["Raises"])
    assert all("the blue one" in text for text in of["Nonsense"])


def test_results_of_changed_code_are_others(tmp_path: Path) -> None:
    module = tmp_path / "changing.py"
    code = "import anabranch as ab\nclass Mine(ab.Scheduler):\n    def decide(self, now, view):\n        return {}\n"
    script = "import sys, changing, test_sweep as t, anabranch as ab; ab.sweep(t.own(changing.Mine), out=sys.argv[1])"
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{Path(__file__).parent}", "PYTHONDONTWRITEBYTECODE": "1"}

    def run(answer: str) -> str:
        module.write_text(code.format(answer))
        call = [sys.executable, "-c", script, str(tmp_path / "results")]
        return subprocess.run(call, env=environment, capture_output=True, text=True).stderr

    assert run("view.fastest_with_room()") == run("view.fastest_with_room()") == ""
    assert "holds other results" in run("view.fastest()")
    namespace: dict[str, Any] = {}
    exec(code.format("view.fastest()"), namespace)
    with pytest.raises(ValueError, match="the source text of `Mine` cannot be read"):
        ab.sweep(own(namespace["Mine"]), out=tmp_path / "nameless")


class OnlyMap:
    """A pool with `map` and nothing else, which may lose what it was given."""

    def __init__(self, gives: int | None = None) -> None:
        self.gives = gives
        self.sizes: list[int] = []

    def map(self, fn: Any, items: list[Any]) -> Iterator[Any]:
        self.sizes.append(len(items))
        return map(fn, items[: self.gives])


def test_map_is_enough(file: Path, digest: str, tmp_path: Path) -> None:
    pool = OnlyMap()
    assert rows_digest(ab.sweep(file, out=tmp_path / "results", executor=pool, workers=3)) == digest
    assert_no_run_is_double(tmp_path / "results")
    assert max(pool.sizes) > 1
    with pytest.raises(ab.SweepError, match="map gave no answer to a call of _chunk"):
        ab.sweep(file, executor=OnlyMap(gives=0), workers=2)
    deadline = time.monotonic() + 60
    while any(it.name == "anabranch-map" for it in threading.enumerate()) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(it.name == "anabranch-map" for it in threading.enumerate())


def test_what_is_no_executor_is_refused_before_anything_is_made(file: Path, tmp_path: Path) -> None:
    for wrong in (object(), "dask", ThreadPoolExecutor, 4):
        with pytest.raises(TypeError, match="is no executor; accepted: an executor of concurrent.futures, a distrib"):
            ab.sweep(file, out=tmp_path / "results", executor=wrong)
    assert not (tmp_path / "results").exists()


def test_what_is_wrong_is_said(file: Path, tmp_path: Path) -> None:
    with pytest.raises(ab.ScenarioError, match="(?s)unknown key `schedulres`.*did you mean `schedulers`"):
        ab.sweep({"scenario": "wlan-lte", "schedulres": ["late"]})
    with pytest.raises(ab.ScenarioError, match="did you mean `late`") as refused:
        ab.sweep({"scenario": "wlan-lte", "schedulers": ["lat"]})
    assert refused.value.help
    with pytest.raises(TypeError, match="has no method decide"):
        ab.sweep(own(type("Idle", (ab.Scheduler,), {})))
    with pytest.raises(ValueError, match="cannot read `nowhere.toml`.*accepted: a sweep file"):
        ab.sweep("nowhere.toml")
    with pytest.raises(ValueError, match="a shard is kept for others"):
        ab.sweep(file, shard="1/2")
    for wrong in ("0/2", "3/2", "half", (1,)):
        with pytest.raises(ValueError, match="accepted: K/N with K from 1 to N"):
            ab.sweep(file, out=tmp_path, shard=wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="workers is 0"):
        ab.sweep(file, executor=ThreadPoolExecutor(1), workers=0)
    ab.sweep(own(), out=tmp_path / "results")
    with pytest.raises(ValueError, match="holds other results: .*name another directory"):
        ab.sweep(file, out=tmp_path / "results")
    with pytest.raises(ValueError, match="is no directory of results: there is no manifest.json"):
        ab.load(tmp_path)


def test_parts_that_are_cut_or_changed(file: Path, digest: str, tmp_path: Path) -> None:
    out = tmp_path / "results"
    ab.sweep(file, out=out)
    first, *_, last = sorted(out.glob("*.parquet"))
    whole = first.read_bytes()
    first.write_bytes(whole[: len(whole) // 2])
    sweep = ab.load(out).as_dict()
    assert sweep["done"] < CONDITIONS and "cut off" in sweep["set_aside"][0][1]
    # The same call runs what is missing again.
    assert rows_digest(ab.sweep(file, out=out)) == digest
    # A number that another hand has changed.
    changed = last.read_bytes().replace(b"anabranch run", b"anabranch RUN")
    last.write_bytes(changed)
    with pytest.raises(ValueError, match="its rows are not those that were written; remove it"):
        ab.load(out).as_dict()


class Wrong(ThreadPoolExecutor):
    """A cluster whose workers answer something else."""

    def __init__(self, change: Any) -> None:
        super().__init__(1)
        self.change = change

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        return super().submit(lambda: self.change(fn, args))


def test_what_a_worker_sends_is_checked(file: Path, tmp_path: Path) -> None:
    def cut(fn: Any, args: Any) -> Any:
        part, seconds = fn(*args)
        return part[:-100], seconds

    def other(fn: Any, args: Any) -> Any:
        recipe, digest, build, first, end, jobs = args
        return fn(recipe, digest, build, first + 1, end + 1, jobs)

    def changed(fn: Any, args: Any) -> Any:
        part, seconds = fn(*args)
        return part.replace(b"anabranch run", b"anabranch RUN"), seconds

    def build(fn: Any, args: Any) -> Any:
        recipe, digest, _, first, end, jobs = args
        ab._sweep._held.clear()
        return fn(recipe, digest, "another", first, end, jobs)

    expected = {
        cut: "cut off or no Parquet file",
        other: "it has conditions 1 to",
        changed: "its rows are not those that were written",
        build: "this worker has anabranch .* the sweep comes from build another; install the same wheel",
    }
    for change, text in expected.items():
        out = tmp_path / change.__name__
        with Wrong(change) as executor, pytest.raises(ab.SweepError, match=text):
            ab.sweep(file, out=out, executor=executor)
        assert [path.name for path in out.iterdir()] == ["manifest.json"], "nothing of it is kept"


def test_a_full_disk_is_said_and_nothing_half_written_stays(file: Path, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48k", "tmpfs", small]).returncode:
        pytest.skip("a small file system can be mounted by root only")
    try:
        for executor in (None, ThreadPoolExecutor(1)):
            with pytest.raises((OSError, ab.SweepError), match="No space left on device"):
                ab.sweep(file, out=small / "results", executor=executor)
            assert not list((small / "results").glob(".unfinished-*"))
            assert ab.load(small / "results").as_dict()["done"] < CONDITIONS
    finally:
        subprocess.run(["umount", small], check=True)


def test_the_answer_needs_no_directory_of_ones_own(file: Path) -> None:
    sweep = ab.sweep(file)
    assert pyarrow.table(sweep.runs).num_rows == CONDITIONS * 5 * 3
    directory = sweep._gone
    assert directory is not None and os.path.isdir(directory.name)
    gone = directory.name
    del sweep, directory
    assert not os.path.exists(gone)
