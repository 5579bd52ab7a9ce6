"""Records through their models: what is written is what is read, and what is no record is refused in one line."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from streamgauge.base.errors import Damaged
from streamgauge.base.jsonl import append_json, read_jsonl, write_record
from streamgauge.bench.measurements.latency.record import LatencyRun
from streamgauge.bench.measurements.search.record import Doubt, SearchAnswer
from streamgauge.records.measurement import Batch, Ceiling, Limits, Window
from streamgauge.records.registry import schema_of
from streamgauge.records.trial import WINDOWS, MeasuredWindow
from tests.command import Call, run
from tests.example_run import latency
from tests.example_search import System, search

TOLD = search(System(1.0, 2.25e-5), 8)


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    answer = SearchAnswer.of(TOLD, "search.json")
    answer.write(tmp_path / "search.json")
    assert SearchAnswer.read(tmp_path / "search.json") == answer
    on_disk = json.loads((tmp_path / "search.json").read_text())
    assert {key: on_disk[key] for key in TOLD} == TOLD
    assert on_disk["version"] == 1
    runs = [LatencyRun.of(latency(part, 40.0, wrong=False), "latency.json") for part in (0.5, 1.0)]
    LatencyRun.write_all(tmp_path / "latency.json", runs)
    assert LatencyRun.read_all(tmp_path / "latency.json") == runs


@given(st.floats(allow_nan=False), st.text(max_size=20))
def test_no_number_and_no_text_changes_on_the_way(value: float, text: str) -> None:
    answer = SearchAnswer.of(TOLD, "search.json")
    (process,) = answer.processes
    doubts = (Doubt("drift", text),)
    changed = answer.model_copy(update={"processes": (replace(process, high=value),), "doubts": doubts})
    again = SearchAnswer.of(json.loads(json.dumps(changed.to_json())), "search.json")
    assert again == changed
    assert math.copysign(1, again.processes[0].high) == math.copysign(1, value)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"version": 2}, "version: found 2, allowed: 1; run its stage again"),
        ({"version": "x"}, "version: found 'x', allowed: 1; run its stage again"),
        ({"outcome": "fine"}, "damaged, outcome: input should be 'found', 'all_sustained', 'contradicted', "),
        ({"proven": [1.0]}, "damaged, proven.1: field required; run its stage again"),
        ({"doubts": ["one process: …"]}, "damaged, doubts.0: "),
        ({"rate": 5}, "damaged, rate: extra inputs are not permitted, found 5; run its stage again"),
    ],
)
def test_what_is_no_record_of_this_version_is_refused_in_one_line(
    tmp_path: Path, change: dict[str, object], told: str
) -> None:
    file = tmp_path / "search.json"
    write_record(file, TOLD | change)
    with pytest.raises(Damaged) as problem:
        SearchAnswer.read(file)
    assert str(problem.value).startswith(f"{file}: {told}")
    assert "\n" not in str(problem.value)


def test_a_record_cannot_be_changed() -> None:
    answer = SearchAnswer.of(TOLD, "search.json")
    field = "outcome"
    with pytest.raises(ValidationError):
        setattr(answer, field, "inconclusive")


def test_a_schema_takes_what_a_stage_writes_and_nothing_else() -> None:
    schema = json.loads(run(Call(["schema", "--record", "search"])).out)
    Draft202012Validator.check_schema(schema)
    check = Draft202012Validator(schema)
    assert list(check.iter_errors(json.loads(json.dumps(SearchAnswer.of(TOLD, "").to_json())))) == []
    assert [error.message for error in check.iter_errors(TOLD | {"outcome": "fine"})] != []
    assert [error.message for error in check.iter_errors({})] == ["'outcome' is a required property"]


def test_the_schemas_are_those_of_the_files(tmp_path: Path) -> None:
    file = tmp_path / "record.json"
    SearchAnswer.of(TOLD, "").write(file)
    Draft202012Validator(schema_of("search")).validate(json.loads(file.read_text()))
    run_ = {"fraction": 0.5, "rate_events_per_s": 10.0, "valid": True, "outcome": "sustainable"}
    LatencyRun.write_all(file, [LatencyRun.of(run_, "")])
    Draft202012Validator(schema_of("latency")).validate(json.loads(file.read_text()))


def test_a_record_that_nobody_writes_has_no_schema() -> None:
    run(Call(["schema", "--record", "speed"])).refused("--record: found 'speed', allowed: ")


MEASURED = MeasuredWindow(
    number=1, plan="p", process=1, limits=Limits(630_000.0, 1_300_000, lasts=False), asked="the first rung",
    window=Window(1, "ladder", 20_000, (Batch(0.5, 20_000, 0.5), Batch(1.1, 20_001, 0.6)), yardstick=(300.0, 301.5)),
)  # fmt: skip


def test_lines_of_a_log_are_what_was_measured_and_a_torn_one_is_none(tmp_path: Path) -> None:
    file = tmp_path / WINDOWS
    first = MEASURED.model_copy(update={"ceiling": Ceiling(900_000.0, 0.03, 0.1, 1.0, 2)})
    second = MEASURED.model_copy(update={"number": 2, "limits": Limits()})  # without limits: infinite numbers
    for line in (first, second):
        line.append(file)
    with file.open("a") as out:
        out.write('{"number": 3, "wind')
    assert MeasuredWindow.read_log(file) == [first, second]
    on_disk = read_jsonl(file)
    assert [(line["version"], "ceiling" in line) for line in on_disk] == [(1, True), (1, False)]
    assert on_disk[1]["window"] == json.loads(json.dumps(asdict(MEASURED.window)))
    assert on_disk[1]["limits"]["most_rows"] == math.inf
    Draft202012Validator(schema_of("windows")).validate(json.loads(file.read_text().splitlines()[0]))


def test_a_line_of_another_version_or_without_a_key_is_refused_by_its_name(tmp_path: Path) -> None:
    line = MEASURED.to_json()
    for change, why in (
        (line | {"version": 2}, "version: found 2, allowed: 1"),
        ({key: value for key, value in line.items() if key != "limits"}, "damaged, limits: field required"),
        (line | {"window": line["window"] | {"rows": 5}}, "damaged, window.rows: unexpected keyword argument, found 5"),
    ):
        file = tmp_path / WINDOWS
        file.unlink(missing_ok=True)
        append_json(file, change)
        with pytest.raises(Damaged) as problem:
            MeasuredWindow.read_log(file)
        assert str(problem.value) == f"{file}: {why}; run its stage again"
