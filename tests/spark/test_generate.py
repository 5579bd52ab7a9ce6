"""Profiles and streams that Spark writes, against the numpy reference and plain Python."""

from __future__ import annotations

import hashlib
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgauge.base.errors import Infeasible, UserError
from streamgauge.base.units import Duration
from streamgauge.catalog.artifacts import Artifact
from streamgauge.config import DelaySpec, Experiment, Source, TimeColumn
from streamgauge.records.manifests import StreamManifest
from streamgauge.streams.disorder import definitions
from streamgauge.streams.stages import stream_writer
from streamgauge.streams.stages.analyze import measure
from streamgauge.streams.stages.generate import _header as header_of
from streamgauge.streams.stages.generate import write_stream
from streamgauge.streams.stages.workers import Forked
from tests import manifests
from tests.conftest import everywhere, everywhere_with
from tests.disorder.test_duplicates import in_python
from tests.oracle import naive

if TYPE_CHECKING:
    from streamgauge.streams.stages.workers import Workers

SOURCE = Source(files=("none",), header=False, time=TimeColumn(column=1, unit="ns"))


def events(directory: Path, times: list[int], rows_per_file: int = 50, rows_per_group: int = 20) -> Artifact:
    """An events artifact with an arrival and a declared column."""
    directory.mkdir()
    names: list[str] = []
    for start in range(0, len(times), rows_per_file):
        part = times[start : start + rows_per_file]
        seq = list(range(start, start + len(part)))
        names.append(f"part-{len(names):05d}.parquet")
        table = pa.table(
            {
                "seq": pa.array(seq, pa.int64()),
                "event_time": pa.array(part, pa.int64()),
                "line": pa.array([b"k%d,%d\n" % (s % 7, t) for s, t in zip(seq, part, strict=True)], pa.binary()),
                "arrival_time": pa.array([None if s % 5 == 0 else t + s for s, t in zip(seq, part, strict=True)]),
                "key": pa.array([f"k{s % 7}" for s in seq]),
            }
        )
        pq.write_table(table, directory / names[-1], row_group_size=rows_per_group)
    as_read = {"events": len(times), "out_of_order": 0, "hints": []}
    manifest = manifests.of_events(files=names, columns={"key": "string"}, arrival=True, in_file=as_read)
    return Artifact("events", "test", directory, manifest)


def experiment(target: float, longest: int, **more: Any) -> Experiment:
    return Experiment(name="e", target_percent=target, delay=DelaySpec(max=Duration.parse(f"{longest}ns")), **more)


def times_of(seed: int, n: int = 400) -> list[int]:
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.integers(0, 9, n))
    late: list[int] = (times - np.where(rng.random(n) < 0.1, rng.integers(0, 60, n), 0)).tolist()
    return late


def read_stream(directory: Path, manifest: StreamManifest) -> pa.Table:
    return pa.concat_tables([pq.read_table(directory / name) for name in manifest.files])


@everywhere
def test_duplicates_stand_behind_their_events_however_the_stream_is_cut(workers: Workers, tmp_path: Path) -> None:
    times = times_of(2)
    twice = in_python(400, Fraction("12.5") / 100, 42)
    hashes = set()
    for n, (rows_per_file, chunk_rows) in enumerate([(400, 400), (50, 90), (170, 37)]):
        source, outputs = events(tmp_path / f"e{n}", times, rows_per_file), {"parquet", "csv"}
        once, both = tmp_path / f"once{n}", tmp_path / f"both{n}"
        once.mkdir()
        both.mkdir()
        plain = write_stream(workers, source, SOURCE, experiment(35, 80), once, outputs=outputs, chunk_rows=chunk_rows)
        wanted = experiment(35, 80, duplicates=12.5)
        manifest = write_stream(workers, source, SOURCE, wanted, both, outputs=outputs, chunk_rows=chunk_rows)
        rows = [row for row in read_stream(once, plain).to_pylist() for _ in range(1 + (row["seq"] in twice))]
        assert read_stream(both, manifest).to_pylist() == rows
        assert (len(rows), manifest.events, manifest.duplicates) == (450, 400, 50)
        assert manifest.achieved_out_of_order == plain.achieved_out_of_order
        assert (both / "stream.csv").read_bytes().count(b"\n") == 450
        hashes.add(manifest.sha256)
    assert len(hashes) == 1


