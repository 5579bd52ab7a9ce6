"""Tests the names of metrics for people."""

from __future__ import annotations

import pytest

from streamgauge.results.report.metric_names import for_people


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        ("sustainable_rate_events_per_s", "sustainable rate"),
        ("event_latency_ms_p99_at_80pct", "p99 event-time latency at 80\u202f% of the rate"),
        ("event_latency_ms_p50_at_10000_per_s", "p50 event-time latency at 10000 events/s"),
        ("event_latency_ms_p999_at_2e+06_per_s", "p99.9 event-time latency at 2000000 events/s"),
        ("event_latency_ms_max_at_33.3333pct", "largest event-time latency at 33.3333\u202f% of the rate"),
        ("system_cpu_us_per_event_at_1.5e+06_per_s", "CPU per event at 1500000 events/s"),
        ("system_cpu_us_per_event_at_50pct", "CPU per event at 50\u202f% of the rate"),
        ("event_latency_ms_p99", "p99 event-time latency"),
        ("query_seconds", "query time"),
        ("soak_state_rows_per_hour", "state rows an hour, in a long run"),
        ("catchup_seconds", "time until live after a standstill"),
        ("catchup_seconds_at_20000_per_s", "time until live after a standstill at 20000 events/s"),
        ("catchup_taken_per_s", "events/s while it catches up"),
        ("catchup_peak_resident_memory", "peak resident memory while it catches up"),
        ("scaling_rate_at_0.25", "rate on 0.25 CPUs"),
        ("scaling_efficiency_at_1", "efficiency on 1 CPU"),
        ("scaling_rate_at_parallelism_2", "rate with parallelism 2"),
        ("scaling_relative_rate_at_checkpoint_ms_1000", "relative rate with checkpoint_ms 1000"),
        ("scaling_cost_per_billion_at_4", "money for a billion events on 4 CPUs"),
        ("scaling_cost_per_billion_for_2000_per_s", "money for a billion events for 2000 events/s"),
        ("scaling_coherency", "coherency of the scalability law"),
        ("scaling_contention_of_parallelism", "contention of the scalability law, of parallelism"),
        ("scaling_parallelism_for_2000_per_s", "parallelism for 2000 events/s"),
        ("scaling_cores_for_100000_per_s", "CPUs for 100000 events/s"),
        ("recovery_kill_seconds", "time until back after a kill"),
        ("recovery_restart_taken_again_seconds", "time until events are taken again after a worker's death"),
        (
            "recovery_kill_cpu_us_per_event_at_checkpoints_every_500ms",
            "CPU per event before a kill, with checkpoints every 500ms",
        ),
        ("recovery_cut_wrong", "trials with wrong answers after a cut of the link"),
        ("recovery_kill_read_again", "rows read again after a kill"),
        (
            "recovery_rescale_doubled_per_trial_at_checkpoints_every_5s",
            "answers doubled in a trial after a rescaling, with checkpoints every 5s",
        ),
        ("catchup_dropped", "share of events dropped while it catches up"),
        ("my_own_metric", "my own metric"),
    ],
)
def test_a_metric_is_named_in_words(metric: str, words: str) -> None:
    assert for_people(metric) == words
