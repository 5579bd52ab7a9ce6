"""The commands of the documentation that ask how long to wait for a topic, on a real broker."""

from __future__ import annotations

import json
import random
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

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
    assert "warning" not in answer.err, "nobody gave an arrival, so nobody is warned of it"


def test_ten_minutes_with_a_topic_end_with_the_tutorial_s_answer(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (clicks,) = [script for script in blocks(ROOT / "docs" / "tutorial.md", "python") if "make_clicks.py" in script]
    made_clicks = subprocess.run([sys.executable, "-c", clicks], capture_output=True, text=True, check=True).stdout
    (tmp_path / "clicks.csv").write_text(made_clicks)
    steps = textwrap.dedent((ROOT / "docs" / "kafka.md").read_text().split("in ten minutes\n")[1].split("\n### ")[0])
    script, command = re.findall(r"```(?:python)?\n(.*?)   ```", steps, re.DOTALL)
    topic = f"clicks-{tmp_path.name}"
    own = textwrap.dedent(script).replace('"clicks"', f'"{topic}"').replace("127.0.0.1:9092", broker.bootstrap)
    subprocess.run([sys.executable, "-c", own], check=True)
    program, *arguments = shlex.split(command.replace("127.0.0.1:9092/clicks", f"{broker.bootstrap}/{topic}"))
    assert program == "streamgauge"
    answer = run(Call(arguments))
    removed(broker.bootstrap, topic)
    assert answer.code == 0, answer.err
    assert "\nadvice              Wait 1.401 s. " in answer.out


def test_there_is_such_a_command() -> None:
    assert len(COMMANDS) == 1
