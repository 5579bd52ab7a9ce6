"""A draw: a command, the files in its folder, and what must not be seen of it; and how the command ended."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from typing import Any

import yaml

#: a variable of every draw's environment, and its value, which must be seen nowhere
VARIABLE, VALUE = "AWS_SECRET_ACCESS_KEY", "hunter2-of-the-cloud"
REFERENCE = f"${{{VARIABLE}}}"
#: a secret of files, which must be seen nowhere either
MARK = "Mk7secret"
SOUND: dict[str, Any] = {
    "name": "x",
    "source": {"files": "f.csv", "time": {"column": "t", "unit": "s"}, "max_bad_fraction": 0.5},
    "experiments": [{"name": "e", "target_percent": 20, "delay": {"max": "5s"}}],
    "workloads": [{"name": "w", "query": "passthrough"}],
    "systems": [{"name": "s", "engine": "known"}],
}
EVENTS = b"t,v\n1,2\n3,4\n2,5\n"
ODD: list[Any] = [
    None, True, False, 0, -1, 2**63, 2**70, 1e308, -1e-320, float("nan"), float("inf"), "", " ", "x", "a b", "../x",
    "\0", "é", "ü" * 40, "x" * 5000, "1_0", "1e3", "0x1", "2 weeks", "-3s", "%Q", "s3://no/x", [], {}, [1], {"a": 1},
    [[[]]], "nan", "yes", "::", ";", "/dev/zero", "nope", "late20", -0.0, 1.5,
]  # fmt: skip
#: modules that leave a file in the folder when they are imported, and a script that does when it is started
MARKERS = {
    "marker_module.py": b"open('ran-module', 'w').close()\ndef __getattr__(name): return lambda *_: 1\n",
    "marker_package/__init__.py": b"open('ran-package', 'w').close()\n",
    "marker_package/sub.py": b"def __getattr__(name): return lambda *_: 1\n",
    "marker.sh": b"#!/bin/sh\ntouch ran-script\n",
    "marker.sql": b"copy (select 1) to 'ran-sql'",
}


@dataclass
class Draw:
    """A command: its arguments, and the files in its folder."""

    arguments: list[str]
    files: dict[str, bytes] = field(default_factory=dict)
    stdin: bytes = b""
    told: str = ""  # what it prints if it succeeds, where that is known
    hidden: tuple[str, ...] = ()  # what no line and no written file may show


@dataclass
class Ended:
    code: int
    out: str
    err: str
    seconds: float
    bytes: int
    left: list[str]
    seen: list[str] = field(default_factory=list)  # where something hidden is shown


def sound() -> Any:
    """A copy of a sound benchmark file."""
    return json.loads(json.dumps(SOUND))


def checked(random: random.Random, raw: object, hidden: tuple[str, ...] = (MARK,)) -> Draw:
    """`check` of a benchmark file, among code that nobody shall run."""
    files = {"b.yaml": yaml.safe_dump(raw, allow_unicode=True).encode(), "f.csv": EVENTS, **MARKERS}
    return Draw(["check", "b.yaml", *random.choice([[], ["--json"]])], files, hidden=hidden)
