"""The JSON of the DEBS 2019 poster as a benchmark file."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from streamgauge import config
from streamgauge.base.errors import UserError
from streamgauge.base.units import Duration
from tests.config.samples import loaded

#: as it stands in the poster, delays in ms
DEBS2019: dict[str, Any] = {
    "dataSource": {"file": "debs/taxi.csv", "seperator": ";"},
    "time": {"timeIndex": 3, "sourceTimeUnit": "ps"},
    "experimentDataConfigurations": [
        {"targetOutOfOrderFactor": 20, "minDelay": 10, "maxDelay": 1500, "delaySeed": 7},
        {"targetOutOfOrderFactor": 0.5, "minDelay": 0, "maxDelay": 2000, "delaySeed": 8},
    ],
}


def test_the_poster_s_json_is_accepted_as_it_stands(tmp_path: Path) -> None:
    (tmp_path / "taxi config.json").write_text(json.dumps(DEBS2019))
    benchmark = config.load(tmp_path / "taxi config.json")
    assert benchmark.name == "taxi-config"
    source = benchmark.source
    assert source.files == (str(tmp_path / "debs" / "taxi.csv"),)
    assert (source.separator, source.header, source.order, source.tick) == (";", False, "file", "ps")
    assert (source.time.column, source.time.unit) == (3, "ps")
    read = [(e.name, e.target_percent, e.seed, e.delay) for e in benchmark.experiments]
    uniform = [config.DelaySpec(min=Duration(10 * 10**9), max=Duration(1500 * 10**9))]
    uniform += [config.DelaySpec(min=Duration(0), max=Duration(2000 * 10**9))]
    assert read == [("experiment0", 20, 7, uniform[0]), ("experiment1", 0.5, 8, uniform[1])]


def test_its_numbers_may_stand_in_quotes(tmp_path: Path) -> None:
    experiment = {"targetOutOfOrderFactor": "5", "minDelay": "1", "maxDelay": 2.5e1, "delaySeed": "7"}
    time = {"timeIndex": "2", "sourceTimeUnit": "ms"}
    benchmark = loaded(
        tmp_path / "b.json", json.dumps(DEBS2019 | {"time": time, "experimentDataConfigurations": [experiment]})
    )
    assert benchmark.source.time.column == 2
    (read,) = benchmark.experiments
    assert (read.fraction, read.seed, str(read.delay.min), str(read.delay.max)) == (
        Fraction(1, 20),
        7,
        "1ms",
        "25ms",
    )


def test_time_within_the_data_source_is_accepted_too(tmp_path: Path) -> None:
    raw = {key: value for key, value in DEBS2019.items() if key != "time"}
    raw["dataSource"] = {**DEBS2019["dataSource"], "time": DEBS2019["time"]}
    assert loaded(tmp_path / "b.json", json.dumps(raw)).source.time.column == 3


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"dataSource": {"seperator": ";"}}, "source: files: found none, allowed: one name or a list"),
        ({"dataSource": "taxi.csv"}, "dataSource: found 'taxi.csv', allowed: a mapping with file, seperator"),
        ({"dataSource": {"file": "f", "seprator": ";"}}, "dataSource: found the key 'seprator', allowed: file, sep"),
        ({"time": None}, "time: found None, allowed: a mapping with timeIndex, sourceTimeUnit"),
        ({"time": {"timeIndex": 1, "sourceTimeUnit": "sec"}}, "source.time.unit: found 'sec', allowed: 'ps'"),
        ({"time": {"sourceTimeUnit": "s"}}, "time.timeIndex: this key is missing"),
        ({"time": {"timeIndex": 1}}, "time.sourceTimeUnit: this key is missing"),
        ({"experimentDataConfigurations": []}, "experimentDataConfigurations: found [], allowed: a list"),
        ({"experimentDataConfigurations": [{"minDelay": 1}]}, "0.targetOutOfOrderFactor: this key is missing"),
        (
            {"experimentDataConfigurations": [{"targetOutOfOrderFactor": 1, "minDelay": -1}]},
            "0.minDelay: found -1, allowed: milliseconds, 0 or more",
        ),
        (
            {"experimentDataConfigurations": [{"targetOutOfOrderFactor": 1, "minDelay": 9, "maxDelay": 3}]},
            "experiments.0.delay: min: found 9ms, which is above max 3ms",
        ),
        (
            {"experimentDataConfigurations": [{"targetOutOfOrderFactor": 101}]},
            "experiments.0.target_percent: found 101, allowed: at most 100",
        ),
        ({"targets": 3}, "found the key 'targets', allowed: dataSource"),
    ],
)
def test_mistakes_in_the_poster_s_json(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError) as problem:
        loaded(tmp_path / "b.json", json.dumps(DEBS2019 | change))
    assert said in str(problem.value)
    assert "\n" not in str(problem.value)


# -- schema and page
