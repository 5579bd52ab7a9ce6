"""SQLite and a real PostgreSQL give the same answers; nothing is lost or doubled, whoever is killed and when."""

from __future__ import annotations

import json
import math
import os
import signal
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from streamgauge.base.errors import UserError
from streamgauge.base.jsonl import DAMAGED_LINE, EMPTY_LINE, append_json
from streamgauge.catalog import results
from streamgauge.records.judgement import Judgement, Look
from streamgauge.results.index import Index, database
from streamgauge.results.index.result_index import rebuilt, series_key
from tests.index.example import ACCEPTED, MACHINE, dump, judgement_rows, result, run, three_runs


def software(record: dict[str, Any]) -> dict[str, Any]:
    return {**record["software"], "memory_gib": record["machine"]["memory_gib"], "os": record["machine"]["os"]}


def identity(record: dict[str, Any]) -> dict[str, Any]:
    return {"cpu": record["machine"]["cpu"], "cores": record["machine"]["cores"]}


def expected(runs: list[Path]) -> list[tuple[Any, ...]]:
    """Expected rows, from the JSON lines without a database."""
    records = [json.loads(line) for path in runs for line in (path / "results.jsonl").read_text().splitlines()]
    rows = [
        (r["at"], r["run_id"], r["metric"], r["value"], r["low"], r["valid"], r["reason"], software(r), identity(r))
        for r in records
    ]
    return sorted(rows, key=lambda row: row[:2])


