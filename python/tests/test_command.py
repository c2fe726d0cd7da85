"""Python's numbers are the command's, to the bit."""

from pathlib import Path
from typing import Any

import anabranch as ab
import pytest

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = sorted(path.stem for path in (ROOT / "scenarios").glob("*.toml"))


def same_but_for_the_build(document: dict[str, Any]) -> dict[str, Any]:
    """The command and the package are two programs: each names itself."""
    runs = [{**run, "build": ""} for run in document["runs"]]
    return {**document, "build": "", "runs": runs}


def test_scenarios_are_there() -> None:
    assert len(SHIPPED) >= 8


@pytest.mark.parametrize("name", SHIPPED)
def test_a_run_has_the_numbers_of_the_command(command: Any, name: str) -> None:
    ours = ab.scenario(name).run(seed=3)
    theirs = command("run", name, "--seed", "3")
    # Every number of JSON is read as the nearest double, by one reader: equality is equality of bits.
    assert same_but_for_the_build(ours.as_dict()) == same_but_for_the_build(theirs)
    for key, value in theirs["runs"][0].items():
        # `samples` of the JSON are in the table of that name, with more beside them.
        if key not in ("build", "samples"):
            assert getattr(ours, key) == value


def test_a_comparison_has_the_numbers_of_the_command(command: Any) -> None:
    ours = ab.compare("wlan-lte", ["min-rtt", "ecf:beta=0.5", "late"], repeat=5)
    theirs = command("compare", "wlan-lte", "--schedulers", "min-rtt,ecf:beta=0.5,late", "--repeat", "5")
    assert same_but_for_the_build(ours.as_dict()) == same_but_for_the_build(theirs)


def test_a_study_has_the_numbers_of_the_command(command: Any, tmp_path: Path) -> None:
    ours = ab.study("late/fig10", quick=True, repeat=2).as_dict()
    [theirs] = command("study", "late/fig10", "--quick", "--repeat", "2", "--out", str(tmp_path))
    told = {"build": "", "command": ""}
    assert ours["runs"] > 0 and {**ours, **told} == {**theirs, **told}


def test_threads_change_nothing() -> None:
    one, many = (ab.compare("lossy", ["min-rtt", "late"], repeat=3, jobs=jobs).as_dict() for jobs in (1, 4))
    assert one == many
