"""Tests which processes are measured, and for how long, by processes that are made up and a clock that is virtual."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from streamgauge.app.gate import pairs, verdict
from streamgauge.app.gate.pairs import Pairs
from streamgauge.base.errors import UserError
from streamgauge.bench.measure.speed import Speed
from streamgauge.catalog.artifacts import Store
from streamgauge.config import Benchmark, load
from streamgauge.records.gate import GateRepetition
from streamgauge.records.release import Reason, Side
from tests.gate.repositories import benchmark

SPEED_S, TRIAL_S = 10.0, 20.0
SOUND = Speed(1000, 500)


@dataclass(frozen=True)
class Made:
    """A process. died: why, in its last trial, or among waiting events where `fast` is void."""

    fast: Speed = SOUND
    outcome: str = "sustainable"
    compared: bool = True
    died: str | None = None
    died_first: bool = False  # of its trials, only the first one has killed it
    driver: str | None = None  # why its driver died, too


OK = Made()
DIES = Made(Speed(None, 1, "it ended with 137"), died="it ended with 137")
HANGS = Made(Speed(None, 500, "a window was not long enough", stuck=True))
DIES_AT_RATE = Made(compared=False, outcome="inconclusive", died="it ended with 1")
DIES_IN_THE_FIRST = replace(DIES_AT_RATE, died_first=True)
Measure = Callable[..., tuple[list[Reason], list[GateRepetition]]]


def sides_of(place: Path, gate: dict[str, object] | None = None) -> dict[Side, Benchmark]:
    """The benchmark of each side; those of the head have another capacity."""
    sides: dict[Side, Benchmark] = {}
    capacities: dict[Side, int] = {"baseline": 20_000, "candidate": 1000}
    for side, capacity in capacities.items():
        (place / "mine.yaml").write_text(benchmark(gate, capacity=capacity))
        sides[side] = load(place / "mine.yaml")
    return sides


@pytest.fixture
def measure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Measure:
    """Runs a gate of these processes; each side goes on with sound ones. Returns reasons and repetitions."""

    def run(
        base: Sequence[Made] = (), head: Sequence[Made] = (), *, budget_s: float = 600, **gate: object
    ) -> tuple[list[Reason], list[GateRepetition]]:
        now, made, held = [0.0], {20_000: iter(base), 1000: iter(head)}, list[int]()

        @contextmanager
        def ready(benchmark: Benchmark, *_: object) -> Iterator[SimpleNamespace]:
            one = next(made[(benchmark.systems[0].model_extra or {})["capacity"]], OK)
            trials = iter([one, *[OK if one.died_first else one] * 9])

            def trial(*_: object, **__: object) -> SimpleNamespace:
                now[0] += TRIAL_S
                this = next(trials)
                bench.running = this.died is None
                check = {"wrong": None} if this.compared else None
                why, seen = this.died or "why", SimpleNamespace(invalid=this.died)
                return SimpleNamespace(
                    outcome=this.outcome, check=check, failure=this.died or "", observation=seen, reason=why, why=why
                )

            fleet = SimpleNamespace(dead=lambda: one.driver)
            bench = SimpleNamespace(one=one, trial=trial, running=one.died is None, fleet=fleet)
            yield bench

        def speed(bench: SimpleNamespace, _search: object, _seconds: float, rows: int, _token: int) -> Speed:
            now[0] += SPEED_S
            held.append(rows)
            fast: Speed = bench.one.fast
            return fast

        monkeypatch.setattr(pairs, "ready", ready)
        monkeypatch.setattr(pairs, "speed", speed)
        monkeypatch.setattr(pairs, "time", SimpleNamespace(monotonic=lambda: now[0]))
        of_gate = Pairs.of(tmp_path, "key")
        sides = sides_of(tmp_path, gate)
        reasons, _ = pairs.Measuring(sides, Store(tmp_path), of_gate, tmp_path / "work", budget_s).run([], 0)
        assert set(held[1:]) <= {0, 500}  # what waits for a process that is void suits no other
        return reasons, of_gate.repetitions

    return run


def test_a_head_that_misses_the_rate_is_no_go_only_after_the_base_was_asked_again(measure: Measure) -> None:
    reasons, lines = measure(head=[Made(outcome="unsustainable")] * 2)
    why = "the head misses gate.rate in 2 of 2 trials, and the base in 0 of 2"
    assert reasons == [Reason("performance", "failed", "e.all", why)]
    asked = [(one.side, one.asked) for one in lines]
    assert asked == [("baseline", True), ("candidate", True), ("candidate", True), ("baseline", True)]


def test_a_head_that_misses_the_rate_is_asked_again_though_all_series_have_passed(measure: Measure) -> None:
    """The base's first trials are not clear, so only its fifth one tells that the head is to blame."""
    base = [Made(outcome="inconclusive")] * 3
    reasons, lines = measure(base=base, head=[Made(outcome="unsustainable")] * 5)
    why = "the head misses gate.rate in 4 of 4 trials, and the base in 0 of 2"
    assert reasons == [Reason("performance", "failed", "e.all", why)]
    assert max(one.round for one in lines) == 5


