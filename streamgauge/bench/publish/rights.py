"""Tries on a topic of its own what a trial does with a broker, so that a missing right shows before one starts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from streamgauge.base.errors import UserError
from streamgauge.bench.publish.answers import Output
from streamgauge.streams.kafka.clients import TIMEOUT_S, Access, Offsets, Topics, broker_errors


def try_rights(access: Access, topics: Topics, topic: str, group: str | None, *, by_event: bool = False) -> None:
    """Makes the topic, writes and reads a record, looks at the job's group if it has one, and removes the topic.

    by_event: its records may bear any time, which old brokers do not know.

    Raises UserError that names the first right that is missing.
    """
    try:
        with _needs("Create and Describe on topics"):
            topics.make(topic, 1, by_event=by_event)
        with _needs("Write on topics"):
            _write(access, topic)
        with _needs("Read on topics"):
            _read(access, topic)
        if group is not None:
            with _needs("Describe on consumer groups"):
                _look(access, topics, topic, group)
    except BaseException:
        topics.remove([topic])
        raise
    with _needs("Delete on topics"):
        topics.delete(topic)


@contextmanager
def _needs(rights: str) -> Iterator[None]:
    try:
        yield
    except UserError as problem:
        if "uthorization failed" not in str(problem):
            raise UserError(f"bootstrap: {problem}") from None
        if "roup authorization failed" in str(problem):  # a reader asks for its group's coordinator, too
            rights = "Describe on consumer groups"
        raise UserError(f"security: {str(problem).rstrip('.')}; the user needs {rights} with such names") from None


def _write(access: Access, topic: str) -> None:
    """Writes a record; who may write to a topic may also do so once and in order, as the publisher does."""
    from confluent_kafka import KafkaException, Producer

    with broker_errors(access, f"the topic {topic} cannot be written"):
        producer = Producer(access.settings())
        failures = []
        producer.produce(topic, b"", on_delivery=lambda error, _: failures.append(error))
        producer.flush(TIMEOUT_S)
        if not failures:
            raise UserError(f"the topic {topic} cannot be written: the broker took no record within {TIMEOUT_S:g} s")
        if failures[0] is not None:
            raise KafkaException(failures[0])


def _read(access: Access, topic: str) -> None:
    with closing(Output(access, topic, 1)) as output:
        output.read()


def _look(access: Access, topics: Topics, topic: str, group: str) -> None:
    with closing(Offsets(access, group, topic, 1)) as offsets:
        offsets.committed()
    topics.assigned(group)
