"""Tells who waits what a command is doing: in one line that stays in its place on a terminal, in lines elsewhere."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import ClassVar, Self, TextIO

from streamgauge.base.printing import printable

#: longest silence where no terminal is, seconds
EVERY_S = 15.0
_TICK_S, _REDRAW_S = 0.2, 0.5
_ERASE, _DIM, _PLAIN = "\r\x1b[2K", "\x1b[2m", "\x1b[0m"
#: held by whoever writes, and while this process forks, so that no copy begins with a line half written
_WRITING = threading.RLock()
os.register_at_fork(before=_WRITING.acquire, after_in_parent=_WRITING.release, after_in_child=_WRITING.release)


class Live:
    """Shows what `state` returns while the block runs; `tell` prints lines above it.

    On a terminal the line is renewed twice a second and erased at the end. Elsewhere it is printed after every_s
    without another line. An empty state is not shown.
    """

    #: the ones whose block runs; the last of them is shown
    _running: ClassVar[list[Live]] = []

    def __init__(self, state: Callable[[], str], out: TextIO, every_s: float = EVERY_S) -> None:
        self._state, self._out = state, out
        self._on_terminal = out.isatty() and os.environ.get("TERM") != "dumb"
        self._every_s = _REDRAW_S if self._on_terminal else every_s
        self._spoke = time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._tick, daemon=True)

    def __enter__(self) -> Self:
        self._running.append(self)
        if self._on_terminal:
            self._show()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        with _WRITING, suppress(OSError):
            self._running.remove(self)
            self._erase()

    def _erase(self) -> None:
        if self._on_terminal:
            self._out.write(_ERASE)
            self._out.flush()

    def _show(self) -> None:
        with _WRITING:
            if self is not self._running[-1] or not (line := self._state()):
                return
            self._spoke = time.monotonic()
            if self._on_terminal:
                width = (os.get_terminal_size(self._out.fileno()).columns or 80) - 1
                line = printable(line)
                line = f"{line[: width - 1]}…" if len(line) > width else line
                self._out.write(f"{_ERASE}{_DIM}{line}{_PLAIN}")
            else:
                self._out.write(f"{line}\n")
            self._out.flush()

    def _tick(self) -> None:
        with suppress(OSError):  # nobody reads any more, as the next line of the command finds, too
            while not self._over.wait(min(_TICK_S, self._every_s / 4)):
                if time.monotonic() - self._spoke >= self._every_s:
                    self._show()


def tell(line: str, out: TextIO | None = None) -> None:
    """Prints a line at once, above the live one; on standard output unless another file is given."""
    with _WRITING:
        for live in Live._running:
            live._erase()
            live._spoke = time.monotonic()
        print(printable(line), file=out or sys.stdout, flush=True)


class Log(logging.Handler):
    """Prints log lines on standard error, above the live one."""

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(OSError):  # nobody reads any more, which must not end a measurement
            tell(self.format(record), sys.stderr)


def took(seconds: float) -> str:
    """Formats a time that passes: 42 s, 3 min 05 s, 2 h 10 min."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def about(seconds: float) -> str:
    """Formats an estimate: under a minute, about 8 min, about 2.5 h."""
    if seconds < 50:
        return "under a minute"
    return f"about {seconds / 3600:.1f} h" if seconds >= 2 * 3600 else f"about {max(1, round(seconds / 60))} min"
