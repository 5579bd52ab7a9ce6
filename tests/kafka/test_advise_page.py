"""The commands of docs/advise.md that read a topic, on a real broker: from a topic to the line of code."""

from __future__ import annotations

import json
import random
import shlex
from collections.abc import Iterator

import pytest

from streamgauge.app.services.broker import Broker
from tests.command import Call, run
from tests.kafka.topics import Sent, made, removed, write
from tests.test_docs import ROOT, blocks

PAGE = ROOT / "docs" / "advise.md"
LINES = [line for block in blocks(PAGE, "") for line in block.replace("\\\n", "").splitlines()]
COMMANDS = [line for line in LINES if "kafka://" in line]


@pytest.fixture
def address(broker: Broker) -> Iterator[str]:
    """A topic of one event every 6 s, of which some are late by up to 2 min."""
    topic = made(broker.bootstrap, 1, message_timestamp_type="LogAppendTime")
    chance = random.Random(3)
    sent = []
    for number in range(20_000):
        behind = chance.randrange(120_000) if chance.random() < 0.2 else 0
        payload = {"ts": 1_767_225_600_000 + 6000 * number - behind, "user": f"u{number % 7}"}
        sent.append(Sent(0, json.dumps({"payload": payload}).encode()))
    write(broker.bootstrap, topic, sent)
    yield f"kafka://{broker.bootstrap}/{topic}"
    removed(broker.bootstrap, topic)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_leads_from_a_topic_to_the_line_of_code(address: str, command: str) -> None:
    program, *arguments = shlex.split(command.replace("kafka://HOST:PORT/TOPIC", address))
    assert program == "streamgauge"
    answer = run(Call(arguments))
    assert answer.code == 0, answer.err
    assert "advice              Wait " in answer.out
    assert 'Spark               .withWatermark("' in answer.out


def test_there_is_such_a_command() -> None:
    assert len(COMMANDS) == 1
