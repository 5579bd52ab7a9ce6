"""Tests what a promise allows and which tests count, and that its benchmark prints what docs/advise.md says."""

from __future__ import annotations

import os
import re
import subprocess
import sys

from streamgauge.app.cli.advise import _share
from streamgauge.records.profile import Span
from streamgauge.streams.advice import promise
from tests.conftest import ROOT


def test_the_flights_of_january_are_those_of_the_page() -> None:
    command = [sys.executable, "-m", "benchmarks.promises", "--seeds", "1", "--only", "flights of January"]
    wide = os.environ | {"COLUMNS": "250"}
    printed = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, env=wide).stdout
    ((first, *cells),) = [
        [cell.strip() for cell in line.strip("│").split("│")] for line in printed.splitlines() if line.startswith("│")
    ]
    del cells[8]  # the median of the naive delay, which the page leaves out
    wanted = re.search(r"^\| flights of January \| (1 %.*) \|$", (ROOT / "docs" / "advise.md").read_text(), re.M)
    assert first == "flights of January"
    assert wanted is not None
    assert cells == wanted[1].split(" | ")


def test_a_share_is_the_decimal_that_was_written() -> None:
    """Tells 0.7 % of 1,000 from the float, of which they are fewer than 7."""
    share = _share("lost", "0.7%")
    assert all(promise.allowed(1000, _share("lost", f"{n / 10}%")) == n for n in range(1, 1000))
    sizes = [1000] * 25
    spans = [Span(min=1000 * n, max=1000 * n + 999) for n in range(25)]
    kept = promise.tested(promise.constant(0, 25), lambda *_: 7, sizes, share, spans)
    assert (kept.held, kept.tests) == (20, 20)
    assert promise.least_items(share) == 25 * 715, "so that each block may lose 5"
    assert [promise.blocks_for(25 * 715 - less, share) for less in (0, 1)] == [25, 0]


def test_a_test_counts_by_the_length_of_the_stream_so_far_and_not_of_what_comes_later() -> None:
    spans = [Span(min=120 * n, max=120 * n + 119) for n in range(25)]
    old = [*spans[:-1], Span(min=-(10**9), max=3000)]
    tests = [
        promise.tested(promise.constant(3600, 25), lambda *_: 0, [9] * 25, 0.5, some).tests for some in (spans, old)
    ]
    assert tests == [0, 1]


def test_no_rule_chooses_a_delay_beyond_64_bits() -> None:
    longest = max(one.whole for one in promise.choices([0] * 20 + [2**62 + 10**9] * 5))
    assert 2**62 < longest < 2**63
