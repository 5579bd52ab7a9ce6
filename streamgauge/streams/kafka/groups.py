"""Removes consumer groups: a process whose abort harms nobody. Its task is JSON on standard input."""

from __future__ import annotations

import json
import sys

from streamgauge.streams.kafka.clients import TIMEOUT_S, Access


def main() -> None:
    """Asks for the removal of each group, and waits for the answers."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    task = json.load(sys.stdin)
    admin = AdminClient(Access(task["bootstrap"], task["security"]).settings())
    for group, future in admin.delete_consumer_groups(task["groups"]).items():
        try:
            future.result(TIMEOUT_S)
        except (KafkaException, TimeoutError) as problem:
            print(f"{group}: {problem}", file=sys.stderr)


if __name__ == "__main__":
    main()
