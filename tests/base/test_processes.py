"""Starts modules: what they print, how they fail, and that they end with their input or are killed."""

from __future__ import annotations

import os
import signal
import time

import pytest

from streamgauge.base.errors import Stopped
from streamgauge.base.processes import STOPS, Child, stoppable


def test_a_child_gets_its_task_and_ends_with_its_input() -> None:
    assert Child("json.tool", "--compact", task='{"a": 1}').end(60) == '{"a":1}\n'


def test_a_child_that_fails_has_a_last_line_of_errors() -> None:
    child = Child("timeit", "-n", "1", "-r", "1", "1/0")
    assert child.wait(60) == 1
    assert child.last_error() == "ZeroDivisionError: division by zero"
    assert child.end() == ""


def test_a_child_that_says_nothing_of_its_failure() -> None:
    child = Child("timeit", "-n", "1", "-r", "1", "import os; os._exit(3)")
    assert (child.wait(60), child.last_error(), child.last_error("silence")) == (3, "no error output", "silence")
    child.end()


@pytest.mark.timeout(60)
def test_a_child_that_does_not_heed_the_end_of_its_input_is_killed() -> None:
    began = time.monotonic()
    child = Child("timeit", "-n", "1", "-r", "1", "import time; time.sleep(300)")
    assert child.end(0.5) == ""
    assert child.returncode == -9
    assert time.monotonic() - began < 30


def interrupted(number: int, error: Exception) -> None:
    """Is interrupted by a signal, and makes an error of its own of it."""
    try:
        os.kill(os.getpid(), number)
    except KeyboardInterrupt:
        raise error from None


@pytest.mark.parametrize("number", STOPS)
def test_a_library_that_makes_an_error_of_a_signal_is_stopped_all_the_same(number: int) -> None:
    with pytest.raises(KeyboardInterrupt), stoppable():
        interrupted(number, ImportError("numpy failed to import"))


def test_a_command_says_itself_how_far_it_was_stopped() -> None:
    with pytest.raises(Stopped, match="nothing was written"), stoppable():
        interrupted(signal.SIGTERM, Stopped("stopped; nothing was written"))


def test_an_error_without_a_signal_stays_what_it_is() -> None:
    with pytest.raises(ImportError), stoppable():
        raise ImportError("numpy failed to import")
