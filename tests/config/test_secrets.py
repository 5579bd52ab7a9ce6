"""Tests that no secret of a benchmark file stands where somebody else reads: files, pages, lines, arguments."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import re
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.app.airflow import page_server
from streamgauge.app.airflow.submission import settings as submitted
from streamgauge.base import printing, secrets, variables
from streamgauge.base.errors import UserError
from streamgauge.base.jsonl import append_json
from streamgauge.base.places import place
from streamgauge.bench.engines.spark import submit
from streamgauge.bench.engines.spark.settings import SparkSettings
from streamgauge.bench.measure.cell_run import settings_hash
from streamgauge.catalog.artifacts import Store
from streamgauge.catalog.run_log import RunLog
from streamgauge.config import Benchmark, Cell, keep, load, of_run, schema
from streamgauge.results.report import build
from streamgauge.streams.stages.session import session_conf
from tests.command import Call, run

SECRET_NAMES = (
    "spark.hadoop.fs.s3a.secret.key", "spark.hadoop.fs.s3a.access.key", "spark.authenticate.secret", "API_TOKEN",
    "sasl.password", "fs.azure.account.key.me.blob", "apiKey", "DB_PASSWORD", "spark.ssl.keyPassword", "x-api-key",
    "ssl.key.pem", "sasl.jaas.config", "AWS_SECRET_ACCESS_KEY", "webhook_secret", "passphrase", "Authorization",
)  # fmt: skip
OTHER_NAMES = (
    "url_variable", "key", "sasl.username", "spark.sql.shuffle.partitions", "fs.s3a.aws.credentials.provider",
    "password_variable", "tokenizer", "monkey", "compass", "ssl.truststore.location", "spark.authenticate.enabled",
)  # fmt: skip


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_a_secret_is_known_by_its_name(name: str) -> None:
    assert secrets.masked({name: "hunter2"}) == {name: "***"}
    assert secrets.masked({name: "${VARIABLE}"}) == {name: "${VARIABLE}"}


@pytest.mark.parametrize("name", OTHER_NAMES)
def test_what_is_none_stays(name: str) -> None:
    assert secrets.masked({name: "hunter2"}) == {name: "hunter2"}


@pytest.mark.parametrize(
    ("key", "text", "shown"),
    [
        ("master", "s3a://me:SE/CR@bucket/x", "s3a://***@bucket/x"),
        ("master", "https://token@host:1/x?sig=abc&n=1", "https://***@host:1/x?sig=***&n=1"),
        ("master", "abfss://container@account.dfs.core.windows.net/x", None),
        ("url", "https://hooks.example.org/services/T0/B0/x", "https://hooks.example.org/***"),
        ("url", "http://127.0.0.1:8080", None),
        ("conf", "-Da=1 -Dkey.storePassword=zz -Xmx2g", "-Da=1 -Dkey.storePassword=*** -Xmx2g"),
        ("conf", "jdbc:postgresql://h/db?user=me&password=q", "jdbc:postgresql://h/db?user=me&password=***"),
        ("conf", 'x required username="me" password="q q";', 'x required username="me" password=***;'),
        ("conf", 'opts="-Ddb.password=q -Da=b"', 'opts="-Ddb.password=*** -Da=b"'),
        ("conf", '{"client_secret": "q", "a": "b"}', '{"client_secret": ***, "a": "b"}'),
        ("command", ["./job", "--db-password", "q", "--in", "{input}"],
         ["./job", "--db-password", "***", "--in", "{input}"]),
        ("command", ["sh", "-c", "job --token q -v"], ["sh", "-c", "job --token *** -v"]),
        ("command", ["curl", "-H", "Authorization: Bearer q q"], ["curl", "-H", "Authorization: ***"]),
        ("command", ["job", "API_KEY=q", "--max=5"], ["job", "API_KEY=***", "--max=5"]),
        ("environment", {"A": "x y", "N": "4", "V": "{version}", "R": "${HOME}"},
         {"A": "***", "N": "4", "V": "{version}", "R": "${HOME}"}),
        ("options", {"n": 123456789, "deep": [{"a": "q"}], "on": True},
         {"n": "***", "deep": [{"a": "***"}], "on": True}),
        ("environment", "hunter2", "***"),
        ("headers_from_env", {"Authorization": "NAME"}, None),
    ],
)  # fmt: skip
def test_a_secret_is_known_by_its_place_or_form(key: str, text: Any, shown: Any) -> None:
    once = secrets.masked({key: text})
    assert once == {key: text if shown is None else shown}
    assert secrets.masked(once) == once


@pytest.mark.parametrize(
    "piece", ["a=", "-", "a-", "x://", "a://b:", "?token=", "token:", '"token":', "--token ", "a:", "@", "/a"]
)
def test_a_hostile_text_takes_no_time(piece: str) -> None:
    began = time.process_time()
    secrets.learn({"description": piece * 200_000, "url": f"http://h/{piece * 100_000}"})
    secrets.masked_message(piece * 200_000)
    assert time.process_time() - began < 20


# -- every place of the benchmark file's schema

Marker = Callable[[], str]


def filled(node: Any, whole: Any, marker: Marker, depth: int = 0) -> Any:
    """A value for a schema, with a marker in every text that may hold a secret."""
    if "$ref" in node:
        return filled(whole["$defs"][node["$ref"].rsplit("/", 1)[1]], whole, marker, depth + 1) if depth < 12 else None
    for kind in ("anyOf", "oneOf", "allOf"):
        if kind in node:
            return [filled(one, whole, marker, depth + 1) for one in node[kind] if one.get("type") != "null"]
    if "enum" in node or "const" in node or "pattern" in node:
        return None
    if node.get("type") == "object" or "properties" in node:
        made = {name: filled(one, whole, marker, depth + 1) for name, one in node.get("properties", {}).items()}
        if node.get("additionalProperties", False) is not False:
            made |= {name: marker() for name in SECRET_NAMES}
        return made
    if node.get("type") == "array":
        return [filled(node.get("items") or {"type": "string"}, whole, marker, depth + 1) for _ in range(2)]
    return f"jdbc:x://me:{marker()}@host/db?token={marker()}" if node.get("type") == "string" else None


def texts(value: Any) -> Iterator[str]:
    yield json.dumps(value)
    yield yaml.safe_dump(value, width=10**9)


def test_no_place_of_the_schema_shows_a_secret() -> None:
    number = count()
    made = filled(schema(), schema(), lambda: f"Mark{next(number):04}er")
    for node in made["systems"], made["metrics"], made["nightly"]:
        assert "Mark" in json.dumps(node)
    named = json.dumps(made).count("Mark")
    assert named > 200
    assert [text for text in texts(secrets.masked(_without_variables(made))) if "Mark" in text] == []


def _without_variables(value: Any) -> Any:
    """The settings without names of variables, which are none of the secrets."""
    if isinstance(value, dict):
        return {key: _without_variables(one) for key, one in value.items() if key != "headers_from_env"}
    return [_without_variables(one) for one in value] if isinstance(value, list) else value


LEAVES = st.text() | st.integers() | st.none() | st.booleans()
KEYS = st.sampled_from(["conf", "url", "command", "environment", "password", "options", "name"])


@given(st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner)))
def test_masking_ends_anywhere_and_twice_is_as_once(settings: Any) -> None:
    once = secrets.masked(settings)
    assert secrets.masked(once) == once
    secrets.learn(settings)
    assert secrets.restored(once, settings) == settings or "***" in json.dumps(settings)


# -- a whole benchmark file

MARKED = """
name: marked
description: "see https://me:Mk01secret@host/x"
source: {{files: events.csv, time: {{column: t, unit: s}}}}
experiments: [{{name: late, target_percent: 0}}]
workloads: [{{name: all, query: passthrough}}]
systems:
- name: spark
  conf: {{spark.hadoop.fs.s3a.secret.key: Mk02secret, spark.authenticate.secret: Mk03secret,
    spark.driver.extraJavaOptions: "-Dx.password=Mk04secret", spark.jdbc: "jdbc:x://me:Mk05secret@h/db"}}
