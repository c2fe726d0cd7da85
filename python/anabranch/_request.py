"""The answer of a reinjection policy that penalises subflows.

In a file of its own, whose annotations are evaluated: those of a named tuple are read at run time, where pages of
reference are made.
"""

from typing import NamedTuple

from ._native import Decision


class Request(NamedTuple):
    """Answer of :meth:`Reinjection.next` that penalises subflows, with or without a copy."""

    repeat: Decision | None = None
    """The copy, made by :func:`repeat`."""
    penalise: tuple[int, ...] | list[int] = ()
    """Ids of those carriers of the opportunity whose congestion windows are to be halved."""
