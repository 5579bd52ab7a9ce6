"""The first screen: rate, lateness, answers, limit, and one plain sentence a cell."""

from __future__ import annotations

from streamgauge.results.report import headline
from streamgauge.results.report.blocks import Note, Tiles
from streamgauge.results.report.page import render
from streamgauge.results.report.run_records import Records
from tests.report.test_report_search import plain, rewrite


def shown(records: Records) -> dict[str, tuple[list[tuple[str, str, str]], str]]:
    """Maps the name of a cell to its tiles and its sentence."""
    blocks = headline.section(records).blocks
    found = {}
    for tiles, note in zip(blocks[::2], blocks[1::2], strict=False):
        assert isinstance(tiles, Tiles)
        assert isinstance(note, Note)
        rows = [(plain(label), plain(value), plain(remark)) for label, value, remark in tiles.tiles]
        found[rows[0][0]] = (rows, plain(note.text))
    return found


def test_a_cell_that_is_proved(records: Records) -> None:
    rows, said = shown(records)["ordered, sum, rocksdb"]
    assert rows == [
        ("ordered, sum, rocksdb", "40 000 events/s", "90 %: 38 416 – 41 649"),
        ("p99 latency", "2.4 s", "at 100 % of that rate"),
        ("answers", "right", "equal to an independent answer"),
        (
            "limited by",
            "batch cap",
            "the engine takes no larger batch than its cap of 30 000 rows; raise the system's batch_rows to see more",
        ),
    ]
    assert said == "With events in order, rocksdb takes 40 000 events a second without falling ever further behind."


def test_what_disorder_costs_and_what_to_do_stand_in_the_sentence(records: Records) -> None:
    told = shown(records)
    late = next(said for name, (_, said) in told.items() if name.startswith("late") and "rocksdb" in name)
    assert "% of the events out of order, rocksdb takes" in late
    assert "; against ordered it costs 7.0% (5.1% to 8.8%)." in late
    tiles, alone = told["ordered, sum, hdfs"]
    assert tiles[0][1] == "20 000 events/s (one process)"
    assert alone.endswith("how much fresh processes differ: set search.processes to 3 to measure that.")
    apart = next(said for name, (_, said) in told.items() if name.startswith("late20") and "hdfs" in name)
    assert "; how that compares with ordered is not known, as fresh processes differ by 3 to 8 %" in apart


def test_a_rate_that_is_not_proved_or_void_or_missing(records: Records) -> None:
    name = "ordered, sum, hdfs"
    unproven = rewrite(
        records, "ordered.sum.hdfs/search.json", lambda s: s.update(outcome="unproven", reason="too noisy")
    )
    assert "The rate is only estimated: too noisy. Give the trials more time" in shown(unproven)[name][1]
    void = rewrite(records, "ordered.sum.hdfs/search.json", lambda s: s.update(correct=False))
    assert shown(void)[name][1] == "The answers are wrong, so the rate does not count."
    none = rewrite(
        records, "ordered.sum.hdfs/search.json", lambda s: s.update(correct=None, sustainable_rate_events_per_s=None)
    )
    assert shown(none)[name][1].startswith("No rate was found: ")


def test_it_comes_first(records: Records) -> None:
    page = render(records)
    assert page.index('id="answer"') < page.index('id="summary"')
