"""Corruptions of a sound stream, each with the set of expectations that must fail, and no other."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pyarrow as pa

from tests.spark.streams import DELAY_MAX, DELAY_MIN, GROUP_ROWS, Case, Row, find

Mutation = Callable[[Case], None]
SchemaMutation = Callable[[pa.Schema, list[Row]], pa.Schema]


def plain(case: Case) -> list[int]:
    """Seqs that are neither late in the source nor delayed: moving or dropping one may leave the rest alone."""
    return sorted({row["seq"] for row in case.stream} - case.source_late() - case.delayed())


def without(case: Case, seq: int) -> Case:
    return Case(case.events, [row for row in case.stream if row["seq"] != seq], case.claims)


def moved(case: Case, seq: int, ingestion_time: int) -> Case:
    """A copy of the case with one ingestion time changed, sorted again."""
    changed = copy.deepcopy(case)
    changed.at(seq)["ingestion_time"] = ingestion_time
    changed.sort()
    return changed


def move_one(case: Case, seqs: set[int], to: Callable[[int], int], late: Callable[[int], set[int]]) -> int:
    """Moves the first of those seqs to to(base) that makes late(seq) the out-of-order ones."""

    def wanted(seq: int) -> bool:
        return moved(case, seq, to(case.base(seq))).late() == late(seq)

    seq: int = find(sorted(seqs), wanted)
    case.at(seq)["ingestion_time"] = to(case.base(seq))
    case.sort()
    return seq


def droppable(case: Case) -> list[int]:
    return [seq for seq in plain(case) if without(case, seq).late() == case.late()]


# -- rows lost and added

LOST_OR_ADDED = {
    "row-count-unchanged",
    "event-time-multiset-unchanged",
    "seq-keeps-its-event",
    "declared-columns-unchanged",
    "event-time-histogram-unchanged",
    "event-count-as-claimed",
}


def drop_a_row(case: Case) -> None:
    case.stream.remove(case.at(droppable(case)[3]))


def add_a_row(case: Case) -> None:
    last = case.stream[-1]
    newest = max(row["event_time"] for row in case.stream)
    case.stream.append({**last, "seq": 10_000, "event_time": newest, "line": b"new\n"})


def duplicate_a_late_row(case: Case) -> None:
    twin = case.at(min(case.source_late()))
    case.stream.insert(case.stream.index(twin), dict(twin))


def duplicate_a_row_and_drop_another(case: Case) -> None:
    """Repeats a row and drops another one of the same event time, so that the histogram cannot tell."""
    dropped, twin = find(
        [(a, b) for a in droppable(case) for b in plain(case) if a != b],
        lambda pair: case.at(pair[0])["event_time"] == case.at(pair[1])["event_time"],
    )
    case.stream.insert(case.stream.index(case.at(twin)), dict(case.at(twin)))
    case.stream.remove(case.at(dropped))


# -- content changed


def change_an_event_time(case: Case) -> None:
    case.at(min(case.delayed()))["event_time"] -= 500


def change_an_event_time_by_one(case: Case) -> None:
    """Moves an event within its bin, which here is a power of two."""
    row = case.at(find(sorted(case.delayed()), lambda seq: case.at(seq)["event_time"] % 8))
    row["event_time"] -= 1


def change_a_line(case: Case) -> None:
    case.stream[10]["line"] = b"another\n"


def swap_lines(case: Case) -> None:
    a, b = case.stream[10], find(case.stream[11:], lambda row: row["event_time"] != case.stream[10]["event_time"])
    a["line"], b["line"] = b["line"], a["line"]


def swap_lines_of_one_event_time(case: Case) -> None:
    a, b = find(
        [(a, b) for a in case.stream for b in case.stream if a is not b],
        lambda pair: pair[0]["event_time"] == pair[1]["event_time"],
    )
    a["line"], b["line"] = b["line"], a["line"]


def change_a_declared_column(case: Case) -> None:
    case.stream[10]["carrier"] = "ZZ"


def lose_a_declared_value(case: Case) -> None:
    find(case.stream, lambda row: row["flight"] is not None)["flight"] = None


def change_an_arrival_time(case: Case) -> None:
    case.stream[10]["arrival_time"] = 12345


# -- order

#: last rows of the stream's row groups, and of its files
BORDERS = [50 * file + row for file in range(3) for row in (GROUP_ROWS - 1, 2 * GROUP_ROWS - 1, 3 * GROUP_ROWS - 1, 49)]
FILE_BORDERS = [49, 99]


def _swap_neighbours(case: Case, candidates: list[int]) -> None:
    """Swaps rows i, i + 1 of different ingestion times where that leaves the same rows late."""

    def swapped(i: int) -> Case:
        changed = copy.deepcopy(case)
        changed.stream[i : i + 2] = reversed(changed.stream[i : i + 2])
        return changed

    def wanted(i: int) -> bool:
        first, second = case.stream[i], case.stream[i + 1]
        return first["ingestion_time"] < second["ingestion_time"] and swapped(i).late() == case.late()

    i = find(candidates, wanted)
    case.stream = swapped(i).stream


def swap_rows_in_a_file(case: Case) -> None:
    _swap_neighbours(case, [i for i in range(len(case.stream)) if i not in BORDERS])


def swap_rows_of_one_ingestion_time(case: Case) -> None:
    """Swaps rows whose order only seq tells."""

    def tied(i: int) -> bool:
        a, b = case.stream[i], case.stream[i + 1]
        same = all(a[key] == b[key] for key in ("ingestion_time", "event_time"))
        return same and i not in BORDERS

    i = find(list(range(len(case.stream) - 1)), tied)
    case.stream[i : i + 2] = reversed(case.stream[i : i + 2])


def swap_rows_at_a_row_group_border(case: Case) -> None:
    _swap_neighbours(case, [i for i in BORDERS if i not in FILE_BORDERS])


def swap_rows_at_a_file_border(case: Case) -> None:
    _swap_neighbours(case, FILE_BORDERS)


def swap_files(case: Case) -> None:
    case.file_order = (0, 2, 1)


def unsort_events(case: Case) -> None:
    """Two in-order events of one event time: no base time changes."""
    times = [row["event_time"] for row in case.events]
    late = case.source_late()
    i = find(
        list(range(len(times) - 1)),
        lambda i: times[i] == times[i + 1] and not {case.events[i]["seq"], case.events[i + 1]["seq"]} & late,
    )
    case.events[i : i + 2] = reversed(case.events[i : i + 2])


# -- ingestion times


def ingest_before_base(case: Case) -> None:
    move_one(case, set(plain(case)), lambda base: base - 1, lambda _: case.late())


def delay_above_maximum(case: Case) -> None:
    move_one(case, case.delayed(), lambda base: base + DELAY_MAX + 1, lambda _: case.late())


def delay_below_minimum(case: Case) -> None:
    move_one(case, case.delayed(), lambda base: base + DELAY_MIN - 1, lambda _: case.late())


def delay_a_late_event(case: Case) -> None:
    move_one(case, case.source_late(), lambda base: base + 1, lambda _: case.late())


def heal_a_late_event(case: Case) -> None:
    """Delays the one event that a late one was late against, so that these two change places."""
    source_late = case.source_late()
    before = case.late()

    def wanted(seq: int) -> bool:
        late = moved(case, seq, case.base(seq) + DELAY_MIN).late()
        return seq in late and len(late) == len(before) and len(source_late - late) == 1

    seq = find(plain(case), wanted)
    case.at(seq)["ingestion_time"] += DELAY_MIN
    case.sort()


def miss_the_target_by_one(case: Case) -> None:
    move_one(case, case.delayed(), lambda base: base, lambda seq: case.late() - {seq})


def exceed_the_target_by_one(case: Case) -> None:
    move_one(case, set(plain(case)), lambda base: base + DELAY_MAX, lambda seq: case.late() | {seq})


def miss_the_target_and_claim_so(case: Case) -> None:
    miss_the_target_by_one(case)
    for claim in ("target_out_of_order", "achieved_out_of_order", "newly_delayed"):
        case.claims[claim] -= 1


def claim(name: str) -> Mutation:
    def mutate(case: Case) -> None:
        case.claims[name] += 1

    mutate.__name__ = f"claim_another_{name}"
    return mutate


MISSED = {"achieved-equals-target", "achieved-as-claimed", "newly-delayed-as-claimed"}
CONTENT = {"event-time-multiset-unchanged", "seq-keeps-its-event"}
#: what must fail, and nothing else
OF_THE_FACTS: dict[Mutation, set[str]] = {
    drop_a_row: LOST_OR_ADDED | {"no-seq-missing"},
    add_a_row: LOST_OR_ADDED | {"no-seq-unknown"},
    duplicate_a_late_row: LOST_OR_ADDED | {"no-seq-duplicated", "achieved-equals-target", "achieved-as-claimed"},
    duplicate_a_row_and_drop_another: CONTENT | {"declared-columns-unchanged", "no-seq-missing", "no-seq-duplicated"},
    change_an_event_time: CONTENT | {"event-time-histogram-unchanged"},
    change_an_event_time_by_one: CONTENT,
    change_a_line: CONTENT,
    swap_lines: CONTENT,
    swap_lines_of_one_event_time: {"seq-keeps-its-event"},
    change_a_declared_column: {"declared-columns-unchanged"},
    lose_a_declared_value: {"declared-columns-unchanged"},
    change_an_arrival_time: {"declared-columns-unchanged"},
    swap_rows_in_a_file: {"sorted-within-files"},
    swap_rows_of_one_ingestion_time: {"sorted-within-files"},
    swap_rows_at_a_row_group_border: {"sorted-within-files"},
    swap_rows_at_a_file_border: {"sorted-across-files"},
    swap_files: {"sorted-across-files", "achieved-equals-target", "achieved-as-claimed"},
    unsort_events: {"events-sorted-by-seq"},
    ingest_before_base: {"ingestion-not-before-base"},
    delay_above_maximum: {"new-delays-not-above-maximum"},
    delay_below_minimum: {"new-delays-not-below-minimum"},
    delay_a_late_event: {"source-disorder-not-delayed"},
    heal_a_late_event: {"source-disorder-preserved", "newly-delayed-as-claimed"},
    miss_the_target_by_one: MISSED,
    exceed_the_target_by_one: MISSED,
    miss_the_target_and_claim_so: {"achieved-equals-target", "target-as-configured"},
}
#: what must fail, and nothing else, when a sound stream's manifest claims one more
OF_THE_CLAIMS: dict[str, set[str]] = {
    "target_out_of_order": {"target-as-configured"},
    "achieved_out_of_order": {"achieved-as-claimed"},
    "newly_delayed": {"newly-delayed-as-claimed"},
    "source_out_of_order": {"source-disorder-as-claimed"},
    "events": {"event-count-as-claimed"},
    "duplicates": {"duplicates-as-claimed"},
}


# -- the data themselves


def nullable(schema: pa.Schema) -> pa.Schema:
    return pa.schema([f.with_nullable(True) for f in schema])


def nulls(names: list[str]) -> SchemaMutation:
    def mutate(schema: pa.Schema, rows: list[Row]) -> pa.Schema:
        rows[20] |= dict.fromkeys(names)
        return nullable(schema)

    return mutate


def other_types(schema: pa.Schema, rows: list[Row]) -> pa.Schema:
    """Floats for times, 32 bits for seq, text for the line."""
    for row in rows:
        row["line"] = row["line"].decode()
    types = {"ingestion_time": pa.float64(), "event_time": pa.float64(), "seq": pa.int32(), "line": pa.string()}
    return pa.schema([f.with_type(types.get(f.name, f.type)) for f in schema])


def columns_in_another_order(schema: pa.Schema, _rows: list[Row]) -> pa.Schema:
    return pa.schema([*list(schema)[1:], schema.field(0)])


def no_declared_column(schema: pa.Schema, _rows: list[Row]) -> pa.Schema:
    return schema.remove(schema.names.index("carrier"))


def no_line(schema: pa.Schema, _rows: list[Row]) -> pa.Schema:
    return schema.remove(schema.names.index("line"))


EVERY = {"events": ["seq", "event-time", "line"], "stream": ["ingestion-time", "seq", "event-time", "line"]}
OF_THE_DATA: dict[tuple[str, str], tuple[SchemaMutation, set[str]]] = {
    (dataset, name): (mutate, {f"{dataset}-{suffix}" for suffix in suffixes})
    for dataset, every in EVERY.items()
    for name, mutate, suffixes in (
        ("a null line", nulls(["line"]), ["line-not-null"]),
        ("a null in every column", nulls([c.replace("-", "_") for c in every]), [f"{c}-not-null" for c in every]),
        ("other types", other_types, [f"{c}-type" for c in every]),
        ("columns in another order", columns_in_another_order, ["columns"]),
        ("no declared column", no_declared_column, ["columns"]),
        ("no line", no_line, ["columns", "line-type", "line-not-null"]),
    )
}
