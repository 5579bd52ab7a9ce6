from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

import pytest

from streamgauge.driver.ceiling import ceiling
from streamgauge.measure import cell


@pytest.fixture(autouse=True)
def _alone_and_quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A lock of our own, and no time for what is not looked at."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    monkeypatch.setattr(cell, "ceiling", partial(ceiling, seconds=0.2))
