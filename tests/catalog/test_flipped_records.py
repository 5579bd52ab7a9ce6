"""A run's records in which a bit was flipped: their readers get the same figures, or one line and none."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamgauge import config
from streamgauge.base.errors import Damaged, UserError
from streamgauge.base.jsonl import SEAL, append_json, read_jsonl, read_record, write_record
from streamgauge.bench.measurements.search.record import SearchAnswer
from streamgauge.catalog import results
from streamgauge.catalog.run_summary import search_of
from streamgauge.records.result import Result
from tests.example_search import System, search
from tests.flips import FLIPS, flipped

BENCHMARK = {
    "name": "b",
    "source": {"files": "f.csv", "time": {"column": "t", "unit": "s"}},
    "experiments": [{"name": "e", "target_percent": 20, "delay": {"max": "5s"}, "seed": 7}],
    "workloads": [{"name": "w", "query": "passthrough"}],
    "systems": [{"name": "s", "engine": "known"}],
}
FIGURE = Result(
    benchmark="b", experiment="e", workload="w", system="s", mode="m", metric="rate", unit="events/s",
    value=87_000.25, low=80_000.0, high=93_000.5, samples=5, at="2026-03-01T00:00:00+00:00", run_id="r",
    config_hash="c", machine={"cpu": "x", "cores": 2}, software={"spark": "4.3.0"},
)  # fmt: skip


def read_each(file: Path, read: Callable[[], Any]) -> tuple[list[Any], list[str]]:
    """Returns what `read` gives of a file with one flipped bit or another, and the lines with which it refuses."""
    sound, found, lines = file.read_bytes(), [], []
    for copy in flipped(sound, len(sound)):
        file.write_bytes(copy)
        try:
            found.append(read())
        except UserError as told:
            lines.append(str(told))
    file.write_bytes(sound)
    return found, lines


def test_a_search_gives_its_own_figures_or_none(tmp_path: Path) -> None:
    file = tmp_path / "search.json"
    sound = SearchAnswer.of(search(System(1.0, 2.25e-5), 8), file)
    sound.write(file)
    found, lines = read_each(file, lambda: search_of(tmp_path))
    assert all(one == sound for one in found)
    assert len(lines) > 0.6 * FLIPS
    assert all(line.startswith(f"{file}: damaged, ") for line in lines)
    assert all(line.endswith("; delete the file, and run the stage search again") for line in lines)


def test_a_run_s_benchmark_is_its_own_or_none(tmp_path: Path) -> None:
    benchmark = config.parse(config.Benchmark, BENCHMARK, "test")
    file = tmp_path / "benchmark.json"
    write_record(file, benchmark.model_dump(mode="json"))
    reads: list[Callable[[], config.Benchmark]] = [lambda: config.of_run(tmp_path), lambda: config.load(file)]
    for read in reads:
        wanted = read()
        found, lines = read_each(file, read)
        assert all(one == wanted for one in found)
        assert len(lines) > 0.6 * FLIPS
        assert all(line.startswith(f"{file}:") for line in lines)


def test_a_benchmark_that_was_changed_on_purpose_is_told_how_it_is_taken(tmp_path: Path) -> None:
    file = tmp_path / "benchmark.json"
    write_record(file, config.parse(config.Benchmark, BENCHMARK, "test").model_dump(mode="json"))
    changed = json.loads(file.read_text()) | {"name": "mine"}
    file.write_text(json.dumps(changed))
    with pytest.raises(Damaged, match=f"its checksum does not match; .* delete its key {SEAL} if it was changed on"):
        config.load(file)
    file.write_text(json.dumps({key: value for key, value in changed.items() if key != SEAL}))
    assert config.load(file).name == "mine"


def test_figures_are_their_own_or_left_out_and_told_by_their_line(tmp_path: Path) -> None:
    results.append(tmp_path, FIGURE)
    results.append(tmp_path, FIGURE)
    found, lines = read_each(tmp_path / "results.jsonl", lambda: results.numbered(tmp_path))
    assert lines == []
    for figures, problems in found:
        assert all(one == FIGURE for _, one in figures)
        assert len(figures) == 2 or problems
    assert sum(bool(problems) for _, problems in found) > 0.6 * FLIPS


def test_a_log_with_a_damaged_line_is_refused_and_a_torn_end_is_not(tmp_path: Path) -> None:
    file = tmp_path / "windows.jsonl"
    records: list[dict[str, Any]] = [{"plan": "p", "number": number, "rate": 1000.5 * number} for number in range(4)]
    for record in records:
        append_json(file, record)
    sound = file.read_bytes()
    found, lines = read_each(file, lambda: [{k: one.get(k) for k in records[0]} for one in read_jsonl(file)])
    ended = [some for some in found if some != records]
    assert all(some == records[:3] for some in ended)  # the last end of line was hit: a torn line, measured again
    assert len(ended) <= 8
    assert all(": line " in line and line.endswith("; delete the line") for line in lines)
    file.write_bytes(sound.replace(b"1000.5", b"1000.6", 1))
    with pytest.raises(Damaged, match=r"windows.jsonl: line 2: damaged: no JSON object, or its checksum does not"):
        read_jsonl(file)
    file.write_bytes(sound + b'{"plan": ')
    assert read_jsonl(file) == records


@pytest.mark.parametrize("text", ["", "[]", "7", "nan", "{", "\xff", "[" * 100_000])
def test_what_is_no_record_is_told_in_one_line(tmp_path: Path, text: str) -> None:
    file = tmp_path / "search.json"
    file.write_text(text, encoding="latin-1")
    with pytest.raises(Damaged) as told:
        read_record(file, "delete it")
    assert str(told.value).startswith(f"{file}: damaged, ")
    assert "\n" not in str(told.value)


def test_a_record_that_is_sealed_twice_is_sealed_once(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    append_json(file, {"a": 1})
    append_json(file, json.loads(file.read_text()))
    assert read_jsonl(file) == [{"a": 1}] * 2
