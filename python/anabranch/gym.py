"""Learned schedulers: an environment of Gymnasium's interface, and schedulers made of what was learned.

>>> import gymnasium
>>> import anabranch.gym
>>> env = gymnasium.make("anabranch/Scheduler-v0", scenario="wlan-lte", seeds=range(1000))
>>> observation, info = env.reset(seed=1)

An episode is a run. At the first decision after each control interval the scheduler of the sending host asks for an
action, and follows it until it asks again. One that was trained stands wherever a scheduler does, through
:func:`scheduler`.
"""

from __future__ import annotations

import queue
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

try:
    import gymnasium
    import numpy
except ImportError as missing:
    raise ImportError(f"anabranch.gym needs {missing.name}; remedy: pip install 'anabranch[gym]'") from missing

from . import Scenario
from . import scenario as read_scenario
from ._native import Decision, Subflow, View, wait
from ._policies import Scheduler
from ._results import Run

__all__ = ["AHEAD", "DRAWS", "FEATURES", "GLOBALS", "SchedulerEnv", "Step", "describe", "scheduler"]

Observation = numpy.ndarray[Any, numpy.dtype[numpy.float32]]
Action = numpy.ndarray[Any, numpy.dtype[Any]] | Sequence[float] | int
Kind = Literal["split", "choice"]

AHEAD = 4
"""Segments by which a subflow may be ahead of its share in a control interval."""

DRAWS = 100
"""Most runs that are drawn until one has a decision for its scheduler."""

HALF_A_TICK = 5e-10
"""Half of the unit of time of a run [s]: sums of seconds are not exact."""

FEATURES: dict[str, str] = {
    "present": "1 if there is such a subflow and it is usable, otherwise 0, as all else of it",
    "has_room": "1 if a full segment may leave now",
    "srtt": "srtt / (srtt + 100 ms)",
    "rttvar": "rttvar / (rttvar + srtt)",
    "queueing": "delay in the path's queue / (that + rtt_min)",
    "in_flight": "in_flight / cwnd, 1 at most",
    "cwnd": "its part of all congestion windows",
    "delivery": "its part of all delivery rates, 0 before the first sample",
    "loss": "estimated loss probability of a segment",
    "sent": "its part of all bytes sent since the last action",
}
"""Numbers of an observation about each subflow, in this order; all are in 0..1."""

GLOBALS: dict[str, str] = {
    "unsent": "unsent bytes / (unsent bytes + all congestion windows)",
    "window": "the peer's window / the largest it ever was",
    "sendable": "the part of the unsent bytes that the peer's window admits",
}
"""Numbers about the connection, behind those of the subflows, in this order; all are in 0..1."""


@dataclass(frozen=True)
class Step:
    """The time between two actions, for a reward function."""

    elapsed_s: float
    """Time of the run that it took [s]: the control interval at least, unless it is the last."""
    acked_bytes: int
    """Bytes that the peer acknowledged at the data level meanwhile, on the connection that asks."""
    now_s: float
    """Time of the run [s]."""
    run: Run | None
    """Every number of the run, once it is over."""

    @property
    def done(self) -> bool:
        """The episode is over."""
        return self.run is not None

    @property
    def finished(self) -> bool:
        """All transfers are through."""
        return self.run is not None and self.run.finished


Reward = Callable[[Step], float]


def _goodput(step: Step) -> float:
    return step.acked_bytes * 8e-6


def _delay(step: Step) -> float:
    return -step.elapsed_s


REWARDS: dict[str, Reward] = {"delay": _delay, "goodput": _goodput}


def describe(subflows: int = 2) -> list[str]:
    """Names of the numbers of an observation, in order: ``"0.srtt"``, …, ``"unsent"``, …"""
    return [f"{slot}.{name}" for slot in range(subflows) for name in FEATURES] + list(GLOBALS)


class _Slots:
    """Subflows by their place in observations and actions: that of an id stays while the subflow does."""

    def __init__(self, count: int) -> None:
        self.ids: list[int | None] = [None] * count

    def of(self, view: View) -> list[Subflow | None]:
        by_id = {subflow.id: subflow for subflow in view.subflows}
        for id in by_id:
            if id not in self.ids:
                free = [n for n, known in enumerate(self.ids) if known not in by_id]
                if free:
                    unused = [n for n in free if self.ids[n] is None]
                    self.ids[(unused or free)[0]] = id
        return [None if id is None else by_id.get(id) for id in self.ids]


