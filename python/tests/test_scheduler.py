"""Schedulers in Python: the same as in Rust, and errors that name their cause."""

import re
from typing import Any

import anabranch as ab
import pytest


class MinRtt(ab.Scheduler):
    """The lowest SRTT with room."""

    def decide(self, now: float, view: ab.View) -> ab.Subflow | None:
        free = [subflow for subflow in view.subflows if subflow.has_room]
        return min(free, key=lambda subflow: subflow.srtt_s, default=None)


@pytest.mark.parametrize("name", ["wlan-lte", "asymmetric-10-100", "lossy"])
def test_min_rtt_in_python_is_min_rtt(name: str) -> None:
    s = ab.scenario(name)
    python, rust = (s.with_({"host.scheduler": which}).run(seed=1) for which in (MinRtt, "min-rtt"))
    assert python.events_digest == rust.events_digest
    assert python.overruled == 0
    other = s.with_({"host.scheduler": "redundant"}).run(seed=1)
    assert other.events_digest != rust.events_digest


def test_a_class_stands_where_a_name_does() -> None:
    comparison = ab.compare("wlan-lte", ["min-rtt", MinRtt], repeat=4, jobs=2)
    ranked = {row["scheduler"]: row for row in comparison.ranking}
    assert ranked["MinRtt"]["value"] == ranked["min-rtt"]["value"]
    assert ranked["MinRtt"]["to_reference"]["mean"] == 0.0
    by_dict = ab.scenario({**TABLE, "host": {"scheduler": MinRtt}}).run(seed=1)
    assert by_dict.finished


def test_systems_differ_in_any_settings() -> None:
    s = ab.scenario("lossy")
    systems: dict[str, dict[str, Any]] = {
        "reno": {"host.congestion": "reno"},
        "cubic, mine": {"host.congestion": "cubic", "host.scheduler": MinRtt},
        "short": {"host.receive-buffer": "128KiB"},
    }
    comparison = ab.compare(s, policies=systems, repeat=3, seed=5)
    assert comparison.summary["reference"] == "reno"
    ranked = {row["scheduler"]: row for row in comparison.ranking}
    assert set(ranked) == set(systems) and ranked["reno"]["to_reference"] is None
    for name, settings in systems.items():
        alone = [s.with_(settings).run(seed).completion_s or 0.0 for seed in (5, 6, 7)]
        assert ranked[name]["value"]["mean"] == pytest.approx(sum(alone) / 3, rel=1e-12)
    difference = ranked["short"]["value"]["mean"] - ranked["reno"]["value"]["mean"]
    assert ranked["short"]["to_reference"]["mean"] == pytest.approx(difference, rel=1e-9)
    assert "to reno [" in str(comparison) and 'cubic, mine (host.congestion="cubic"' in str(comparison)
    assert "to reno [s]" in comparison._repr_html_()
    with pytest.raises(ValueError, match="accepted: one of them"):
        ab.compare(s, ["min-rtt"], policies=systems)
    with pytest.raises(ValueError, match="policies is empty"):
        ab.compare(s, policies={})
    with pytest.raises(ab.ScenarioError, match="`reno` and `again` are the same system"):
        ab.compare(s, policies={"reno": systems["reno"], "again": systems["reno"]}, repeat=1)
    with pytest.raises(ab.ScenarioError, match="renno"):
        ab.compare(s, policies={"a": {"host.congestion": "renno"}}, repeat=1)


TABLE = {
    "path": {"a": {"rate": "10mbit", "delay": "10ms"}, "b": {"rate": "5mbit", "delay": "30ms"}},
    "workload": [{"kind": "files", "size": "200KiB"}],
}


def test_events_are_told_in_order_and_one_object_is_made_for_each_connection() -> None:
    made: list["Watching"] = []

    class Watching(ab.Scheduler):
        def __init__(self) -> None:
            self.events: list[tuple[float, str, int | None]] = []
            self.sent = 0
            made.append(self)

        def decide(self, now: float, view: ab.View) -> ab.Subflow | None:
            return view.fastest_with_room()

        def observe(self, now: float, event: ab.Event) -> None:
            self.events.append((now, event.kind, event.on))
            if event.kind == "sent":
                assert event.length_bytes is not None and event.dsn is not None
                self.sent += event.length_bytes

    run = ab.scenario("wlan-lte").with_({"host.scheduler": Watching}).run(seed=1)
    sender = max(made, key=lambda it: it.sent)
    assert len(made) >= 2 and sender.sent == sum(run.path_bytes)
    times = [now for now, _, _ in sender.events]
    assert times == sorted(times) and {"sent", "subflows-changed"} <= {kind for _, kind, _ in sender.events}


