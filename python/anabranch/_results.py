"""Results: runs, comparisons, studies, sweeps and captures."""

from __future__ import annotations

import html
import json
import os
import shutil
import tempfile
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from . import _native
from ._charts import specification
from ._native import Table
from ._numbers import Numbers

Path = str | os.PathLike[str]


class _Native(Protocol):
    def json(self) -> str: ...
    def text(self) -> str: ...
    def report(self, file: str) -> None: ...
    def charts(self) -> tuple[list[tuple[str, str]], str]: ...


N = TypeVar("N", bound=_Native)


class _Result(Generic[N]):
    """Results that the command prints as JSON, as text and as a page."""

    def __init__(self, native: N) -> None:
        self._native = native

    @cached_property
    def _document(self) -> dict[str, Any]:
        return self.as_dict()

    def as_dict(self) -> dict[str, Any]:
        """The JSON that the command prints of it with ``--json``."""
        return json.loads(self._native.json())  # type: ignore[no-any-return]

    def report(self, file: Path) -> None:
        """Writes the page of the command's ``--report``: one HTML file that needs no network."""
        self._native.report(os.fspath(file))

    @property
    def figures(self) -> dict[str, str]:
        """Figures of that page: the name that :meth:`chart` takes, and the title of each."""
        return dict(self._native.charts()[0])

    def chart(self, figure: str | None = None, *, width: int | None = None, theme: str = "light") -> dict[str, Any]:
        """A figure of that page as a Vega-Lite specification, with its data and its legend::

            altair.Chart.from_dict(comparison.chart("ranking"))

        It is made by the script of the page. Needs ``pip install 'anabranch[charts]'``.

        :param figure: one of :attr:`figures`; the first unless given.
        :param width: of the drawing, in pixels; 640 or what its panels need unless given.
        :param theme: ``"light"`` or ``"dark"``.
        :raises ValueError: for a figure that there is not.
        :raises ImportError: without mini-racer, which runs the script.
        """
        return specification(self._native.charts(), figure, width, theme)

    def __str__(self) -> str:
        """The text that the command prints of it."""
        return self._native.text()


class Run(_Result[_native.Run], Numbers):
    """One run of a scenario with one seed.

    Every number of the command's JSON is an attribute under its name: ``run.completion_s``, ``run.goodput_bps``,
    ``run.shares``. :func:`statistics` lists them with units and meaning; one that the run does not have is ``None``.
    ``run.samples`` and ``run.decisions`` are tables; what the JSON has under these names is in :meth:`as_dict`, with
    header and policies.
    """

    if not TYPE_CHECKING:  # A name that Numbers does not have is an error of types.

        def __getattr__(self, name: str) -> Any:
            if not name.startswith("_"):
                row = self._document["runs"][0]
                if name in row:
                    return row[name]
            raise AttributeError(f"a run has no `{name}`; it has {', '.join(sorted(self._document['runs'][0]))}")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._document["runs"][0]})

    @property
    def command(self) -> str:
        """The command that repeats the run."""
        return self._native.command

    @property
    def end_s(self) -> float:
        """Time of the run at which the last transfer was through, or at which it ended without [s]."""
        return self._native.end_s

    @property
    def transfers(self) -> Table:
        """One row per transfer: workload, label, connection, started_s, finished_s, bytes, asked_bytes."""
        return self._native.transfers()

    @property
    def segments(self) -> Table:
        """One row per segment with data: connection, at_s, path, first_byte, length_bytes, copy (new, retransmitted or
        reinjected) and lost. Runs once more to look."""
        return self._native.segments()

    @property
    def decisions(self) -> Table:
        """One row per answer of a scheduler, as it gave it and before the engine checked it: host, connection (in the
        order in which that host made their schedulers), at_s, answer (send, repeat or wait), subflow (its id),
        skip_bytes, copy_from_bytes (behind the first unacknowledged byte), until_s, unsent_bytes, sendable_bytes. Runs
        once more to look."""
        return self._native.decisions()

    @property
    def samples(self) -> Table:
        """One row per sample and path, every 5 ms or as often as 6000 samples allow: at_s, path, received_bytes,
        cwnd_bytes, queued_packets and, of all paths together, data_acked_bytes, read_bytes, ofo_segments,
        buffered_bytes. Runs once more to look."""
        return self._native.samples()

    def write_pcap(self, directory: Path) -> None:
        """Writes the captures of ``anabranch run --pcap`` into a directory, which is made if it is not there.

        They stand there only when they are complete: an interrupted call leaves nothing.
        """
        directory = os.fspath(directory)
        os.makedirs(directory, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=directory, prefix=".partial-") as unfinished:
            self._native.captures(unfinished)
            for name in sorted(os.listdir(unfinished)):
                shutil.move(os.path.join(unfinished, name), os.path.join(directory, name))

    def __repr__(self) -> str:
        return repr(self._native)


