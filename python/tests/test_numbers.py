"""Attributes of a run as Python's types know them: written from the statistics by `BLESS=1 pytest test_numbers.py`."""

import os
import types
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import anabranch as ab
import pytest
from anabranch._numbers import Numbers
from test_command import SHIPPED

FILE = Path(__file__).resolve().parents[1] / "anabranch" / "_numbers.py"

OPTIONAL = {
    "completion_s",
    "completion_sd_s",
    "completion_p50_s",
    "completion_p90_s",
    "completion_p95_s",
    "completion_p99_s",
    "completion_p999_s",
    "page_load_s",
    "object_download_s",
    "goodput_bps",
    "mean_goodput_bps",
    "buffer_mean_segments",
    "buffer_sd_segments",
    "suspension_s",
    "autotuned_buffer_bytes",
}
"""Numbers that a run may not have."""

# Statistics with a column for each path, window or middlebox are lists in the JSON; those of `samples` and `decisions`
# are tables in Python.
LISTS = {
    "shares": ("list[float]", "share_{}", "for each path"),
    "path_bytes": ("list[int]", "path_bytes_{}", "for each path"),
    "path_segments": ("list[int]", "path_segments_{}", "for each path"),
    "path_goodput_bps": ("list[float | None]", "path_goodput_bps_{}", "for each path"),
}
OTHERS = {
    "links": ("list[dict[str, Any]]", "times in the queue of each link, what it dropped and marked, and that of its flows"),
    "middleboxes": ("list[dict[str, Any]]", "segments that each middlebox altered, dropped and made"),
    "version": ("str", "version of Anabranch"),
    "build": ("str", "digest of the build"),
    "scenario": ("str", "name of the scenario"),
    "digest": ("str", "digest of the scenario"),
    "windows": ("list[dict[str, Any]]", "the windows of `run.windows`, with goodput of all and of each path"),
}
DICTS = {"fallback_reasons", "reset_reasons", "reset_reasons_received", "overruled_kinds"}


def written() -> str:
    lines = [
        '"""Numbers of a run, one attribute each: written by tests/test_numbers.py from `anabranch.statistics()`."""',
        "",
        "from __future__ import annotations",
        "",
        "from typing import Any",
        "",
        "",
        "class Numbers:",
        '    """Statistics of a run by name. Those of which there are several are lists in the order of the paths."""',
        "",
    ]
    statistics = {it.name: it for it in ab.statistics()}
    rows = []
    for name, it in statistics.items():
        if "{}" not in name and not name.startswith("samples_") and name != "decisions":
            kind = "dict[str, int]" if name in DICTS else it.kind + " | None" * (name in OPTIONAL)
            rows.append((name, kind, it.about, it.unit))
    for name, (kind, column, each) in LISTS.items():
        rows.append((name, kind, f"{statistics[column].about}, {each}", statistics[column].unit))
    rows += [(name, kind, about, "") for name, (kind, about) in OTHERS.items()]
    for name, kind, about, unit in rows:
        text = (about[0].upper() + about[1:]).replace("\n", " ") + (f" [{unit}]" if unit else "") + "."
        lines += [f"    {name}: {kind}", f'    """{text}"""']
    return "\n".join(lines) + "\n"


def test_the_types_are_those_of_the_statistics() -> None:
    if os.environ.get("BLESS"):
        FILE.write_text(written())
    assert FILE.read_text() == written(), "remedy: BLESS=1 pytest tests/test_numbers.py"


def is_of(value: Any, kind: Any) -> bool:
    """True if a value of JSON is of a type as it is written here."""
    if kind is Any:
        return True
    if isinstance(kind, types.UnionType):
        return any(is_of(value, one) for one in get_args(kind))
    if get_origin(kind) is list:
        return isinstance(value, list) and all(is_of(one, get_args(kind)[0]) for one in value)
    if get_origin(kind) is dict:
        return isinstance(value, dict) and all(is_of(one, get_args(kind)[1]) for one in value.values())
    return type(value) is kind


@pytest.mark.parametrize("name", SHIPPED)
def test_each_run_has_what_its_types_say(name: str) -> None:
    run = ab.scenario(name).run(seed=1)
    hints = get_type_hints(Numbers)
    assert len(hints) > 40
    for key, kind in hints.items():
        assert is_of(getattr(run, key), kind), f"{key} is {getattr(run, key)!r}"