@everywhere
def test_profile_equals_the_definitions(workers: Workers, tmp_path: Path) -> None:
    times = times_of(1)
    profile = measure(workers, events(tmp_path / "e", times), full=True).to_json()
    delays = sorted(naive.delay_of(times))
    pairs = naive.inversions(times)
    assert profile["events"] == 400
    assert profile["out_of_order"] == len(delays)
    assert profile["adjacent_descents"] == profile["runs"] - 1 == sum(b < a for a, b in pairwise(times))
    assert profile["inversions"] == len(pairs)
    assert profile["distance"] == max(j - i for i, j in pairs)
    assert profile["interleaved"] == naive.longest_strictly_decreasing(times)
    ranks = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
    assert profile["delay"] == {
        "min": delays[0],
        **{name: delays[definitions.rank_of(q, len(delays)) - 1] for name, q in ranks.items()},
        "max": delays[-1],
        "mean": sum(delays) / len(delays),
    }
    assert profile["watermark_curve"] == [
        [w, sum(d > w for d in delays)] for w in (0, 1, 2, 5, 10, 20, 50, 100) if sum(d > w for d in delays)
    ] + [[next(w for w in (1, 2, 5, 10, 20, 50, 100) if w >= delays[-1]), 0]]
    assert sum(count for _, _, count in profile["delay_histogram"]) == len(delays)
    assert all(low <= high for low, high, _ in profile["delay_histogram"])
    assert sum(profile["frequency"]["counts"]) == 400
    recorded = sorted(s for s in range(400) if s % 5)
    assert profile["recorded_delay"]["p50"] == recorded[definitions.rank_of(0.5, len(recorded)) - 1]
    assert (profile["recorded_delay"]["missing"], profile["recorded_delay"]["negative"]) == (80, 0)


@everywhere
def test_stream_is_exact_sorted_and_the_same_however_cut(workers: Workers, tmp_path: Path) -> None:
    times = times_of(2)
    wanted = round(Fraction(35, 100) * 400)
    hashes, tables = set(), []
    for n, (rows_per_file, chunk_rows) in enumerate([(400, 400), (50, 90), (170, 37)]):
        source = events(tmp_path / f"e{n}", times, rows_per_file)
        out = tmp_path / f"s{n}"
        out.mkdir()
        manifest = write_stream(
            workers, source, SOURCE, experiment(35, 80), out, outputs={"parquet", "csv"}, chunk_rows=chunk_rows
        )
        table = read_stream(out, manifest)
        tables.append(table.to_pydict())
        hashes.add(manifest.sha256)
        assert (manifest.achieved_out_of_order, manifest.target_out_of_order) == (wanted, wanted)
        assert manifest.newly_delayed == wanted - manifest.source_out_of_order
        rows = zip(*(tables[-1][name] for name in ("ingestion_time", "event_time", "line")), strict=True)
        csv = b"".join(b"%d,%d,%s" % row for row in rows)
        assert (out / "stream.csv").read_bytes() == csv
    assert len(hashes) == 1
    assert tables[0] == tables[1] == tables[2]
    stream = tables[0]
    keys = list(zip(stream["ingestion_time"], stream["seq"], strict=True))
    assert keys == sorted(keys)
    assert sum(naive.out_of_order(stream["event_time"])) == wanted
    assert sorted(stream["seq"]) == list(range(400))
    for seq, time, line, key in zip(*(stream[c] for c in ("seq", "event_time", "line", "key")), strict=True):
        assert (time, line, key) == (times[seq], b"k%d,%d\n" % (seq % 7, times[seq]), f"k{seq % 7}")


@everywhere_with("by", "all", "partition", "key")
def test_outages_are_exact_and_the_same_however_cut(workers: Workers, tmp_path: Path, by: str) -> None:
    times, hashes, tables = sorted(times_of(2, 4_000)), set(), []
    outages = {"by": by, "spacing": "300ns", "delivery": 2, "partitions": 3 if by == "partition" else None}
    delay = {"max": "200ns", "outages": outages}
    wanted = Experiment.model_validate({"name": "e", "target_percent": 15, "delay": delay})
    for n, (rows_per_file, chunk_rows) in enumerate([(4_000, 4_000), (500, 900), (1_700, 370)]):
        source, out = events(tmp_path / f"e{n}", times, rows_per_file), tmp_path / f"s{n}"
        out.mkdir()
        manifest = write_stream(workers, source, SOURCE, wanted, out, outputs={"parquet"}, chunk_rows=chunk_rows)
        tables.append(read_stream(out, manifest))
        hashes.add(manifest.sha256)
        assert manifest.outages is not None
        assert manifest.outages.column == (by if by == "key" else None)
    assert len(hashes) == 1
    assert tables[0] == tables[1] == tables[2]
    assert sum(naive.out_of_order(tables[0]["event_time"].to_pylist())) == manifest.achieved_out_of_order == 600
    late = np.sort(tables[0].filter(pa.array(np.array(naive.out_of_order(tables[0]["event_time"].to_pylist()))))["seq"])
    neighbours = np.isin(late + {"key": 7, "partition": 3, "all": 1}[by], late).mean()
    assert neighbours > 0.7, "the next event of a delayed one's part is delayed, too, unless the outage ends"


@pytest.mark.parametrize("slice_rows", [37, 399, 1_000_000])
def test_a_chunk_written_in_slices_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slice_rows: int
) -> None:
    made = []
    for name, rows, processes in (("whole", 1_000_000, 1), ("slices", slice_rows, 2)):
        monkeypatch.setattr(stream_writer, "SLICE_ROWS", rows)
        source, out = events(tmp_path / f"events {name}", times_of(2), 90), tmp_path / name
        out.mkdir()
        manifest = write_stream(
            Forked(processes), source, SOURCE, experiment(35, 80), out, outputs={"parquet", "csv-parts", "jsonl"},
            chunk_rows=400,
        )  # fmt: skip
        csv = b"".join((out / part).read_bytes() for part in manifest.csv_files)
        made.append((manifest.sha256, read_stream(out, manifest), csv, (out / "stream.jsonl").read_bytes()))
    assert made[0] == made[1]


