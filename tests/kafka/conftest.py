"""Topics on the broker of all tests."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

import pytest

from streamgauge.app.services.broker import Broker
from streamgauge.streams.kafka.clients import Access, Topics
from tests.driver.conftest import serve

__all__ = ["serve"]  # a fixture here, too


@pytest.fixture
def access(broker: Broker) -> Access:
    return Access(broker.bootstrap)


@pytest.fixture
def topic(access: Access) -> Iterator[Callable[[int], str]]:
    """topic(partitions) -> name of a new topic."""
    topics, made = Topics(access), list[str]()

    def make(partitions: int = 1) -> str:
        made.append(f"test-{uuid.uuid4().hex[:8]}")
        topics.make(made[-1], partitions)
        return made[-1]

    yield make
    topics.remove(made)
