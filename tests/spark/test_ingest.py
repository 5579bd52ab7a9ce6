"""Ingest: whole rows out, the same however the source is cut."""

from __future__ import annotations

import csv
import gzip
import io
import random
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgauge.base.errors import UserError
from streamgauge.catalog.artifacts import Artifact, Store
from streamgauge.streams.stages import event_parts, ingest
from tests.conftest import everywhere, everywhere_with, unpacked
from tests.spark.ingesting import bad, benchmark, rows, written

if TYPE_CHECKING:
    from streamgauge.streams.stages.workers import Workers

SECOND = 10**9


def out_of_order(artifact: Artifact) -> int:
    times = np.array([row["event_time"] for row in rows(artifact)])
    return int((times[1:] < np.maximum.accumulate(times)[:-1]).sum())


# -- rows


@everywhere
def test_rows_quarantine_and_manifest(workers: Workers, tmp_path: Path) -> None:
    text = 'id,t,came,name\na,3,5,"x,y"\nb,oops,,z\n\nc,1,never,\nd,2\ne,-4,1,"un\nf,7,,w'
    wanted = benchmark(
        written(tmp_path / "f.csv", text),
        arrival={"column": "came", "unit": "s"},
        columns={"name": "string"},
        max_bad_fraction=0.6,
    )
    store = Store(tmp_path / "artifacts")
    artifact = ingest.run(workers, wanted, store)
    assert rows(artifact) == [
        {"seq": 0, "event_time": 3 * SECOND, "line": b'a,3,5,"x,y"\n', "arrival_time": 5 * SECOND, "name": "x,y"},
        {"seq": 3, "event_time": SECOND, "line": b"c,1,never,\n", "arrival_time": None, "name": None},
        {"seq": 6, "event_time": 7 * SECOND, "line": b"f,7,,w\n", "arrival_time": None, "name": "w"},
    ]
    assert bad(artifact) == [
        ("f.csv", 3, 1, "time is not a number of s", b"b,oops,,z"),
        ("f.csv", 4, 2, "empty line", b""),
        ("f.csv", 6, 4, "fewer than 4 fields", b"d,2"),
        ("f.csv", 7, 5, "unbalanced quote", b'e,-4,1,"un'),
    ]
    assert {key: artifact.manifest[key] for key in ("files", "events", "quarantined", "lines", "tick", "arrival")} == {
        "files": ["part-00000.parquet"],
        "events": 3,
        "quarantined": 4,
        "lines": 7,
        "tick": "ns",
        "arrival": True,
    }
    assert sorted(p.name for p in artifact.path.iterdir()) == [
        "manifest.json",
        "part-00000.parquet",
        "quarantine.parquet",
    ]
    assert not artifact.reused
    assert ingest.run(workers, wanted, store).reused


def test_a_stricter_limit_refuses_what_was_built_before(workers: Workers, tmp_path: Path) -> None:
    file = written(tmp_path / "f.csv", "t\n1\nx\n2\n")
    ingest.run(workers, benchmark(file), Store(tmp_path))
    with pytest.raises(
        UserError, match=r"line 3: time is not a number of s: 'x'; 1 of 3 lines are bad, allowed: 0\.01"
    ):
        ingest.run(workers, benchmark(file, max_bad_fraction=0.01), Store(tmp_path))


def noisy_lines(count: int) -> list[str]:
    rng = random.Random(1)
    kinds = ['"q,{}"', "ü{}", "{}"]
    return [
        f"{rng.choice(kinds).format(i)},{rng.randrange(10**19)}" if rng.random() < 0.9 else "bad" for i in range(count)
    ]


