"""Manifests, validations and answers through their models: as on disk before, and refused where they are no record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from streamgauge.base.errors import Damaged
from streamgauge.base.jsonl import write_record
from streamgauge.catalog.artifacts import Artifact, Store
from streamgauge.catalog.manifests import read_manifest
from streamgauge.config import Experiment, Source
from streamgauge.records.answers import Answer, AnswerLine, HardAnswer, HardQueries
from streamgauge.records.manifests import EventsManifest, ProfileManifest, StreamManifest
from streamgauge.records.record import Record
from streamgauge.records.registry import schema_of
from streamgauge.records.validation import Expectation, Validation
from streamgauge.streams.keys import Scaled, events_key, stream_key
from streamgauge.streams.stages import analyze, generate, ingest
from streamgauge.streams.stages.workers import Forked
from tests import manifests

#: keys of manifests on disk, beside those that the store adds
EVENTS = {
    "doubts", "files", "quarantine_file", "events", "quarantined", "lines", "source_lines", "tick", "ticks_per_second",
    "columns", "arrival", "order", "in_file", "split_bytes", "sources",
}  # fmt: skip
STREAM = {
    "events_key", "tick", "columns", "arrival", "seed", "target_percent", "events", "quarantined",
    "source_out_of_order", "target_out_of_order", "aimed_out_of_order", "achieved_out_of_order", "feasible_max",
    "infeasible", "newly_delayed", "selection", "delay_min", "delay_max", "delay_table", "drawn_delay",
    "observed_delay", "sha256", "files", "csv_files",
}  # fmt: skip
OF_STORE = {"kind", "key", "digests"}


def test_what_the_stages_write_has_the_keys_of_before_and_is_read_as_written(tmp_path: Path) -> None:
    file = tmp_path / "events.csv"
    file.write_text("t,v\n" + "".join(f"{at},{at % 3}\n" for at in (5, 1, 9, 12, 7, 20, 22, 21)))
    source = Source.model_validate(
        {"files": str(file), "time": {"column": "t", "unit": "s"}, "columns": {"v": "int64"}}
    )
    late = Experiment.model_validate(
        {"name": "late", "target_percent": 50, "delay": {"max": "9s"}, "outputs": ["jsonl"]}
    )
    store, given, workers = Store(tmp_path / "a"), Scaled(source), Forked(1)
    events, profile = ingest.run(workers, given, store), analyze.run(workers, given, store)
    stream = generate.run(workers, given, store, late)
    assert (events.key, stream.key) == (events_key(store, given), stream_key(store, given, late))
    assert events.manifest.keys() == EVENTS | OF_STORE
    assert stream.manifest.keys() == STREAM | OF_STORE | {"jsonl_files"}
    assert profile.manifest.keys() == {"events", "full"} | OF_STORE
    for artifact, kind in ((events, EventsManifest), (stream, StreamManifest), (profile, ProfileManifest)):
        on_disk = read_manifest(artifact.path / "manifest.json")
        assert on_disk == artifact.manifest == json.loads(json.dumps(artifact.read(kind).to_json()))
    made = stream.read(StreamManifest)
    assert (made.events, made.tick, made.jsonl_files, made.kafka_files) == (8, "ns", ("stream.jsonl",), ())
    assert made.achieved_out_of_order == made.target_out_of_order == 4
    assert events.read(EventsManifest).in_file.out_of_order == made.source_out_of_order == 3


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"version": 2}, "version: found 2, allowed: 1; "),
        ({"events": "many"}, "damaged, events: input should be a valid integer"),
        ({"rows": 5}, "damaged, rows: extra inputs are not permitted, found 5; "),
    ],
)
def test_what_is_no_manifest_is_refused_in_one_line(tmp_path: Path, change: dict[str, object], problem: str) -> None:
    artifact = Artifact("stream", "k", tmp_path, manifests.of_stream() | change)
    with pytest.raises(Damaged) as raised:
        artifact.read(StreamManifest)
    assert str(raised.value).startswith(f"{tmp_path / 'manifest.json'}: {problem}")


VALIDATION = Validation(
    experiment="late",
    success=False,
    expectations=(
        Expectation(name="a", suite="s", note="", success=False, observed={"x": 1, "y": None}),
        Expectation(name="b", suite="s", note="why", success=True, observed=[1.5, "z"]),
    ),
    facts={"events_rows": 2**63, "sum": "00ff"},
)
ANSWER = Answer(
    query="top_n", mode="streaming", status="wrong", rows=5, hash="ab", seconds=0.5, why="4 rows, 5 expected"
)
HARD = HardQueries(
    system="s", disorder_percent=20.0, events=4, disorder=0.2, longest_delay_s=3,
    queries=(HardAnswer(**ANSWER.fields, batches=()),),
)  # fmt: skip


@pytest.mark.parametrize(("name", "record"), [("validation", VALIDATION), ("hard", HARD)])
def test_what_is_written_is_what_is_read_and_what_the_schema_takes(tmp_path: Path, name: str, record: Record) -> None:
    file = tmp_path / "record.json"
    record.write(file)
    assert type(record).read(file) == record
    Draft202012Validator(schema_of(name)).validate(json.loads(file.read_text()))
    write_record(file, {**record.to_json(), "version": 3})
    with pytest.raises(Damaged, match="version: found 3, allowed: 1; run its stage again"):
        type(record).read(file)


def test_a_line_of_answers_has_every_field_of_an_answer_even_those_without_a_value(tmp_path: Path) -> None:
    line = AnswerLine(**ANSWER.fields, system="s", disorder_percent=20.0, events=4)
    line.append(tmp_path / "nexmark.jsonl")
    assert AnswerLine.read_log(tmp_path / "nexmark.jsonl") == [line]
    rest: dict[str, Any] = dict.fromkeys(
        ("late_drops_expected", "late_drops_reported", "events_per_s", "output_bytes", "state_rows")
    )
    about = {"version": 1, "system": "s", "disorder_percent": 20.0, "events": 4, "late_drops_counted_in": "none"}
    told = {"query": "top_n", "mode": "streaming", "status": "wrong", "rows": 5, "hash": "ab", "seconds": 0.5}
    assert line.to_json() == told | rest | about | {"why": "4 rows, 5 expected"}


def test_failed_expectations_are_those_without_success() -> None:
    assert [one.name for one in VALIDATION.failed] == ["a"]


@pytest.mark.parametrize(
    ("target", "wanted", "achieved", "percent"),
    [(20.0, 5_297, 5_297, 20.0), (99.0, 26_218, 25_119, 94.8495), (None, 265, 265, 1.00064), (0.0, 0, 0, 0.0)],
)
def test_a_stream_is_as_disordered_as_it_came_out_not_as_it_was_asked_for(
    target: float | None, wanted: int, achieved: int, percent: float
) -> None:
    counts: dict[str, Any] = {"events": 26_483, "target_out_of_order": wanted, "achieved_out_of_order": achieved}
    made = StreamManifest.model_construct(target_percent=target, **counts)
    assert made.out_of_order_percent == pytest.approx(percent, rel=1e-5)
