"""Says what a draw's end falls short of."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tests.hostile.draw import Draw, Ended

SECONDS, BYTES = 60.0, 2 << 30
#: commands that may leave their store
STORES = ("results", "dashboard", "check", "run", "shown", "pages")


def shortcomings(draw: Draw, end: Ended) -> Iterator[str]:
    """Yields what a draw's end falls short of."""
    if "Traceback" in end.err + end.out or (end.code in (70, 1) and not _may_end_with_1(draw)):
        yield f"a stack trace, or exit code {end.code}"
    if end.code < 0:
        yield f"killed by signal {-end.code}"
    lines = [line for line in end.err.splitlines() if line.startswith("streamgauge")]
    if end.code and not lines and not _may_end_with_1(draw):
        yield "no line that says why"
    if any(len(line) > 4000 for line in lines):
        yield "a line of more than 4,000 characters"
    if end.code == 2 and end.out and "--json" not in draw.arguments and not _may_end_with_1(draw):
        yield "output beside the mistake"
    if not end.code and "--json" in draw.arguments and not _is_json(end.out):
        yield "no JSON"
    if any(name.startswith(("ran-", "tmp/ran-")) for name in end.left):
        yield "ran code that the file names"
    if end.seen:
        yield f"shows what is hidden: {', '.join(end.seen[:4])}"
    if not end.code and draw.told not in ("", end.out):
        yield "other figures than those that were written"
    if end.seconds > SECONDS:
        yield f"{end.seconds:.0f} s"
    if end.bytes > BYTES:
        yield f"{end.bytes >> 20} MiB"
    allowed = ("artifacts", "page.html") if draw.arguments[0] in STORES else ()
    left = [name for name in end.left if end.code and not name.startswith((*allowed, "f"))]
    if left:
        yield f"left behind: {', '.join(left[:4])}"


def _is_json(text: str) -> bool:
    """True if a text is strict JSON, which has no NaN and no Infinity."""

    def refused(name: str) -> None:
        raise ValueError(name)

    try:
        json.loads(text, parse_constant=refused)
    except ValueError:
        return False
    return True


def _may_end_with_1(draw: Draw) -> bool:
    """True if broken lines of records are left out with a warning each, beside the output and before the exit code."""
    return draw.arguments[0] in ("results", "dashboard")
