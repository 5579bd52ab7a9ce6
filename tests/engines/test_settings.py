"""Settings of engines, besides their keys: how one follows event time, and whether it is installed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from streamgauge.base.errors import UserError
from streamgauge.bench.driver.system import Capabilities, make_system, rules_of
from streamgauge.bench.engines.flink.settings import FlinkSettings, nested
from streamgauge.bench.engines.job.settings import JobSettings
from streamgauge.bench.engines.spark.settings import SparkSettings
from streamgauge.bench.engines.spark.submit import command
from streamgauge.bench.workloads import Spec
from streamgauge.config.systems import ENGINES, WORDS, OwnSettings, System, settings_of
from streamgauge.descriptions import kafka_security as security
from tests.command import Answer, Call, run
from tests.measure.benches import write_bench

ROOT = Path(__file__).resolve().parents[2]
ADAPTER = """
from typing import Literal
from streamgauge.config.systems import System
from streamgauge.bench.driver.system import Adapter
from streamgauge.records.rules import Operator, Rules

class Engine(Adapter):
    class Settings(System):
        threads: Literal[1, 2] = 1

    failure = None

    def __init__(self, system, work):
        self.name, self.threads = system.name, system.threads

    def rules(self, spec): return Rules(spec.operators())
    def start(self): ...
    def begin_trial(self, setup): ...
    def end_trial(self, timeout_s): return {}
    def alive(self): return True
    def stop(self): ...
