"""Tests what is said while a command works, on a terminal and on a pipe."""

from __future__ import annotations

import fcntl
import io
import itertools
import multiprocessing
import os
import pty
import re
import select
import struct
import termios
import time
from typing import TextIO, cast

import pytest

from streamgauge.base import live
from streamgauge.base.live import Live, about, tell, took
from streamgauge.base.printing import Printed


def test_a_pipe_gets_a_line_after_each_silence_and_none_while_others_come() -> None:
    out = io.StringIO()
    with Live(lambda: "searching", out, every_s=0.4):
        for number in range(4):
            tell(f"step {number}", out)
            time.sleep(0.1)
        assert "searching" not in out.getvalue()
        time.sleep(1.1)
    lines = out.getvalue().splitlines()
    assert lines[:4] == [f"step {number}" for number in range(4)]
    assert set(lines[4:]) == {"searching"}
    assert 1 <= len(lines[4:]) <= 3


def test_an_empty_state_is_not_shown() -> None:
    out = io.StringIO()
    with Live(lambda: "", out, every_s=0.05):
        time.sleep(0.3)
    assert out.getvalue() == ""


class Terminal:
    """A terminal of 40 columns, and what is shown on it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TERM", "xterm")
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
        self._file = open(theirs, "w", encoding="utf-8")  # noqa: SIM115
        self.out = cast("TextIO", Printed(self._file))

    def shown(self) -> str:
        """Closes the terminal; returns all that was written to it."""
        text = ""
        while select.select([self._ours], [], [], 0.1)[0]:
            text += os.read(self._ours, 100_000).decode()
        self._file.close()
        os.close(self._ours)
        return text


def test_a_terminal_gets_one_line_that_is_cut_at_its_width_and_gone_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal(monkeypatch)
    with Live(lambda: "searching \x1b[31m" + "x" * 100, terminal.out):
        tell("a line that [stays], \x1b[2J", terminal.out)
        time.sleep(0.9)
    shown = terminal.shown()
    erase = "\r\x1b[2K"
    one = f"{erase}\x1b[2msearching \\x1b[31m{'x' * 20}…\x1b[0m"
    assert len(one) - len(erase) - 8 == 39
    assert shown in {f"{one}{erase}a line that [stays], \\x1b[2J\r\n{one * count}{erase}" for count in (1, 2)}


def test_of_two_the_inner_one_is_shown_and_then_the_outer_one_again(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal(monkeypatch)
    with Live(lambda: "outer", terminal.out):
        with Live(lambda: "inner", terminal.out):
            time.sleep(0.8)
        time.sleep(0.8)
    words = re.findall("outer|inner", terminal.shown())
    assert [word for word, _ in itertools.groupby(words)] == ["outer", "inner", "outer"]


def test_copies_of_a_process_whose_line_is_renewed_never_wait_for_its_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "_TICK_S", 1e-4)
    out = io.StringIO()
    with Live(lambda: "searching", out, every_s=1e-4):
        for _ in range(20):
            copy = multiprocessing.get_context("fork").Process(target=tell, args=("from a copy", io.StringIO()))
            copy.start()
            copy.join(10)
            assert copy.exitcode == 0
    assert out.getvalue().count("searching") > 20


@pytest.mark.parametrize(
    ("seconds", "passed", "estimate"),
    [
        (9, "9 s", "under a minute"),
        (65, "1 min 05 s", "about 1 min"),
        (430, "7 min 10 s", "about 7 min"),
        (7800, "2 h 10 min", "about 2.2 h"),
    ],
)
def test_times_are_told_in_the_units_of_people(seconds: float, passed: str, estimate: str) -> None:
    assert (took(seconds), about(seconds)) == (passed, estimate)
