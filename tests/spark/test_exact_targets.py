"""Targets on uniform, bursty, sparse and naturally disordered data: met to the event, or refused with the bound."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgauge.base.errors import Infeasible
from streamgauge.catalog.artifacts import Artifact, Store
from streamgauge.config import Benchmark, Experiment
from streamgauge.streams.disorder.delays import draw, table
from streamgauge.streams.keys import events_key
from streamgauge.streams.stages import generate, ingest
from tests.conftest import everywhere
from tests.oracle import naive, running

if TYPE_CHECKING:
    from streamgauge.streams.stages.workers import Workers

MS = 10**6
SEED = 42


def uniform(_: np.random.Generator, n: int) -> np.ndarray:
    """An event every millisecond."""
    return np.arange(n) * MS


def bursty(rng: np.random.Generator, n: int) -> np.ndarray:
    """Bursts of about 40 events within milliseconds, then silence for a minute."""
    gaps = rng.integers(0, MS, n)
    return np.cumsum(np.where(rng.random(n) < 1 / 40, 60_000 * MS, gaps))


def sparse(rng: np.random.Generator, n: int) -> np.ndarray:
    """An event every 0.2 to 5 seconds, of which a delay of 2 seconds overtakes few."""
    return np.cumsum(rng.integers(200, 5_000, n) * MS)


def a_little_late(rng: np.random.Generator, n: int) -> np.ndarray:
    """Naturally disordered: 4 % are late by up to 50 ms; ties everywhere."""
    times = np.cumsum(rng.integers(0, 2, n)) * MS
    late: np.ndarray = times - np.where(rng.random(n) < 0.04, rng.integers(1, 50, n), 0) * MS
    return late


@dataclass(frozen=True)
class Data:
    times: Callable[[np.random.Generator, int], np.ndarray] | None  # None: the real flights, as they departed
    longest: str
    feasible: tuple[int, ...]
    targets: tuple[int, ...] = (0, 5, 20, 50, 80)


#: which targets can be met, as the brute force below finds it
KINDS = {
    "uniform": Data(uniform, "2s", (0, 5, 20, 50, 80)),
    "bursty": Data(bursty, "2s", (0, 5, 20, 50, 80)),
    "sparse": Data(sparse, "2s", (0, 5)),
    "a little late": Data(a_little_late, "2s", (5, 20, 50, 80)),
    "flights": Data(None, "6h", (70,), (0, 5, 20, 50, 70, 80)),
}


def benchmark(files: list[Path], times: Path | None, **more: Any) -> Benchmark:
    time = {"column": "t", "unit": "ns"} if times else {"column": "sched", "format": "%Y-%m-%d %H:%M:%S"}
    source = {"files": [str(file) for file in files], "time": time, **more}
    experiments = [{"name": "e", "target_percent": 0}]
    return Benchmark.model_validate({"name": "exact", "source": source, "experiments": experiments})


def experiment(target: float, longest: str, **more: Any) -> Experiment:
    raw = {"name": "e", "target_percent": target, "delay": {"max": longest}, "seed": SEED, **more}
    return Experiment.model_validate(raw)


def column(artifact: Artifact, name: str) -> list[int]:
    return [value for file in artifact.files() for value in pq.read_table(file, columns=[name])[name].to_pylist()]


def rows(artifact: Artifact) -> list[tuple[int, int, bytes]]:
    names = ["seq", "event_time", "line"]
    whole = pa.concat_tables([pq.read_table(file, columns=names) for file in artifact.files()])
    return list(zip(*(whole[name].to_pylist() for name in names), strict=True))


def ingested(workers: Workers, root: Path, kind: str, count: int, flights_gz: Path) -> tuple[Benchmark, Store]:
    make = KINDS[kind].times
    file = root / "source.csv"
    if make is None:
        with gzip.open(flights_gz, "rt") as handle:
            file.write_text("".join(line for line, _ in zip(handle, range(count + 1), strict=False)))
        wanted = benchmark([file], None)
    else:
        times = make(np.random.default_rng(sorted(KINDS).index(kind)), count)
        file.write_text("t,k\n" + "".join(f"{t},{i % 7}\n" for i, t in enumerate(times.tolist())))
        wanted = benchmark([file], file)
    store = Store(root / "artifacts")
    ingest.run(workers, wanted, store, split_bytes=100_000)
    return wanted, store


@pytest.mark.parametrize("kind", KINDS)
def test_every_target_is_met_to_the_event_or_refused_with_its_bound(
    workers: Workers, tmp_path: Path, flights_gz: Path, kind: str
) -> None:
    wanted, store = ingested(workers, tmp_path, kind, 12_000 if kind != "flights" else 26_475, flights_gz)
    events = store.need("events", events_key(store, wanted), "ingest")
    source_rows = rows(events)
    n = len(source_rows)
    source_late = running.late(time for _, time, _ in source_rows)
    longest = KINDS[kind].longest
    for target in KINDS[kind].targets:
        aim = round(n * target / 100)
        exactly, closest = (experiment(target, longest, on_infeasible=way) for way in ("error", "closest"))
        if target in KINDS[kind].feasible:
            stream = generate.run(workers, wanted, store, exactly, chunk_rows=1_700)
            assert stream.manifest["target_out_of_order"] == aim
        else:
            with pytest.raises(Infeasible) as refusal:
                generate.run(workers, wanted, store, exactly, chunk_rows=1_700)
            stream = generate.run(workers, wanted, store, closest, chunk_rows=1_700)
            bound = stream.manifest["feasible_max"]
            assert not source_late <= aim <= bound
            aim = min(max(aim, source_late), bound)
            assert f"the source has {source_late} " in str(refusal.value)
            assert f"this seed's bound is {bound} " in str(refusal.value)
        found = rows(stream)
        assert running.late(time for _, time, _ in found) == aim == stream.manifest["achieved_out_of_order"]
        assert sorted(found) == source_rows
        arrived = list(zip(column(stream, "ingestion_time"), [seq for seq, _, _ in found], strict=True))
        assert arrived == sorted(arrived)


@pytest.mark.parametrize("kind", KINDS)
def test_the_bound_is_that_of_all_thresholds_tried_one_by_one(
    workers: Workers, tmp_path: Path, flights_gz: Path, kind: str
) -> None:
    wanted, store = ingested(workers, tmp_path, kind, 400, flights_gz)
    events = store.need("events", events_key(store, wanted), "ingest")
    times, seq = column(events, "event_time"), column(events, "seq")
    impossible = experiment(100, KINDS[kind].longest, on_infeasible="closest")
    stream = generate.run(workers, wanted, store, impossible, chunk_rows=90)
    selection, delay = draw(SEED, np.array(seq), table(impossible.delay, "ns"))
    base, late, pinned = naive.bases(times), naive.out_of_order(times), naive.pinned(times)

    def reached(threshold: int) -> int:
        """Out-of-order events when every event that may be delayed and draws less than that is delayed."""
        ingestion = [
            base[i] + (int(delay[i]) if not late[i] and not pinned[i] and selection[i] < threshold else 0)
            for i in range(len(times))
        ]
        return running.late(naive.stream_order(ingestion, seq, times))

    best = max(reached(threshold) for threshold in {0, *(int(s) + 1 for s in selection)})
    assert stream.manifest["feasible_max"] == stream.manifest["achieved_out_of_order"] == best
    assert running.late(column(stream, "event_time")) == best


@everywhere
def test_one_hash_however_the_source_is_split(workers: Workers, tmp_path: Path, flights_gz: Path) -> None:
    """The same in another process on one core: tests/e2e/test_cli_spark.py."""
    text = gzip.decompress(flights_gz.read_bytes())
    header, *lines = text.splitlines(keepends=True)
    one = tmp_path / "one.csv"
    one.write_bytes(text)
    three = []
    for number, (first, past) in enumerate([(0, 7_000), (7_000, 7_001), (7_001, len(lines))]):
        three.append(tmp_path / f"{9 - number}.csv")  # declared order, not that of names
        three[-1].write_bytes(header + b"".join(lines[first:past]))
    cuts = [([flights_gz], 32 << 20, 400_000), ([one], 32 << 20, 5_000), ([one], 99_991, 400_000), ([one], 7_000, 900)]
    cuts.append((three, 50_000, 3_000))
    hashes = []
    for number, (files, split_bytes, chunk_rows) in enumerate(cuts):
        wanted, store = benchmark(files, None), Store(tmp_path / str(number))
        ingest.run(workers, wanted, store, split_bytes=split_bytes)
        stream = generate.run(workers, wanted, store, experiment(70, "6h"), chunk_rows=chunk_rows)
        assert stream.manifest["achieved_out_of_order"] == round(0.7 * len(lines))
        hashes.append(stream.manifest["sha256"])
    assert len(set(hashes)) == 1
    other = generate.run(workers, wanted, store, experiment(70, "6h", seed=SEED + 1))
    assert other.manifest["sha256"] != hashes[0]
