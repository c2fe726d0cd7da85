"""Anabranch: Multipath TCP schedulers compared on a deterministic simulator, and written in Python.

>>> import anabranch as ab
>>> run = ab.scenario("wlan-lte").run(seed=1)
>>> run.finished
True

Numbers carry their unit in the name: ``_s`` seconds, ``_bps`` bits per second, ``_bytes`` bytes.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from . import _native, _sweep
from ._errors import RunError, ScenarioError, SweepError
from ._native import (
    Ack,
    AckRoute,
    Buffers,
    Decision,
    Event,
    FlightView,
    Flow,
    Opportunity,
    Piece,
    Probe,
    Subflow,
    SubflowState,
    Table,
    Usage,
    View,
    repeat,
    send,
    wait,
)
from ._policies import (
    AckPath,
    CongestionControl,
    Probing,
    ReceiveWindow,
    Reinjection,
    Scheduler,
    WindowUpdate,
)
from ._request import Request
from ._results import Comparison, Inspection, Run, Study, Sweep

__all__ = [
    "Ack",
    "AckPath",
    "AckRoute",
    "Buffers",
    "Comparison",
    "CongestionControl",
    "Decision",
    "Event",
    "FlightView",
    "Flow",
    "Inspection",
    "Opportunity",
    "Piece",
    "Probe",
    "Probing",
    "ReceiveWindow",
    "Reinjection",
    "Request",
    "Run",
    "RunError",
    "Scenario",
    "ScenarioError",
    "Scheduler",
    "Statistic",
    "Study",
    "Subflow",
    "SubflowState",
    "Sweep",
    "SweepError",
    "Table",
    "Usage",
    "View",
    "WindowUpdate",
    "build",
    "compare",
    "inspect",
    "load",
    "repeat",
    "scenario",
    "send",
    "statistics",
    "study",
    "sweep",
    "wait",
]

__version__: str = _native.__version__
_native.built_from(_native.__file__)

Progress = Callable[[int, int], object] | bool | None
Policy = str | type[Scheduler]


class Scenario:
    """A scenario that was read and checked: paths, hosts, policies and work.

    It never changes. Two are equal, and hash alike, if their digests are equal. Made by :func:`scenario`.
    """

    def __init__(self, native: _native.Scenario) -> None:
        self._native = native

    def with_(self, changes: Mapping[str, Any]) -> Scenario:
        """The same with each ``KEY: value`` laid over it, as ``--set`` does::

            s.with_({"path.lte.rate": "20mbit", "host.scheduler": "late"})

        :param changes: keys of the scenario file with their tables, joined by dots. A class of a policy may stand where
            its name would.
        :raises ScenarioError: for a key, a unit or a name that is refused; it says what would be accepted.
        """
        return Scenario(self._native.with_(dict(changes)))

    def run(self, seed: int | None = None) -> Run:
        """Runs it once.

        :param seed: 0 to 2**64 - 1; the scenario's own (``run.seed``) unless given.
        :raises RunError: if the run breaks, for instance by an exception in a policy.
        """
        return Run(self._native.run(seed))

    @property
    def name(self) -> str:
        """The file's name without directory and extension, or that of a shipped scenario."""
        return self._native.name

    @property
    def about(self) -> str | None:
        """One line on what it is for."""
        return self._native.about

    @property
    def digest(self) -> str:
        """SHA-256 of its content, traces included, seed and repetitions apart: 64 hexadecimal digits. Of a scheduler in
        Python the name counts, not its code."""
        return self._native.digest

    @property
    def paths(self) -> list[str]:
        """The paths' names, in order."""
        return self._native.paths

    @property
    def toml(self) -> str:
        """The file as it is written, without what ``with_`` laid over it."""
        return self._native.toml

    @property
    def sets(self) -> list[str]:
        """What was laid over it, as it stands behind ``--set`` on the command line."""
        return self._native.sets

    def __eq__(self, other: object) -> bool:
        return self._native == other._native if isinstance(other, Scenario) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._native)

    def __repr__(self) -> str:
        return repr(self._native)