"""


def check(file: Path) -> Answer:
    return run(Call(["check", str(file)]))


def test_the_page_of_engines_says_how_they_differ_as_they_declare_it() -> None:
    declared = {engine: semantics for engine in ENGINES.built_in if (semantics := settings_of(engine).semantics)}
    rows = ["| | " + " | ".join(engine.title() for engine in declared) + " |", "|---" * (1 + len(declared)) + "|"]
    for key, words in WORDS.items():
        rows.append(f"| {words} | {' | '.join(getattr(semantics, key) for semantics in declared.values())} |")
    page = (ROOT / "docs" / "engines.md").read_text()
    assert re.findall(r"^\|.*", page.split("## How engines differ\n")[1].split("\n## ")[0], re.MULTILINE) == rows


def test_check_says_that_an_engine_is_not_installed_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = write_bench(tmp_path)
    text = bench.file.read_text()
    place = tmp_path / "no" / "flink"
    system = f"systems: [{{name: f, engine: flink, flink_home: {place.relative_to(tmp_path)}}}]"
    bench.file.write_text(re.sub(r"systems:\n(?:[- ].*\n)+", f"{system}\n", text))
    message = f"systems.f.engine: found no Flink with Streamgauge's part in {place}; `make flink` makes one"
    check(bench.file).refused(message)
    monkeypatch.setenv("PATH", str(tmp_path))  # a JRE alone
    check(bench.file).refused(f"{message}, with a JDK, 17 or newer: here is no javac on PATH")
    bench.file.write_text(re.sub(r"systems:.*", "systems: [{name: s, spark_home: not/there}]", bench.file.read_text()))
    check(bench.file).refused(f"systems.s.spark_home: found {tmp_path}/not/there, which has no bin/spark-submit")


def test_a_flink_setting_that_is_also_a_group_of_settings_is_refused(tmp_path: Path) -> None:
    bench = write_bench(tmp_path)
    flink = "{name: f, engine: flink, conf: {state.backend: rocksdb, state.backend.type: rocksdb}}"
    bench.file.write_text(re.sub(r"systems:\n(?:[- ].*\n)+", f"systems: [{flink}]\n", bench.file.read_text()))
    check(bench.file).refused(
        "systems.0.conf: found state.backend beside state.backend.type; Flink's file cannot hold both"
    )
    ours = "{name: f, engine: flink, conf: {execution.checkpointing.dir: /tmp/mine}}"
    bench.file.write_text(re.sub(r"systems:.*", f"systems: [{ours}]", bench.file.read_text()))
    check(bench.file).refused(
        "systems.0.conf: found execution.checkpointing.dir, allowed: other keys, as Flink goes on"
    )
    assert nested({"a.b": 1, "a.c.d": 2, "e": 3}) == {"a": {"b": 1, "c": {"d": 2}}, "e": 3}


def test_an_adapter_may_name_the_keys_that_it_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "keyed.py").write_text(ADAPTER)
    monkeypatch.syspath_prepend(str(tmp_path))
    made: Any = make_system(OwnSettings(name="m", engine="keyed:Engine", threads=2), tmp_path)
    assert made.threads == 2
    for keys, message in (
        ({"threads": 3}, "systems.m: threads: found 3, allowed: 1 or 2"),
        ({"thread": 1}, "systems.m: thread: unknown key; did you mean threads?"),
        ({"x": 1}, "systems.m: x: unknown key; allowed here: cpus, engine, example, name, threads"),
    ):
        with pytest.raises(UserError) as problem:
            make_system(OwnSettings(name="m", engine="keyed:Engine", **keys), tmp_path)
        assert str(problem.value) == message


@pytest.mark.parametrize(
    ("master", "submitted", "cores"),
    [
        ("local", "local[1,4]", "1"),
        ("local[3]", "local[3,4]", "3"),
        ("local[2,5]", "local[2,5]", "2"),
        ("local-cluster[2,3,1024]", "local-cluster[2,3,1024]", "6"),
    ],
)
def test_a_local_spark_has_a_shuffle_partition_for_each_core(master: str, submitted: str, cores: str) -> None:
    made = command(SparkSettings(name="s", master=master), Path("a.py"), Path())
    assert made[made.index("--master") + 1] == submitted
    assert f"spark.sql.shuffle.partitions={cores}" in made


def test_how_what_was_measured_is_installed_again() -> None:
    spark = SparkSettings(name="s")
    assert spark.installed_by({"spark": "4.2.1", "java": "17"}) == "make spark-env SPARK=4.2.1"
    assert spark.installed_by({}) is None
    assert FlinkSettings(name="f", engine="flink").installed_by({"flink": "2.3.0"}) == "make flink"
    other = FlinkSettings(name="f", engine="flink", flink_home="../.venvs/flink-2.2.1")
    assert other.installed_by({"flink": "2.2.1"}) == "make flink FLINK=2.2.1"
    assert other.installed_by({"flink": "2.2.2"}) is None


def _refused(key: str) -> str:
    """The message of librdkafka to a setting whose value is nonsense."""
    try:
        AdminClient({key: "x", "log_level": 0})
    except KafkaException as problem:
        return str(problem)
    return ""


def test_each_allowed_security_key_is_one_of_the_client_and_none_of_them_loads_code() -> None:
    for key in sorted(security.KEYS):
        about = {"name": "mine", "engine": "job", "bootstrap": "b:1", "command": ["a"], "security": {key: "${VALUE}"}}
        assert JobSettings.model_validate(about).security == {key: "${VALUE}"}
        assert "No such configuration property" not in _refused(key), key
    assert not [key for key in security.KEYS if re.search(r"plugin|_cb$|cmd|engine|provider|servers|callback", key)]


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("command: [a, '{version}']", "version: this key is missing; command or environment have the place {version}"),
        ("command: [a], version: '1'", "version: neither command nor environment has the place {version}"),
        ("command: [a, '{topic}']", "found {topic}, allowed: {bootstrap}, "),
        ("command: [a], security: {sasl.password: hunter2}", "sasl.password: found a secret (not shown), allowed: ${"),
        ("command: [a], security: {sasl.password: 12345678}", "sasl.password: found a secret (not shown), allowed: ${"),
        ("command: [a], security: 'sasl.password=hunter2'", "security: found no keys (not shown), allowed: "),
        *(
            (f"command: [a], security: {{{key}: x}}", f"security: {key}: found a key that is not for security, allowed")
            for key in (
                "plugin.library.paths",
                "bootstrap.servers",
                "metadata.broker.list",
                "ssl.engine.location",
                "ssl.providers",
                "sasl.kerberos.kinit.cmd",
                "oauth_cb",
                "error_cb",
                "stats_cb",
                "opaque",
                "debug",
                "client.rack",
                "ssl_engine_callback_data",
                "log_level",
                "Plugin.Library.Paths",
            )
        ),
        (
            "command: [a], security: {bootstrap.servers: 'evil:1'}",
            "(docs/security.md); give the key bootstrap",
        ),
        ("command: [a], security: {sasl.oauthbearer.assertion.private.key.passphrase: hunter2}", "found a secret (not"),
        (
            "command: [a], security: {sasl.oauthbearer.config: 'token=hunter2'}",
            "found a secret (not shown), allowed: ${",
        ),
        ("command: [a], answer: {sql: /dev/zero.sql}", "/dev/zero.sql: No such file"),
        ("command: [a], answer: {sql: ./pipe.sql}", "pipe.sql: a device or a pipe, allowed: a regular file"),
        ("command: [a], progress: {group: g, checkpoint: c}", "give group or checkpoint, one of the two"),
        ("command: [a], headers: false, answer: {carried: {}}", "headers: found false, but answer.carried needs what"),
        ("command: [a], started: once", "started: once needs answer.sql with answer.key, and another format than line"),
        ("command: [a], started: once, answer: {sql: select 1}", "started: once needs answer.sql with answer.key"),
        ("command: [a], format: line", "sentinel: needed by format line, and by that alone"),
        ("command: [a], format: confluent-avro", "registry: needed by confluent-avro and confluent-json, and by those"),
        (
            "command: [a], format: confluent-avro, registry: {address: 'http://r', token: hunter2}",
            "registry.token: found a secret (not shown), allowed: ${VARIABLE}",
        ),
        ("command: [a], answer: {format: avro}", "answer: writer_schema: needed to read avro, and by that alone"),
        ("command: [a], answer: {format: avro, writer_schema: a.avsc}", "answer.writer_schema: "),
        ("command: [a], ready: {log: '('}", "found '(', allowed: a regular expression"),
        ("command: [a], answer: {sql: none.sql}", "answer.sql: "),
    ],
)
def test_a_mistake_in_a_job_s_keys_is_one_line(tmp_path: Path, keys: str, said: str) -> None:
    bench = write_bench(tmp_path)
    os.mkfifo(bench.file.parent / "pipe.sql")
    system = f"systems: [{{name: mine, engine: job, bootstrap: 'b:1', {keys}}}]"
    bench.file.write_text(re.sub(r"systems:\n(?:[- ].*\n)+", f"{system}\n", bench.file.read_text()))
    answer = check(bench.file)
    answer.refused(said)
    assert "hunter2" not in answer.err
    assert "12345678" not in answer.err


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("there", "found no 'there' on PATH; to run the file in .*, write ./there"),
        ("nowhere", "found no 'nowhere' on PATH$"),
        ("./nowhere", "found no './nowhere' in "),
    ],
)
def test_a_program_is_looked_for_where_it_will_be_started(tmp_path: Path, command: str, said: str) -> None:
    (tmp_path / "there").touch(0o755)
    given = {"name": "mine", "engine": "job", "bootstrap": "b:1", "directory": str(tmp_path)}
    settings_of("job").model_validate({**given, "command": ["./there"]}).check_installed()
    with pytest.raises(UserError, match=f"^systems.mine.command: {said}"):
        settings_of("job").model_validate({**given, "command": [command]}).check_installed()


@pytest.mark.parametrize(
    ("command", "missing"),
    [
        (("python3", "-u", "gone.py", "other.py"), "gone.py"),
        (("bash", "there.sh", "gone.sh"), None),
        (("bash", "/nowhere/gone.sh"), "/nowhere/gone.sh"),
        (("python3", "{version}/gone.py"), None),  # each version has its own
        (("python3", "-m", "gone"), None),
        (("sh", "-c", "exec python3 gone.py"), None),
        (("env", "ssh", "host", "python3", "gone.py"), None),  # it lies on the host
    ],
)
def test_a_script_is_looked_for_where_its_program_runs_here(
    tmp_path: Path, command: tuple[str, ...], missing: str | None
) -> None:
    (tmp_path / "there.sh").touch()
    given = {"name": "mine", "engine": "job", "bootstrap": "b:1", "directory": str(tmp_path), "command": command}
    versioned = {"version": "1"} if "{version}" in "".join(command) else {}
    with pytest.raises(UserError) if missing else nullcontext() as problem:
        settings_of("job").model_validate({**given, **versioned}).check_installed()
    if problem is not None:
        assert str(problem.value) == f"systems.mine.command: found no {missing!r} in {tmp_path}"


def test_a_job_is_recorded_with_its_folder_and_found_again_from_elsewhere(tmp_path: Path) -> None:
    given = {"name": "mine", "engine": "job", "bootstrap": "b:1", "command": ["./run"]}
    located = settings_of("job").model_validate(given).located(tmp_path / "there")
    again = settings_of("job").model_validate(located.model_dump(mode="json")).located(tmp_path / "elsewhere")
    assert again == located


def test_an_adapter_may_be_named_as_its_package_registers_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "keyed.py").write_text(ADAPTER)
    info = tmp_path / "keyed-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: keyed\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[streamgauge.engines]\nkeyed-engine = keyed:Engine\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "keyed", raising=False)
    settings = OwnSettings(name="m", engine="keyed-engine", threads=2)
    assert "keyed" not in sys.modules, "a check imports nothing"
    assert [(one.kind, one.key, one.name) for one in settings.reached()] == [("code", "engine", "keyed:Engine")]
    assert OwnSettings.model_json_schema()["properties"]["engine"]["pattern"] == ".:.|^keyed-engine$"
    made: Any = make_system(settings, tmp_path)
    assert (made.threads, made.capabilities) == (2, Capabilities())


@pytest.mark.parametrize(
    ("engine", "keys", "faults"),
    [
        ("known", {}, {"kill", "cut", "quota"}),
        ("spark", {}, {"kill", "cut", "rescale", "quota"}),
        ("spark", {"master": "local[*]"}, {"kill", "cut", "quota"}),
        ("spark", {"checkpoints": "hdfs://h/c"}, {"cut", "quota"}),
        ("spark", {"master": "local-cluster[1,1,1024]"}, {"kill", "cut", "restart", "quota"}),
        ("flink", {}, {"kill", "cut", "restart", "rescale", "quota"}),
        ("job", {"bootstrap": "b:1", "command": ["run"]}, {"kill", "quota"}),
    ],
)
def test_an_engine_declares_the_faults_that_its_trials_take(
    tmp_path: Path, engine: str, keys: dict[str, object], faults: set[str]
) -> None:
    system = make_system(settings_of(engine).model_validate({"name": "s", "engine": engine, **keys}), tmp_path)
    assert system.capabilities.faults == faults


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ("'rows'", "found 'rows', allowed: Rules(…) of streamgauge.records.rules"),
        ("Rules(())", "found 0 operators, allowed: 1, as in Spec.operators"),
        (
            "Rules(spec.operators(), clock='mine')",
            "clock: found 'mine', allowed: 'all queues', 'least queue', 'own queue'",
        ),
        ("Rules(('window',))", "Rules, argument 0.0: found 'window', allowed: a dictionary or an instance of Operator"),
        (
            "Rules(spec.operators('session'), pace='fast')",
            "pace: found 'fast', allowed: a dictionary or an instance of Pace",
        ),
        (
            "Rules(spec.operators(), clock='own key')",
            "found clock 'own key', allowed: another one, as passthrough has no key",
        ),
        (
            "Rules((Operator('window', 5_000_000, 2_500_000, 1),))",
            "operators.0: found windows of 5,000,000 µs every 2,500,000 µs, plus 1 µs, but the workload asks for "
            "windows of 10,000,000 µs every 10,000,000 µs",
        ),
        (
            "Rules((Operator('session', 1),))",
            "operators.0: found sessions with a gap of 1 µs, but the workload asks for sessions with a gap of 10,000",
        ),
        ("Rules(spec.operator())", "AttributeError: 'Spec' object has no attribute 'operator'"),
    ],
)
def test_late_rules_that_are_none_are_refused_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, declared: str, message: str
) -> None:
    (tmp_path / "keyed.py").write_text(ADAPTER.replace("Rules(spec.operators())", declared))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "keyed", raising=False)
    made = make_system(OwnSettings(name="m", engine="keyed:Engine"), tmp_path)
    with pytest.raises(UserError) as problem:
        rules_of(made, Spec("passthrough"))
    assert str(problem.value).startswith(f"systems.m.engine: its late rules: {message}")


@pytest.mark.parametrize(
    ("settings", "clock", "words"),
    [
        (SparkSettings(name="s"), "all queues", "follows the latest event of any queue"),
        (FlinkSettings(name="f", engine="flink"), "least queue", "is the smallest of the queues' own watermarks"),
    ],
)
def test_an_engine_says_in_words_what_it_declares(tmp_path: Path, settings: System, clock: str, words: str) -> None:
    rules = rules_of(make_system(settings, tmp_path), Spec("windowed_aggregation", "k", "v"))
    assert (rules.clock, settings.semantics and settings.semantics.queues) == (clock, words)


DECLARE = """
import sys
from pathlib import Path
from streamgauge.bench.driver.system import make_system, rules_of
from streamgauge.bench.engines.spark.settings import SparkSettings
from streamgauge.bench.workloads import Spec
rules_of(make_system(SparkSettings(name="s"), Path()), Spec("passthrough"))
print(*[name for name in sys.modules if name in ("pyspark", "streamgauge.streams.stages")])
"""


def test_spark_declares_its_rules_without_pyspark() -> None:
    assert subprocess.run([sys.executable, "-c", DECLARE], capture_output=True, text=True, check=True).stdout == "\n"
