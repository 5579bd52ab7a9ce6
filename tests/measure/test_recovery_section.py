"""The section recovery: its instants, its time in a plan, intervals of checkpoints, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamgauge.app.cli.planning import plan_of
from streamgauge.base.errors import UserError
from streamgauge.base.units import Duration
from streamgauge.bench.driver.system import Capabilities
from streamgauge.bench.faults.strike import spared
from streamgauge.bench.measure import timing
from streamgauge.bench.measure.cell_run import settings_hash
from streamgauge.bench.measurements import LONGEST, USUAL, Pace
from streamgauge.bench.measurements.recovery.section import Recovery
from streamgauge.bench.measurements.recovery.stage import checkpointing, instants
from streamgauge.catalog.stages import BY_NAME, stages_of
from streamgauge.config.systems import settings_of
from tests.measure.benches import CELL, write_bench
from tests.measure.recovering import bench_of


def test_instants_are_those_of_the_seed_and_differ_between_faults() -> None:
    section = Recovery(seconds=60, repeats=50)
    first = instants(section, "kill")
    assert first == instants(section, "kill")
    assert all(10 <= at_s <= 20 for at_s in first)
    assert len({*first, *instants(section, "cut"), *instants(section.model_copy(update={"seed": 2}), "kill")}) == 150


def test_a_fault_takes_two_minutes_at_most_where_the_file_says_nothing_else(tmp_path: Path) -> None:
    def seconds(*faults: str) -> int:
        section: dict[str, Any] = {"rate": 1.0}
        bench = write_bench(tmp_path, recovery=section | ({"faults": faults} if faults else {}))
        return round(timing.stage_seconds(BY_NAME["recovery"], bench.benchmark, USUAL) - 2 * USUAL.start_s)

    assert seconds("kill") <= 120
    assert seconds() <= 3 * 120
    once, twice = (bench_of(tmp_path, one).benchmark for one in ({}, {"checkpoint_intervals": ["1s", "5s"]}))
    longest_s = timing.stage_seconds(BY_NAME["recovery"], once)
    assert timing.stage_seconds(BY_NAME["recovery"], twice) == 2 * longest_s


def test_the_longest_time_of_a_recovery_holds_what_the_commands_of_a_job_may_take(tmp_path: Path) -> None:
    def seconds(pace: Pace, **faults: list[str]) -> float:
        job = {"name": "j", "engine": "job", "bootstrap": "b:1", "command": ["true"], "faults": faults}
        bench = write_bench(tmp_path, systems=[job], recovery={"rate": 1.0})
        return timing.stage_seconds(BY_NAME["recovery"], bench.benchmark, pace)

    declared = {"cut": ["true"], "heal": ["true"], "restart": ["true"]}
    assert seconds(LONGEST, **declared) - seconds(LONGEST) == 3 * (4 * 60 + 60)
    # a worker of it dies only then, and its group keeps it until the trial is over
    assert seconds(USUAL, **declared) - seconds(USUAL) == 3 * (60 - 40)


def test_faults_of_a_job_are_of_the_plan_of_its_recovery_alone(tmp_path: Path) -> None:
    def hashes(**keys: Any) -> list[str]:
        system = {"name": "known", "engine": "job", "bootstrap": "b:1", "command": ["true"], **keys}
        benchmark = write_bench(tmp_path, systems=[system]).benchmark
        return [settings_hash(benchmark, CELL, measurement=name) for name in ("", "soak", "recovery")]

    plain, declared = hashes(), hashes(faults={"kill": ["true"]})
    assert len({*plain, *declared[:2]}) == 1, "the search is not measured anew"
    assert declared[2] not in plain
    assert hashes(warm="1s")[0] not in plain


@pytest.mark.parametrize(
    ("engine", "keys", "changed"),
    [
        ("flink", {"conf": {"a.b": "1"}}, {"conf": {"a.b": "1", "execution.checkpointing.interval": "5000ms"}}),
        ("spark", {}, {"trigger": "5s"}),
        ("spark", {"mode": "real-time", "link": "jvm", "state_store": "rocksdb"}, None),
        ("known", {"commits": "answered"}, {"checkpoint": "5s"}),
        ("known", {}, None),
        ("job", {"bootstrap": "b:1", "command": ["run"]}, None),
    ],
)
def test_an_engine_has_an_interval_of_checkpoints_or_none(
    engine: str, keys: dict[str, Any], changed: dict[str, Any] | None
) -> None:
    system = settings_of(engine).model_validate({"name": "s", "engine": engine, **keys})
    [(interval, made)] = checkpointing(system, Recovery(checkpoint_intervals=(Duration.parse("5s"),))).items()
    assert interval == ("" if changed is None else "5s")
    given = {"name": "s", "engine": engine, **keys, **(changed or {})}
    assert made == settings_of(engine).model_validate(given)


def test_a_fault_that_an_adapter_does_not_declare_has_its_reason() -> None:
    declared = Capabilities(faults=frozenset({"kill"}), spared={"restart": "it has no worker"})
    assert [spared(declared, fault) for fault in ("kill", "restart", "cut")] == [
        "", "it has no worker", "its adapter does not declare this fault",
    ]  # fmt: skip


def test_its_stage_follows_its_section_and_its_time_is_in_the_plan(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, {"seconds": 40})
    assert "recovery" in [stage.name for stage in stages_of(bench.benchmark)]
    away_s = {"kill": 2, "restart": USUAL.start_s, "cut": 2}
    expected_s = pytest.approx(2 * USUAL.start_s + 3 * sum(10 + one + 3.5 for one in away_s.values()))
    assert timing.stage_seconds(BY_NAME["recovery"], bench.benchmark, USUAL) == expected_s
    assert "recovery" not in [stage.name for stage in stages_of(write_bench(tmp_path).benchmark)]


def test_a_trial_too_short_to_see_the_system_back_is_a_hint_of_check(tmp_path: Path) -> None:
    # away for 4 s; at half of its rate, 3.5 s more until no event waits for longer than 0.5 s; it stays for 3 s
    hint = "recovery.seconds: found {}, but systems.known is usually back {} s after a {}; from {} on, a trial sees it"
    system = {"name": "known", "engine": "known", "restart": "4s"}
    for section, hints in (
        ({"seconds": 15}, [hint.format(15, 7.5, "kill", 16)]),
        ({"seconds": 16}, []),
        ({"seconds": 10, "rate": 100}, [hint.format(10, 4, "kill", 11)]),
        ({"seconds": 12, "cut_seconds": 6, "rate": 100}, [hint.format(12, 6, "cut", 14)]),
    ):
        recovery = {"fraction": 0.5, "faults": ["kill", "cut"], "cut_seconds": 1, **section}
        bench = write_bench(tmp_path, systems=[system], search={"max_age": "500ms"}, recovery=recovery)
        assert plan_of(bench.benchmark, bench.store)["hints"] == hints


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ({"cut_seconds": 40}, "cut_seconds: found 40, allowed: less than 40, two thirds of `seconds`"),
        ({"faults": ["kill", "kill"]}, "faults: found kill, kill, allowed: each of them once"),
        ({"faults": ["quota"]}, "quota"),
        ({"checkpoint_intervals": ["1s", "20s"]}, "checkpoint_intervals: found 20s, allowed: from 0.1 s to 10 s"),
        ({"checkpoint_intervals": ["1s", "1000ms"]}, "checkpoint_intervals: found one of them twice"),
        ({"faults": []}, "faults"),
    ],
)
def test_a_wrong_section_is_one_line(tmp_path: Path, section: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError) as caught:
        bench_of(tmp_path, section)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