- {{name: flink, engine: flink, conf: {{fs.s3a.access-key: Mk06secret}}}}
- name: job
  engine: job
  command: [python, --api-key, Mk07secret, "--token=Mk08secret", "{{bootstrap}}"]
  environment: {{ANY: Mk09secret, DSN: "postgresql://me:Mk10secret@h"}}
  bootstrap: 127.0.0.1:1
- {{name: own, engine: "{engine}", more: {{a.password: Mk20secret}}, api_token: Mk21secret}}
metrics:
  sinks:
  - {{type: http, url: "http://127.0.0.1:1/Mk11secret?api_key=Mk12secret"}}
  - {{type: "mine:Sink", url: "https://127.0.0.1/Mk22secret", 
    options: {{anything: Mk13secret, deep: [{{x: Mk14secret}}]}}}}
nightly:
  webhook: {{url: "https://hooks.example.org/services/Mk15secret"}}
  heartbeat: {{url: "https://beat.example.org/Mk16secret"}}
  notifiers: [{{notifier: a.b.C, arguments: {{hook: Mk17secret, deep: {{list: [Mk18secret]}}}}}}]
"""
MARKS = [f"Mk{number:02}secret" for number in (*range(1, 19), 20, 21, 22)]


@pytest.fixture
def marked(tmp_path: Path) -> Path:
    (tmp_path / "events.csv").write_text("t\n1\n2\n3\n")
    file = tmp_path / "marked.yaml"
    file.write_text(MARKED.format(engine="tests.nothing:Engine"))
    return file


def written(folder: Path) -> dict[str, list[str]]:
    """Files, each with the marks in it."""
    marks_of = {str(file): [mark for mark in MARKS if mark.encode() in file.read_bytes()]
             for file in folder.rglob("*") if file.is_file()}  # fmt: skip
    return {file: marks for file, marks in marks_of.items() if marks}


def test_no_file_page_or_answer_shows_a_secret_of_the_benchmark(marked: Path, tmp_path: Path) -> None:
    store = Store(tmp_path / "artifacts")
    made = load(marked)
    assert all(mark in made.model_dump_json() for mark in MARKS), "the processes that need them have them"
    log = RunLog(store.run("one"))
    for number, mark in enumerate(MARKS):  # engines quote what they were given
        with contextlib.suppress(UserError, RuntimeError), log.stage("ingest", {"experiment": f"e{number}"}):
            raise (UserError, RuntimeError)[number % 2](f"the store refused the key {mark}, see https://a:{mark}@h")
    with contextlib.suppress(RuntimeError), log.stage("ingest", {}):
        raise RuntimeError(f"no {MARKS[1]}")
    append_json(
        store.run("one") / "results-of-job.jsonl", {"failure": f"it said {MARKS[8]}", "deep": [{"a": MARKS[1]}]}
    )
    page = build(made, store, "one")
    assert "*** stands for a secret" in page.read_text()
    assert written(store.root) == {}
    assert of_run(store.run("one")).name == "marked"
    said = run(Call(["export", "one", "--artifacts", str(store.root), "--out", str(tmp_path / "paper"), "--no-svg"]))
    assert said.code == 0, said.err
    assert written(tmp_path / "paper") == {}
    shown = run(Call(["runs", "show", "one", "--artifacts", str(store.root), "--json"]))
    assert [mark for mark in MARKS if mark in said.out + said.err + shown.out + shown.err] == []


@pytest.mark.anyio
async def test_the_pages_server_gives_no_secret(marked: Path, tmp_path: Path) -> None:
    store = Store(tmp_path / "artifacts")
    build(load(marked), store, "one")
    transport = httpx.ASGITransport(app=page_server.app(store.root))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        for path in ("/", "/runs/one/benchmark.json", "/runs/one/index.html"):
            answer = await client.get(path)
            assert answer.status_code == 200
            assert [mark for mark in MARKS if mark in answer.text] == []


def test_no_line_that_is_printed_shows_a_secret(marked: Path) -> None:
    for more in ([], ["--json"]):
        answer = run(Call(["check", str(marked), *more]))
        assert [mark for mark in MARKS if mark in answer.out + answer.err] == []
    for wrong in (
        "x: 1\n",
        "systems: [{name: a, conf: {a.password: [Mk30secret]}, memory: [Mk31]}]\n",
        "scale: Mk02secret\n",
    ):
        text = marked.read_text().partition("systems:")[0] if "systems" in wrong else marked.read_text()
        (marked.parent / "wrong.yaml").write_text(text + wrong)
        answer = run(Call(["check", str(marked.parent / "wrong.yaml")]))
        assert answer.code == 2
        assert [mark for mark in (*MARKS, "Mk30secret") if mark in answer.out + answer.err] == []


def test_a_secret_that_everybody_on_the_host_will_see_is_told_before_it_is(marked: Path) -> None:
    said = "shows every user of this host a secret among its arguments  (systems.job.command)"
    assert said in run(Call(["check", str(marked)])).out
    marked.write_text(marked.read_text().replace('--api-key, Mk07secret, "--token=Mk08secret", ', ""))
    answer = run(Call(["check", str(marked)]))
    assert (answer.code, "starts python" in answer.out, said in answer.out) == (0, True, False)


def test_a_log_line_and_a_stack_trace_show_no_secret(marked: Path) -> None:
    load(marked)
    log = io.StringIO()
    handler = logging.StreamHandler(printing.Printed(log))
    try:
        raise ValueError("s3a://me:Mk40secret@bucket and Mk02secret")
    except ValueError as problem:
        handler.emit(logging.LogRecord("x", 40, "x", 1, "%s", (problem,), (ValueError, problem, problem.__traceback__)))
    assert "Traceback" in log.getvalue()
    assert "Mk" not in log.getvalue().replace('Mk40secret@bucket and Mk02secret")', "")


def test_escape_codes_of_a_file_are_printed_as_text(tmp_path: Path) -> None:
    (tmp_path / "events\x1b[2J.csv").write_text("t\n1\n2\n")
    file = tmp_path / "b.yaml"
    file.write_text(json.dumps({
        "name": "b", "description": "\x1b]0;owned\x07\x1b[8mhidden",
        "experiments": [{"name": "e", "target_percent": 0}],
        "source": {"files": "events\x1b[2J.csv", "time": {"column": "t", "unit": "s"}},
    }))  # fmt: skip
    answer = run(Call(["check", str(file)]))
    assert answer.code == 0, answer.err
    assert "\x1b" not in answer.out
    assert "\\x1b]0;owned\\x07\\x1b[8mhidden" in answer.out
    assert "events\\x1b[2J.csv" in answer.out
    refused = run(Call(["check", str(tmp_path / "no\x1b[31mfile.yaml")]))
    assert "\x1b" not in refused.err


def test_no_hash_of_settings_depends_on_a_secret(marked: Path) -> None:
    """The hash of a short secret can be guessed, and stands in every record of a figure."""
    text = marked.read_text()
    for system in ("spark", "flink", "job", "own"):
        cell = Cell(experiment="late", workload="all", system=system)
        first = settings_hash(load(marked), cell)
        marked.write_text(re.sub(r"Mk(\d\d)secret", r"Zz\1hidden", text))
        assert settings_hash(load(marked), cell) == first
        marked.write_text(text.replace("t, unit: s", "t, unit: ms"))
        assert settings_hash(load(marked), cell) != first
        marked.write_text(text)


# -- how they travel


def test_spark_s_secrets_reach_spark_submit_by_a_file_of_its_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "defaults").mkdir()
    (tmp_path / "defaults" / "spark-defaults.conf").write_text("spark.a b\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path / "defaults"))
    monkeypatch.setenv("STORE_KEY", "Mk51: key\\with =odd\tparts")
    conf = {"spark.authenticate.secret": "Mk50secret", "spark.key": "${STORE_KEY}", "spark.sql.x": "5"}
    made = submit.command(SparkSettings(name="s", conf=conf), Path("a.py"), tmp_path)
    assert "Mk5" not in " ".join(made)
    assert "spark.sql.x=5" in made
    file = Path(made[made.index("--properties-file") + 1])
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text() == (
        "spark.a b\nspark.authenticate.secret=Mk50secret\nspark.key=Mk51\\:\\ key\\\\with\\ \\=odd\\tparts\n"
    )
    assert "--properties-file" not in submit.command(SparkSettings(name="s"), Path("a.py"), tmp_path)
    monkeypatch.delenv("STORE_KEY")
    with pytest.raises(UserError, match=r"systems.s.conf.spark.key: the environment has no variable STORE_KEY"):
        submit.command(SparkSettings(name="s", conf=conf), Path("a.py"), tmp_path)


@pytest.mark.parametrize("name", [name for name in SECRET_NAMES if name.startswith(("spark.", "fs."))])
def test_spark_leaves_secrets_out_of_its_event_log(name: str) -> None:
    made = submit.command(SparkSettings(name="s"), Path("a.py"), Path())
    (given,) = [one.partition("=")[2] for one in made if one.startswith("spark.redaction.regex=")]
    assert re.search(given, name)
    assert not any(
        re.search(given, other) for other in ("spark.sql.shuffle.partitions", "spark.master", "spark.app.id")
    )
    assert session_conf({}, "local[1]", {})["spark.redaction.regex"] == given


def test_secrets_of_a_connection_reach_spark_submit_by_a_file_of_its_owner() -> None:
    extra = {"conf": {"spark.hadoop.fs.s3a.secret.key": "Mk52secret", "spark.executor.memory": "2g"}}
    given = submitted("local[1]", extra, ["--config", "x"], python=sys.executable, stays=True)
    assert given["conf"]["spark.executor.memory"] == "2g"
    file = Path(given.pop("properties_file"))
    assert "Mk52" not in json.dumps(given)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text().endswith("spark.hadoop.fs.s3a.secret.key=Mk52secret\n")


def test_variables_are_filled_in_by_the_process_that_needs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "Mk53secret")
    settings = {"a": ["x ${MY_KEY}"], "b": {"c": "${MY_KEY}"}, "d": 1}
    assert variables.filled(settings, "here") == {"a": ["x Mk53secret"], "b": {"c": "Mk53secret"}, "d": 1}
    assert secrets.masked_text("it said Mk53secret") == "it said ***"


def test_a_secret_of_small_letters_alone_is_masked_and_a_word_that_contains_it_stays() -> None:
    secrets.know(["correcthorsebattery"])
    record = {"password": "correcthorsebattery", "kind": "correcthorsebattery_kind", "why": "a correcthorsebattery"}
    assert secrets.shown(record) == {"password": "***", "kind": "correcthorsebattery_kind", "why": "a ***"}


@pytest.mark.parametrize("url", ["s3a://me:Mk54secret@bucket/x", "https://Mk54secret@host/x.csv"])
def test_a_url_with_a_user_part_is_refused_and_not_shown(url: str, marked: Path) -> None:
    marked.write_text(marked.read_text().replace("events.csv", json.dumps(url)))
    answer = run(Call(["check", str(marked)]))
    answer.refused("source.files: found a URL with a user part (not shown)")
    assert "Mk54" not in answer.err
    with pytest.raises(UserError, match=r"\*\*\*@.*: found a user part") as problem:
        place(url)
    assert "Mk54" not in str(problem.value)


def test_a_recorded_benchmark_gets_today_s_secrets_back_and_is_refused_without_them(
    marked: Path, tmp_path: Path
) -> None:
    made: Benchmark = load(marked)
    keep(made, tmp_path)
    text = (tmp_path / "benchmark.json").read_text()
    assert [mark for mark in MARKS if mark in text] == []
    assert of_run(tmp_path, made).systems == made.systems
    run(Call(["check", str(tmp_path / "benchmark.json")])).refused(
        "found ***, which stands for a secret in a run's record; write ${VARIABLE} of the environment, or the secret"
    )


def test_no_argument_of_a_process_shows_a_secret(tmp_path: Path) -> None:
    """The settings of a job reach it by its environment."""
    from streamgauge.bench.engines.job.running import Command

    command = Command(["sleep", "30"], {"DB_PASSWORD": "Mk55secret"}, tmp_path, tmp_path / "log")
    try:
        listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
        assert "sleep 30" in listed
        assert "Mk55secret" not in listed
    finally:
        command.end()
