"""advise --measure: the benchmark that it makes, its rows from a known result, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer

from streamgauge import config
from streamgauge.app.cli import advise_measuring, planning, source_options
from streamgauge.app.cli.advice_text import measured_json
from streamgauge.app.cli.advise import Asked, advised
from streamgauge.app.cli.advise_measuring import Setting
from streamgauge.app.cli.source_options import Reading
from streamgauge.base.errors import STOPPED
from streamgauge.base.jsonl import write_json
from streamgauge.catalog.artifacts import Store
from streamgauge.catalog.run_log import RunLog
from streamgauge.records.advice import Advice, MeasuredDelay, MeasuredTrade
from streamgauge.results.report import advice_measured
from streamgauge.results.report.blocks import Chart
from tests.cli.test_advise import FLIGHTS, READ
from tests.command import Call, run

READING = Reading(time="sched", format="%Y-%m-%d %H:%M:%S")
ASKED = Asked(window="1h", key="carrier", value="flight", lost="1%")
WINDOWS = [FLIGHTS, *READ, "--window", "1h", "--key", "carrier", "--value", "flight"]


@pytest.fixture(scope="module")
def advice() -> Advice:
    return advised(source_options.source([FLIGHTS], READING), ASKED, [])


def test_the_cells_differ_in_their_watermark_alone_and_the_file_says_the_same(advice: Advice, tmp_path: Path) -> None:
    source, question = ASKED.on(source_options.source([FLIGHTS], READING))
    trades = advise_measuring.delays_of(advice)
    made = advise_measuring.benchmark_of(source, question, trades, advice.tick, Setting("flink", processes=2), 110)
    assert advise_measuring.rate_of(advice, trades) == 110  # 26,475 events in 2,655,480 s, of which 6 h pass in 2 s
    watermarks = [one.watermark.to("ms") for one in made.workloads]
    assert watermarks == [0, 7_200_000, 11_700_001, 21_600_000]  # 0, near half, the advised one, near twice
    assert len({one.model_copy(update={"name": "", "watermark": 0}) for one in made.workloads}) == 1
    assert [cell.name for cell in made.all_cells()][2] == "as_it_came.wait_11700001ms.flink"
    assert all(len(group) == 1 for group in made.sharing(made.all_cells()))  # a query keeps its watermark
    assert (made.search.in_turns, made.search.processes) == (True, 2)
    assert (made.latency.fractions, made.latency.rates) == ((), (110.0,))
    assert made.experiments[0].target == "source"
    write_json(tmp_path / "measure.json", made.model_dump(mode="json"))
    assert config.load(tmp_path / "measure.json").model_dump() == made.model_dump()


def test_delays_of_ones_own_stand_beside_the_advised_one_and_without_advice_alone(advice: Advice) -> None:
    both = advice.model_copy(update={"asked": (0, 300 * 10**9, 600 * 10**9)})
    assert [one.delay // 10**9 for one in advise_measuring.delays_of(both)] == [0, 300, 7200, 11700, 21600]
    alone = both.model_copy(update={"advised": None})
    assert [one.delay // 10**9 for one in advise_measuring.delays_of(alone)] == [0, 300, 600]


def test_rows_of_a_known_result_claim_no_difference_that_one_process_cannot_show(advice: Advice) -> None:
    known = [(90_000.0, (88_000.0, 92_500.0), 12.3, 4096, "proven"), (None, None, None, None, "none")]
    delays = [
        MeasuredDelay(
            trade=trade, cell="c", claim=claim, rate_events_per_s=rate, interval=interval, p99_ms=p99,
            state_bytes=state, output="right",
        )
        for trade, (rate, interval, p99, state, claim) in zip(advise_measuring.delays_of(advice), known, strict=False)
    ]  # fmt: skip
    measured = MeasuredTrade(
        run="r", system="s", processes=3, latency_at_events_per_s=5000, stream_seconds_per_second=1e6, delays=(*delays,)
    )
    assert advice_measured.rows(measured, advice.tick)[1:] == [
        ("0 s", "5,455", "2,617 of 5,118", "90,000", "88,000 to 92,500", "", "12 ms", "4", "12", "right"),
        ("7,200 s (2 h)", "331", "288 of 5,118", "", "", "", "", "", "34", "right"),
    ]
    assert "only where their intervals do not overlap" in advice_measured.comparing(measured)
    assert "no difference" in advice_measured.comparing(measured.model_copy(update={"processes": 1}))
    first, second = measured_json(measured, advice.tick)["measured"]
    assert {name: first[name] for name in ("delay_ns", "lost", "rate", "interval", "p99_ns", "state_bytes")} == {
        "delay_ns": 0, "lost": 5455, "rate": 90_000.0, "interval": [88_000.0, 92_500.0], "p99_ns": 12_300_000,
        "state_bytes": 4096,
    }  # fmt: skip
    assert (second["rate"], second["interval"], second["p99_ns"]) == (None, None, None)
    section = advice_measured.section(measured, advice)
    (chart,) = (block for block in section.blocks if isinstance(block, Chart))
    figure = json.loads(json.dumps(chart.figure))
    assert [(one["yaxis"], one["x"]) for one in figure["data"]] == [
        (axis, ["0 s", "7,200 s (2 h)"]) for axis in ("y", "y2", "y3", "y4")
    ]
    assert figure["data"][1]["error_y"]["array"] == [2500, 0]


def test_a_measurement_that_was_stopped_between_two_stages_tells_no_trade(
    advice: Advice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object, **__: object) -> tuple[int]:
        with RunLog(Store(tmp_path).run("r")).stage("ingest", {}):
            return (STOPPED,)

    monkeypatch.setattr(planning, "ran", stopped)
    setting = Setting(system="flink", run="r", artifacts=tmp_path)
    with pytest.raises(typer.Exit) as ended:
        advise_measuring.measured(*ASKED.on(source_options.source([FLIGHTS], READING)), advice, setting, as_json=False)
    assert ended.value.exit_code == STOPPED


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([FLIGHTS, *READ, "--window", "1h", "--value", "flight"], "--key: this option is missing; --measure wants it"),
        ([FLIGHTS, *READ, "--session", "1h"], "--window: this option is missing; --measure wants it"),
        ([*WINDOWS, "--system", "stork"], "--system: found 'stork', allowed: "),
        (["kafka://h:1/t", "--time", "ts", "--window", "1h", "--key", "k", "--value", "v"], "--measure: found a topic"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_anything_is_read(options: list[str], said: str) -> None:
    run(Call(["advise", *options, "--measure", "--json"])).refused(said)