class Statistic(NamedTuple):
    """A statistic of a run."""

    name: str
    """Its column; ``{}`` stands for the path, window or middlebox that a column is about."""
    unit: str
    """Unit; empty for counts, shares and texts."""
    kind: str
    """bool, int, float or str."""
    about: str
    """Meaning, in a few words."""


def scenario(source: str | os.PathLike[str] | Mapping[str, Any]) -> Scenario:
    """Reads and checks a scenario.

    :param source: the name of a shipped scenario (``"wlan-lte"``), a drawn condition (``"drawn/1/17"``), the path of a
        TOML file, or a dict with the words of such a file.
    :raises ScenarioError: if it is refused; the error points at the place and says what would be accepted.
    """
    return Scenario(_native.Scenario(dict(source) if isinstance(source, Mapping) else source))


def compare(
    source: Scenario | str | os.PathLike[str] | Mapping[str, Any],
    schedulers: Sequence[Policy] | None = None,
    *,
    policies: Mapping[str, Mapping[str, Any]] | None = None,
    repeat: int | None = None,
    seed: int | None = None,
    jobs: int | None = None,
    progress: Progress = None,
) -> Comparison:
    """Runs each scheduler with the same seeds, and plain TCP on each path, and ranks them::

        ab.compare("wlan-lte", ["min-rtt", "ecf:beta=0.5", Mine], repeat=100)
        ab.compare("wlan-lte", policies={"lia": {"host.congestion": "lia"}, "olia": {"host.congestion": "olia"}})

    :param source: a scenario, or what :func:`scenario` takes.
    :param schedulers: names (``"ecf:beta=0.5"``) and classes; all schedulers unless given. The others are measured by
        min-rtt.
    :param policies: in place of schedulers, systems that differ in any settings: to each name those that
        :meth:`Scenario.with_` lays over the scenario. The others are measured by the first.
    :param repeat: runs of each, 1 to 100000; the scenario's own number unless given.
    :param seed: of the first repetition; the scenario's own unless given.
    :param jobs: threads; one per processor unless given. Results do not depend on it.
    :param progress: called with the number of runs that are through and of all; ``True`` for a bar of ``tqdm.auto``.
    :raises ScenarioError: if the scenario or a scheduler is refused.
    :raises RunError: if a run breaks. :raises KeyboardInterrupt: within a second of Ctrl-C.
    """
    if schedulers is not None and policies is not None:
        raise ValueError("both schedulers and policies are given; accepted: one of them")
    it = source if isinstance(source, Scenario) else scenario(source)
    if policies is None:
        chosen = None if schedulers is None else list(schedulers)
        with _shown(progress) as show:
            return Comparison(it._native.compare(chosen, repeat, seed, jobs or 0, show))
    if not policies:
        raise ValueError("policies is empty; accepted: to each name its settings")
    systems = [(name, it.with_(settings)._native) for name, settings in policies.items()]
    with _shown(progress) as show:
        return Comparison(it._native.compare_systems(systems, repeat, seed, jobs or 0, show))


def study(
    name: str, *, quick: bool = False, repeat: int | None = None, jobs: int | None = None, progress: Progress = None
) -> Study:
    """Runs a figure or table of a paper again and judges what the paper states.

    :param name: of a shipped study (``"late/fig10"``; ``anabranch study --list`` has them all), or the path of a file.
    :param quick: a few points and repetitions only.
    :param repeat: repetitions in place of the study's own, 1 to 100000.
    :param jobs: threads; one per processor unless given. Results do not depend on it.
    :param progress: as in :func:`compare`.
    :raises ScenarioError: if the study is refused.
    :raises RunError: if a run breaks.
    """
    with _shown(progress) as show:
        return Study(_native.study(name, quick, repeat, jobs or 0, show))


@contextmanager
def _shown(progress: Progress, unit: str = "run") -> Iterator[Callable[[int, int], object] | None]:
    if callable(progress):
        yield progress
    elif not progress:
        yield None
    else:
        from tqdm.auto import tqdm

        with tqdm(unit=unit) as bar:

            def show(done: int, total: int) -> None:
                bar.total = total
                bar.update(done - bar.n)

            yield show


