"""A broker with passwords and rights: what is missing is told in one line, and the secret is told nowhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from streamgauge.app.services.broker import Broker
from streamgauge.app.services.java_server import HOME
from streamgauge.bench.driver.ports import free_port
from tests.cli.test_cli import call
from tests.conftest import is_made
from tests.e2e.test_kafka import JOB, SQL, topics
from tests.kafka.topics import late_events, made, removed, write
from tests.measure.benches import Bench, write_bench
from tests.measure.conftest import _alone_and_quick

__all__ = ["_alone_and_quick"]
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]
SECRET = "s3cret-of-this-test"
TOPIC_RIGHTS = ("CREATE", "DESCRIBE", "WRITE", "READ", "DELETE")
GROUP_RIGHTS = ("DESCRIBE", "READ", "DELETE")
NEEDS = "; the user needs {} with such names"
#: what a user lacks, of all that a trial needs -> the line
LACKING = {
    "CREATE": ("the topic streamgauge-", " cannot be made: ", "Create and Describe on topics"),
    "WRITE": ("the topic streamgauge-", " cannot be written: ", "Write on topics"),
    "READ": ("the topic streamgauge-", " cannot be read: ", "Read on topics"),
    "GROUP": ("the topic streamgauge-", " cannot be read: ", "Describe on consumer groups"),
    "DELETE": ("the topic streamgauge-", " cannot be removed: ", "Delete on topics"),
}


def rights(user: str, kind: ResourceType, names: tuple[str, ...]) -> list[AclBinding]:
    about = (kind, "streamgauge-", ResourcePatternType.PREFIXED, f"User:{user}", "*")
    return [AclBinding(*about, AclOperation[name], AclPermissionType.ALLOW) for name in names]


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Broker, str]]:
    """A broker, and its address for users with passwords; at the other one everybody may do everything."""
    is_made("kafka", HOME / ".ready")
    secured = f"127.0.0.1:{free_port()}"
    broker = Broker(
        tmp_path_factory.mktemp("secured"),
        settings={
            "listeners": "PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller},SASL_PLAINTEXT://" + secured,
            "listener.security.protocol.map":
                "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
            "sasl.enabled.mechanisms": "SCRAM-SHA-256",
            "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config":
                "org.apache.kafka.common.security.scram.ScramLoginModule required;",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
        },
    )  # fmt: skip
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    users = {"all", *LACKING}
    form = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    made = [UserScramCredentialUpsertion(user, form, SECRET.encode()) for user in users]
    futures = [*admin.alter_user_scram_credentials(made).values()]
    acls = []
    for user in users:
        acls += rights(user, ResourceType.TOPIC, tuple(name for name in TOPIC_RIGHTS if name != user))
        acls += rights(user, ResourceType.GROUP, GROUP_RIGHTS if user != "GROUP" else ())
    for future in (*futures, *admin.create_acls(acls).values()):
        future.result(20)
    yield broker, secured
    broker.stop()


@pytest.fixture(autouse=True)
def _password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOB_PASSWORD", SECRET)


def bench_of(place: Path, bootstrap: str, user: str, **more: str) -> Bench:
    job = {
        "name": "mine", "engine": "job", "bootstrap": bootstrap, "warm": "0s",
        "command": [sys.executable, str(JOB), "{bootstrap}", "{input}", "{output}", "{group}", "none"],
        "environment": {"JOB_USER": user},
        "answer": {"sql": SQL, "key": ["at", "flight"], "quiet": "400ms"},
        "security": {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-256", "sasl.username": user,
                     "sasl.password": "${JOB_PASSWORD}", **more},
    }  # fmt: skip
    return write_bench(place, systems=[job], replay={"max_memory_mb": 64, "max_slip": "20s"})


def trial(bench: Bench, *more: str) -> Any:
    cell = ("--experiment", "e", "--workload", "all", "--system", "mine", "--rate", "500", "--seconds", "1")
    return call("trial", bench.file, "--artifacts", bench.store.root, *cell, *more)


def test_a_user_with_the_rights_is_measured_and_the_secret_is_nowhere(
    secured: tuple[Broker, str], tmp_path: Path
) -> None:
    broker, address = secured
    bench = bench_of(tmp_path, address, "all")
    assert call("check", "--connect", bench.file, "--artifacts", bench.store.root).code == 0
    answer = trial(bench, "--json")
    found = answer.json
    assert (found["correct"], found["details"]["emitted"]) == (True, 500)
    assert topics(broker) == set()
    written = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert any(file.suffix == ".jsonl" for file in written)
    assert not [file for file in written if SECRET.encode() in file.read_bytes()]
    assert SECRET not in answer.out + answer.err


@pytest.mark.parametrize("missing", LACKING)
def test_a_missing_right_is_named_before_anything_is_measured(
    secured: tuple[Broker, str], tmp_path: Path, missing: str
) -> None:
    bench = bench_of(tmp_path, secured[1], missing)
    begin, said, needs = LACKING[missing]
    answer = call("check", "--connect", bench.file, "--artifacts", bench.store.root)
    answer.refused(f"systems.mine.security: {begin}", said, "uthorization failed", NEEDS.format(needs))
    left = topics(secured[0])
    assert len(left) == (1 if missing == "DELETE" else 0), "who may not remove a topic leaves what the line names"
    admin = AdminClient({"bootstrap.servers": secured[0].bootstrap})
    for future in admin.delete_topics([*left]).values() if left else ():
        future.result(10)


@pytest.mark.parametrize(
    ("secret", "more", "said"),
    [
        ("wr0ng", {}, "SASL authentication error: Authentication failed"),
        (SECRET, {"sasl.mechanism": "PLAIN"}, "SASL PLAIN mechanism handshake failed: "),
        (SECRET, {"security.protocol": "PLAINTEXT"}, ""),
    ],
)
def test_a_wrong_password_mechanism_or_protocol_is_one_line_without_the_password(
    secured: tuple[Broker, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    secret: str, more: dict[str, str], said: str,
) -> None:  # fmt: skip
    monkeypatch.setenv("JOB_PASSWORD", secret)
    bench = bench_of(tmp_path, secured[1], "all", **more)
    answer = trial(bench)  # which begins with what `check --connect` does
    answer.refused("systems.mine.bootstrap: the Kafka broker ", " cannot be used: ", said)
    assert secret not in answer.out + answer.err


def test_a_topic_is_read_by_those_who_may(secured: tuple[Broker, str], monkeypatch: pytest.MonkeyPatch) -> None:
    broker, address = secured
    topic = made(broker.bootstrap, name="streamgauge-read")
    write(broker.bootstrap, topic, late_events(20, 1))

    def analyzed(user: str) -> Any:
        settings = ["security.protocol=SASL_PLAINTEXT", "sasl.mechanism=SCRAM-SHA-256", f"sasl.username={user}"]
        given = [each for one in (*settings, "sasl.password=${JOB_PASSWORD}") for each in ("--security", one)]
        return call("analyze", f"kafka://{address}/{topic}", "--time", "payload.ts", "--unit", "ms", *given, "--json")

    assert analyzed("all").json["events"] == 20
    begun = time.monotonic()
    analyzed("READ").refused("partition 0: cannot be read: ", "Topic authorization failed")
    monkeypatch.setenv("JOB_PASSWORD", "another")
    analyzed("all").refused("cannot be used: ", "uthentication failed")
    assert time.monotonic() - begun < 30
    removed(broker.bootstrap, topic)
