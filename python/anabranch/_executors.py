"""Executors of other packages, brought to one form."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Protocol


class Task(Protocol):
    """A call that was handed to an executor."""

    def add_done_callback(self, fn: Callable[[Any], object], /) -> object: ...
    def result(self) -> Any: ...
    def cancel(self) -> object: ...


Submit = Callable[..., Task]

ACCEPTED = (
    "accepted: an executor of concurrent.futures, a distributed.Client or its get_executor(), the module ray, "
    "a multiprocessing.Pool, or another object with submit"
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
    if isinstance(executor, type) or not callable(getattr(executor, "submit", None)):
        shown = repr(executor)
        raise TypeError(f"{shown if len(shown) < 80 else type(executor).__name__} is no executor; {ACCEPTED}")
    return executor.submit, getattr(executor, "_max_workers", None)


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
        from concurrent.futures import Future

        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        self._pool.apply_async(fn, args, callback=future.set_result, error_callback=future.set_exception)
        return future
