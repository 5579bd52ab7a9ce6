"""Compares what an advice says that Flink loses with what Flink drops."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.advised import compare
from tests.e2e.flink import Proxied

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("flink_is_made")]


def test_flink_drops_what_the_advice_says(one_flink: Proxied, tmp_path: Path) -> None:
    compare(one_flink, "Flink", tmp_path)
