"""Trials of a cell: what dies makes its trial invalid, is replaced, and the next trial counts every event once."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import psutil
import pytest

from streamgauge.base.errors import Outage, UserError
from streamgauge.base.histogram import Histogram
from streamgauge.bench.driver.observed import TrialRun
from streamgauge.bench.engines.known.known_system import KnownSystem
from streamgauge.bench.engines.known.settings import KnownSettings
from streamgauge.bench.measure.cell import ReadyCell, ready
from streamgauge.bench.measurements.latency.stage import figures_of
from streamgauge.bench.search.steps import Hold
from streamgauge.bench.search.verdict import is_clear, judge
from streamgauge.config import Cell, load
from streamgauge.records.measurement import Window
from streamgauge.records.trial import Details, TrialResult
from tests.measure.benches import CELL, Bench, write_bench
from tests.told import extra


class Once(KnownSystem):
    """A system whose machine is full after the first start."""

    starts: ClassVar[list[bool]] = []

    def start(self) -> None:
        self.starts.append(not self.starts)
        if not self.starts[-1]:
            raise UserError("no room for it")


class OnceSettings(KnownSettings):
    adapter = f"{__name__}:Once"


def children(module: str) -> list[psutil.Process]:
    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # it has ended
            if process.status() != psutil.STATUS_ZOMBIE and module in process.cmdline():
                found.append(process)
    return found


NO_WARMUP = {"warmup_seconds": 0}
#: the module that the known system's process runs
KNOWN = "streamgauge.bench.engines.known.process"


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return write_bench(tmp_path, search=NO_WARMUP)


@pytest.fixture
def cell(bench: Bench, tmp_path: Path) -> Iterator[ReadyCell]:
    with ready(bench.benchmark, bench.store, CELL, tmp_path / "work") as made:
        yield made
    assert children("streamgauge.bench.driver") == children(KNOWN) == []


def counted_once(measured: TrialResult, events: int) -> None:
    details = measured.details
    assert measured.observation.invalid is None
    assert measured.observation.offered == measured.observation.taken == details["emitted"] == events
    apart = details["outside_event_latency_ns"]["count"]
    answered = extra(details["system"], "rows") - 1  # without the sentinel
    assert details["event_latency_ns"]["count"] + apart == answered == events


def test_a_fresh_system_warms_up_and_a_warm_one_does_not(tmp_path: Path) -> None:
    bench = write_bench(tmp_path, capacity=4000, search={"warmup_seconds": 1, "max_age": "1s"})
    with ready(bench.benchmark, bench.store, CELL, tmp_path / "work") as cell:
        began = time.monotonic()
        cell.trial(200, 0.5, token=1)
        cold = time.monotonic() - began
        began = time.monotonic()
        cell.trial(200, 0.5, token=1)
        warm = time.monotonic() - began
    assert cold - warm > 1


def test_a_window_that_breaks_is_invalid_and_the_next_has_a_new_system(cell: ReadyCell) -> None:
    step = Hold(1, "ladder", 100, "as told", 0.3, 1.0)
    assert cell.window(step, token=1).invalid is None
    assert cell.running
    [victim] = children(KNOWN)
    victim.kill()
    broken = cell.window(step, token=1)
    assert (broken.batches, broken.invalid) == ((), "system known ended with -9: no error output")
    assert cell.window(step, token=1).invalid is None


def test_what_ran_and_does_not_start_again_is_an_outage_and_no_mistake(tmp_path: Path) -> None:
    bench = write_bench(tmp_path, search=NO_WARMUP)
    once = OnceSettings.model_validate(bench.benchmark.systems[0].model_dump())
    benchmark = bench.benchmark.model_copy(update={"systems": (once,)})
    with ready(benchmark, bench.store, CELL, tmp_path / "work") as cell:
        cell.trial(100, 0.2, token=1)
        cell.stop()
        with pytest.raises(Outage, match="it started before with these settings, but failed to start again: no room"):
            cell.trial(100, 0.2, token=1)
    with (
        ready(benchmark, bench.store, CELL, tmp_path / "work") as cell,
        pytest.raises(UserError, match=r"^no room for it$"),
    ):
        cell.trial(100, 0.2, token=1)
    assert Once.starts == [True, False, False]


def trial_with_a_kill(cell: ReadyCell, module: str) -> TrialResult:
    def kill() -> None:
        while not children(KNOWN):
            time.sleep(0.05)
        time.sleep(1.5)
        [victim] = children(module)
        victim.kill()

    killer = threading.Thread(target=kill)
    killer.start()
    measured = cell.trial(1000, 60, token=1)
    killer.join()
    return measured


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        (KNOWN, r"system known ended with -9: no error output"),
        ("streamgauge.bench.driver", r"driver process 0 \(pid \d+\) ended with -9: its measurements are lost"),
    ],
)
def test_whatever_is_killed_the_trial_is_invalid_and_the_next_one_whole(
    cell: ReadyCell, module: str, reason: str
) -> None:
    killed = trial_with_a_kill(cell, module)
    assert killed.outcome == "inconclusive"
    assert killed.reason == f"invalid trial: {killed.observation.invalid}"
    assert re.fullmatch(reason, str(killed.observation.invalid))
    counted_once(cell.trial(1000, 0.5, token=1), 500)


def test_a_record_is_a_json_line_with_all_that_the_search_needs(cell: ReadyCell) -> None:
    record = cell.trial(2000, 0.5, token=1)
    again = json.loads(json.dumps(record.to_json()))
    assert TrialResult.of(again, "a line") == record
    assert (again["rate_events_per_s"], again["seconds"], again["correct"]) == (2000, 0.5, None)
    assert again["observation"]["offered"] == 1000
    assert again["observation"]["invalid"] is None
    assert again["details"]["slip_ns"]["count"] >= 1000
    assert {"outcome", "reason", "figures"} <= set(again)
    assert not list((cell._work).glob("trial-*"))  # checkpoints are no results


def run_of(measured: TrialResult, details: Details) -> TrialRun:
    """The run of a trial, had it had those details."""
    return TrialRun(measured.observation, details, Histogram(), Histogram())


def test_what_was_not_worked_off_is_no_proof(tmp_path: Path) -> None:
    """A trial that is cut short by its patience was not checked: it may not count as sustained."""
    bench = write_bench(tmp_path, search=NO_WARMUP)
    with ready(bench.benchmark, bench.store, CELL, tmp_path / "work") as cell:
        measured = cell.trial(2000, 2, token=1)
    assert (measured.outcome, measured.observation.invalid) == ("sustainable", None)
    found = cell._judged(run_of(measured, {**measured.details, "drained": False}), None)
    said = "the system did not end its work in time"
    assert (found.outcome, found.observation.invalid) == ("inconclusive", said)


def test_latency_of_full_queues_is_void(cell: ReadyCell) -> None:
    """The rows that wait longest in the queues were never answered, so every percentile would be too low."""
    measured = cell.trial(2000, 0.5, token=1)
    assert figures_of(1.0, measured).valid
    overflown = replace(measured.observation, overflow=True)
    verdict = judge(overflown, cell.plan.search)
    full = measured.model_copy(update={"observation": overflown, **vars(verdict)})
    undrained = measured.model_copy(update={"details": {**measured.details, "drained": False}})
    for cut in (full, undrained):
        figures = figures_of(1.0, cut)
        said = f"its last events were not answered: {cut.reason}"
        assert (figures.valid, figures.outcome, figures.reason) == (False, cut.outcome, said)


def test_answers_that_did_not_come_out_in_time_are_not_called_wrong(cell: ReadyCell) -> None:
    measured = cell.trial(2000, 1, token=1)
    system: Any = {**measured.details["system"], "drained": False, "check": {"wrong": "rows are missing"}}
    late = cell._judged(run_of(measured, {**measured.details, "system": system}), None)
    assert (late.check, late.details["drained"]) == (None, False)


@pytest.mark.parametrize("handed_on", [True, False])
def test_a_trial_does_not_end_before_the_link_has_handed_on_the_backlog(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, handed_on: bool
) -> None:
    monkeypatch.setattr(KnownSystem, "handed_on", lambda _: handed_on, raising=False)
    bench = write_bench(tmp_path, capacity=20_000, search=NO_WARMUP)
    with ready(bench.benchmark, bench.store, CELL, tmp_path / "work") as cell:
        found = cell.trial(1000, 4, token=1, behind_s=1, until=partial(is_clear, search=bench.benchmark.search))
    assert (found.observation.clock[-1].at_s < 3) == handed_on


def test_a_system_whose_warm_up_fails_twice_is_cold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = write_bench(tmp_path, search={"warmup_seconds": 1, "max_age": "1s"})
    asked: list[int] = []
    window = ReadyCell.window

    def broken(self: ReadyCell, step: Hold, *, token: int) -> Window:
        asked.append(step.rows)
        found = window(self, step, token=token)
        return replace(found, invalid="it was slow") if len(asked) <= 4 else found

    monkeypatch.setattr(ReadyCell, "window", broken)
    with ready(bench.benchmark, bench.store, CELL, tmp_path / "work") as cell:
        said = "the system is cold, as its warm-up failed twice: it was slow"
        for windows in (2, 4):
            assert cell.trial(200, 0.5, token=1).observation.invalid == said
            assert len(asked) == windows
            assert cell.running, "the same process stays cold for the next trial"
        assert cell.trial(200, 0.5, token=1).observation.invalid is None


def test_each_run_gives_the_named_ids_a_round_of_their_own(bench: Bench, tmp_path: Path) -> None:
    replay = bench.benchmark.replay.model_copy(update={"ids": ("flight",)})
    keyed = bench.benchmark.workloads[0].model_copy(update={"key": "flight"})
    benchmark = bench.benchmark.model_copy(update={"replay": replay, "workloads": (keyed,)})
    with ready(benchmark, bench.store, CELL, tmp_path / "work") as cell:
        found = [cell.trial(500, 0.3, token=1).details["drivers"][0] for _ in range(2)]
    assert [(sorted(one["ids"]), one["round"]) for one in found] == [(["flight"], 2), (["flight"], 4)]


def test_what_is_missing_is_told_before_anything_starts(bench: Bench, tmp_path: Path) -> None:
    def refused(cell: Cell, **change: Any) -> str:
        benchmark = load(bench.file).model_copy(update=change)
        with pytest.raises(UserError) as told, ready(benchmark, bench.store, cell, tmp_path):
            pass
        return str(told.value)

    other = CELL.model_copy(update={"workload": "none"})
    assert refused(other) == "cell: found 'e.none.known', allowed: e.all.known"
    assert "no finished stream there; run the stage generate first" in refused(CELL, scale=0.5)
    keyless = bench.benchmark.workloads[0].model_copy(update={"query": "windowed_join"})
    assert refused(CELL, workloads=(keyless,)) == (
        "workloads.all.key: windowed_join needs it; name one of carrier, flight"
    )
    assert children("streamgauge.bench.driver") == []


def test_a_ladder_goes_on_where_the_times_of_a_query_run_out(tmp_path: Path) -> None:
    """58 loops of a stream of five years fit into 64 bits of nanoseconds; these windows take more."""
    ms = [*range(1999), 5 * 365 * 86_400_000]
    bench = write_bench(tmp_path, capacity=40_000, ms=ms, search=NO_WARMUP)
    with ready(bench.benchmark, bench.store, CELL, tmp_path / "work") as cell:
        windows = []
        for _ in range(18):
            step = Hold(1, "ladder", 3000, "", 0.0, 0.0)
            windows.append(cell.window(step, token=1))
    assert [window.invalid for window in windows] == [None] * 18
    assert sum(window.rows for window in windows) > 58 * 2000