class _Steered(Scheduler):
    """Follows an action until the control interval is over, then asks for the next."""

    slots = 2
    kind: Kind = "split"
    interval = 0.05

    def __init__(self) -> None:
        self.places = _Slots(self.slots)
        self.until = 0.0
        self.sent_at: dict[int, int] = {}
        self.shares: dict[int, float] = {}
        self.given: dict[int, float] = {}

    def act(self, now: float, observation: Observation, view: View) -> Action:
        """The action that what is observed calls for."""
        raise NotImplementedError

    def decide(self, now: float, view: View) -> Subflow | Decision | None:
        if now >= self.until - HALF_A_TICK:
            self.follow(now, view)
        named = [subflow for subflow in view.subflows if self.shares.get(subflow.id, 0.0) > 0.0]
        if not named:
            # The action is about none that is left.
            return view.fastest_with_room()
        # Weighted turns, by what has left since the action. While the one whose turn it is has no room, others run
        # ahead of their share by a few segments; then all wait.
        whole = sum(self.shares[subflow.id] for subflow in named)
        given = sum(self.given.get(subflow.id, 0.0) for subflow in named)
        best, least = None, 0.0
        for subflow in named:
            share, own = self.shares[subflow.id] / whole, self.given.get(subflow.id, 0.0)
            turn = (own + subflow.mss_bytes) / share
            if subflow.has_room and own - share * given <= AHEAD * subflow.mss_bytes and (best is None or turn < least):
                best, least = subflow, turn
        if best is None:
            return wait(self.until)
        self.given[best.id] = self.given.get(best.id, 0.0) + best.mss_bytes
        return best

    def follow(self, now: float, view: View) -> None:
        here = self.places.of(view)
        answer = self.act(now, self.observe_all(view, here), view)
        weights = _weights(answer, self.kind, self.slots)
        self.until = now + self.interval
        self.shares = {it.id: weight for it, weight in zip(here, weights, strict=True) if it is not None}
        self.given = {}
        self.sent_at = {subflow.id: subflow.sent_bytes for subflow in view.subflows}

    def observe_all(self, view: View, here: list[Subflow | None]) -> Observation:
        numbers: list[float] = []
        subflows = view.subflows
        windows = sum(it.cwnd_bytes for it in subflows)
        rates = sum(it.delivery_bps or 0 for it in subflows)
        sent = {it.id: it.sent_bytes - self.sent_at.get(it.id, it.sent_bytes) for it in subflows}
        all_sent = sum(sent.values())
        for it in here:
            if it is None:
                numbers += [0.0] * len(FEATURES)
                continue
            numbers += [
                1.0,
                float(it.has_room),
                it.srtt_s / (it.srtt_s + 0.1),
                _part(it.rttvar_s, it.rttvar_s + it.srtt_s),
                _part(it.queueing_delay_s, it.queueing_delay_s + it.rtt_min_s),
                min(_part(it.in_flight_bytes, it.cwnd_bytes), 1.0),
                _part(it.cwnd_bytes, windows),
                _part(it.delivery_bps or 0, rates),
                it.loss,
                _part(sent[it.id], all_sent),
            ]
        numbers += [
            _part(view.unsent_bytes, view.unsent_bytes + windows),
            min(_part(view.window_bytes, view.buffer_bytes), 1.0),
            _part(view.sendable_bytes, view.unsent_bytes),
        ]
        return numpy.array(numbers, dtype=numpy.float32)


def _part(number: float, whole: float) -> float:
    return number / whole if whole > 0 else 0.0


def _weights(action: Action, kind: Kind, slots: int) -> list[float]:
    """The share of each slot, checked."""
    if kind == "choice":
        chosen = numpy.asarray(action)
        if chosen.shape not in ((), (1,)) or chosen.dtype.kind not in "iu" or not 0 <= int(chosen.item()) < slots:
            raise ValueError(f"the action is {action!r}; accepted: a whole number from 0 to {slots - 1}")
        return [float(slot == int(chosen.item())) for slot in range(slots)]
    try:
        weights = numpy.asarray(action, dtype=numpy.float64)
    except (TypeError, ValueError):
        weights = numpy.full(slots, numpy.nan)
    if weights.shape != (slots,) or not numpy.all((weights >= 0.0) & (weights <= 1.0)):
        raise ValueError(f"the action is {action!r}; accepted: {slots} numbers from 0 to 1")
    total = float(weights.sum())
    return [1.0 / slots] * slots if total == 0.0 else [float(weight) / total for weight in weights]


