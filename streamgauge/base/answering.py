"""The first question to a remote store: its answer comes within a stated time, or is an error."""

from __future__ import annotations

import errno
import queue
import threading
from collections.abc import Callable
from typing import TypeVar

import pyarrow as pa

T = TypeVar("T")
#: longest wait for a store to say whether a file is there, whatever its client retries meanwhile
FIRST_ANSWER_S = 30.0


def answered(name: str, ask: Callable[[], T]) -> T:
    """Returns what a store answers to the first question about a file. Raises OSError if it refuses or is silent.

    The clients of some stores retry for minutes, in which no signal reaches them; so a thread asks, and may be left.
    """
    answers: queue.SimpleQueue[T | Exception] = queue.SimpleQueue()

    def work() -> None:
        try:
            answers.put(ask())
        except Exception as problem:
            answers.put(problem)

    threading.Thread(target=work, daemon=True).start()
    try:
        answer = answers.get(timeout=FIRST_ANSWER_S)
    except queue.Empty:
        raise TimeoutError(errno.ETIMEDOUT, f"the store has not answered for {FIRST_ANSWER_S:g} s", name) from None
    if isinstance(answer, pa.ArrowException) and not isinstance(answer, OSError):
        raise OSError(errno.EINVAL, short(answer), name)
    if isinstance(answer, Exception):
        raise answer
    return answer


def short(problem: Exception) -> str:
    """The message in one line of at most 300 characters: Arrow's lists a hundred folders if a library is missing."""
    said = " ".join(str(problem).split())
    return said if len(said) <= 300 else f"{said[:300]}…"
