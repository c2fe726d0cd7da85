"""The classes that policies of one's own begin with."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._native import Decision, Event, Subflow, View


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
    not draw from ``random``, read a clock or keep anything in the class: scenario and seed must be the whole run.

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

    def observe(self, now: float, event: Event) -> None:
        """Called for each event of the connection in order: segments sent, timeouts, fast retransmits and the like.

        :param now: time of the run [s].
        :param event: what happened; ``event.kind`` says what, ``event.on`` the id of the subflow.
        """