def scheduler(
    policy: Callable[[Observation], Action],
    *,
    subflows: int = 2,
    action: Kind = "split",
    interval_s: float = 0.05,
    name: str = "Learned",
) -> type[Scheduler]:
    """A scheduler that asks ``policy`` as an environment does: a class for :func:`anabranch.compare` and the like::

        ab.compare("wlan-lte", ["min-rtt", ab.gym.scheduler(lambda seen: model.predict(seen, deterministic=True)[0])])

    Each connection asks by itself, with its own control intervals.

    :param policy: from an observation to an action, as of a :class:`SchedulerEnv` with the same ``subflows``,
        ``action`` and ``interval_s``. It must answer alike each time, or runs do not repeat.
    :param name: of the class, by which results know it.
    """
    subflows, action, interval_s = _checked(subflows, action, interval_s)

    def act(self: _Steered, now: float, observation: Observation, view: View) -> Action:
        return policy(observation)

    about = f"A learned policy: {action}, asked every {interval_s:g} s."
    fields = {"act": act, "slots": subflows, "kind": action, "interval": interval_s, "__doc__": about}
    return type(name, (_Steered,), fields)


def _checked(subflows: int, action: Kind, interval_s: float) -> tuple[int, Kind, float]:
    if not isinstance(subflows, int) or not 2 <= subflows <= 16:
        raise ValueError(f"subflows is {subflows!r}; accepted: 2 to 16")
    if action not in ("split", "choice"):
        raise ValueError(f"action is {action!r}; accepted: 'split' or 'choice'")
    if not 0.001 <= interval_s <= 60.0:
        raise ValueError(f"interval_s is {interval_s!r}; accepted: 0.001 to 60 seconds")
    return subflows, action, float(interval_s)


class _Asked(NamedTuple):
    """A question of the run: what it sees, for an action."""

    now: float
    observation: Observation
    acked: int


class _Over(Exception):
    """The run is not wanted any more."""


class _Episode:
    """A run on a thread of its own, which waits at each question."""

    def __init__(self) -> None:
        self.questions: queue.SimpleQueue[_Asked | Run | BaseException] = queue.SimpleQueue()
        self.answers: queue.SimpleQueue[Action | None] = queue.SimpleQueue()
        self.thread: threading.Thread | None = None
        self.closed = False
        self.acked: dict[_Steered, int] = {}
        """Data sequence number up to which each connection was acknowledged when it asked last."""
        self.total = 0
        """Bytes acknowledged in all steps."""
        self.until = 0.0
        self.action: Action | None = None

    def begin(self, scenario: Scenario, seed: int) -> None:
        def work() -> None:
            try:
                self.questions.put(scenario.run(seed))
            except BaseException as error:
                self.questions.put(error)

        self.thread = threading.Thread(target=work, name="anabranch-episode", daemon=True)
        self.thread.start()

    def ask(self, agent: _Steered, now: float, observation: Observation, view: View) -> Action:
        """Called by the run: waits for an action. Connections that ask within an interval share it."""
        if self.action is not None and now < self.until - HALF_A_TICK:
            return self.action
        if self.closed:
            raise _Over
        # Before a connection asks, nothing was copied: what it has sent begins at its first byte.
        first = view.unsent_from - sum(subflow.sent_bytes for subflow in view.subflows)
        acked = view.data_una - self.acked.get(agent, first)
        self.acked[agent] = view.data_una
        self.total += acked
        self.questions.put(_Asked(now, observation, acked))
        answer = self.answers.get()
        if answer is None:
            raise _Over
        self.action, self.until = answer, now + agent.interval
        return answer

    def next(self) -> _Asked | Run:
        """The next question, or the run when it is over."""
        came = self.questions.get()
        if isinstance(came, BaseException):
            raise came
        return came

    def close(self) -> None:
        """Ends the run where it is."""
        self.closed = True
        self.answers.put(None)
        if self.thread is not None and self.thread is not threading.current_thread():
            self.thread.join()


