"""The one-shot commands, in processes of their own and on Spark: figures, files, what only shows while reading."""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.command import Answer, Call
from tests.conftest import ROOT
from tests.e2e.processes import COMMAND, FLIGHTS
from tests.oracle import running

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]
MASTER = ["--master", "local[2]"]
FLIGHTS_TIME = ["--time", "sched", "--format", "%Y-%m-%d %H:%M:%S"]
LATE = ["--target", "70", "--max", "6h", "--seed", "7"]
SECONDS = ["--time", "t", "--unit", "s"]
TWO = ["--target", "20", "--seed", "1", *SECONDS]
PLACE = "place"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cli")


@pytest.fixture(scope="module")
def full_disk(root: Path) -> Iterator[bool]:
    """True if root/full is a disk of 2 MB."""
    place = root / "full"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", place], capture_output=True)
    yield mounted.returncode == 0
    if mounted.returncode == 0:
        subprocess.run(["umount", "--lazy", place], check=True)


@pytest.fixture(scope="module")
def answers(root: Path, full_disk: bool) -> dict[str, Answer]:
    """Runs each command of this file in one process, so that one JVM serves them all."""
    texts = {
        "header.csv": b"t,v\n",
        "bytes.csv": b"t,v\n1,2\n\xff\xfe,3\n",
        "growing.csv": b"t\n" + b"1\n" * 1000,
        "wide.csv.gz": gzip.compress(b"t,v\n" + b"".join(b"%d,%s\n" % (i, b"x" * 400) for i in range(20_000))),
        "sparse.csv": b"t\n" + b"".join(b"%d\n" % (60 * i) for i in range(500)),
        "odd.csv": b"t,v\n" + b"".join(b"%d,x\n" % (60 * i) for i in range(400)) + b"now,x\nthen,y\r\n",
        "ends.csv": b"t,v\r\n" + b"".join(b"%d,x%s\n" % (60 * i, b"\r" * (i % 3)) for i in range(400)) + b"30000,y",
        "bom;crlf.csv": "\ufefft;v\r\n3;a\r\n1;b\r\n2;c\r\n".encode(),
    }
    for name, text in texts.items():
        (root / name).write_bytes(text)

    def generate(name: str, out: str, *options: str) -> list[str]:
        return ["generate", str(root / name), "--out", str(root / PLACE / out), "--json", *options]

    (root / PLACE).mkdir()
    drawn = ["--delay", "empirical", "--profile", str(root / "profile.json"), "--max", "1d"]
    drawn += ["--order", "event_time", "--target", "20", "--seed", "3"]
    calls = {
        "analyze": Call(["analyze", str(FLIGHTS), *FLIGHTS_TIME, "--arrival", "actual", "--json"]),
        "full": Call(["analyze", str(root / "bom;crlf.csv"), "--separator", ";", "--full", "--json", *SECONDS]),
        "words": Call(["analyze", str(FLIGHTS), *FLIGHTS_TIME, "--profile", str(root / "profile.json")]),
        "no profile": Call(["analyze", str(root / "sparse.csv"), "--profile", str(root / "no" / "profile"), *SECONDS]),
        "empirical": Call(generate(str(FLIGHTS), "empirical", *FLIGHTS_TIME, *drawn, "--csv")),
        "generate": Call(generate(str(FLIGHTS), "flights", *FLIGHTS_TIME, *LATE, "--csv")),
        "on Spark": Call(generate(str(FLIGHTS), "spark", *FLIGHTS_TIME, *LATE, "--csv", *MASTER)),
        "sorted": Call(generate(str(FLIGHTS), "sorted", *FLIGHTS_TIME, *drawn, "--csv-parts")),
        "sorted on Spark": Call(generate(str(FLIGHTS), "sorted-spark", *FLIGHTS_TIME, *drawn, "--csv-parts", *MASTER)),
        "analyzed on Spark": Call(
            ["analyze", str(FLIGHTS), *FLIGHTS_TIME, "--arrival", "actual", "--full", "--json", *MASTER]
        ),
        "analyzed in full": Call(["analyze", str(FLIGHTS), *FLIGHTS_TIME, "--arrival", "actual", "--full", "--json"]),
        "header only on Spark": Call(generate("header.csv", "no", *TWO, *MASTER)),
        "disk full on Spark": Call(
            generate("wide.csv.gz", "../full/out", "--csv", "--max", "1h", *TWO, *MASTER),
            least_space=0,
        ),
        "header only": Call(generate("header.csv", "no", *TWO)),
        "not UTF-8": Call(generate("bytes.csv", "no", *TWO)),
        "infeasible": Call(generate("sparse.csv", "no", *TWO)),
        "bad lines": Call(
            [
                "generate",
                str(root / "odd.csv"),
                "--out",
                str(root / PLACE / "odd"),
                "--json",
                *TWO,
                "--on-infeasible",
                "closest",
                "--quarantine",
                str(root / "odd.bad"),
            ]
        ),
        "bad lines, for people": Call(
            ["generate", str(root / "odd.csv"), "--out", str(root / PLACE / "odd2"), *TWO, "--on-infeasible", "closest"]
        ),
        "line ends": Call(generate("ends.csv", "ends", *TWO, "--on-infeasible", "closest", "--csv")),
        "closest": Call(generate("sparse.csv", "closest", *TWO, "--on-infeasible", "closest")),
        "below": Call(generate(str(FLIGHTS), "no", *FLIGHTS_TIME, "--target", "20", "--seed", "1")),
        "changes": Call(generate("growing.csv", "no", *TWO), growing=str(root / "growing.csv")),
        "disk full": Call(
            ["generate", str(root / "wide.csv.gz"), "--out", str(root / "full" / "out"), "--csv", "--max", "1h", *TWO],
            least_space=0,
        ),
    }
    if not full_disk:
        del calls["disk full"], calls["disk full on Spark"]
    done = subprocess.run(
        [sys.executable, "-m", "tests.command"], cwd=ROOT, check=True, timeout=600, capture_output=True, text=True,
        input=json.dumps([asdict(call) for call in calls.values()]),
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    return {name: Answer(**answer) for name, answer in zip(calls, json.loads(done.stdout), strict=True)}


def flights() -> list[dict[str, str]]:
    with gzip.open(FLIGHTS, "rt", newline="") as handle:
        return list(csv.DictReader(handle))


def ns(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 10**9


def test_analyze_gives_the_figures_of_the_flights(answers: dict[str, Answer]) -> None:
    found = answers["analyze"].json
    times = [ns(row["sched"]) for row in flights()]
    delays = sorted(running.delays(times))
    assert {key: found[key] for key in ("events", "out_of_order", "quarantined")} == {
        "events": 26_475,
        "out_of_order": 14_878,
        "quarantined": 0,
    }
    assert len(delays) == 14_878
    descents = sum(b < a for a, b in pairwise(times))
    assert (found["adjacent_descents"], found["runs"]) == (descents, descents + 1)
    assert (found["inversions"], found["distance"], found["interleaved"]) == (None, None, None)
    rank = {name: delays[-(-len(delays) * q // 100) - 1] for name, q in (("p50", 50), ("p90", 90), ("p99", 99))}
    assert found["delay_ns"] == {"min": delays[0], **rank, "max": delays[-1], "mean": sum(delays) / len(delays)}
    minute = 60 * 10**9
    assert (rank["p50"], rank["p99"], delays[-1]) == (10 * minute, 195 * minute, 1300 * minute)
    for step in found["watermark_curve"]:
        assert step["late"] == sum(delay > step["watermark_ns"] for delay in delays)
        assert step["fraction"] == step["late"] / 26_475
    recorded = [ns(row["actual"]) - ns(row["sched"]) for row in flights()]
    assert found["recorded_delay_ns"]["negative"] == sum(delay < 0 for delay in recorded)


def test_full_adds_what_needs_the_whole_stream(answers: dict[str, Answer]) -> None:
    found = answers["full"].json
    assert (found["events"], found["out_of_order"], found["adjacent_descents"], found["runs"]) == (3, 2, 1, 2)
    assert (found["inversions"], found["distance"], found["interleaved"]) == (2, 2, 2)


def test_for_people_it_prints_lines(answers: dict[str, Answer]) -> None:
    told = answers["words"]
    assert told.code == 0
    assert "26,475" in told.out
    assert "14,878  (56.1964 %)" in told.out


def test_a_profile_is_written_whole_and_drawn_from(answers: dict[str, Answer], root: Path) -> None:
    answers["no profile"].refused("--profile ", "no/profile: cannot be written; name a file in a folder")
    profile, told = json.loads((root / "profile.json").read_text()), answers["analyze"].json
    assert [profile[key] for key in ("events", "out_of_order", "delay")] == [26_475, 14_878, told["delay_ns"]]
    assert answers["empirical"].json["achieved_out_of_order"] == round(26_475 * 0.2)
    with open(root / PLACE / "empirical" / "stream.csv", newline="") as handle:
        delays = [int(row["ingestion_time"]) - int(row["event_time"]) for row in csv.DictReader(handle)]
    delayed = [delay for delay in delays if delay]
    assert len(delayed) >= round(26_475 * 0.2)
    bins = profile["delay_histogram"]
    assert bins[0][0] <= min(delayed) <= max(delayed) <= bins[-1][1]
    outside = sum(not any(low <= delay <= high for low, high, _ in bins) for delay in delayed)
    assert outside < len(delayed) / 100, "the table of 4,096 steps may straddle a gap"


def test_generate_writes_what_it_says(answers: dict[str, Answer], root: Path) -> None:
    found = answers["generate"].json
    assert (found["events"], found["source_out_of_order"]) == (26_475, 14_878)
    assert found["target_out_of_order"] == found["achieved_out_of_order"] == round(26_475 * 0.7)
    assert found["feasible_max"] >= found["achieved_out_of_order"]
    names = [Path(name) for name in found["files"]]
    assert all(name.is_file() and name.parent == root / PLACE / "flights" for name in names)
    [file] = [name for name in names if name.suffix == ".csv"]
    with open(file, newline="") as handle:
        rows = list(csv.DictReader(handle))
    assert list(rows[0])[:2] == ["ingestion_time", "event_time"]
    times = [int(row["event_time"]) for row in rows]
    assert running.late(times) == round(26_475 * 0.7)
    ingestion = [int(row["ingestion_time"]) for row in rows]
    assert ingestion == sorted(ingestion)
    assert times == [ns(row["sched"]) for row in rows]

    def originals(some: list[dict[str, Any]]) -> list[tuple[str, ...]]:
        return sorted(tuple(row[name] for name in ("sched", "actual", "carrier", "flight", "origin")) for row in some)

    assert originals(rows) == originals(flights())


@pytest.mark.parametrize(("ours", "sparks"), [("generate", "on Spark"), ("sorted", "sorted on Spark")])
def test_spark_writes_what_processes_of_ours_write(answers: dict[str, Answer], ours: str, sparks: str) -> None:
    found, expected = answers[sparks].json, answers[ours].json
    assert found["sha256"] == expected["sha256"]
    one, other = (
        b"".join(Path(name).read_bytes() for name in told["files"] if name.endswith(".csv"))
        for told in (found, expected)
    )
    assert one == other
    assert one.count(b"\n") == 26_476


def test_spark_measures_what_processes_of_ours_measure(answers: dict[str, Answer]) -> None:
    assert answers["analyzed on Spark"].json == answers["analyzed in full"].json


def test_one_core_another_process_the_same_hash_and_only_json_on_standard_output(
    answers: dict[str, Answer], root: Path
) -> None:
    out = root / "one core"
    options = [str(FLIGHTS), *FLIGHTS_TIME, *LATE, "--csv", "--out", str(out), "--json", "--master", "local[1]"]
    done = subprocess.run([COMMAND, "generate", *options], check=True, timeout=300, capture_output=True, text=True)
    found = json.loads(done.stdout)
    assert found["sha256"] == answers["generate"].json["sha256"]
    csv_of = [
        hashlib.sha256((place / "stream.csv").read_bytes()).hexdigest() for place in (out, root / PLACE / "flights")
    ]
    assert csv_of[0] == csv_of[1]


@pytest.mark.parametrize("where", ["", " on Spark"])
def test_only_a_header(answers: dict[str, Answer], where: str) -> None:
    answers[f"header only{where}"].refused(
        "header.csv: no line of data, only a header or nothing; name a file with data"
    )


def test_bytes_that_are_not_utf8(answers: dict[str, Answer]) -> None:
    answers["not UTF-8"].refused("bytes.csv: line 3: not UTF-8", "1 of 2 lines are bad, allowed: 0.01 of them")


def test_lines_that_are_no_events_are_told_and_written(answers: dict[str, Answer], root: Path) -> None:
    found = answers["bad lines"].json
    [reason] = found["quarantine_reasons"]
    assert (found["events"], found["quarantined"], found["quarantine_reasons"][reason]) == (400, 2, 2)
    assert (root / "odd.bad").read_bytes() == b"now,x\nthen,y\r\n"
    assert json.loads((root / PLACE / "odd" / "manifest.json").read_text())["quarantined"] == 2
    said = answers["bad lines, for people"].out
    assert f"left out      2 lines: 2 {reason}; --quarantine FILE writes them" in said


def test_lines_come_out_byte_for_byte(answers: dict[str, Answer], root: Path) -> None:
    """Mixed line ends, a carriage return more than a line end has, and a last line without one."""
    assert answers["line ends"].json["events"] == 401
    head, *rows = (root / PLACE / "ends" / "stream.csv").read_bytes().split(b"\n")[:-1]
    assert head == b"ingestion_time,event_time,t,v\r"
    own = (root / "ends.csv").read_bytes().split(b"\n")[1:]
    assert sorted(row.split(b",", 2)[2] for row in rows) == sorted(own)


def test_a_target_beyond_the_bound_says_the_bound(answers: dict[str, Answer]) -> None:
    answers["infeasible"].refused("target 100 of 500 events", "this seed's bound is 0 (0.0000 %)", "closest")
    found = answers["closest"].json
    assert (found["target_out_of_order"], found["achieved_out_of_order"], found["feasible_max"]) == (100, 0, 0)


def test_a_target_below_the_source_s_own_disorder_says_so(answers: dict[str, Answer]) -> None:
    answers["below"].refused("target 5295 of 26475", "the source has 14878 (56.1964 %) already")


def test_a_source_that_changes_while_it_is_read(answers: dict[str, Answer]) -> None:
    answers["changes"].refused("growing.csv: changed while it was read; run again once it is no longer written to")


@pytest.mark.parametrize("where", ["", " on Spark"])
def test_a_full_disk(answers: dict[str, Answer], root: Path, full_disk: bool, where: str) -> None:
    if not full_disk:
        pytest.skip("needs the right to mount a small tmpfs")
    answers[f"disk full{where}"].refused(
        "cannot be written: No space left on device; free space or choose another", "--out"
    )
    assert list((root / "full").iterdir()) == []


def test_nothing_is_left_of_what_was_refused(answers: dict[str, Answer], root: Path) -> None:
    assert {name for name, answer in answers.items() if answer.code} >= {"header only", "infeasible", "changes"}
    assert sorted(path.name for path in (root / PLACE).iterdir()) == [
        "closest",
        "empirical",
        "ends",
        "flights",
        "odd",
        "odd2",
        "sorted",
        "sorted-spark",
        "spark",
    ]


@pytest.mark.parametrize(
    ("number", "during", "where"),
    [
        (signal.SIGTERM, "starting Spark", MASTER),
        (signal.SIGINT, "generating the stream", MASTER),
        (signal.SIGTERM, "reading the source", []),
        (signal.SIGINT, "generating the stream", []),
    ],
)
def test_a_signal_leaves_one_line_and_nothing_beside_it(
    tmp_path: Path, number: int, during: str, where: list[str]
) -> None:
    (tmp_path / "rows.csv").write_text("t\n" + "".join(f"{60 * i}\n" for i in range(300_000)))
    command = [COMMAND, "generate", "rows.csv", *TWO, "--out", "out", "--csv", *where]
    ours, theirs = pty.openpty()  # a terminal is told at once what is done
    said = ""
    with subprocess.Popen(command, cwd=tmp_path, stderr=theirs, start_new_session=True) as process:
        os.close(theirs)
        while during not in said:
            said += os.read(ours, 4096).decode()
        os.killpg(process.pid, number) if number == signal.SIGINT else process.send_signal(number)
        with suppress(OSError):  # until the JVM has ended, too
            while more := os.read(ours, 4096).decode():
                said += more
    os.close(ours)
    assert process.returncode == 130
    assert said.endswith("\r\x1b[2Kstreamgauge: stopped; nothing was written\r\n")
    assert "Traceback" not in said
    assert "Exception" not in said
    assert [path.name for path in tmp_path.iterdir()] == ["rows.csv"]