def answers(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    names = ("at", "run_id", "metric", "value", "low", "valid", "reason", "software", "machine")
    return [tuple(row[name] for name in names) for row in rows]


def test_answers_are_what_the_records_say(url: str, tmp_path: Path) -> None:
    runs, index = three_runs(tmp_path), Index(url)
    assert [index.add_run(path) for path in runs] == [3, 2, 1]
    assert answers(index.results()) == expected(runs)
    assert [head.machine["cores"] for head in index.series(metric="event_latency_ms_p99")] in ([2, 8], [8, 2])
    (key,) = {row["series_key"] for row in index.results(run_id="night1", metric="event_latency_ms_p99")}
    assert [point.value for point in index.history(key)] == [100.0, 100.0, 110.25]
    assert [row["value"] for row in index.results(limit=2, key=key)] == [100.0, 110.25]
    assert len(index.results(since="2026-03-02")) == 3
    assert [(j["outcome"], j["magnitude"], j["evidence"]) for j in judgement_rows(index)] == [
        ("accepted", 0.1, ACCEPTED.to_json())
    ]
    assert index.results(benchmark="none") == []


def test_a_stage_that_ran_again_replaces_its_figures(url: str, tmp_path: Path) -> None:
    again = {"replaces": True, "metric": "event_latency_ms_p50_at_90pct"}
    one, index = run(tmp_path, "night1", result("night1", 5.0, **again), result("night1", 7.0)), Index(url)
    assert index.add_run(one) == 2
    run(tmp_path, "night1", result("night1", 6.0, at="2026-03-01T03:00:00+00:00", **again))
    assert [index.add_run(one), index.add_run(one)] == [1, 0]
    void = (False, "replaced: its stage ran again in this run")
    assert [(row["value"], row["valid"], row["reason"]) for row in index.results()] == [
        (5.0, *void), (7.0, True, ""), (6.0, True, ""),
    ]  # fmt: skip
    assert [(one.value, one.valid) for one in results.read(one)] == [(5.0, False), (7.0, True), (6.0, True)]
    live = dump(index)
    assert index.rebuild([one]) == 3
    assert dump(index) == live


def test_both_databases_hold_the_same_rows(postgres: str, tmp_path: Path) -> None:
    from tests.index.conftest import fresh

    runs = three_runs(tmp_path)
    dumps = []
    for url in (f"sqlite:///{tmp_path / 'a.db'}", fresh(postgres, "same_rows")):
        index = Index(url)
        for path in runs:
            index.add_run(path)
        dumps.append(dump(index))
    assert dumps[0] == dumps[1]
    assert [len(rows) for rows in dumps[0].values()] == [3, 6, 1]


def test_adding_again_adds_only_what_is_new(url: str, tmp_path: Path) -> None:
    runs, index = three_runs(tmp_path), Index(url)
    for path in runs:
        index.add_run(path)
    before = dump(index)
    assert [index.add_run(path) for path in runs] == [0, 0, 0]
    assert dump(index) == before
    results.append(runs[0], result("night1", 7.0))
    assert index.add_run(runs[0]) == 1


def test_a_rebuilt_index_equals_the_live_one(url: str, tmp_path: Path) -> None:
    runs, index = three_runs(tmp_path), Index(url)
    for path in reversed(runs):
        index.add_run(path)
    live = dump(index)
    with database.transaction(index.engine) as connection:  # somebody's doing
        connection.execute(text("DELETE FROM points WHERE run_id = 'night1'"))
        connection.execute(text("UPDATE points SET value = 0"))
    assert index.rebuild(runs) == 6
    assert dump(index) == live


def test_hosts_that_share_a_database_may_use_one_run_id(url: str, tmp_path: Path) -> None:
    """A scheduled night has the same id everywhere."""
    index, at = Index(url), "2026-04-01T03:00:00+00:00"
    here, other = {**MACHINE, "cpu": "A"}, {**MACHINE, "cpu": "B"}
    runs = [
        run(tmp_path / "one", "night", result("night", 1.0, machine=here, at=at)),
        run(tmp_path / "two", "night", result("night", 2.0, machine=other, at=at)),
        run(tmp_path / "three", "night", result("night", 3.0, machine=here, at="2026-04-01T03:00:01+00:00")),
    ]
    for path in runs:
        (one,) = results.read(path)
        results.judge(path, Judgement("night", series_key(one), one.at, "open", one.value or 0, Look()))
    assert [index.add_run(path) for path in runs] == [1, 1, 1]
    assert sorted(row["value"] for row in index.results()) == [1.0, 2.0, 3.0]
    assert sorted(row["magnitude"] for row in judgement_rows(index)) == [1.0, 2.0, 3.0]
    before = dump(index)
    with pytest.raises(
        UserError,
        match=r"found 4 points and judgements \(runs night\) that are in no record here: they come from another host",
    ):
        index.rebuild(runs[:1])
    assert dump(index) == before
    assert index.rebuild(runs[:1], others=True) == 1
    assert [row["value"] for row in index.results()] == [1.0]


def test_a_figure_that_is_no_number_is_void_in_both(url: str, tmp_path: Path) -> None:
    index = Index(url)
    index.add_run(run(tmp_path, "odd", result("odd", math.nan), result("odd", 0.0), result("odd", 2.0, high=math.inf)))
    found = [(row["value"], row["high"], row["valid"], row["reason"]) for row in index.results()]
    assert found == [(None, None, False, "nan is not a finite number"), (0.0, None, True, ""), (2.0, None, True, "")]


KILLED = """
import sys, time
from pathlib import Path
from streamgauge.results.index import Index, result_index
insert = result_index._insert
def stops(connection, table, rows):
    new = insert(connection, table, rows)
    if table.name == "points" and rows:
        print("in mid-transaction", flush=True)
        time.sleep(600)
    return new
result_index._insert = stops
getattr(Index(sys.argv[1]), sys.argv[2])(eval(sys.argv[3]))
"""


@pytest.mark.parametrize("doing", ["add_run", "rebuild"])
def test_a_killed_writer_loses_nothing_and_doubles_nothing(url: str, tmp_path: Path, doing: str) -> None:
    runs, index = three_runs(tmp_path), Index(url)
    if doing == "rebuild":
        for path in runs:
            index.add_run(path)
    before = dump(index)
    what = repr(str(runs[0])) if doing == "add_run" else repr([str(path) for path in runs])
    argument = f"Path({what})" if doing == "add_run" else f"[Path(p) for p in {what}]"
    writer = subprocess.Popen([sys.executable, "-c", KILLED, url, doing, argument], stdout=subprocess.PIPE)
    assert writer.stdout is not None
    assert writer.stdout.readline() == b"in mid-transaction\n"
    os.kill(writer.pid, signal.SIGKILL)
    writer.wait(timeout=60)
    writer.stdout.close()
    assert dump(Index(url)) == before
    for path in runs:
        index.add_run(path)
    assert answers(index.results()) == expected(runs)


def test_a_torn_record_is_no_point_and_moves_no_other(url: str, tmp_path: Path) -> None:
    path, index = run(tmp_path, "torn", result("torn", 1.0)), Index(url)
    with open(path / "results.jsonl", "ab") as file:
        file.write(b'{"benchmark": "fli')
    index.add_run(path)
    results.append(path, result("torn", 2.0))
    assert index.add_run(path) == 1
    assert [row["value"] for row in index.results()] == [1.0, 2.0]


def test_a_line_that_breaks_later_moves_no_other_and_doubles_nothing(url: str, tmp_path: Path) -> None:
    path, index = run(tmp_path, "torn", *(result("torn", float(v), metric=f"m{v}") for v in range(4))), Index(url)
    index.add_run(path)
    file = path / "results.jsonl"
    lines = file.read_bytes().split(b"\n")
    deep = b"[" * 100_000
    file.write_bytes(
        b"\n".join([lines[0], b"\xff\xfe", lines[2], lines[3], b"[1,2]", b'{"version":1,"benchmark":"x"}', deep, b""])
    )
    assert (index.add_run(path), index.add_run(path)) == (0, 0)
    assert [row["value"] for row in index.results()] == [0.0, 1.0, 2.0, 3.0]
    assert [said.removeprefix(f"{file}: ").partition(" (")[0] for said in index.problems] == [
        f"line 2: {DAMAGED_LINE}", "line 5: no result", "line 6: no result",
        f"line 7: {DAMAGED_LINE}",
    ]  # fmt: skip


@pytest.mark.parametrize("key", [{"value": "fast"}, {"at": 5}, {"machine": "x"}, {"valid": "yes"}, {"samples": 1.5}])
def test_a_record_of_another_shape_is_told_by_its_line(tmp_path: Path, key: dict[str, Any]) -> None:
    path = run(tmp_path, "odd", result("odd", 1.0))
    good = json.loads((path / "results.jsonl").read_text())
    append_json(path / "results.jsonl", {**good, **key})
    found, [said] = results.numbered(path)
    assert [(number, one.value) for number, one in found] == [(0, 1.0)]
    assert str(said).startswith(f"{path / 'results.jsonl'}: line 2: no result ({next(iter(key))}")


@pytest.mark.parametrize(("version", "said"), [(2, "2"), ("1", "'1'"), (True, "True"), (None, "none")])
def test_a_record_of_another_version_or_of_none_is_told_by_its_line(tmp_path: Path, version: object, said: str) -> None:
    path = run(tmp_path, "odd", result("odd", 1.0))
    good = json.loads((path / "results.jsonl").read_text())
    other = {key: value for key, value in good.items() if key not in ("version", "crc32")}
    append_json(path / "results.jsonl", other if version is None else other | {"version": version})
    figures, problems = results.numbered(path)
    assert [number for number, _ in figures] == [0]
    (problem,) = map(str, problems)
    assert problem == f"{path / 'results.jsonl'}: line 2: version: found {said}, allowed: 1; {EMPTY_LINE}"


def test_an_emptied_line_leaves_the_numbers_of_those_after_it(tmp_path: Path) -> None:
    path = run(tmp_path, "odd", *(result("odd", float(value), metric=f"m{value}") for value in range(1, 5)))
    index = Index(f"sqlite:///{tmp_path}/index.db")
    assert index.add_run(path) == 4
    lines = (path / "results.jsonl").read_text().splitlines(keepends=True)
    (path / "results.jsonl").write_text("".join([lines[0], "\n", *lines[2:]]))
    assert index.add_run(path) == 0, "a deleted line would move those after it, which would count twice"


def test_two_writers_at_once(url: str, tmp_path: Path) -> None:
    nights = [
        run(tmp_path, f"n{n:02}", *(
            result(f"n{n:02}", float(v), metric=f"m{v % 7}", at=f"2026-04-{n + 1:02}T00:00:00+00:00")
            for v in range(60)
        ))
        for n in range(6)
    ]  # fmt: skip

    def write(paths: list[Path]) -> int:
        index = Index(url)  # both also make the schema
        return sum(index.add_run(path) for path in paths)

    with ThreadPoolExecutor(2) as pool:
        added = list(pool.map(write, [nights, list(reversed(nights))]))
    assert sum(added) == 360
    live = dump(Index(url))
    index = Index(url)
    index.rebuild(nights)
    assert dump(index) == live


def test_machine_makes_another_series_and_software_does_not() -> None:
    key = series_key(result("r"))
    assert key == series_key(result("x", 5.0, software={"spark": "9"}, config_hash="other"))
    assert key != series_key(result("r", machine={**MACHINE, "cpu": "Example 2"}))
    assert key != series_key(result("r", machine={**MACHINE, "host": "rack 2"}))
    assert key == series_key(result("r", machine={**MACHINE, "os": "Linux 6.2", "memory_gib": 23.9}))
    assert key != series_key(result("r", system="flink"))


@pytest.mark.parametrize("schema", ["0003", "9999"])
def test_the_schema_of_another_version_is_one_line_and_stays_as_it_is(url: str, tmp_path: Path, schema: str) -> None:
    """The line names two ways out; the first of them, another database and a rebuild, gives the same index."""
    runs, index = three_runs(tmp_path), Index(url)
    for one in runs:
        index.add_run(one)
    wanted = dump(index)
    with database.transaction(index.engine) as connection:
        connection.execute(text(f"UPDATE schema_number SET number = '{schema}'"))
    for opens in (Index, lambda url: rebuilt(url, runs)):
        with pytest.raises(UserError, match=f"found schema {schema}, allowed: 0006; another version made it") as error:
            opens(url)
        assert "\n" not in str(error.value)
    other, _ = rebuilt(f"sqlite:///{tmp_path / 'other.db'}", runs)
    assert dump(other) == wanted


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://me:secret@127.0.0.1:1/results",
         r"postgresql\S*://\*\*\*@127.0.0.1:1/results: the database does not answer"),
        ("mysql://x/y", "found 'mysql', allowed: sqlite or postgresql"),
        ("nonsense", "not a URL"),
        ("postgresql://me@host:54a32/results", "not a URL"),
        ("sqlite:////dev/null/results.db", "does not answer|cannot be written"),
    ],
)  # fmt: skip
def test_a_database_that_cannot_be_had_is_one_line_without_its_password(url: str, said: str) -> None:
    with pytest.raises(UserError, match=said) as caught:
        Index(url)
    assert "secret" not in str(caught.value)


def test_a_file_that_is_no_database_and_tables_of_somebody_else(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("this is no database, but long enough to be read as one " * 20)
    with pytest.raises(UserError, match="file is not a database"):
        Index(f"sqlite:///{tmp_path / 'text.db'}")
    with sqlite3.connect(tmp_path / "theirs.db") as theirs:
        theirs.execute("CREATE TABLE series (name TEXT)")
    theirs.close()
    with pytest.raises(UserError, match="its tables are not Streamgauge's"):
        Index(f"sqlite:///{tmp_path / 'theirs.db'}")


def test_another_program_s_sqlite_file_is_refused_and_kept(tmp_path: Path) -> None:
    file = tmp_path / "other.db"
    with sqlite3.connect(file) as other:
        other.executescript("CREATE TABLE alembic_version (version_num TEXT); CREATE TABLE dag (id TEXT);")
    before = file.read_bytes()
    with pytest.raises(UserError, match="its tables are not Streamgauge's; choose another --database"):
        Index(f"sqlite:///{file}")
    assert file.read_bytes() == before


def test_reading_makes_no_database(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no such database; `streamgauge results add` makes it"):
        Index(f"sqlite:///{tmp_path}/nope/x.db", make=False)
    assert list(tmp_path.iterdir()) == []