@everywhere_with("end", "\n", "\r\n")
def test_rows_are_the_same_however_the_source_is_cut(workers: Workers, tmp_path: Path, end: str) -> None:
    lines = noisy_lines(500)
    header = "\ufeffk,t" + end

    def file(name: str, part: list[str], packed: bool = False) -> Path:
        data = (header + end.join(part)).encode()
        return written(tmp_path / name, gzip.compress(data) if packed else data)

    one = file("one.csv", lines)
    three = [file("1.csv", lines[:10]), file("2.csv", lines[10:11]), file("3.csv", lines[11:])]
    packed = [file("1.gz", lines[:300], packed=True), file("2.gz", lines[300:], packed=True)]
    results = []
    for number, (files, split_bytes, lasts) in enumerate(
        [
            *[([one], size, {499}) for size in (1 << 20, 997, 300)],
            (three, 1000, {9, 10, 499}),
            *[(packed, size, {299, 499}) for size in (1 << 20, 400)],
        ]
    ):
        wanted = benchmark(files, time={"column": "t", "unit": "ns"}, columns={"k": "string"})
        artifact = ingest.run(workers, wanted, Store(tmp_path / str(number)), split_bytes=split_bytes)
        read = [row | {"line": row["line"].decode()} for row in rows(artifact)]
        assert [row["line"] for row in read] == [
            lines[row["seq"]] + ("\n" if row["seq"] in lasts else end) for row in read
        ], "line ends are kept; a file's last line has none and gets a newline"
        read = [{**row, "line": row["line"].rstrip("\r\n")} for row in read]
        results.append((read, [(seq, reason, text.rstrip(b"\r")) for _, _, seq, reason, text in bad(artifact)]))
    expected, quarantined = [], []
    for seq, line in enumerate(lines):
        fields = next(csv.reader(io.StringIO(line)))
        if len(fields) == 2 and int(fields[1]) < 2**63:
            expected.append({"seq": seq, "event_time": int(fields[1]), "line": line, "k": fields[0]})
        else:
            reason = "fewer than 2 fields" if line == "bad" else "time does not fit into 64-bit ns"
            quarantined.append((seq, reason, line.encode()))
    assert len(quarantined) > 20
    for found in results:
        assert found == (expected, quarantined)


def test_each_file_has_its_own_header_and_line_numbers(workers: Workers, tmp_path: Path) -> None:
    first, second = written(tmp_path / "b.csv", "t,k\n1,a\nx,b\n"), written(tmp_path / "a.csv", "k,t\nc,y\nd,2\n")
    artifact = ingest.run(workers, benchmark([first, second]), Store(tmp_path))
    assert [(row["seq"], row["event_time"]) for row in rows(artifact)] == [(0, SECOND), (3, 2 * SECOND)]
    assert [(file, line, seq) for file, line, seq, _, _ in bad(artifact)] == [("b.csv", 3, 1), ("a.csv", 2, 2)]


def test_picoseconds_stay_picoseconds(workers: Workers, tmp_path: Path) -> None:
    file = written(tmp_path / "f", "67,10629342490369879\n66,-1\n")
    artifact = ingest.run(workers, benchmark(file, header=False, time={"column": 1, "unit": "ps"}), Store(tmp_path))
    assert [row["event_time"] for row in rows(artifact)] == [10629342490369879, -1]
    assert artifact.manifest["tick"] == "ps"


