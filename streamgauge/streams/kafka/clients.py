"""Clients of a broker: their settings with secrets from the environment, and topics; every failure is one line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field

from streamgauge.base import variables
from streamgauge.base.errors import UserError

TIMEOUT_S = 10.0
#: timeout of requests that are repeated all the time, seconds
LOOK_S = 3.0
#: a broker that refuses the client is given up after this time; a silent one gets TIMEOUT_S
FRUITLESS_S = 2.0
#: a topic that was just made or removed is not known everywhere at once
SETTLE_S = 10.0
_EVER = str(2**63 - 1)
#: by default a broker refuses what is an hour ahead, removes what is a week old, and begins a segment for each week
_ANY_TIME = {
    "message.timestamp.type": "CreateTime",
    "message.timestamp.before.max.ms": _EVER,
    "message.timestamp.after.max.ms": _EVER,
    "segment.ms": _EVER,
}
#: whatever the broker does with topics of others
_KEPT = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
#: a look beyond transactions that are still open: of one that was killed, the broker knows after its timeout
_BEYOND_OPEN = {"enable.auto.commit": False, "isolation.level": "read_uncommitted"}


@dataclass(frozen=True)
class Access:
    """Address of a broker, and settings of librdkafka for it; a value names environment variables as ${NAME}."""

    bootstrap: str
    security: Mapping[str, str] = field(default_factory=dict)

    def settings(self) -> dict[str, object]:
        """Settings for a client, with the secrets; they must not be shown. Raises UserError for a missing variable."""
        # without a callback and with logging, librdkafka writes to standard error
        quiet = {"log_level": 0, "error_cb": lambda _: None}
        return {"bootstrap.servers": self.bootstrap, **quiet, **self._filled()}

    def masked(self, text: str) -> str:
        """The text without the values of the variables that the settings name."""
        for value in self._secrets():
            text = text.replace(value, "***")
        return text

    def _filled(self) -> dict[str, str]:
        return {key: str(variables.filled(value, f"security.{key}")) for key, value in self.security.items()}

    def _secrets(self) -> list[str]:
        names = {name for value in self.security.values() for name in variables.named(value)}
        return sorted((os.environ[name] for name in names if os.environ.get(name)), key=len, reverse=True)


@contextmanager
def broker_errors(access: Access, what: str) -> Iterator[None]:
    """Turns a failure of Kafka's client into one line without secrets: a UserError that begins with `what`."""
    from confluent_kafka import KafkaError, KafkaException

    try:
        yield
    except KafkaException as problem:
        error = problem.args[0] if problem.args else problem
        said = error.str() if isinstance(error, KafkaError) else str(error)
        raise UserError(access.masked(f"{what}: {said}")) from None
    except TimeoutError:
        raise UserError(f"{what}: the broker {access.bootstrap} does not answer") from None
    except ValueError as problem:  # a setting that librdkafka does not know
        raise UserError(access.masked(f"{what}: {problem}")) from None


@dataclass(frozen=True)
class Description:
    """Id of a topic, which is another one if the topic is made anew, and its partitions."""

    id: str
    partitions: list[int]


