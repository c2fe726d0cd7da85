"""Scenarios: reading, changing, comparing, refusing."""

import pickle
from pathlib import Path
from typing import Any

import anabranch as ab
import pytest

TABLE: dict[str, Any] = {
    "path": {"a": {"rate": "10mbit", "delay": "10ms"}, "b": {"rate": "5mbit", "delay": "30ms"}},
    "workload": [{"kind": "files", "size": "200KiB"}],
}


def test_a_change_makes_another_scenario() -> None:
    s = ab.scenario("wlan-lte")
    late = s.with_({"host.scheduler": "late"})
    assert s == ab.scenario("wlan-lte") and hash(s) == hash(ab.scenario("wlan-lte"))
    assert late != s and late.digest != s.digest and s.sets == []
    assert late.sets == ['host.scheduler="late"']
    assert len({s, late, ab.scenario("wlan-lte")}) == 2
    assert "wlan-lte (wlan, lte)" in repr(s) and "late" in repr(late)
    assert s.paths == ["wlan", "lte"] and "[path.lte]" in s.toml


def test_a_dict_is_a_scenario(tmp_path: Path) -> None:
    s = ab.scenario(TABLE)
    file = tmp_path / "same.toml"
    file.write_text(s.toml)
    assert ab.scenario(file) == s
    assert ab.scenario(file).run(seed=1).events_digest == s.run(seed=1).events_digest
    assert s.with_({"path.a.loss": "1%"}).sets == ['path.a.loss="1%"']


def test_a_wrong_name_is_shown_with_what_would_be_right() -> None:
    with pytest.raises(ab.ScenarioError) as caught:
        ab.scenario("wlan-lte").with_({"host.scheduler": "min-rt"})
    error = caught.value
    assert error.message == "there is no scheduler called `min-rt`"
    assert error.help is not None and error.help.startswith("did you mean `min-rtt`?")
    assert error.place is not None and "min-rt" in error.place
    assert error.message in str(error) and "did you mean" in str(error)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.message, again.help) == (str(error), error.message, error.help)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"path.lte.rat": "1mbit"}, "unknown key `rat`"),
        ({"path.lte.delay": "10"}, "10"),
        ({"path.lte.delay": 10}, "`10` has no unit"),
    ],
)
def test_wrong_keys_and_units_are_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ab.ScenarioError, match=said) as caught:
        ab.scenario("wlan-lte").with_(changes)
    assert caught.value.help


@pytest.mark.parametrize(
    ("source", "error", "said"),
    [
        ("no-such-scenario", ab.ScenarioError, "cannot read `no-such-scenario`"),
        (7, TypeError, "a name, a path or a dict"),
        ({"path": {"a": {"rate": object()}}}, TypeError, "`path.a.rate` is a object"),
        ({"path": {1: {}}}, TypeError, "`path` has the key 1"),
        ({"x": 2**80}, ValueError, "does not fit into 64 bits"),
        ({}, ab.ScenarioError, "missing"),
    ],
)
def test_what_is_no_scenario_is_refused(source: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        ab.scenario(source)


def test_calls_are_refused_with_what_would_be_right(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="repeat is 0; accepted: 1 to 100000"):
        ab.compare("wlan-lte", ["min-rtt"], repeat=0)
    with pytest.raises(ab.ScenarioError, match="is named twice"):
        ab.compare("wlan-lte", ["min-rtt", "min-rtt"], repeat=1)
    with pytest.raises(TypeError, match="7 is no scheduler; accepted: a name or a class"):
        ab.compare("wlan-lte", [7], repeat=1)  # type: ignore[list-item]
    no_capture = tmp_path / "x.pcap"
    no_capture.write_text("nothing")
    with pytest.raises(ValueError, match=r"x\.pcap"):
        ab.inspect(no_capture)
    with pytest.raises(ValueError, match="no capture is named"):
        ab.inspect()
    with pytest.raises(OSError, match="cannot write"):
        ab.scenario(TABLE).run().report(tmp_path / "no" / "such.html")
