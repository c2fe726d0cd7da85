"""The classes that policies of one's own begin with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ._native import (
        Ack,
        AckRoute,
        Buffers,
        Decision,
        Event,
        FlightView,
        Flow,
        Piece,
        Probe,
        Subflow,
        Usage,
        View,
    )
    from ._request import Request

class Scheduler:
    """Decides which subflow carries which bytes next. Subclass it and write ``decide``::

        class LeastQueue(anabranch.Scheduler):
            '''The subflow whose packets wait the least on their way.'''

            def decide(self, now, view):
                free = [subflow for subflow in view.subflows if subflow.has_room]
                return min(free, key=lambda subflow: subflow.queueing_delay_s, default=None)

        anabranch.compare("wlan-lte", schedulers=["min-rtt", LeastQueue], repeat=20)

    The class stands wherever the name of a scheduler does; in results it is called by its own name. One object is made
    for each connection, by calling the class without arguments; whatever it remembers is of that connection alone. Do
    not draw from the ``random`` that all share (see :meth:`seed`), read a clock or keep anything in the class: scenario
    and seed must be the whole run.

    A scheduler is asked only while at least two subflows are usable, one of them has room and the peer's window admits
    unsent data. The engine checks each answer: one that cannot be carried out, or that starves the connection, is
    overruled by min-rtt and counted (``run.overruled``). An exception ends the run with :class:`RunError`.
    """

    def decide(self, now: float, view: View) -> Subflow | Decision | int | None:
        """Says what leaves next. Called while data waits, again and again, until the answer is to wait.

        :param now: time of the run [s].
        :param view: usable subflows, unsent data and the peer's window. It stays what it is: keep it, compare it.
        :returns: a subflow of the view or its id: the next unsent segment leaves there. ``None``: nothing now, ask at
            the next event. Otherwise what :func:`send`, :func:`repeat` or :func:`wait` make.
        """
        raise NotImplementedError

    repeats: bool = False
    """True for one that answers with :func:`repeat`: it is asked then also while nothing is unsent and something is not
    acknowledged."""

    def seed(self, seed: int) -> None:
        """Called once, before all else, with a number of 64 bits that scenario, seed and connection decide: for
        ``random.Random(seed)``, the only chance a scheduler may take."""

    def observe(self, now: float, event: Event) -> None:
        """Called for each event of the connection in order: segments sent, timeouts, fast retransmits and the like.

        :param now: time of the run [s].
        :param event: what happened; ``event.kind`` says what, ``event.on`` the id of the subflow.
        """


class WindowUpdate(NamedTuple):
    """Window and threshold, set by a congestion control itself."""

    cwnd_bytes: float
    """Congestion window [B]; the engine keeps it to a segment at least."""
    ssthresh_bytes: float
    """Slow-start threshold [B]; two segments at least, ``math.inf`` for none."""


class CongestionControl:
    """Decides how much may be in flight on each subflow; may couple them. Subclass it and write the first two::

        class Reno(anabranch.CongestionControl):
            '''One segment per round trip, half on loss (RFC 5681).'''

            def avoidance(self, now, flow, acked_bytes, flows):
                return acked_bytes * flow.mss_bytes / flow.cwnd_bytes

            def on_fast_retransmit(self, now, flow, in_flight_bytes, flows):
                return in_flight_bytes / 2

        anabranch.scenario("wlan-lte").with_({"host.congestion": Reno}).run()

    The class stands wherever the name of a congestion control does. One object is made for each connection; it serves
    all its subflows. What it remembers of one is best kept in a dict by ``flow.id``. Do not draw from ``random``, read
    a clock or keep anything in the class: scenario and seed must be the whole run.

    What all algorithms share the engine does: slow start, one reduction per recovery (RFC 6582), timeouts, idle
    restart, growth only where the window was the limit, a segment as the least window and the bound of the host as the
    largest.
    HyStart++ applies if the host has it; HyStart of Linux and LISA do not. Algorithms that model the path and pace
    (BBR) cannot be written in Python.

    In every method ``now`` is the time of the run [s], ``flow`` the subflow that it is about, ``flows`` all of the
    connection in order of id, ``flow`` among them.
    """

    def avoidance(self, now: float, flow: Flow, acked_bytes: float, flows: Sequence[Flow]) -> float:
        """Growth of the window for an ACK in congestion avoidance.

        :param acked_bytes: bytes that it acknowledged, a window of them at most.
        :returns: bytes to add to ``flow.cwnd_bytes``, with their fraction; may be negative.
        """
        raise NotImplementedError

    def on_fast_retransmit(self, now: float, flow: Flow, in_flight_bytes: float, flows: Sequence[Flow]) -> float:
        """Called as a fast recovery begins.

        :param in_flight_bytes: FlightSize (RFC 5681 §2), or the window where the host goes by that, as Linux does.
        :returns: the slow-start threshold [B]; the window follows it.
        """
        raise NotImplementedError

    def on_rto(self, now: float, flow: Flow, in_flight_bytes: float, flows: Sequence[Flow]) -> float:
        """Called at a timeout: the window falls to one segment. As :meth:`on_fast_retransmit` unless written.

        :returns: the slow-start threshold [B].
        """
        return self.on_fast_retransmit(now, flow, in_flight_bytes, flows)

    def on_ack(self, now: float, flow: Flow, ack: Ack, flows: Sequence[Flow]) -> WindowUpdate | None:
        """Called for every ACK that delivers something, before it is counted, in recovery as well.

        :returns: ``None``, or a :class:`WindowUpdate` in place of slow start and congestion avoidance for this ACK. It
            is void in recovery, and may not raise a window that was no limit.
        """
        return None

    def on_recovered(self, now: float, flow: Flow, flows: Sequence[Flow]) -> None:
        """Called when all that was in flight at a loss or timeout is acknowledged."""

    def on_spurious(self, now: float, flow: Flow, flows: Sequence[Flow]) -> None:
        """Called when the latest reduction turns out unfounded: window and threshold are restored. Without it
        :meth:`on_reset` is called."""

    def on_rto_again(self, now: float, flow: Flow, flows: Sequence[Flow]) -> None:
        """Called at a timeout within a recovery: the threshold stays, the window falls to one segment. Without it
        :meth:`on_reset` is called."""

    def on_unlimited(self, now: float, flow: Flow, flows: Sequence[Flow]) -> None:
        """Called for an ACK that found the window no limit: the time since the ACK before it earned no growth."""

    def on_reset(self, now: float, flow: Flow, flows: Sequence[Flow]) -> None:
        """Called when the window was changed from outside (idle restart, penalisation): forget any epoch."""

    def on_restart(self, now: float, flow: Flow, flows: Sequence[Flow]) -> None:
        """Called when data leave although nothing was in flight."""


class Reinjection:
    """Decides when data in flight on one subflow is repeated on another. Subclass it and write at least one of
    ``on_rto`` and ``next``::

        class Tail(anabranch.Reinjection):
            '''Once everything is sent, a copy of what is under way, on the fastest other subflow.'''

            def next(self, now, flight):
                if flight.view.unsent_bytes:
                    return None
                free = [subflow for subflow in flight.view.subflows if subflow.has_room_to_repeat]
                for subflow in sorted(free, key=lambda subflow: subflow.srtt_s):
                    for piece in flight.pieces:
                        if len(piece.carriers) == 1 and subflow.id not in piece.carriers:
                            return anabranch.repeat(subflow.id, piece.dsn)
                return None

        anabranch.scenario("wlan-lte").with_({"host.reinjection": Tail}).run()

    The engine checks each answer: what is repeated was sent and is not acknowledged at the data level, and it goes to a
    usable subflow with room that has not carried it. Without being asked it repeats what a closed subflow carried, and
    what a subflow acknowledged and no DATA_ACK covers (RFC 8684 §3.3.6). ``now`` is the time of the run [s]. Times of
    retransmission queues are not shown.
    """

    copies: bool = True
    """False: ``next`` is called at opportunities only, and the methods below it are not called."""
    opportunities: bool = True
    """False: ``next`` is not called at opportunities."""

    def on_rto(self, now: float, on: int) -> bool:
        """Called at a retransmission timeout of the subflow ``on``.

        :returns: True, as without it: all that it carries is repeated on the others.
        """
        return True

    def next(self, now: float, flight: FlightView) -> Request | Decision | None:
        """Names the next copy. Called again and again until there is none: before each scheduling decision, and when
        everything is sent. Called once more, with ``flight.opportunity``, when a subflow has room and nothing new can
        leave (Raiciu et al. 2012, opportunistic retransmission).

        What is under way is copied for each call, before it is shown: the longer the flight, the dearer.

        :returns: what :func:`repeat` makes, of a subflow and the first byte of the copy; up to a segment of the piece
            there is sent. A :class:`Request` to penalise carriers of the opportunity as well.
        """
        return None

    def on_sent(self, now: float, piece: Piece, on: int, flight: FlightView) -> None:
        """Called after ``piece`` left for the first time, on the subflow ``on``."""

    def wake(self, now: float, flight: FlightView) -> float | None:
        """Says when to be woken [s of the run]. Asked after all that could leave has left, while anything is under
        way; a time that is past counts for none."""
        return None

    def on_wake(self, now: float, flight: FlightView) -> Sequence[int] | None:
        """Called at that time; :meth:`next` is called afterwards.

        :returns: ids of subflows that are stale: what they alone carried goes elsewhere, and nothing new goes to them
            until anything arrives on them.
        """
        return None


class ReceiveWindow:
    """Shares the window that the peer advertises out among the subflows. Subclass it and write ``share``::

        class Even(anabranch.ReceiveWindow):
            '''The same part of the peer's buffer for each subflow.'''

            def share(self, now, buffers, usage):
                part = max(buffers.receive_bytes // len(usage), 1)
                return [max(part - each.unacked_bytes, 0) for each in usage]

        anabranch.scenario("wlan-lte").with_({"host.window": Even}).run()

    The engine enforces the shared window (RFC 8684 §3.3.4) and the congestion windows itself: a share only narrows
    them. What is sent again needs no share.
    """

    def share(self, now: float, buffers: Buffers, usage: Sequence[Usage]) -> Sequence[int | None]:
        """Says how much new data each subflow may send beyond what it has sent. Called after every event that may let
        something leave, while several subflows are usable; others are not shown.

        :param now: time of the run [s].
        :param usage: one entry for each usable subflow, in order of id.
        :returns: bytes for each of ``usage`` in its order, or ``None`` for no limit. While nothing is under way one of
            them must not be 0; otherwise there is no limit (``run.overruled``).
        """
        raise NotImplementedError


class Probing(NamedTuple):
    """Probes of the paths of ACKs."""

    interval_s: float
    """From one round of probes to the next [s]: 0.01 to 60."""
    probes: int = 3
    """Probes on each path in a round: 1 to 16."""
    judged_late: bool = False
    """A round is judged as the next is sent, rather than as soon as its replies must be there."""


class AckPath:
    """Decides on which path acknowledgments travel, at the host that receives data. Subclass it and write ``data_ack``
    or ``path``::

        class Fastest(anabranch.AckPath):
            '''The DATA_ACK on the subflow with the lowest RTT.'''

            def data_ack(self, now, arrived, routes):
                timed = [route for route in routes if route.srtt_s is not None]
                return min(timed, key=lambda route: route.srtt_s, default=arrived)

        anabranch.scenario("wlan-lte").with_({"host.ack-path": Fastest}).run()

    ``now`` is the time of the run [s]; ``routes`` are the open subflows in order of id.
    """

    def data_ack(self, now: float, arrived: int, routes: Sequence[AckRoute]) -> AckRoute | int:
        """Chooses the subflow that carries the DATA_ACK, because data that arrived on the subflow ``arrived`` is next
        in the stream; the TCP ACK follows there. Legal with any peer (RFC 8684 §3.3.2).

        :returns: one of ``routes``, or its id.
        """
        return arrived

    def path(self, now: float, of: int, routes: Sequence[AckRoute]) -> AckRoute | int:
        """Chooses the subflow whose path a pure ACK of the subflow ``of`` takes. Another than ``of`` comes about only
        between two hosts with ``ack-rewrite``.

        :returns: one of ``routes``, or its id.
        """
        return of

    def probing(self) -> Probing | None:
        """Says how the paths are to be probed while data arrives. Asked once, as the connection begins."""
        return None

    def observe(self, now: float, probes: Sequence[Probe]) -> None:
        """Called when a round of probes has ended, with one entry for each open subflow in order of id."""
