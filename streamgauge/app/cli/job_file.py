"""The systems of a benchmark file for a job of one's own on Kafka, as `init --job` writes them."""

from __future__ import annotations

from enum import StrEnum, auto

_SYSTEM = """\
  - name: job
    engine: job # your own command between two Kafka topics, started anew for each trial (docs/kafka.md)
    bootstrap: 127.0.0.1:9092 # `streamgauge kafka` starts a broker to try this with
    # a broker with passwords: security: {{security.protocol: SASL_SSL, sasl.mechanism: SCRAM-SHA-512,
    #   sasl.username: me, sasl.password: "${{KAFKA_PASSWORD}}"}}
    # the names in braces are filled in for each trial; your job reads the topic {{input}} and writes {{output}}
    command: [{command}]
    # a job of Kafka Streams takes the key and the time of each record: key: my_column, and timestamp: event
    # started: once # trials share the job; by default each has a new one
    {progress}
    answer:
      key: [event_time] # columns that tell one answer from another
      # the right answers, in DuckDB's SQL over the events, with the largest wall clocks of their contributors: here of
      # a job that passes each event on; without it, answers are counted, and stand as unchecked
      sql: |
        select event_time, max(event_wall) as event_wall, max(offered_wall) as offered_wall from events group by all
replay: {{max_slip: 300ms}} # rows may reach the broker so late; a trial in which they are later is invalid
search: {{max_age: 5s}} # answers may be so old"""
_TOPICS = '"{bootstrap}", "{input}", "{output}"'
_GROUP = 'progress: {group: "{group}"} # let the job commit its offsets once a second or more often'


class Job(StrEnum):
    """Kinds of jobs that people have."""

    spark = auto()
    flink = auto()
    java = auto()
    python = auto()


_COMMANDS = {
    Job.spark: f'spark-submit, my_job.py, {_TOPICS}, "{{work}}/checkpoint"',
    Job.flink: f'flink, run, my-job.jar, {_TOPICS}, "{{group}}"',
    Job.java: f'java, -jar, my-job.jar, {_TOPICS}, "{{group}}"',
    Job.python: f'python, my_job.py, {_TOPICS}, "{{group}}"',
}
_PROGRESS = {
    Job.spark: 'progress: {checkpoint: "{work}/checkpoint"} # Spark commits no offsets; its checkpoint has them',
    Job.flink: f"{_GROUP}\n    ready: {{seconds: 10}} # it gives no sign before its first checkpoint",
}


def systems(job: Job) -> str:
    """The sections systems, replay and search."""
    return _SYSTEM.format(command=_COMMANDS[job], progress=_PROGRESS.get(job, _GROUP))
