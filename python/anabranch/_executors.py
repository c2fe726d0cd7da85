"""Executors of other packages, brought to one form."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Protocol


class Task(Protocol):
    """A call that was handed to an executor."""

    def add_done_callback(self, fn: Callable[[Any], object], /) -> object: ...
    def result(self) -> Any: ...
    def cancel(self) -> object: ...


Submit = Callable[..., Task]

ACCEPTED = (
    "accepted: an executor of concurrent.futures, a distributed.Client or its get_executor(), the module ray, "
    "a multiprocessing.Pool, or another object with submit or map"
)


def submitter(executor: Any, workers: int | None) -> tuple[Submit, int]:
    """A function ``submit(fn, *args)`` that hands a call to the executor, and the number of its workers.

    :param executor: see :func:`anabranch.sweep`.
    :param workers: calls that run at the same time; asked of the executor unless given, else one per processor.
    :raises TypeError: for an object that is no executor.
    """
    if workers is not None and workers < 1:
        raise ValueError(f"workers is {workers}; accepted: 1 or more")
    submit, found = _known(executor)
    return submit, workers or found or os.cpu_count() or 1


def _known(executor: Any) -> tuple[Submit, int | None]:
    package = type(executor).__module__.partition(".")[0]
    if getattr(executor, "__name__", None) == "ray" and callable(getattr(executor, "remote", None)):
        return _ray(executor)
    if package == "distributed" and callable(getattr(executor, "get_executor", None)):
        # A call of the same arguments is a call of its own: it was not kept the first time.
        threads = sum(executor.nthreads().values())
        return executor.get_executor(pure=False).submit, threads or None
    if package in ("multiprocess", "multiprocessing") and callable(getattr(executor, "apply_async", None)):
        return _Pool(executor).submit, getattr(executor, "_processes", None)
    if not isinstance(executor, type):
        if callable(getattr(executor, "submit", None)):
            return executor.submit, getattr(executor, "_max_workers", None)
        if callable(getattr(executor, "map", None)):
            return _Mapped(executor).submit, None
    shown = repr(executor)
    raise TypeError(f"{shown if len(shown) < 80 else type(executor).__name__} is no executor; {ACCEPTED}")


def _ray(ray: Any) -> tuple[Submit, int | None]:
    if not ray.is_initialized():
        ray.init()

    class RayTask:
        def __init__(self, reference: Any) -> None:
            self._reference = reference
            self._future = reference.future()

        def add_done_callback(self, fn: Callable[[Any], object], /) -> None:
            self._future.add_done_callback(lambda _: fn(self))

        def result(self) -> Any:
            return self._future.result()

        def cancel(self) -> None:
            ray.cancel(self._reference)

    def submit(fn: Callable[..., Any], *args: Any) -> RayTask:
        return RayTask(ray.remote(fn).remote(*args))

    return submit, int(ray.cluster_resources().get("CPU", 0)) or None


class _Pool:
    """A pool of multiprocessing. It does not notice when a worker is killed: a call that was lost never ends."""

    def __init__(self, pool: Any) -> None:
        self._pool = pool

    def submit(self, fn: Callable[..., Any], *args: Any) -> Task:
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        self._pool.apply_async(fn, args, callback=future.set_result, error_callback=future.set_exception)
        return future


Call = tuple[Callable[..., Any], tuple[Any, ...]]

GATHER_S = 0.02
"""Time in which calls are gathered for one map [s]."""


class _Mapped:
    """An object that has only ``map``, as pools of MPI do: calls that wait go out together, and the next when all of them
    are back. One thread talks to it, for as long as there is something to do."""

    def __init__(self, executor: Any) -> None:
        self._executor = executor
        self._waiting: list[tuple[Future[Any], Call]] = []
        self._lock = threading.Lock()
        self._at_work = False

    def submit(self, fn: Callable[..., Any], *args: Any) -> Task:
        future: Future[Any] = Future()
        with self._lock:
            self._waiting.append((future, (fn, args)))
            begin, self._at_work = not self._at_work, True
        if begin:
            threading.Thread(target=self._work, name="anabranch-map", daemon=True).start()
        return future

    def _work(self) -> None:
        while True:
            time.sleep(GATHER_S)
            with self._lock:
                together, self._waiting = self._waiting, []
                if not together:
                    self._at_work = False
                    return
            together = [(future, call) for future, call in together if future.set_running_or_notify_cancel()]
            left = iter(together)
            try:
                for answer in self._executor.map(_called, [call for _, call in together]):
                    next(left)[0].set_result(answer)
                for future, (fn, _) in left:
                    future.set_exception(RuntimeError(f"map gave no answer to a call of {fn.__name__}"))
            except BaseException as error:
                for future, _ in left:
                    future.set_exception(error)


def _called(call: Call) -> Any:
    fn, args = call
    return fn(*args)
