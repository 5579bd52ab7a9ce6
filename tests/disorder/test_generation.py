"""Exact generation against brute force: every threshold counted, every chunking, every kind of source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgauge.base.errors import Infeasible
from streamgauge.streams.disorder import chunks, generation, output
from streamgauge.streams.disorder.delays import NEVER, DelayTable, draw
from streamgauge.streams.disorder.outages import Delays
from streamgauge.streams.disorder.row_groups import RowGroup, row_groups
from tests.oracle import naive

KINDS = ("dense", "ties", "sparse", "bursty", "disordered", "disordered ties", "early outlier", "one time")
SEED = 42
CUTTINGS = ((1, 1, 10**6, 10**6), (3, 1, 70, 40), (8, 3, 1, 2), (30, 10, 1, 9))


def source(kind: str, rng: np.random.Generator) -> np.ndarray:
    n = int(rng.integers(1, 220))
    gaps = {"ties": (1, 0.1), "sparse": (200, 1.0), "bursty": (1, 1.0), "disordered ties": (2, 0.3)}
    longest, share = gaps.get(kind, (5, 1.0))
    times = np.cumsum(rng.integers(0, longest + 1, n) * (rng.random(n) < share)).astype(np.int64)
    if kind == "bursty":
        times += np.cumsum((rng.random(n) < 0.03) * 500)
    if kind.startswith("disordered"):
        times -= np.where(rng.random(n) < 0.2, rng.integers(0, 100, n), 0)
    if kind == "early outlier":
        times[rng.random(n) < 0.3] -= 1_000
        times[int(rng.integers(n))] += 10**5
    if kind == "one time":
        times = np.where(np.arange(n) < n * rng.random(), 0, times)
    return times - int(rng.integers(0, 500))


def write(
    directory: Path, times: np.ndarray, seq: np.ndarray, rng: np.random.Generator, **columns: np.ndarray
) -> list[RowGroup]:
    """The events in several files of several row groups."""
    directory.mkdir()
    rows_per_file, rows_per_group = int(rng.integers(20, 200)), int(rng.integers(5, 60))
    files: list[Path] = []
    for start in range(0, len(times), rows_per_file):
        part = slice(start, start + rows_per_file)
        lines = pa.array([b"%d\n" % s for s in seq[part].tolist()], pa.binary())
        files.append(directory / f"part-{len(files):05d}.parquet")
        pq.write_table(
            pa.table(
                {"seq": seq[part], "event_time": times[part], "line": lines}
                | {name: values[part] for name, values in columns.items()}
            ),
            files[-1],
            row_group_size=rows_per_group,
        )
    return row_groups(files)


def brute_force_stream(times: list[int], seq: list[int], delay: dict[int, int]) -> list[tuple[int, int, int]]:
    """(ingestion, seq, time) in order when exactly those seqs are delayed."""
    return sorted((base + delay.get(s, 0), s, t) for base, s, t in zip(naive.bases(times), seq, times, strict=True))


def brute_force_curve(times: list[int], seq: list[int], select: list[int], drawn: list[int]) -> Callable[[int], int]:
    """Out-of-order events when every record that may be delayed and has a draw below a threshold is delayed."""
    late, pinned, bases = naive.out_of_order(times), naive.pinned(times), naive.bases(times)
    free = [i for i in range(len(seq)) if not late[i] and not pinned[i]]

    def count(threshold: int) -> int:
        delay = {i: drawn[i] for i in free if select[i] < threshold}
        rows = sorted((base + delay.get(i, 0), seq[i], times[i]) for i, base in enumerate(bases))
        return sum(naive.out_of_order([t for _, _, t in rows]))

    return count


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", range(6))
def test_every_source_every_chunking(kind: str, case: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng([KINDS.index(kind), case])
    array = source(kind, rng)
    seq_array = np.sort(rng.choice(3 * len(array), len(array), replace=False)).astype(np.int64)  # gaps: bad lines
    groups = write(tmp_path / "events", array, seq_array, rng)
    times, seq = array.tolist(), seq_array.tolist()
    longest = int(rng.choice([0, 1, 7, 100, 2_000, 10**5]))
    smallest = (int(rng.integers(0, longest + 1)), longest, 0)[case % 3]  # 1: one delay brings all to the same times
    table = DelayTable((smallest, longest))
    target = Fraction(int(rng.choice([5, 20, 50, 80])), 100)
    select, drawn = (of_each.tolist() for of_each in draw(SEED, seq_array, table))
    check_every_chunking(monkeypatch, groups, times, seq, table, select, drawn, [target])


def check_every_chunking(
    monkeypatch: pytest.MonkeyPatch,
    groups: list[RowGroup],
    times: list[int],
    seq: list[int],
    table: Delays,
    select: list[int],
    drawn: list[int],
    targets: Sequence[Fraction],
    cuttings: Sequence[tuple[int, int, int, int]] = CUTTINGS,
) -> int:
    """Counts, generates and compares with brute force, however it is cut; returns the most that can be out of order.

    select, drawn: what the delays are to draw for each event. cuttings: numbers of chunks, of chunks counted together,
    and of rows of a piece and of the output at a time.
    """
    source_late = sum(naive.out_of_order(times))
    count_at = brute_force_curve(times, seq, select, drawn)
    curve_maximum = max(count_at(p) for p in sorted({0, NEVER, *(p + 1 for p in select if p < NEVER)}))
    known = {p: count_at(p) for p in (0, 3_000, 9_000, NEVER)}
    streams: dict[Fraction, set[tuple[tuple[int, int, int], ...]]] = {}
    of_seq = dict(zip(seq, drawn, strict=True))
    for count, together, piece_rows, held in cuttings:
        monkeypatch.setattr(chunks, "PIECE_ROWS", piece_rows)
        monkeypatch.setattr(output, "HELD_ROWS", held)
        cuts = chunks.chunks(groups, count)
        parts = []
        for some in (cuts[at : at + together] for at in range(0, len(cuts), together)):
            first, *rest = (generation.count_chunk(groups, c, table, SEED) for c in some)
            parts.append((some, sum(rest, first)))
        assert sum(p.events for _, p in parts) == len(times)
        curve = np.r_[0, np.cumsum(sum(p.gained - p.lost for _, p in parts))]
        for threshold, expected in known.items():
            assert source_late + curve[threshold] == expected

        for target in targets:
            wanted = round(target * len(times))
            if not source_late <= wanted <= curve_maximum:
                with pytest.raises(Infeasible) as refusal:
                    generation.solve(groups, parts, table, SEED, target)
                bound = f"this seed's bound is {curve_maximum} ("
                assert bound in str(refusal.value) or curve_maximum == len(times)
            solution = generation.solve(groups, parts, table, SEED, target, closest=True)
            assert solution.maximum == curve_maximum
            assert solution.aimed == min(max(wanted, source_late), curve_maximum)

            outputs = [o for c in cuts for o in output.generate_chunk(groups, c, table, SEED, solution.selection)]
            columns = [(o.ingestion.tolist(), o.seq.tolist(), o.time.tolist()) for o in outputs]
            rows = [row for three in columns for row in zip(*three, strict=True)]
            delay = {
                s: g - base
                for (g, s, _), base in zip(sorted(rows, key=lambda r: r[1]), naive.bases(times), strict=True)
                if g != base
            }
            assert rows == brute_force_stream(times, seq, delay)
            assert sum(naive.out_of_order([t for _, _, t in rows])) == solution.aimed
            assert len(delay) == solution.aimed - source_late == sum(len(o.delayed) for o in outputs)
            assert all(table.minimum <= d <= table.maximum for d in delay.values())
            assert all(d == of_seq[s] for s, d in delay.items())
            still_late = dict(zip([s for _, s, _ in rows], naive.out_of_order([t for _, _, t in rows]), strict=True))
            assert all(still_late[s] for s, was in zip(seq, naive.out_of_order(times), strict=True) if was)
            assert_running_maxima(outputs)
            streams.setdefault(target, set()).add(tuple(rows))
    assert all(len(each) == 1 for each in streams.values()), "the stream depends on how it was cut"
    return curve_maximum


def assert_running_maxima(outputs: list[output.Output]) -> None:
    """Checks that each part knows the largest event time before it."""
    before: list[int] = []
    for part in outputs:
        if before:
            assert part.running_before == max(before)
        before += part.time.tolist()


def test_without_new_delay_the_stream_is_the_source() -> None:
    """Existing disorder is copied, not healed."""
    times = np.array([5, 3, 9, 9, 7, 12], np.int64)
    assert naive.stream_order(naive.bases(times.tolist()), list(range(6)), times.tolist()) == times.tolist()
