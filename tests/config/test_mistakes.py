"""Mistakes in a benchmark file are reported together, each with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from streamgauge import config
from streamgauge.base.errors import Mistakes, UserError

WRONG = """\
name: a b
sorce: {}
source:
  files: events.csv
  time: {column: t, unit: sec}
  header: maybe
experiments:
- name: late
  target_pct: 20
- {name: later, target_percent: true, delay: {max: 2 weeks}}
scale: 2
"""


def lines(tmp_path: Path, text: str, name: str = "b.yaml") -> list[str]:
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(Mistakes) as problem:
        config.load(file)
    return [line.removeprefix(f"{file}:") for line in problem.value.lines]


def test_every_mistake_is_told_by_line_and_column(tmp_path: Path) -> None:
    assert sorted(lines(tmp_path, WRONG), key=lambda line: [int(n) for n in line.split(":")[:2]]) == [
        "1:1: name: found 'a b', allowed: text that matches ^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$",
        "2:1: sorce: unknown key; did you mean source?",
        "5:21: source.time.unit: found 'sec', allowed: 'ps', 'ns', 'us', 'ms' or 's'",
        "6:3: source.header: found 'maybe', allowed: true or false",
        "9:3: experiments.0.target_pct: unknown key; did you mean target_percent?",
        "10:17: experiments.1.target_percent: found true, allowed: a number",
        "10:47: experiments.1.delay.max: found '2 weeks', allowed: "
        + "a number and one of ps ns us ms s m min h d, such as 2s or 1.5h",
        "11:1: scale: found 2, allowed: at most 1",
    ]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"experiments": "late"}, "experiments: found 'late', allowed: a list"),
        ({"experiments": [5]}, "experiments.0: found 5, allowed: keys with values"),
        ({"source": {"files": [1]}}, "source.files"),
        ({"description": None}, "description: found null, allowed: text"),
        ({"description": ["x"]}, "description: found a list, allowed: text"),
        ({"name": "x" * 5000}, "… (5,002 characters), allowed: "),
        ({"search": {"processes": 2.5}}, "search.processes: found 2.5, allowed: a whole number"),
        ({"search": {"processes": "many"}}, "search.processes: found 'many', allowed: a whole number"),
        ({"search": {"processes": True}}, "search.processes: found true, allowed: a number"),
    ],
)
def test_in_words_of_the_file_not_of_python(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    raw = {
        "name": "x",
        "source": {"files": "f.csv", "time": {"column": "t"}},
        "experiments": [{"name": "e", "target_percent": 1}],
    } | change
    messages = lines(tmp_path, json.dumps(raw, indent=1), "b.json")
    assert any(said in line for line in messages), messages
    assert not any(word in line for line in messages for word in ("valid string", "valid tuple", "None", "True"))


def test_keys_within_keys_without_end(tmp_path: Path) -> None:
    for name, text in (("b.yaml", "a: " + "[" * 3000 + "]" * 3000), ("b.json", "[" * 100_000 + "]" * 100_000)):
        (tmp_path / name).write_text(text)
        with pytest.raises(UserError, match=r"found keys within keys beyond 100 levels"):
            config.load(tmp_path / name)


def test_each_engine_has_keys_of_its_own(tmp_path: Path) -> None:
    text = """\
name: b
source: {files: events.csv, time: {column: t}}
experiments: [{name: late, target_percent: 20}]
systems:
- {name: a, master: "local[1]", batch_rows: 10, parallelism: 2}
- {name: b, engine: flink, master: "local[2]", memmory: 1g, parallelism: true, capacity: 5}
- {name: c, engine: sparrow}
- {name: d, engine: [], x: 1}
- {name: e, engine: "mine:Engine", master: far, parallelism: two}
- 5
"""
    shown = sorted(lines(tmp_path, text), key=lambda line: [int(n) for n in line.split(":")[:2]])
    flink = "conf, cpus, engine, example, flink_home, memory, name, parallelism, state_store"
    assert [line for line in shown if not line.startswith("5:")] == [
        f"6:28: systems.1.master: not a key of engine flink, but of spark; allowed here: {flink}",
        "6:48: systems.1.memmory: unknown key; did you mean memory?",
        "6:61: systems.1.parallelism: found true, allowed: a number",
        f"6:80: systems.1.capacity: not a key of engine flink, but of known; allowed here: {flink}",
        "7:13: systems.2.engine: found 'sparrow', allowed: spark, flink, known, job, or package.module:Class",
        "8:13: systems.3.engine: found a list, allowed: text",
        "10:3: systems.5: found 5, allowed: keys with values",
    ]
    assert shown[0].startswith(
        "5:49: systems.0.parallelism: not a key of engine spark, but of flink and known; allowed here: "
    )


def test_an_engine_of_one_s_own_has_free_keys_until_its_adapter_names_them(tmp_path: Path) -> None:
    raw = {
        "name": "x",
        "source": {"files": "f.csv", "time": {"column": "t"}},
        "experiments": [{"name": "e", "target_percent": 1}],
        "systems": [{"name": "m", "engine": "mine:Engine", "threads": 4}],
    }
    (tmp_path / "b.json").write_text(json.dumps(raw))
    (system,) = config.load(tmp_path / "b.json").systems
    assert system.model_dump() == {"name": "m", "engine": "mine:Engine", "cpus": None, "example": False, "threads": 4}
