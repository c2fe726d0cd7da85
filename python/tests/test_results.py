"""Tables, files, progress and interruption."""

from pathlib import Path

import anabranch as ab
import pandas
import polars
import pyarrow
import pytest
from conftest import interrupt


@pytest.fixture(scope="module")
def run() -> ab.Run:
    return ab.scenario("wlan-lte").run(seed=1)


def test_numbers_have_units_and_unknown_ones_are_refused(run: ab.Run) -> None:
    units = {it.name: it.unit for it in ab.statistics()}
    assert units["completion_s"] == "s" and units["goodput_bps"] == "bit/s"
    single = [it.name for it in ab.statistics() if "{}" not in it.name and not it.name.startswith("samples")]
    missing = [name for name in single if name not in dir(run)]
    assert missing == []
    with pytest.raises(AttributeError, match="a run has no `speed`; it has .*completion_s"):
        run.speed  # type: ignore[attr-defined]  # noqa: B018


def test_tables_are_taken_as_they_are(run: ab.Run) -> None:
    segments = run.segments
    by_polars, by_arrow = polars.DataFrame(segments), pyarrow.table(segments)
    by_pandas = segments.to_pandas()
    assert len(segments) == by_polars.height == by_arrow.num_rows == len(by_pandas) > 1000
    assert segments.columns == by_polars.columns == by_arrow.column_names == list(by_pandas.columns)
    # Of the first transmissions each path has the bytes that the run counts for it.
    first = by_polars.filter(polars.col("copy") == "new").group_by("path").agg(polars.col("length_bytes").sum())
    sums = dict(first.iter_rows())
    assert [sums[path] for path in ("wlan", "lte")] == run.path_bytes


def test_pandas_takes_rows(run: ab.Run) -> None:
    for table in (run.transfers, run.segments):
        rows, typed = pandas.DataFrame(table), table.to_pandas()
        assert list(rows.columns) == table.columns and len(rows) == len(table)
        pandas.testing.assert_frame_equal(rows, typed, check_dtype=False)
    assert next(iter(run.transfers)) == polars.DataFrame(run.transfers).row(0, named=True)


def test_the_module_shows_what_is_ours() -> None:
    assert {name for name in dir(ab) if not name.startswith("__")} == {*ab.__all__, "gym"}


def test_transfers_and_samples(run: ab.Run) -> None:
    transfers = polars.DataFrame(run.transfers)
    spans = (transfers["finished_s"] - transfers["started_s"]).to_list()
    assert sum(spans) / len(spans) == pytest.approx(run.completion_s, rel=1e-12)
    samples = polars.DataFrame(run.samples)
    assert samples["path"].unique().sort().to_list() == ["lte", "wlan"]
    assert samples["read_bytes"].max() == transfers["bytes"].sum()


def test_the_rows_of_a_comparison() -> None:
    calls: list[tuple[int, int]] = []
    comparison = ab.compare(
        "wlan-lte", ["min-rtt", "late"], repeat=3, progress=lambda done, total: calls.append((done, total))
    )
    rows = polars.DataFrame(comparison.runs)
    assert rows.height == 12 and calls[-1] == (12, 12) and calls == sorted(calls)
    mean = rows.filter(polars.col("name") == "late")["completion_s"].mean()
    ranked = {row["scheduler"]: row for row in comparison.ranking}
    assert mean == pytest.approx(ranked["late"]["value"]["mean"], rel=1e-12)
    assert "<td>late</td>" in comparison._repr_html_() and "plain TCP on lte" in comparison._repr_html_()
    assert "late" in str(comparison) and "2 schedulers, 3 runs each" in repr(comparison)


def test_a_bar_of_tqdm(capsys: pytest.CaptureFixture[str]) -> None:
    ab.compare("wlan-lte", ["min-rtt"], repeat=2, progress=True)
    assert "6/6" in capsys.readouterr().err


def test_files(run: ab.Run, tmp_path: Path) -> None:
    run.report(tmp_path / "run.html")
    assert (tmp_path / "run.html").read_text().lstrip().lower().startswith("<!doctype html>")
    run.write_pcap(tmp_path / "captures")
    captures = sorted((tmp_path / "captures").iterdir())
    assert captures and all(file.suffix == ".pcapng" for file in captures)
    inspected = ab.inspect(*captures)
    assert inspected.connections and "MPTCP" in str(inspected)
    ab.compare("wlan-lte", ["min-rtt", "late"], repeat=2).report(tmp_path / "compare.html")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["captures", "compare.html", "run.html"]


