"""A run in which a bit of a record was flipped: its page shows the same figures or none, and the command says why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from streamgauge.base.errors import Damaged, UserError
from streamgauge.base.jsonl import write_json, write_record, write_records
from streamgauge.catalog import results
from streamgauge.catalog.artifacts import Store
from streamgauge.config import Benchmark, keep
from streamgauge.results.report import build
from streamgauge.results.report.release_page import build as build_release
from streamgauge.results.report.run_records import Records
from tests.catalog.test_flipped_records import FIGURE
from tests.command import Call, run
from tests.example_run import CELLS, RUN, benchmark, record_cells, record_example
from tests.flips import flipped

FLIPS = 15
#: what a page reads as a whole; logs are refused by their lines, see tests/catalog/test_flipped_records.py
FILES = (
    "data/profile/*/profile.json", "data/profile/*/manifest.json", "data/stream/*/manifest.json",
    "runs/*/validation-late20/result.json", "runs/*/cells/late20.sum.hdfs/search.json",
    "runs/*/cells/late20.sum.hdfs/latency.json", "runs/*/hard-s-20.json",
)  # fmt: skip


@pytest.fixture
def recorded(tmp_path: Path) -> tuple[Benchmark, Store]:
    from streamgauge.bench.answers.record import keep_hard
    from streamgauge.records.answers import HardQueries

    made, store = benchmark(tmp_path / "source.csv", **CELLS), Store(tmp_path / "a")
    record_cells(record_example(store, made))
    for pattern in FILES[3:6]:  # as their stages write them
        file = next(store.root.glob(pattern))
        (write_records if "latency" in pattern else write_record)(file, json.loads(file.read_text()))
    hard = HardQueries(
        system="s", disorder_percent=20, events=7, disorder=0.2, longest_delay_s=3, queries=(), example=()
    )
    keep_hard(store.run(RUN), hard)
    keep(made, store.run(RUN))
    return made, store


def read(records: Records) -> list[Any]:
    """Returns all that the pages show of these files."""
    streams = [(one.manifest, one.validation) for one in records.streams]
    cells = [part for cell in records.cells for part in (cell.search, *cell.latency)]
    return [records.profile, *(part for pair in streams for part in pair), *cells, *records.hard]


@pytest.mark.parametrize("pattern", FILES)
def test_of_a_flipped_record_the_page_has_the_same_figures_or_none_and_a_line(
    recorded: tuple[Benchmark, Store], pattern: str
) -> None:
    made, store = recorded
    file, sound = next(store.root.glob(pattern)), read(Records(made, store, RUN))
    data, told = file.read_bytes(), 0
    for copy in flipped(data, 5, FLIPS):
        file.write_bytes(copy)
        records = Records(made, store, RUN)
        shown = [_named(one, sound) for one in read(records)]
        told += len(records.damaged)
        assert all(line.startswith(f"{file}: damaged") for line in records.damaged)
        assert len(records.damaged) <= 1
        kept = [one for one in shown if one is not None]
        assert all(one in sound for one in kept)
        assert shown == sound or records.damaged
    assert told > 0.7 * FLIPS, "the rest hit the name of the checksum, or a blank"


def _named(one: Any, sound: list[Any]) -> Any:
    """The record without a key that no sound one has: the checksum's own name may have been hit."""
    names = {key for other in sound if isinstance(other, dict) for key in other}
    return {key: value for key, value in one.items() if key in names} if isinstance(one, dict) else one


def test_the_page_shows_the_rest_and_its_stage_fails_and_an_export_is_refused(
    recorded: tuple[Benchmark, Store], tmp_path: Path
) -> None:
    made, store = recorded
    files = [next(store.root.glob(pattern)) for pattern in ("data/profile/*/profile.json", FILES[4])]
    for file in files:
        file.write_bytes(flipped(file.read_bytes(), 5, 1)[0])
    page = store.run(RUN) / "index.html"
    with pytest.raises(UserError) as told:
        build(made, store, RUN)
    assert sorted(line.partition(": damaged")[0] for line in told.value.lines) == sorted(map(str, files))
    assert "26,483" in page.read_text().replace("\u202f", ",")
    call = ["export", RUN, "--artifacts", str(store.root), "--out", str(tmp_path / "paper"), "--no-svg"]
    said = run(Call(call))
    assert (said.code, said.out) == (2, "")
    assert [file for file in files if f"streamgauge: {file}: damaged" in said.err] == files
    assert not (tmp_path / "paper").exists()


def test_a_figure_that_is_damaged_is_told_of_where_its_run_was_asked_for(recorded: tuple[Benchmark, Store]) -> None:
    _, store = recorded
    results.append(store.run(RUN), FIGURE)
    file = store.run(RUN) / "results.jsonl"
    file.write_text(file.read_text().replace("87000.25", "97000.25"))
    for call in (["show", RUN], ["show", RUN, "--json"], ["compare", RUN, RUN]):
        answer = run(Call(["runs", *call, "--artifacts", str(store.root)]))
        answer.refused(f"{file}: line 1: damaged: no JSON object, or its checksum does not match; empty the line, ")
        assert answer.code == 2
    assert run(Call(["runs", "list", "--artifacts", str(store.root)])).code == 0


def test_a_release_check_whose_manifest_has_changed_has_no_page(tmp_path: Path) -> None:
    write_json(tmp_path / "release.json", {"verdict": "go"})
    write_json(tmp_path / "manifest.json", {"run": "r", "sha256": "0" * 64})
    with pytest.raises(Damaged, match=r"manifest.json: damaged, its sha256 does not match; run the check again"):
        build_release(tmp_path)
    assert not (tmp_path / "release.html").exists()
