"""Sweeps: one call, on threads of this process or on the workers of an executor."""

from __future__ import annotations

import hashlib
import inspect
import itertools
import os
import queue
import tempfile
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from . import _native
from ._errors import SweepError
from ._executors import Submit, Task, submitter
from ._results import Sweep

Show = Callable[[int, int], object] | None
Span = tuple[int, int]


def run(
    source: str | os.PathLike[str] | Mapping[str, Any],
    out: str | os.PathLike[str] | None,
    executor: Any,
    workers: int | None,
    jobs: int | None,
    shard: str | tuple[int, int] | None,
    until: str | None,
    show: Show,
) -> Sweep:
    """The work of :func:`anabranch.sweep`."""
    if shard is not None and out is None:
        raise ValueError("a shard is kept for others to add to; accepted: shard=… with out=…, a directory")
    # An executor that is none is refused before anything is read or made.
    submit = None if executor is None else submitter(executor, workers)
    given = dict(source) if isinstance(source, Mapping) else os.fspath(source)
    campaign = _native.Campaign(given, until, lambda classes: _mark(classes, needed=out is not None))
    first, end = (0, campaign.conditions) if shard is None else campaign.share(*_share(shard))
    gone = None if out is not None else tempfile.TemporaryDirectory(prefix="anabranch-")
    directory = gone.name if gone is not None else os.fspath(out)  # type: ignore[arg-type]
    campaign.open(directory, "anabranch.sweep in Python")
    if submit is None:
        campaign.work(directory, first, end, jobs or 0, show)
    else:
        _Coordinator(campaign, directory, gone is not None, *submit, jobs or 1, show).work(first, end)
    return Sweep(_native.load(directory), gone)


def _share(shard: str | tuple[int, int]) -> tuple[int, int]:
    try:
        number, of = (int(it) for it in (shard.split("/") if isinstance(shard, str) else shard))
    except (TypeError, ValueError):
        number, of = 0, 0
    if not 1 <= number <= of:
        raise ValueError(f"shard is {shard!r}; accepted: K/N with K from 1 to N, such as '3/40' or (3, 40)")
    return number, of


def _mark(classes: tuple[type, ...], needed: bool) -> str:
    """A digest of the text of these classes, so that results of changed code are not taken for those of this one."""
    digest = hashlib.sha256()
    for each in classes:
        try:
            digest.update(f"{each.__name__}\n{inspect.getsource(each)}\n".encode())
        except (OSError, TypeError) as error:
            if needed:
                raise ValueError(
                    f"the source text of `{each.__name__}` cannot be read, so that nobody could tell its results from "
                    "those of a changed class; accepted: a class in a file or a notebook, or no `out`"
                ) from error
    return digest.hexdigest() if classes else ""


Recipe = tuple[str, str, str | None, tuple[type, ...], str]

_held: dict[str, _native.Campaign] = {}


def _chunk(recipe: Recipe, digest: str, build: str, first: int, end: int, jobs: int) -> tuple[bytes, float]:
    """Runs conditions ``first`` to ``end - 1`` in a worker: the bytes of their part, and the seconds that it took."""
    campaign = _held.get(digest)
    if campaign is None:
        if _native.build() != build:
            raise ValueError(
                f"this worker has anabranch {_native.__version__}, build {_native.build()}, and the sweep comes from "
                f"build {build}; install the same wheel on every machine"
            )
        campaign = _native.Campaign.of(*recipe)
        if campaign.digest != digest:
            raise ValueError("a file that the sweep names has other contents on this worker than where the sweep began")
        _held.clear()
        _held[digest] = campaign
    begun = time.perf_counter()
    part = campaign.run(first, end, jobs)
    return part, time.perf_counter() - begun


class _Coordinator:
    """Hands out chunks, and keeps what comes back."""

    def __init__(
        self,
        campaign: _native.Campaign,
        directory: str,
        temporary: bool,
        submit: Submit,
        workers: int,
        jobs: int,
        show: Show,
    ) -> None:
        self._campaign = campaign
        self._directory = directory
        self._temporary = temporary
        self._submit = submit
        self._workers = workers
        self._jobs = jobs
        self._show = show or (lambda done, total: None)
        self._out: dict[int, tuple[Task, Span]] = {}
        self._through: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._numbers = itertools.count()
        self._pace: float | None = None
        """Seconds that a worker takes for a condition."""

    def work(self, first: int, end: int) -> None:
        """Runs those of these conditions that the directory does not have.

        :raises SweepError: if a worker is lost for good or a result cannot be kept. What came until then is kept.
        """
        missing = deque(self._campaign.missing(self._directory, first, end))
        total = sum(end - first for first, end in missing)
        self._show(0, total)
        done = 0
        try:
            while done < total:
                # Two per worker: one that it is at, and one that waits there.
                while missing and len(self._out) < 2 * self._workers:
                    self._hand_out(self._next(missing))
                first, end = self._keep(self._receive())
                done += end - first
                self._show(done, total)
        except BaseException as error:
            done += self._end()
            if isinstance(error, Exception):
                self._broken(error, done, total)
            raise

    def _next(self, missing: deque[Span]) -> Span:
        """The next chunk: a few seconds of work, and less towards the end, so that all workers end together."""
        left = sum(end - first for first, end in missing)
        first, end = missing.popleft()
        most = self._campaign.chunk(self._pace, self._jobs)
        upto = min(end, first + max(1, min(most, left // (2 * self._workers))))
        if upto < end:
            missing.appendleft((upto, end))
        return first, upto

    def _hand_out(self, span: Span) -> None:
        campaign = self._campaign
        task = self._submit(_chunk, campaign.recipe, campaign.digest, _native.build(), *span, self._jobs)
        number = next(self._numbers)
        self._out[number] = (task, span)
        task.add_done_callback(lambda _: self._through.put(number))

    def _receive(self) -> int:
        while True:
            try:
                # A wait without an end would not see signals on every system.
                return self._through.get(timeout=1.0)
            except queue.Empty:
                pass

    def _keep(self, number: int) -> Span:
        task, span = self._out.pop(number)
        part, seconds = task.result()
        self._campaign.keep(self._directory, *span, part)
        self._pace = seconds / (span[1] - span[0])
        return span

    def _end(self) -> int:
        """Calls off what is under way and keeps what is through; the number of conditions of that."""
        done = 0
        for task, _ in self._out.values():
            task.cancel()
        while True:
            try:
                first, end = self._keep(self._through.get_nowait())
                done += end - first
            except queue.Empty:
                return done
            except BaseException:
                # Called off, or lost with what is reported already.
                continue

    def _broken(self, error: Exception, done: int, total: int) -> NoReturn:
        kept = f"{done} of {total} conditions are in {self._directory}, and the same call goes on from there"
        if self._temporary:
            kept = f"{done} of {total} conditions were through; with out=… a call keeps them and can go on from there"
        text = str(error) or type(error).__name__
        raise SweepError(f"the sweep broke off: {text}\n{kept}", done, total) from error