def test_lines_beyond_two_gigabytes_are_taken_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    take, made = stream_writer.Writer._columns, []

    def overflow(writer: Any, output: Any, part: slice) -> pa.Table:
        if part.stop - part.start > 30:
            raise pa.ArrowInvalid("offset overflow while concatenating arrays")
        return take(writer, output, part)

    for name in ("whole", "parts"):
        source, out = events(tmp_path / f"events {name}", times_of(2), 90), tmp_path / name
        out.mkdir()
        manifest = write_stream(Forked(1), source, SOURCE, experiment(35, 80), out, outputs={"parquet", "csv"})
        made.append((manifest.sha256, read_stream(out, manifest), (out / "stream.csv").read_bytes()))
        monkeypatch.setattr(stream_writer.Writer, "_columns", overflow)
    assert made[0] == made[1]


def test_a_fault_of_ours_in_a_copy_is_told_as_such() -> None:
    def fail(item: int) -> int:
        raise KeyError(item)

    with pytest.raises(RuntimeError, match="KeyError: "):
        Forked(2).each([1, 2], fail)


def test_the_hash_is_what_its_description_says(workers: Workers, tmp_path: Path) -> None:
    source = events(tmp_path / "e", times_of(3, 60))
    (tmp_path / "s").mkdir()
    manifest = write_stream(workers, source, SOURCE, experiment(30, 80), tmp_path / "s", outputs={"parquet"})
    stream = read_stream(tmp_path / "s", manifest)
    blocks, rows = [], []
    for row in zip(
        *(stream.column(c).to_pylist() for c in ("ingestion_time", "seq", "event_time", "line")), strict=True
    ):
        rows.append(row)
        if (row[1] * 0x9E3779B97F4A7C15 % 2**64) >> 52 == 0:
            blocks.append(rows)
            rows = []
    digests = [
        hashlib.sha256(
            b"".join(row[c].to_bytes(8, "little", signed=True) for c in range(3) for row in block)
            + b"".join(row[3] for row in block)
        ).digest()
        for block in [*blocks, rows]
        if block
    ]
    assert manifest.sha256 == hashlib.sha256(b"".join(digests)).hexdigest()


@everywhere
def test_beyond_the_bound_is_refused_or_closest(workers: Workers, tmp_path: Path) -> None:
    source = events(tmp_path / "e", list(range(0, 4_000, 40)))
    out = tmp_path / "s"
    out.mkdir()
    with pytest.raises(Infeasible, match=r"this seed's bound is \d+"):
        write_stream(workers, source, SOURCE, experiment(80, 50), out, outputs={"parquet"})
    assert list(out.iterdir()) == []
    closest = experiment(80, 50, on_infeasible="closest")
    manifest = write_stream(workers, source, SOURCE, closest, out, outputs={"parquet"})
    assert manifest.infeasible
    assert manifest.achieved_out_of_order == manifest.feasible_max < manifest.target_out_of_order == 80
    assert sum(naive.out_of_order(read_stream(out, manifest)["event_time"].to_pylist())) == manifest.feasible_max


@everywhere
def test_a_stream_as_it_came_is_the_source_and_below_it_the_ways_out_are_told(workers: Workers, tmp_path: Path) -> None:
    times = times_of(3)
    source = events(tmp_path / "e", times)
    own = sum(naive.out_of_order(times))
    (tmp_path / "s").mkdir()
    as_it_came = Experiment(name="e", target="source")
    manifest = write_stream(workers, source, SOURCE, as_it_came, tmp_path / "s", outputs={"parquet"})
    table = read_stream(tmp_path / "s", manifest)
    assert table["event_time"].to_pylist() == times
    assert table["ingestion_time"].to_pylist() == naive.bases(times)
    counts = [getattr(manifest, f"{name}_out_of_order") for name in ("source", "target", "achieved")]
    assert (counts, manifest.newly_delayed, manifest.delay_max) == ([own] * 3, 0, 0)
    ways = "choose order: event_time to begin with events in order, target: source to take them as they came, or a"
    with pytest.raises(Infeasible, match=ways):
        write_stream(workers, source, SOURCE, experiment(0, 50), tmp_path / "s", outputs={"parquet"})


def test_a_delay_beyond_64_bits_is_refused(workers: Workers, tmp_path: Path) -> None:
    source = events(tmp_path / "e", [2**63 - 100, 2**63 - 50])
    with pytest.raises(UserError, match="beyond the largest 64-bit time"):
        write_stream(workers, source, SOURCE, experiment(50, 80), tmp_path, outputs={"parquet"})


def test_a_name_that_the_source_has_is_not_there_twice(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_bytes(b"event_time,v\r\n1,a\r\n")
    source = Source(files=(str(tmp_path / "f.csv"),), time=TimeColumn(column="event_time", unit="ns"))
    assert header_of(source) == b"ingestion_time,streamgauge_event_time,event_time,v\r\n"
