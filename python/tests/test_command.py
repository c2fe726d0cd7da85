"""Python's numbers are the command's, to the bit."""

import importlib.metadata
import re
from pathlib import Path
from typing import Any

import anabranch as ab
import pyarrow
import pytest
from conftest import ROOT

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
        # In Python `samples` and `decisions` are tables, with more in them.
        if key not in ("build", "samples", "decisions"):
            assert getattr(ours, key) == value


def test_a_comparison_has_the_numbers_of_the_command(command: Any) -> None:
    ours = ab.compare("wlan-lte", ["min-rtt", "ecf:beta=0.5", "late"], repeat=5)
    theirs = command("compare", "wlan-lte", "--schedulers", "min-rtt,ecf:beta=0.5,late", "--repeat", "5")
    assert same_but_for_the_build(ours.as_dict()) == same_but_for_the_build(theirs)


def test_a_study_has_the_numbers_of_the_command(command: Any, tmp_path: Path) -> None:
    ours = ab.study("late/fig10", quick=True, repeat=2).as_dict()
    [theirs] = command("study", "late/fig10", "--quick", "--repeat", "2", "--out", str(tmp_path))["studies"]
    told = {"build": "", "command": ""}
    assert ours["runs"] > 0 and {**ours, **told} == {**theirs, **told}


SWEEP = """
scenario = "lossy"
schedulers = ["min-rtt", "late"]
metrics = ["completion-time"]
set = ["workload.0.size=200kB"]
repeat = { count = 2 }

[[axis]]
key = "path.clean.delay"
values = ["5ms", "50ms"]
"""


def test_a_directory_of_results_is_what_the_command_says_of_it(command: Any, tmp_path: Path) -> None:
    (tmp_path / "sweep.toml").write_text(SWEEP)
    theirs = command("sweep", str(tmp_path / "sweep.toml"), "--out", str(tmp_path / "kept"))
    loaded = ab.load(tmp_path / "kept")
    # The command names itself as well.
    own = {key: theirs[key] for key in ("format", "format_version", "version", "build")}
    assert {**own, **loaded.as_dict()} == theirs
    table = pyarrow.table(loaded.runs)
    assert table.num_rows == theirs["rows"] == 8
    assert table["time_s"].to_pylist() == table["completion-time"].to_pylist()
    # The rows are the command's, and say so.
    assert set(table["build"].to_pylist()) == {loaded.manifest["build"]} != {ab.build()}
    loaded.report(tmp_path / "sweep.html")
    assert "late" in (tmp_path / "sweep.html").read_text()


def test_what_is_no_directory_of_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"is no directory of results: there is no manifest\.json; accepted:"):
        ab.load(tmp_path)


def test_threads_change_nothing() -> None:
    one, many = (ab.compare("lossy", ["min-rtt", "late"], repeat=3, jobs=jobs).as_dict() for jobs in (1, 4))
    assert one == many


def test_crates_package_and_citation_have_one_version(command: Any) -> None:
    of_crates = re.search(r'^version = "(.*)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    cited = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert of_crates is not None and cited is not None
    wheel = importlib.metadata.version("anabranch")
    assert {of_crates[1], cited[1], wheel, command("run", "wlan-lte")["version"]} == {ab.__version__}