@pytest.mark.parametrize("split_bytes", [8, 1 << 20])
@pytest.mark.parametrize("name", ["f.csv", "f.csv.gz"])
def test_scale_takes_the_first_lines(workers: Workers, tmp_path: Path, name: str, split_bytes: int) -> None:
    data = b"t\n" + b"".join(b"%d\n" % i for i in range(11))
    file = written(tmp_path / name, gzip.compress(data) if name.endswith("gz") else data)
    artifact = ingest.run(workers, benchmark(file, scale=0.3), Store(tmp_path), split_bytes=split_bytes)
    assert [row["event_time"] // SECOND for row in rows(artifact)] == [0, 1, 2, 3]
    assert (artifact.manifest["lines"], artifact.manifest["source_lines"]) == (4, 11)


@everywhere_with("order", "event_time", "arrival")  # in which there are nulls
def test_another_order_is_by_column_and_seq_nulls_last_and_renumbered(
    workers: Workers, tmp_path: Path, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_parts, "FILE_ROWS", 40)  # several ranges
    rng = random.Random(3)
    lines = [f"{i},{rng.randrange(30)},{rng.choice(['', rng.randrange(20)])}" for i in range(300)]
    lines[100] = "bad"
    wanted = benchmark(
        written(tmp_path / "f.csv", "k,t,came\n" + "\n".join(lines)),
        arrival={"column": "came", "unit": "ns"},
        time={"column": "t", "unit": "ns"},
        columns={"k": "int64"},
        order=order,
    )
    artifact = ingest.run(workers, wanted, Store(tmp_path / "a [place] *é#%20"), split_bytes=500)
    good = [(i, line.split(",")) for i, line in enumerate(lines) if line != "bad"]
    index = 1 if order == "event_time" else 2
    good.sort(key=lambda row: (row[1][index] == "", int(row[1][index] or 0), row[0]))
    assert rows(artifact) == [
        {
            "seq": seq,
            "event_time": int(f[1]),
            "line": f"{','.join(f)}\n".encode(),
            "arrival_time": int(f[2]) if f[2] else None,
            "k": int(f[0]),
        }
        for seq, (_, f) in enumerate(good)
    ]
    assert [(line, seq) for _, line, seq, _, _ in bad(artifact)] == [(102, 100)]
    assert len(artifact.files()) > 3
    fixed = pq.read_schema(artifact.files()[0])
    assert [fixed.field(name).nullable for name in ("seq", "event_time", "line")] == [False] * 3
    assert not list(artifact.path.glob("sorted*"))


def test_parquet_sources(workers: Workers, tmp_path: Path) -> None:
    table = pa.table({"t": pa.array([5, None, 3], pa.int32()), "v": [1.5, 2.5, None], "s": ["a", 'b"', "c,\nd"]})
    pq.write_table(table, tmp_path / "f.parquet", row_group_size=2)
    wanted = benchmark(tmp_path / "f.parquet", format="parquet", columns={"v": "float64", "s": "string"})
    artifact = ingest.run(workers, wanted, Store(tmp_path))
    assert rows(artifact) == [
        {"seq": 0, "event_time": 5 * SECOND, "line": b"5,1.5,a\n", "v": 1.5, "s": "a"},
        {"seq": 2, "event_time": 3 * SECOND, "line": b'3,,"c, d"\n', "v": None, "s": "c, d"},
    ]
    assert bad(artifact) == [("f.parquet", 2, 1, "empty time", b',2.5,"b"""')]


# -- real files: the figures of the data's README


def test_the_flights_of_this_repository(workers: Workers, tmp_path: Path, flights_gz: Path) -> None:
    wanted = benchmark(
        flights_gz,
        time={"column": "sched", "format": "%Y-%m-%d %H:%M:%S"},
        arrival={"column": "actual", "format": "yyyy-MM-dd HH:mm:ss"},
        columns={"carrier": "string", "flight": "int64"},
    )
    artifact = ingest.run(workers, wanted, Store(tmp_path))
    assert (artifact.manifest["events"], artifact.manifest["quarantined"]) == (26_475, 0)
    assert out_of_order(artifact) == 14_878
    with gzip.open(flights_gz, "rt", newline="") as file:
        expected = [
            (nanoseconds(row["sched"]), nanoseconds(row["actual"]), row["carrier"], int(row["flight"]))
            for row in csv.DictReader(file)
        ]
    columns = ("event_time", "arrival_time", "carrier", "flight")
    assert [tuple(row[name] for name in columns) for row in rows(artifact)] == expected


def nanoseconds(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * SECOND


def test_quoted_commas_of_the_earthquakes(workers: Workers, tmp_path: Path) -> None:
    file = unpacked("usgs_quakes_by_update.csv", tmp_path)
    wanted = benchmark(file, time={"column": "time_ms", "unit": "ms"}, columns={"place": "string", "mag": "float64"})
    found = [(row["place"], row["mag"]) for row in rows(ingest.run(workers, wanted, Store(tmp_path)))]
    with open(file, newline="") as handle:
        assert found == [(r["place"] or None, float(r["mag"]) if r["mag"] else None) for r in csv.DictReader(handle)]
