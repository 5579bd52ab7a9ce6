from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

import pytest

from streamgauge.bench.driver.ceiling import ceiling
from streamgauge.bench.measure import searcher
from streamgauge.bench.measure.yardstick import Yardstick


@pytest.fixture(autouse=True)
def _alone_and_quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A lock of the test's own, and little time for the driver's ceiling and the machine's speed.

    A short run of the yardstick is noisy, so no window is repeated for it.
    """
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    monkeypatch.setattr(searcher, "ceiling", partial(ceiling, seconds=0.2))
    monkeypatch.setattr("streamgauge.bench.driver.ceiling.HELD_ROWS", 50_000)
    monkeypatch.setattr(searcher, "Yardstick", partial(Yardstick, units=2))
    monkeypatch.setattr(searcher, "moved", lambda *_: False)