class _Stage:
    """The episode that the scheduler of an environment belongs to."""

    def __init__(self) -> None:
        self.episode: _Episode | None = None

    def clear(self) -> None:
        if self.episode is not None:
            self.episode.close()
            self.episode = None


class SchedulerEnv(gymnasium.Env[Observation, Any]):
    """A scheduler's episodes: each is a run of a scenario with a seed.

    Observations are ``subflows * len(FEATURES) + len(GLOBALS)`` numbers of 32 bits in 0..1; :data:`FEATURES` and
    :data:`GLOBALS` say what they are, :func:`describe` names them. A subflow keeps its place for its life; the first
    established has place 0. Observations are of the connection that asks; with several all follow one action.

    Actions hold for at least ``interval_s`` of the run, until the next decision after it:

    - ``action="split"``: ``Box(0, 1, (subflows,))``, the weights of the subflows. New data leave by weighted turns.
      While the subflow whose turn it is has no room, others may be ahead of their share by :data:`AHEAD` segments; then
      all wait. A weight of 0 leaves its subflow alone; all 0 counts as all alike.
    - ``action="choice"``: ``Discrete(subflows)``, the one subflow that carries new data.

    Where the subflows that an action names are gone, the fastest with room is taken. The engine's watchdog overrules an
    action that starves the connection (``info["overruled"]`` at the end).

    Rewards: ``"delay"``, minus the seconds that the step took, so that the return is minus the time to the end;
    ``"goodput"``, the Mbit that the peer acknowledged in the step, for work without end or with a discount; or a
    function of a :class:`Step`.

    An episode is terminated when all transfers are through, and truncated when ``run.stop`` of the scenario is first.

    ``info`` has ``now_s``, ``elapsed_s`` and ``acked_bytes`` of the step, from ``reset`` also ``seed`` and
    ``scenario``; at the end ``completion_s``, ``goodput_bps``, ``finished``, ``overruled`` and ``events_digest``
    of the run.

    :param scenario: a scenario or what :func:`anabranch.scenario` takes; a list of such, from which each episode draws
        one (``[f"drawn/1/{n}" for n in range(100)]``); or a function that is given the environment's ``np_random`` and
        answers one.
    :param seeds: from which each episode draws the seed of its run, as ``range(1000)``.
    :param subflows: places in observations and actions, 2 to 16. A subflow that finds none is left alone.
    :param host: whose scheduler learns: that of the ``"server"``, which sends in a download, or of the ``"client"``.
        The other has that of the scenario.
    :raises ValueError: for a parameter that is none of these.
    :raises anabranch.ScenarioError: at ``reset``, for a scenario that is refused.

    ``reset(options={"scenario": …, "seed": …})`` names the run in place of the draw. Scenario, seed and actions are the
    whole of an episode.
    """

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(
        self,
        scenario: Any = "wlan-lte",
        seeds: Sequence[int] = range(1, 1_000_001),
        *,
        subflows: int = 2,
        action: Kind = "split",
        interval_s: float = 0.05,
        reward: str | Reward = "delay",
        host: Literal["server", "client"] = "server",
    ) -> None:
        self._slots, self._kind, self._interval = _checked(subflows, action, interval_s)
        if host not in ("server", "client"):
            raise ValueError(f"host is {host!r}; accepted: 'server' or 'client'")
        if len(seeds) == 0:
            raise ValueError("seeds is empty; accepted: numbers of 0 to 2**64 - 1, as range(1000)")
        if isinstance(scenario, (list, tuple)) and not scenario:
            raise ValueError("scenario is an empty list; accepted: one scenario or more")
        if isinstance(reward, str) and reward not in REWARDS:
            raise ValueError(f"reward is {reward!r}; accepted: {', '.join(map(repr, REWARDS))} or a function of a Step")
        self._reward: Reward = REWARDS[reward] if isinstance(reward, str) else reward
        self._space, self._seeds, self._host = scenario, seeds, host
        self._read: dict[str, Scenario] = {}
        count = subflows * len(FEATURES) + len(GLOBALS)
        self.observation_space = gymnasium.spaces.Box(0.0, 1.0, (count,), numpy.float32)
        self.action_space = (
            gymnasium.spaces.Box(0.0, 1.0, (subflows,), numpy.float32)
            if action == "split"
            else gymnasium.spaces.Discrete(subflows)
        )
        stage = self._stage = _Stage()
        self._last: _Asked | None = None
        """The latest question; ``None`` while no episode is under way."""

        def act(self: _Steered, now: float, observation: Observation, view: View) -> Action:
            if stage.episode is None:
                raise _Over
            return stage.episode.ask(self, now, observation, view)

        fields = {"act": act, "slots": subflows, "kind": action, "interval": self._interval}
        self._scheduler = type("SchedulerEnv", (_Steered,), fields)
        # The thread of an episode that nobody goes on with ends with the environment, at the latest with Python.
        weakref.finalize(self, stage.clear)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begins a run, and plays it to the first decision. A run without any is drawn again, :data:`DRAWS` times.

        :raises RuntimeError: if a run that is named has no decision, or none that was drawn: never two usable
            subflows, or nothing to send at ``host``.
        """
        super().reset(seed=seed)
        named = dict(options or {})
        unknown = set(named) - {"scenario", "seed"}
        if unknown:
            raise ValueError(f"options has {', '.join(sorted(unknown))}; accepted: scenario and seed")
        for _ in range(1 if named else DRAWS):
            # Drawn whether or not they are used: what is named does not change what the next episodes draw.
            drawn = self._draw()
            run_seed = int(self._seeds[int(self.np_random.integers(len(self._seeds)))])
            source = self._resolved(named.get("scenario", drawn))
            run_seed = int(named.get("seed", run_seed))
            self._stage.clear()
            self._last = None
            episode = self._stage.episode = _Episode()
            episode.begin(source, run_seed)
            asked = episode.next()
            if isinstance(asked, _Asked):
                self._last = asked
                info = {"now_s": asked.now, "elapsed_s": 0.0, "acked_bytes": asked.acked}
                return asked.observation, {**info, "seed": run_seed, "scenario": source.name}
        self._stage.clear()
        raise RuntimeError(
            f"{source.name} with seed {run_seed} asks the {self._host}'s scheduler nothing; accepted: a run with "
            "two usable subflows in which that host sends data"
        )

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Follows the action to the next decision after the control interval, or to the end of the run.

        :raises ValueError: for an action that is none; the episode goes on.
        :raises anabranch.RunError: if the run breaks.
        """
        episode, last = self._stage.episode, self._last
        if episode is None or last is None:
            raise RuntimeError("no episode is under way; call reset() first")
        _weights(action, self._kind, self._slots)
        episode.answers.put(numpy.array(action, copy=True))
        try:
            came = episode.next()
        except BaseException:
            self._last = None
            raise
        if isinstance(came, Run):
            self._last = None
            acked = max(came._native.arrived_bytes - episode.total, 0)
            step = Step(max(came.end_s - last.now, 0.0), acked, came.end_s, came)
            numbers = ("completion_s", "goodput_bps", "finished", "overruled", "events_digest")
            info = {name: getattr(came, name) for name in numbers}
            observation = last.observation
        else:
            self._last = came
            step = Step(came.now - last.now, came.acked, came.now, None)
            info, observation = {}, came.observation
        info |= {"now_s": step.now_s, "elapsed_s": step.elapsed_s, "acked_bytes": step.acked_bytes}
        return observation, float(self._reward(step)), step.finished, step.done and not step.finished, info

    def close(self) -> None:
        """Ends the run that is under way, if there is one."""
        self._stage.clear()
        self._last = None

    def _draw(self) -> Any:
        if isinstance(self._space, (list, tuple)):
            return self._space[int(self.np_random.integers(len(self._space)))]
        if callable(self._space):
            return self._space(self.np_random)
        return self._space

    def _resolved(self, source: Any) -> Scenario:
        """The scenario with the scheduler of this environment; those that were named are read once."""
        known = self._read.get(source) if isinstance(source, str) else None
        if known is not None:
            return known
        base = source if isinstance(source, Scenario) else read_scenario(source)
        steered = base.with_({f"{self._host}.scheduler": self._scheduler})
        if isinstance(source, str):
            self._read[source] = steered
        return steered


gymnasium.register(id="anabranch/Scheduler-v0", entry_point="anabranch.gym:SchedulerEnv")
