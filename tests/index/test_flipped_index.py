"""A results.db in which a bit was flipped: it gives the same rows or one line, and `results rebuild` mends it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from streamgauge.base.errors import Damaged, UserError
from streamgauge.results.index import Index
from streamgauge.results.index.result_index import rebuilt
from tests.flips import flipped
from tests.index.example import dump, judgement_rows, three_runs

DRAWS = 100


def test_a_flipped_bit_gives_the_same_rows_or_one_line_and_is_mended(tmp_path: Path) -> None:
    runs, file = three_runs(tmp_path), tmp_path / "results.db"
    url = f"sqlite:///{file}"
    index, count = rebuilt(url, runs)
    wanted = dump(index), index.results(), judgement_rows(index)
    index.engine.dispose()
    sound, lines, read = file.read_bytes(), [], []
    # half of the pages are empty: bits of those that are not, and of the header
    pages = sorted({at // 64 for at in range(len(sound)) if any(sound[at // 64 * 64 : at // 64 * 64 + 64])})
    used = b"".join(sound[64 * page : 64 * page + 64] for page in pages)
    for copy in flipped(used, 1, DRAWS):
        damaged = bytearray(sound)
        for number, page in enumerate(pages):
            damaged[64 * page : 64 * page + 64] = copy[64 * number : 64 * number + 64]
        file.write_bytes(damaged)
        try:
            opened = Index(url, make=False)
            read.append((dump(opened), opened.results(), judgement_rows(opened)))
            opened.engine.dispose()
        except UserError as told:
            lines.append(str(told))
            if "another version made it" in lines[-1]:  # the number of its schema was hit
                continue
        index, again = rebuilt(url, runs)
        assert (again, dump(index)) == (count, wanted[0])
        index.engine.dispose()
    assert all(one == wanted for one in read)
    assert len(lines) > DRAWS / 3
    assert all(str(file) in line and "\n" not in line for line in lines)
    assert sum("`streamgauge results rebuild` makes it again from the records" in line for line in lines) > DRAWS / 3


def test_what_a_damaged_database_held_is_kept_beside_the_new_one(tmp_path: Path) -> None:
    runs, file = three_runs(tmp_path), tmp_path / "results.db"
    file.write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    before = file.read_bytes()
    index, count = rebuilt(f"sqlite:///{file}", runs)
    assert (count, len(index.results())) == (6, 6)
    index.engine.dispose()
    file.write_bytes(before[:-1])
    rebuilt(f"sqlite:///{file}", runs)
    kept = [(tmp_path / f"results.db.damaged{number}").read_bytes() for number in ("", "2")]
    assert kept == [before, before[:-1]]


def test_a_row_without_its_checksum_is_damaged(tmp_path: Path) -> None:
    runs, file = three_runs(tmp_path), tmp_path / "results.db"
    index, _ = rebuilt(f"sqlite:///{file}", runs)
    index.engine.dispose()
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE points SET crc32 = NULL")
    with pytest.raises(Damaged, match="results rebuild"):
        dump(Index(f"sqlite:///{file}"))