class Topics:
    """Makes, looks at and removes topics of a broker. Every method raises UserError."""

    def __init__(self, access: Access) -> None:
        from confluent_kafka.admin import AdminClient

        self._access = access
        self._reasons = reasons = list[str]()
        # not by self: the client must end with this object, as a forked copy cannot end it
        settings = access.settings() | {"error_cb": lambda error: reasons.append(error.str())}
        with broker_errors(access, "security"):
            self._admin = AdminClient(settings)

    def check(self) -> None:
        """Raises UserError if the broker does not answer, with the last error of the client."""
        from confluent_kafka import KafkaException

        begun = time.monotonic()
        while True:
            try:
                self._admin.list_topics(timeout=1.0)
                return
            except KafkaException:
                self._admin.poll(0.1)
            why = [reason for reason in dict.fromkeys(self._reasons) if "brokers are down" not in reason]
            if time.monotonic() - begun > (FRUITLESS_S if why else TIMEOUT_S):
                said = why[-1] if why else "it does not answer"
                problem = f"bootstrap: the Kafka broker {self._access.bootstrap} cannot be used: {said}"
                raise UserError(self._access.masked(f"{problem}; start it, or correct bootstrap or security"))

    def describe(self, name: str, where: str) -> Description:
        """Returns what the broker knows of a topic, which is not made by that."""
        from confluent_kafka import KafkaError, KafkaException, TopicCollection

        with broker_errors(self._access, where):
            topic = self._admin.describe_topics(TopicCollection([name]), request_timeout=TIMEOUT_S)[name]
            try:
                found = topic.result(TIMEOUT_S)
            except KafkaException as problem:
                if problem.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise UserError(f"{where}: the broker has no such topic, or shows it to others only") from None
                raise
        return Description(str(found.topic_id), sorted(partition.id for partition in found.partitions))

    def make(self, name: str, partitions: int, *, by_event: bool = False) -> None:
        """Makes a topic that keeps all records.

        They bear the time at which the broker took them, or by_event any time since 1970.
        """
        from confluent_kafka.admin import NewTopic

        settings = _KEPT | (_ANY_TIME if by_event else {"message.timestamp.type": "LogAppendTime"})
        with broker_errors(self._access, f"the topic {name} cannot be made"):
            self._admin.create_topics([NewTopic(name, partitions, config=settings)])[name].result(TIMEOUT_S)
        deadline = time.monotonic() + SETTLE_S
        while time.monotonic() < deadline:
            with broker_errors(self._access, f"the topic {name} cannot be read"):
                description = self._admin.list_topics(name, timeout=TIMEOUT_S).topics[name]
            if description.error is None and len(description.partitions) == partitions:
                return
            time.sleep(0.05)
        raise UserError(f"the topic {name} was made, but has no leader after {SETTLE_S:.0f} s")

    def delete(self, name: str) -> None:
        """Removes a topic. Raises UserError if that fails."""
        with broker_errors(self._access, f"the topic {name} cannot be removed"):
            self._admin.delete_topics([name])[name].result(TIMEOUT_S)

    def remove(self, names: Collection[str], groups: Collection[str] = ()) -> bool:
        """Removes topics and groups, as far as they are there and may be removed; False if another try may help."""
        from confluent_kafka import KafkaError, KafkaException

        try:
            self._admin.list_topics(timeout=LOOK_S)
        except KafkaException:
            return False
        # there is none, or its owner alone may remove it
        over = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_AUTHORIZATION_FAILED)
        gone = True
        for future in self._admin.delete_topics(list(names)).values() if names else ():
            try:
                future.result(TIMEOUT_S)
            except TimeoutError:
                gone = False
            except KafkaException as problem:
                gone = gone and problem.args[0].code() in over
        if groups:
            forget_groups(self._access, groups)
        return gone

    def names(self) -> set[str]:
        with broker_errors(self._access, "the topics cannot be listed"):
            return set(self._admin.list_topics(timeout=TIMEOUT_S).topics)

    def assigned(self, group: str) -> Counter[str]:
        """Number of partitions of each topic that members of a consumer group have."""
        with broker_errors(self._access, f"the group {group} cannot be described"):
            # deprecated, but describe_consumer_groups aborts the process when the coordinator leaves
            groups = self._admin.list_groups(group, timeout=LOOK_S)
        members = [member for group in groups if group.protocol_type == "consumer" for member in group.members]
        taken = {place for member in members for place in members_share(member.assignment)}
        return Counter(topic for topic, _ in taken)


def forget_groups(access: Access, groups: Collection[str]) -> None:
    """Removes consumer groups where it can; the broker forgets a group without members by itself, days later.

    This is done in a process of its own: librdkafka aborts if the group's coordinator leaves meanwhile.
    """
    task = json.dumps({"bootstrap": access.bootstrap, "security": dict(access.security), "groups": sorted(groups)})
    with suppress(subprocess.TimeoutExpired):
        command = [sys.executable, "-m", "streamgauge.streams.kafka.groups"]
        subprocess.run(command, input=task, text=True, capture_output=True, timeout=2 * TIMEOUT_S, check=False)


def members_share(assignment: bytes) -> list[tuple[str, int]]:
    """Topic and partition of each place in a member's assignment, which is Kafka's ConsumerProtocolAssignment.

    A member that has none yet has no places.
    """
    view, share = memoryview(assignment), list[tuple[str, int]]()

    def number(size: int) -> int:
        nonlocal view
        value, view = int.from_bytes(view[:size], "big", signed=True), view[size:]
        return value

    number(2)  # the version; what later ones add stands behind
    for _ in range(number(4)):
        length = number(2)
        topic, view = str(view[:length], "utf-8", "replace"), view[length:]
        share += [(topic, number(4)) for _ in range(number(4))]
    return share


def ends(access: Access, topic: str, partitions: int) -> list[int]:
    """The offset that follows the last record of each partition, of open transactions, too. Raises UserError."""
    from confluent_kafka import Consumer, TopicPartition

    with broker_errors(access, f"the topic {topic} cannot be read"):
        settings = access.settings() | {"group.id": f"{topic}-ends"} | _BEYOND_OPEN
        with closing(Consumer(settings)) as consumer:
            places = [TopicPartition(topic, number) for number in range(partitions)]
            return [consumer.get_watermark_offsets(place, timeout=TIMEOUT_S)[1] for place in places]


class Offsets:
    """Reads what a consumer group has committed, without joining it. Every method raises UserError.

    This is no request of an AdminClient: repeated ones of those abort the process when the broker leaves.
    """

    def __init__(self, access: Access, group: str, topic: str, partitions: int) -> None:
        from confluent_kafka import Consumer, TopicPartition

        self._access, self._group = access, group
        with broker_errors(access, "the consumer cannot be made"):
            self._consumer = Consumer(access.settings() | {"group.id": group} | _BEYOND_OPEN)
        self._places = [TopicPartition(topic, number) for number in range(partitions)]

    def committed(self) -> dict[int, int]:
        """Offsets of the partitions where there are some."""
        with broker_errors(self._access, f"the offsets of the group {self._group} cannot be read"):
            places = self._consumer.committed(self._places, timeout=LOOK_S)
        return {place.partition: place.offset for place in places if place.offset >= 0}

    def close(self) -> None:
        self._consumer.close()