class StoppedCapture:
    """A run whose captures are interrupted when half of them is written."""

    def captures(self, directory: str) -> None:
        (Path(directory) / "client.pcapng").write_bytes(b"half")
        raise KeyboardInterrupt


def test_an_interrupt_ends_a_comparison() -> None:
    interrupt(lambda: ab.compare("wlan-lte", repeat=10_000))


def test_an_interrupt_ends_one_long_run_and_leaves_no_half_file(tmp_path: Path) -> None:
    long = {
        "path": {"a": {"rate": "900mbit", "delay": "5ms"}, "b": {"rate": "900mbit", "delay": "5ms"}},
        "workload": [{"kind": "bulk", "duration": "10000s"}],
        "run": {"stop": "10001s"},
    }
    interrupt(lambda: ab.scenario(long).run())
    bulk = ab.scenario("wlan-lte").run(seed=1)
    bulk._native = StoppedCapture()  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        bulk.write_pcap(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_failing_progress_ends_the_call() -> None:
    def fail(done: int, total: int) -> None:
        raise LookupError("for this test")

    with pytest.raises(LookupError, match="for this test"):
        ab.compare("wlan-lte", repeat=1000, progress=fail)


def test_the_build_is_that_of_the_package() -> None:
    assert len(ab.build()) == 16 and ab.scenario("wlan-lte").run(seed=1).build == ab.build()


def test_decisions_are_a_table_of_what_the_scheduler_answered() -> None:
    s = ab.scenario("wlan-lte")
    run = s.with_({"host.scheduler": "late"}).run(seed=1)
    decisions = pyarrow.table(run.decisions).to_pylist()
    assert {row["answer"] for row in decisions} == {"send", "wait"} and {row["host"] for row in decisions} == {"server"}
    assert all((row["subflow"] is None) == (row["answer"] == "wait") for row in decisions)
    sent = [row for row in decisions if row["answer"] == "send"]
    assert len({row["subflow"] for row in sent}) == 2 and any(row["skip_bytes"] == 0 for row in sent)
    new = [row for row in pyarrow.table(run.segments).to_pylist() if row["copy"] == "new"]
    # The engine chooses by itself while one subflow is usable.
    assert {row["at_s"] for row in sent} <= {row["at_s"] for row in new} and len(sent) < len(new)
    copies = pyarrow.table(s.with_({"host.scheduler": "redundant"}).run(seed=1).decisions).to_pylist()
    assert any(row["answer"] == "repeat" and row["copy_from_bytes"] >= 0 for row in copies)


def test_charts_are_vega_lite_and_those_of_the_page(tmp_path: Path) -> None:
    altair = pytest.importorskip("altair")
    comparison = ab.compare("lossy", ["min-rtt", "late"], repeat=3)
    assert list(comparison.figures) == ["ranking", "ranking-distribution", "differences", "shares", "blocked"]
    run = ab.scenario("lossy").run(seed=1)
    sweep = ab.sweep({"scenario": "lossy", "schedulers": ["min-rtt", "late"], "repeat": {"count": 2}})
    study = ab.study("late/fig10", quick=True, repeat=2)
    for result in (comparison, run, sweep, study):
        for figure in result.figures:
            altair.Chart.from_dict(result.chart(figure))  # It checks against the schema of Vega-Lite.
    first = comparison.chart()
    rows = {row["c"]: row["y"] for row in first["vconcat"][1]["data"]["values"]}
    means = {row["scheduler"]: row["value"]["mean"] for row in comparison.ranking}
    assert {name: rows[name] for name in means} == pytest.approx(means, rel=1e-5)
    assert first == comparison.chart("ranking") != comparison.chart("ranking", theme="dark")
    assert comparison.chart(width=300) != first != comparison.chart("shares")
    for wrong, said in [
        ({"figure": "rankin"}, "no figure called 'rankin'; accepted: 'ranking', 'ranking-distribution'"),
        ({"theme": "blue"}, "accepted: 'light' or 'dark'"),
        ({"width": 7}, "accepted: 100 to 10000 pixels"),
    ]:
        with pytest.raises(ValueError, match=said):
            comparison.chart(**wrong)  # type: ignore[arg-type]
