"""Tests what is told of a job: its reason, its last lines, and the place of its log."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from streamgauge.bench.engines.job.running import Command

PYTHON = """Traceback (most recent call last):
  File "job.py", line 3, in <module>
    main()
TypeError: int() argument must be a string
%4|1795746335.652|TERMINATE|rdkafka#producer-2| [thrd:app]: Producer terminating with 18 messages
"""
JAVA = """Exception in thread "main" org.apache.kafka.streams.errors.StreamsException: task failed
\tat org.example.Job.main(Job.java:10)
Caused by: java.lang.NullPointerException: no carrier
\t... 3 more
"""


@pytest.mark.parametrize(
    ("printed", "reason", "words"),
    [
        ("", "it printed nothing", "it printed nothing; its log: "),
        ("one\ntwo\n  three\nfour\n", "four", "its last lines: two | three | four; its log: "),
        ("an end\n  of it\n", "an end", "its last lines: an end | of it; its log: "),
        (PYTHON, "TypeError: int() argument must be a string", "its last lines: main() | TypeError: int() argument "),
        (JAVA, "Caused by: java.lang.NullPointerException: no carrier", "its last lines: at org.example.Job.main"),
    ],
    ids=["nothing", "lines", "margin", "Python", "Java"],
)
def test_a_job_that_ended_is_told_by_its_last_error(tmp_path: Path, printed: str, reason: str, words: str) -> None:
    (tmp_path / "text").write_text(printed)
    code = f"print(open({str(tmp_path / 'text')!r}).read(), end='')"
    command = Command([sys.executable, "-c", code], {}, tmp_path, tmp_path / "logs" / "job.log")
    while command.exit_code() is None:
        time.sleep(0.05)
    command.end()
    assert command.last_line() == reason
    assert command.last_words().startswith(words)
    assert command.last_words().endswith(str(tmp_path / "logs" / "job.log"))
    assert (tmp_path / "logs" / "job.log").read_text() == printed


def test_what_an_earlier_process_printed_is_no_reason_of_a_later_one(tmp_path: Path) -> None:
    """A killed job is started again, and prints into the same log."""
    words = []
    for code in ("print('TimeoutError: the first')", "", "print('two')"):
        command = Command([sys.executable, "-c", code], {}, tmp_path, tmp_path / "job.log")
        while command.exit_code() is None:
            time.sleep(0.05)
        command.end()
        words.append(command.last_line())
    assert words == ["TimeoutError: the first", "it printed nothing", "two"]
    assert (tmp_path / "job.log").read_text() == "TimeoutError: the first\ntwo\n"