@pytest.mark.parametrize("dies", [DIES, DIES_AT_RATE, HANGS, DIES_IN_THE_FIRST])
def test_a_head_that_dies_twice_in_a_row_is_no_go(measure: Measure, dies: Made) -> None:
    reasons, lines = measure(head=[dies, dies])
    why = f"2 of 2 processes did not run, and the base's did: {dies.died or dies.fast.void}"
    assert Reason("output", "failed", "e.all, head", why) in reasons
    assert [(one.side[0], one.ran) for one in lines] == [("b", True), ("c", False), ("c", False)]


def test_a_head_that_dies_once_is_measured_again_and_counted(measure: Measure) -> None:
    reasons, lines = measure(head=[OK, DIES])
    why = "1 of 4 processes did not run, and the base's did: it ended with 137"
    assert reasons == [Reason("output", "note", "e.all, head", why)]
    assert "".join(one.side[0] for one in lines) == "bcccbbc"


def test_a_head_that_dies_as_the_base_does_is_not_blamed(measure: Measure) -> None:
    reasons, lines = measure(base=[OK, DIES], head=[OK, OK, DIES])
    assert reasons == []
    assert [one.round for one in lines if one.side == "candidate" and one.is_sound] == [1, 2, 4]
    assert [one.ran for one in lines if one.void] == [False, True]


def test_a_head_whose_driver_dies_is_not_blamed(measure: Measure) -> None:
    reasons, lines = measure(head=[OK, *[replace(DIES, driver="a driver died")] * 2])
    assert reasons == []
    assert all(one.ran for one in lines)


def test_processes_that_do_not_count_are_a_note(tmp_path: Path) -> None:
    of_gate = Pairs.of(tmp_path, "key")
    assert of_gate.left_out() == []
    died, slipped, missing = ("it ended with 1", False), ("it slipped", True), ("no license", False)
    for side, (void, ran) in (("baseline", died), ("candidate", slipped), ("candidate", missing)):
        about = {"gate": "key", "cell": "e.all", "side": side, "round": 1, "values": {}, "seconds": 1.0}
        of_gate.add(GateRepetition.model_validate({**about, "void": void, "ran": ran}))
    why = "2 of 3 processes do not count; the last one, of the head: it slipped"
    assert of_gate.left_out() == [Reason("performance", "note", "processes", why)]


def test_a_first_process_that_dies_leaves_its_load_to_none(measure: Measure) -> None:
    reasons, _ = measure(base=[DIES])
    assert reasons == []


def test_cpu_time_that_the_head_alone_does_not_tell_is_a_line_and_no_verdict(measure: Measure) -> None:
    with pytest.raises(UserError, match=r"gate\.compare: job tells no CPU time"):
        measure(base=[Made(Speed(1000, 500, None, 4.0))] * 9, compare=["speed", "cpu"])


def test_a_pair_that_asks_again_is_measured_only_if_its_trials_fit_into_the_budget(measure: Measure) -> None:
    unchecked = [Made(compared=False)] * 9
    reasons, lines = measure(base=unchecked, head=unchecked, budget_s=150)
    assert [one.seconds for one in lines] == [SPEED_S + 2 * TRIAL_S] * 2
    assert [one.state for one in reasons] == ["open", "open"]


def test_settings_that_differ_are_named_and_folders_of_checkouts_are_not(tmp_path: Path) -> None:
    checkouts: dict[Side, Path] = {"baseline": tmp_path / "base", "candidate": tmp_path / "head"}
    sides = {}
    for side, benchmark_ in sides_of(tmp_path).items():
        system = benchmark_.systems[0]
        own = {**(system.model_extra or {}), "directory": str(checkouts[side]), "jar": f"{checkouts[side]}/a.jar"}
        changed = system.model_copy()
        changed.__pydantic_extra__ = own
        sides[side] = benchmark_.model_copy(update={"systems": (changed,)})
    assert verdict.differing(sides, checkouts, "job") == ["capacity"]