def inspect(*files: str | os.PathLike[str]) -> Inspection:
    """Analyses captures (pcap, pcapng) of anybody's MPTCP: connections, subflows, what was sent twice and why.

    :raises ValueError: for a file that is no capture.
    """
    if not files:
        raise ValueError("no capture is named; accepted: one or more files, such as inspect('client.pcapng')")
    return Inspection(*_native.inspect([os.fspath(file) for file in files]))


def sweep(
    source: str | os.PathLike[str] | Mapping[str, Any],
    *,
    out: str | os.PathLike[str] | None = None,
    executor: Any = None,
    workers: int | None = None,
    jobs: int | None = None,
    shard: str | tuple[int, int] | None = None,
    until: str | None = None,
    progress: Progress = None,
) -> Sweep:
    """Runs systems over many conditions, here or on a cluster::

        ab.sweep("sweeps/lte-rate.toml")                                      # all processors of this machine
        ab.sweep("sweeps/lte-rate.toml", out="results", executor=client)      # the workers of Dask

    The rows do not depend on who runs them. With ``out`` a call goes on from what the directory has, whatever ended the
    one before: a chunk of a few seconds is lost at most.

    :param source: the path of a sweep file (docs/sweeps.md), or a dict with its words. In a dict a class may stand
        among ``schedulers``; its source text then tells the results from those of a changed class. Files that it names
        must be there for every worker, under the same path.
    :param out: the directory of results, made if it is not there. Without it the results go when the answer does.
    :param executor: threads of this process unless given. An executor of ``concurrent.futures``, a
        ``distributed.Client`` or its ``get_executor()``, the module ``ray``, a ``multiprocessing.Pool``, or another
        object with ``submit(fn, *args)`` that returns futures, or with only ``map(fn, items)``. Every worker needs this
        package, of the same build.
    :param workers: chunks that run at the same time; asked of the executor unless given, and one per processor of this
        machine where it does not say.
    :param jobs: threads of each worker, one unless given; without an executor all threads, one per processor unless
        given.
    :param shard: ``"3/40"`` or ``(3, 40)``: the third of forty equal shares. Needs ``out``.
    :param until: ``"2%"``: repeat each condition until the interval of each system's time is that narrow.
    :param progress: called with the number of conditions that are through and of all; ``True`` for a bar of
        ``tqdm.auto``.
    :returns: all that the directory has. A run that broke is a row with its reason.
    :raises ScenarioError: if the sweep is refused. :raises TypeError: for an executor that is none.
    :raises ValueError: for a directory of another sweep or build. :raises OSError: if it cannot be written.
    :raises SweepError: if a worker is lost for good. :raises KeyboardInterrupt: within a second of Ctrl-C.
    """
    with _shown(progress, "condition") as show:
        return _sweep.run(source, out, executor, workers, jobs, shard, until, show)


def load(directory: str | os.PathLike[str]) -> Sweep:
    """Opens a directory of results that :func:`sweep`, ``anabranch sweep --out`` or ``anabranch rank --out`` has made
    or is making.

    Its rows are read when they are asked for: a part whose rows are not those that were written is a ``ValueError``
    then.

    :raises ValueError: for a directory that holds no results.
    """
    return Sweep(_native.load(os.fspath(directory)))


def __getattr__(name: str) -> Any:
    # The module needs gymnasium: imported when it is asked for.
    if name == "gym":
        return importlib.import_module(".gym", __name__)
    raise AttributeError(f"module 'anabranch' has no attribute '{name}'")


def __dir__() -> list[str]:
    return [*__all__, "__doc__", "__version__", "gym"]


def statistics() -> list[Statistic]:
    """Every statistic of a run with unit, type and meaning, in the order of columns."""
    return [Statistic(*each) for each in _native.statistics()]


def build() -> str:
    """The digest of the native code: build, scenario and seed are the whole run."""
    return _native.build()
