from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.marked import MARKED


@pytest.fixture
def marked(tmp_path: Path) -> Path:
    (tmp_path / "events.csv").write_text("t\n1\n2\n3\n")
    file = tmp_path / "marked.yaml"
    file.write_text(MARKED.format(engine="tests.nothing:Engine"))
    return file