def test_an_exception_ends_the_run_with_its_traceback_and_the_time() -> None:
    class Broken(ab.Scheduler):
        def decide(self, now: float, view: ab.View) -> ab.Subflow:
            return view.subflows[17]

    with pytest.raises(ab.RunError) as caught:
        ab.scenario("wlan-lte").with_({"host.scheduler": Broken}).run(seed=1)
    said = caught.value.problem
    assert re.search(r"policy `Broken` failed \d+\.\d{9} s into the run", said)
    assert "Traceback" in said and "in decide" in said and "return view.subflows[17]" in said
    assert "IndexError: tuple index out of range" in said
    assert caught.value.command.startswith("anabranch run wlan-lte --seed 1")
    with pytest.raises(ab.RunError, match="IndexError"):
        ab.compare("wlan-lte", ["min-rtt", Broken], repeat=3)
    # The interpreter and the package go on.
    assert ab.scenario("wlan-lte").run(seed=1).finished


def test_nonsense_is_named() -> None:
    class Nonsense(ab.Scheduler):
        def decide(self, now: float, view: ab.View) -> ab.Subflow:
            return "lte"  # type: ignore[return-value]

    said = "`Nonsense.decide` returned 'lte'; accepted: a subflow of the view"
    with pytest.raises(ab.RunError, match=re.escape(said)):
        ab.scenario("wlan-lte").with_({"host.scheduler": Nonsense}).run(seed=1)


def test_what_cannot_be_done_is_overruled_and_counted() -> None:
    class Elsewhere(ab.Scheduler):
        def decide(self, now: float, view: ab.View) -> int:
            return 999

    class Waiting(ab.Scheduler):
        def decide(self, now: float, view: ab.View) -> ab.Decision:
            return ab.wait(now + 0.01)

    for idle in (Elsewhere, Waiting):
        run = ab.scenario("wlan-lte").with_({"host.scheduler": idle}).run(seed=1)
        assert run.finished and run.overruled > 0


def test_classes_that_are_no_schedulers_are_refused() -> None:
    class Lazy(ab.Scheduler):
        pass

    class NoArguments(ab.Scheduler):
        def __init__(self, needed: int) -> None:
            self.needed = needed

        def decide(self, now: float, view: ab.View) -> None:
            return None

    s = ab.scenario("wlan-lte")
    with pytest.raises(TypeError, match=re.escape("`Lazy` has no method decide(self, now, view)")):
        s.with_({"host.scheduler": Lazy})
    with pytest.raises(TypeError, match="`int` is no policy; accepted: a subclass of one of anabranch.Scheduler"):
        s.with_({"host.scheduler": int})
    with pytest.raises(ab.RunError, match="policy `NoArguments` failed: .*missing 1 required positional argument"):
        s.with_({"host.scheduler": NoArguments}).run(seed=1)
    other = type("MinRtt", (MinRtt,), {})
    with pytest.raises(ValueError, match="two classes are called `MinRtt`"):
        ab.compare(s, [MinRtt, other], repeat=1)
    with pytest.raises(ValueError, match="there is a scheduler called `late` already"):
        ab.compare(s, [type("late", (MinRtt,), {})], repeat=1)
    with pytest.raises(ValueError, match="until_s is -1"):
        ab.wait(-1.0)


def test_a_view_stays_what_it_was() -> None:
    kept: list[tuple[ab.View, int]] = []

    class Keeping(ab.Scheduler):
        def decide(self, now: float, view: ab.View) -> ab.Subflow | None:
            kept.append((view, view.unsent_bytes))
            return view.fastest_with_room()

    ab.scenario("wlan-lte").with_({"host.scheduler": Keeping}).run(seed=1)
    assert len(kept) > 100 and all(view.unsent_bytes == unsent for view, unsent in kept)
    first = kept[0][0]
    assert first.subflow(999) is None and "subflows" in repr(first) and "srtt" in repr(first.subflows[0])


def test_copies_and_chances() -> None:
    seeds: list[int] = []

    class Twice(ab.Scheduler):
        """Everything new on the fastest, and a copy of it on the other when nothing is new."""

        repeats = True

        def __init__(self) -> None:
            self.next_dsn = 0

        def seed(self, seed: int) -> None:
            seeds.append(seed)

        def observe(self, now: float, event: ab.Event) -> None:
            if event.kind == "repeated":
                assert event.dsn is not None and event.length_bytes is not None
                self.next_dsn = event.dsn + event.length_bytes

        def decide(self, now: float, view: ab.View) -> ab.Subflow | ab.Decision | None:
            if view.sendable_bytes:
                return view.fastest_with_room()
            for subflow in view.subflows:
                start = max(self.next_dsn, view.data_una)
                if subflow.has_room_to_repeat and start < view.unsent_from:
                    return ab.repeat(subflow.id, start)
            return None

    class Once(Twice):
        repeats = False

    s = ab.scenario("wlan-lte").with_({"host.reinjection": "none", "run.spread": "0s"})
    twice, once = (s.with_({"host.scheduler": which}).run(seed=1) for which in (Twice, Once))
    assert twice.duplicate_bytes > once.duplicate_bytes
    half = len(seeds) // 2
    assert seeds[:half] == seeds[half:] and len(set(seeds)) == half >= 2 and all(0 <= seed < 2**64 for seed in seeds)
    again = list(seeds)
    seeds.clear()
    for which in (Twice, Once):
        s.with_({"host.scheduler": which}).run(seed=1)
    assert seeds == again
