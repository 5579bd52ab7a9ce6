"""Secrets by name, place and form, all over a benchmark file: no line, record, page or bundle shows them."""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from tests.hostile.draw import EVENTS, REFERENCE, VALUE, Draw, sound

NAMES = [
    "spark.hadoop.fs.s3a.secret.key", "spark.authenticate.secret", "API_TOKEN", "sasl.password", "apiKey",
    "DB_PASSWORD", "spark.ssl.keyPassword", "x-api-key", "ssl.key.pem", "passphrase", "Authorization", "accessKey",
]  # fmt: skip
#: what stands before and after the part that is looked for; the first ones need no quotes in any form
ENDS = ["", "9", "/x", "+=", "%41", "~", "é", "\\", "&<b>", "'\"", " a b", "\n", "\x1b[1m", "{{ 7 }}"]


def secrets(random: random.Random) -> Draw:
    """A file full of secrets; it is checked, or a run of it fails with them in its reason, and has page and bundle."""
    marks: list[str] = []

    def mark(plain: bool = False) -> str:
        marks.append(f"Mk{random.randrange(10**6):06}secret")
        ends = ENDS[: 2 if plain else None]
        return random.choice(ends[:2]) + marks[-1] + random.choice(ends)

    def words() -> list[str]:
        name = random.choice(["--password", "--api-key", "--db_token"])
        return random.choice([
            [name, mark()], [f"{name}={mark(True)}"], ["-H", f"Authorization: Bearer {mark(True)}"],
            ["sh", "-c", f"job {name} {mark(True)} -v"], [f"API_KEY={mark(True)}"], [f"https://me:{mark(True)}@h/x"],
            [f"https://h/x?a=b&token={mark(True)}"],
        ])  # fmt: skip

    def form() -> str:
        return random.choice([
            f"jdbc:x://me:{mark(True)}@h/db", f"https://{mark(True)}@h:1/x", f"https://h/x?token={mark(True)}&n=1",
            f"-Da=1 -Dkey.storePassword={mark(True)} -Xmx2g", f'{{"client_secret": "{mark(True)}", "a": "b"}}',
            f'x required username="me" password="{mark(True)}";',
        ])  # fmt: skip

    def conf() -> dict[str, str]:
        return random.choice([{random.choice(NAMES): mark()}, {"spark.x": form()}, {random.choice(NAMES): form()}])

    raw: Any = sound()
    systems: list[Callable[[], Any]] = [
        lambda: {"name": "a", "engine": "spark", "conf": conf()},
        lambda: {"name": "b", "engine": "flink", "conf": conf()},
        lambda: {"name": "c", "engine": "job", "bootstrap": "127.0.0.1:1", "command": ["python", *words()],
                 "environment": {random.choice(["ANY", *NAMES]): mark(), "DSN": form(), "V": REFERENCE}},
        lambda: {"name": "d", "engine": "tests.nothing:Engine", "more": {random.choice(NAMES): mark()}},
    ]  # fmt: skip
    raw["systems"] = [one() for one in random.sample(systems, random.randrange(1, 4))]
    rest: list[Callable[[], Any]] = [
        lambda: {"description": f"see {form()}"},
        lambda: {"metrics": {"sinks": [{"type": "http", "url": f"http://127.0.0.1:1/{mark(True)}?{mark(True)}"}]}},
        lambda: {"metrics": {"sinks": [{"type": "mine:Sink", "options": {"x": mark(), "deep": [{"y": mark()}]}}]}},
        lambda: {"nightly": {"webhook": {"url": f"https://h.example.org/{mark(True)}"}}},
        lambda: {"nightly": {"heartbeat": {"url": f"https://h.example.org/{mark(True)}"}}},
        lambda: {"nightly": {"heartbeat": {"url": form()}}},
        lambda: {"nightly": {"notifiers": [{"notifier": "a.b.C", "arguments": {"h": mark(), "l": [mark(), form()]}}]}},
    ]
    for one in random.sample(rest, random.randrange(3)):
        raw |= one()
    command = random.choice([["check", "b.yaml"], ["check", "b.yaml", "--json"], ["shown"], ["shown"]])
    if command[0] == "check" and random.random() < 0.4:  # a mistake beside the secrets, or at their place
        one = random.choice(raw["systems"])
        one |= random.choice([{"nope": mark()}, {"conf": {random.choice(NAMES): [mark()]}}, {"name": ""},
                              {"environment": mark()}, {"command": f"x --password {mark(True)}"}])  # fmt: skip
    text = yaml.safe_dump(raw, allow_unicode=True, width=random.choice([80, 10**6]))
    return Draw(command, {"b.yaml": text.encode(), "f.csv": EVENTS}, hidden=(*marks, VALUE))


def shown(work: Path) -> int:
    """Makes all that is shown of a run whose stages failed with each text of the file as their reason."""
    from streamgauge.app import cli
    from streamgauge.base.errors import UserError
    from streamgauge.catalog.artifacts import Store
    from streamgauge.catalog.run_log import RunLog
    from streamgauge.config import load
    from streamgauge.results.report import build

    text = (work / "b.yaml").read_text()
    try:
        made, store = load(work / "b.yaml"), Store(work / "artifacts")
        log = RunLog(store.run("one"))
        for number, value in enumerate(_texts(yaml.safe_load(text)["systems"])):
            with contextlib.suppress(UserError, RuntimeError), log.stage("ingest", {"experiment": f"e{number}"}):
                raise (UserError, RuntimeError)[number % 2](f"the store refused {value}")
        build(made, store, "one")
    except UserError as problem:
        print(f"streamgauge: {problem}", file=sys.stderr)
        return 2
    for command in (["export", "one", "--out", "paper", "--no-svg"], ["runs", "show", "one", "--json"]):
        sys.argv = ["streamgauge", *command, "--artifacts", "artifacts"]
        try:
            cli.main()
        except SystemExit as end:
            if end.code:
                return int(end.code)
    return 0


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict | list):
        return [text for one in (value.values() if isinstance(value, dict) else value) for text in _texts(one)]
    return [str(value)]
