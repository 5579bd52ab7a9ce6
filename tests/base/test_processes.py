"""Starts modules: what they print, how they fail, and that they end with their input or are killed."""

from __future__ import annotations

import time

import pytest

from streamgauge.base.processes import Child


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