class Comparison(_Result[_native.Comparison]):
    """Schedulers over common seeds, ranked, with the best single path and the sum of the paths beside them.

    :meth:`as_dict` has header, summary and every run.
    """

    @property
    def summary(self) -> dict[str, Any]:
        """The measure that ranks and its unit, baselines, and ``ranking``: for each scheduler, the best first, its mean
        with a 95 % interval (``value``) and the paired differences ``to_reference`` (that of the summary) and
        ``to_best``."""
        summary: dict[str, Any] = self._document["summary"]
        return summary

    @property
    def ranking(self) -> list[dict[str, Any]]:
        """The rows of the ranking, the best first."""
        ranking: list[dict[str, Any]] = self.summary["ranking"]
        return ranking

    @property
    def runs(self) -> Table:
        """One row per run, baselines included: the columns of ``--csv``."""
        return self._native.runs()

    def __repr__(self) -> str:
        names = [row["scheduler"] for row in self.ranking]
        repeat = self.summary["repeat"]
        return f"<anabranch.Comparison of {len(names)} schedulers, {repeat} runs each; first: {names[0]}>"

    def _repr_html_(self) -> str:
        unit = self.summary["unit"]
        measure, reference = self.summary["measure"], self.summary["reference"]
        heads = ["#", "scheduler", f"{measure} [{unit}]", f"to {reference} [{unit}]", "p (Holm)"]
        rows = []
        for row in self.ranking:
            to = row["to_reference"]
            difference = "" if to is None else _estimate(to)
            p = "" if to is None or to["p_holm"] is None else f"{to['p_holm']:.2g}"
            rows.append([str(row["rank"]), row["scheduler"], _estimate(row["value"]), difference, p])
        for single in self.summary["singles"]:
            rows.append(["", f"plain TCP on {single['path']}", _estimate(single["value"]), "", ""])
        return _table(heads, rows)


class Study(_Result[_native.Study]):
    """A figure or table of a paper, run again, with a verdict on each statement of the paper.

    :meth:`as_dict` has figures as data, statements with verdicts, assumptions.
    """

    @property
    def statements(self) -> list[dict[str, Any]]:
        """Statements of the paper, each with its verdict."""
        statements: list[dict[str, Any]] = self._document["statements"]
        return statements

    @property
    def runs(self) -> Table:
        """One row per run, with the values of the axes: the columns of the study's CSV."""
        return self._native.runs()

    def __repr__(self) -> str:
        it = self._document
        return f"<anabranch.Study {it['name']}: {it['runs']} runs, {len(self.statements)} statements>"


class Sweep(_Result[_native.Sweep]):
    """A directory of results: every run of it, and their summary. Made by :func:`sweep` and :func:`load`.

    Rows are read from the directory when they are asked for. :meth:`as_dict` has the summary, without the version and
    build of who reads it.
    """

    def __init__(self, native: _native.Sweep, gone: tempfile.TemporaryDirectory[str] | None = None) -> None:
        super().__init__(native)
        self._gone = gone
        """The directory, if it goes with this object."""

    @property
    def manifest(self) -> dict[str, Any]:
        """Description of the sweep, from ``manifest.json``: version, build, command, axes, systems, the file."""
        return json.loads(self._native.manifest())  # type: ignore[no-any-return]

    @property
    def standings(self) -> list[dict[str, Any]]:
        """Ratios of each system's time to that of the best of all others; the best system first."""
        standings: list[dict[str, Any]] = self._document["standings"]
        return standings

    @property
    def runs(self) -> Table:
        """One row per run in the order of conditions: the columns that docs/sweeps.md describes. A run that broke has
        its reason in ``problem``."""
        return self._native.runs()

    def __repr__(self) -> str:
        it = self._document
        return f"<anabranch.Sweep: {it['rows']} runs of {it['done']} of {it['conditions']} conditions>"

    def _repr_html_(self) -> str:
        def ratio(of: dict[str, Any] | None) -> str:
            if of is None:
                return ""
            return f"{of['mean']:.3f}" + ("" if of["low"] is None else f" ({of['low']:.3f} to {of['high']:.3f})")

        def share(of: dict[str, Any] | None) -> str:
            return "" if of is None else f"{100 * of['share']:.0f} %"

        shares = ("within_2", "within_5", "within_20", "slower_than_single")
        rows = [
            [it["name"], ratio(it["to_best"]), ratio(it["to_single"]), *(share(it[key]) for key in shares)]
            for it in self.standings
        ]
        names = ["system", "time to the best other's", "to plain TCP's"]
        heads = [*names, "≤ 2 %", "≤ 5 %", "≤ 20 %", "slower than TCP"]
        return _table(heads, rows)


class Inspection:
    """Captures, analysed as ``anabranch inspect`` does."""

    def __init__(self, document: str, text: str) -> None:
        self._document: dict[str, Any] = json.loads(document)
        self._text = text

    def as_dict(self) -> dict[str, Any]:
        """Contents of the JSON of ``anabranch inspect --json``: without format, version and build."""
        return self._document

    @property
    def connections(self) -> list[dict[str, Any]]:
        """MPTCP connections that were found."""
        connections: list[dict[str, Any]] = self._document["connections"]
        return connections

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<anabranch.Inspection: {len(self.connections)} MPTCP connections>"


def _table(heads: list[str], rows: list[list[str]]) -> str:
    head = "".join(f"<th>{html.escape(text)}</th>" for text in heads)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(text)}</td>" for text in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _estimate(estimate: dict[str, Any]) -> str:
    half = estimate.get("half")
    return f"{estimate['mean']:.4g}" + ("" if half is None else f" ± {half:.2g}")
