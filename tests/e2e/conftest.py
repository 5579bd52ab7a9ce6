from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.e2e.flink import Proxied


@pytest.fixture(scope="session")
def one_flink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxied]:
    """The one Flink of all tests that need no other settings; one process runs their files, as tests/conftest.py says.

    A task manager that a test kills is started again; jobs of other tests have ended.
    """
    from tests.e2e.flink import started

    with started(tmp_path_factory.mktemp("flink")) as made:
        yield made
