"""Targets: `init` writes those that a file's own disorder allows, and `check` refuses those that cannot be met."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import yaml

from streamgauge import config
from streamgauge.base.jsonl import write_json
from streamgauge.catalog.artifacts import Store
from streamgauge.streams.keys import profile_key, stream_key
from streamgauge.streams.stages import reach
from tests.command import Answer, Call, run
from tests.example_run import profile
from tests.oracle import naive

WAYS_OUT = "choose order: event_time to begin with events in order, target: source to take them as they came, or a"
#: event times in seconds, as they lie in a file of a column t
IN_ORDER = list(range(1_700_000_000, 1_700_000_400))
NEWEST_FIRST = IN_ORDER[::-1]
CONSTANT = [1_700_000_000] * 400
ONE_AHEAD = [1_700_900_000, *IN_ORDER]


def call(*words: object) -> Answer:
    return run(Call([str(word) for word in words]))


def some_late(percent: int) -> list[int]:
    """Times of which exactly that many percent lie below the largest before them."""
    late = set(random.Random(7).sample(range(2, 400), 4 * percent))
    return [time - 400 if n in late else time for n, time in enumerate(IN_ORDER)]


def written(folder: Path, times: list[int]) -> Path:
    (folder / "f.csv").write_text("t\n" + "".join(f"{time}\n" for time in times))
    return folder / "f.csv"


def begun(folder: Path, times: list[int]) -> tuple[Answer, dict[str, Any]]:
    """Returns output and file of init; asserts that check accepts the file without a doubt."""
    told = call("init", written(folder, times), "--out", folder / "b.yaml")
    assert told.code == 0, told.err
    plan = call("check", folder / "b.yaml", "--artifacts", folder / "a", "--json").json
    assert plan["sample"]["doubts"] == []
    return told, yaml.safe_load((folder / "b.yaml").read_text())


@pytest.mark.parametrize(
    ("times", "out_of_order", "order", "experiments"),
    [
        (IN_ORDER, 0, None, {"as_it_came": "source", "late20": 20}),
        (some_late(9), 36, None, {"as_it_came": "source", "late20": 20}),
        (some_late(16), 64, None, {"as_it_came": "source", "late50": 50}),
        (some_late(60), 240, "event_time", {"ordered": 0, "late20": 20}),
        (NEWEST_FIRST, 399, "event_time", {"ordered": 0, "late20": 20}),
        (ONE_AHEAD, 400, "event_time", {"ordered": 0, "late20": 20}),
        (CONSTANT, 0, None, {"as_it_came": "source"}),
    ],
)
def test_init_writes_what_can_be_met_and_says_what_it_measured(
    tmp_path: Path, times: list[int], out_of_order: int, order: str | None, experiments: dict[str, Any]
) -> None:
    told, benchmark = begun(tmp_path, times)
    assert benchmark["source"].get("order") == order
    assert {e["name"]: e.get("target", e.get("target_percent")) for e in benchmark["experiments"]} == experiments
    found = f"{out_of_order} of all {len(times)} events ({100 * out_of_order / len(times):.4g} %) are out of order"
    assert f"disorder  {found}\n" in told.out
    assert f"# a stream each; in the file, {found}\n" in (tmp_path / "b.yaml").read_text()
    assert "batch_rows" not in benchmark["systems"][0]


def test_init_hints_at_what_lies_beyond_the_first_lines(tmp_path: Path) -> None:
    times = list(range(1_700_000_000, 1_700_003_000))
    times[1200] += 30 * 86_400
    told, benchmark = begun(tmp_path, times)
    assert "disorder  1,799 of all 3,000 events (59.97 %) are out of order" in told.out
    assert "hint      1 event (line 1,202) is ahead, by " in told.out
    assert benchmark["source"]["order"] == "event_time"


def test_of_a_large_file_only_the_first_lines_tell_and_the_closest_target_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reach, "SMALL_BYTES", 100)
    times = [time + 400 * n for n in range(4) for time in some_late(9)]
    told, benchmark = begun(tmp_path, times)
    own = sum(naive.out_of_order(times[:1000]))
    assert f"disorder  {own} of the first 1,000 events ({own / 10:.4g} %) are out of order" in told.out
    assert [e.get("on_infeasible") for e in benchmark["experiments"]] == [None, "closest"]


def bench(folder: Path, experiment: str, order: str = "file") -> Path:
    text = f"""
name: b
source: {{files: f.csv, time: {{column: t, unit: s}}, order: {order}}}
experiments: [{{name: mine, {experiment}}}]
"""
    (folder / "b.yaml").write_text(text)
    return folder / "b.yaml"


@pytest.mark.parametrize(
    ("experiment", "order", "said"),
    [
        ("target_percent: 0", "file", ("experiment mine: target 0 of 400", "the source has 36 (9.0000 %)", WAYS_OUT)),
        ("target_percent: 8.7", "file", ("target 35 of 400", WAYS_OUT)),
        ("target_percent: 99, delay: {max: 5s}", "file", ("target 396 of 400", "this seed's bound is", "larger delay")),
        ("target_percent: 20, delay: {max: 1s}", "event_time", ("target 80 of 400", "this seed's bound is 0")),
    ],
)  # fmt: skip
def test_check_and_run_refuse_what_all_events_show_to_be_out_of_reach(
    tmp_path: Path, experiment: str, order: str, said: tuple[str, ...]
) -> None:
    written(tmp_path, some_late(9))
    file = bench(tmp_path, experiment, order)
    for command in ("check", "run"):
        call(command, file, "--artifacts", tmp_path / "a").refused(*said)
    assert not (tmp_path / "a" / "runs").exists()


@pytest.mark.parametrize(
    ("experiment", "order"),
    [
        ("target: source", "file"),
        ("target_percent: 9", "file"),
        ("target_percent: 20, delay: {max: 200s}", "file"),
        ("target_percent: 0", "event_time"),
        ("target_percent: 0, on_infeasible: closest", "file"),
    ],
)
def test_check_accepts_what_can_be_met(tmp_path: Path, experiment: str, order: str) -> None:
    written(tmp_path, some_late(9))
    told = call("check", bench(tmp_path, experiment, order), "--artifacts", tmp_path / "a")
    assert told.code == 0, told.err


def test_of_a_large_file_a_target_is_in_doubt_until_a_profile_of_all_events_tells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, some_late(9))
    monkeypatch.setattr(reach, "SMALL_BYTES", 100)
    file, store = bench(tmp_path, "target_percent: 0"), Store(tmp_path / "a")
    plan = call("check", file, "--artifacts", store.root, "--json").json
    [doubt] = plan["sample"]["doubts"]
    assert doubt.startswith(
        "warning: experiment mine: found target 0 %, but 36 of the first 400 events (9 %) are out of order already"
    )
    benchmark = config.load(file)
    with store.building("profile", profile_key(store, benchmark)) as build:
        write_json(build.path / "profile.json", profile() | {"events": 5_000, "out_of_order": 1})
    said = (
        "experiment mine: target 0 of 5000 events out of order cannot be reached: the source has 1 (0.0200 %) already"
    )
    call("check", file, "--artifacts", store.root).refused(said, WAYS_OUT)
    with store.building("stream", stream_key(store, benchmark, benchmark.experiments[0])):
        pass
    assert call("check", file, "--artifacts", store.root).code == 0, "its stream is there"
