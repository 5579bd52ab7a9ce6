"""Tests each ready-made description on a few lines in the published format, written here."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgauge.base.errors import UserError
from streamgauge.config import Source, datasets
from streamgauge.streams.text.parse import parse
from streamgauge.streams.text.splits import source_splits

SECOND = 10**9


def utc(year: int, month: int, day: int, hour: int = 0, minute: int = 0, second: int = 0) -> int:
    return int(datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp()) * SECOND


def rows_of(source: Source) -> tuple[list[dict[str, Any]], list[str]]:
    """Rows without seq and line, and the reasons of bad lines."""
    rows: list[dict[str, Any]] = []
    reasons: list[str] = []
    for split in source_splits(source, 1 << 20):
        for data, beside, known in split.pieces(1 << 20):
            parsed = parse(data, split.layout, 0, beside, known)
            rows += parsed.events.drop_columns(["seq", "line"]).to_pylist()
            reasons += parsed.bad["reason"].to_pylist() if parsed.bad else []
    return rows, reasons


YELLOW_2015 = """\
VendorID,tpep_pickup_datetime,tpep_dropoff_datetime,passenger_count,trip_distance,pickup_longitude,pickup_latitude,\
RateCodeID,store_and_fwd_flag,dropoff_longitude,dropoff_latitude,payment_type,fare_amount,extra,mta_tax,tip_amount,\
tolls_amount,improvement_surcharge,total_amount
2,2015-01-15 19:05:39,2015-01-15 19:23:42,1,1.59,-73.99,40.75,1,N,-73.97,40.75,1,12,1,0.5,3.25,0,0.3,17.05
"""
YELLOW_2014 = """\
vendor_id, pickup_datetime, dropoff_datetime, passenger_count, trip_distance, pickup_longitude, pickup_latitude, \
rate_code, store_and_fwd_flag, dropoff_longitude, dropoff_latitude, payment_type, fare_amount, surcharge, mta_tax, \
tip_amount, tolls_amount, total_amount\r
\r
CMT,2014-07-09 20:45:08,2014-07-09 20:52:31,1,1.4,-73.98,40.73,1,N,-73.99,40.74,CRD,6.5,0.5,0.5,1.4,0,8.9\r
"""
MACHINE = "\t".join(["2012-02-22T16:46:28.9670320+00:00", "2556001", "13056", "14406", "8119", *["0"] * 51]) + "\n"
PUBLISHED: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "nyc_tlc_yellow_csv": (
        YELLOW_2015,
        [
            {
                "event_time": utc(2015, 1, 16, 0, 5, 39),
                "arrival_time": utc(2015, 1, 16, 0, 23, 42),
                "trip_distance": 1.59,
                "total_amount": 17.05,
            }
        ],
    ),
    "nyc_tlc_yellow_csv_2010": (
        YELLOW_2014,
        [
            {
                "event_time": utc(2014, 7, 10, 0, 45, 8),
                "arrival_time": utc(2014, 7, 10, 0, 52, 31),
                "trip_distance": 1.4,
                "total_amount": 8.9,
            }
        ],
    ),
    "debs2012": (
        MACHINE,
        [{"event_time": utc(2012, 2, 22, 16, 46, 28) + 967_032_000, "index": 2556001, "mf01": 13056}],
    ),
    "debs2013": (
        "67,10629342490369879,-8,-3,-500,0,0,4421,-8903,-125,0,0,0\n66,10629342491420152,3,5,-499,12,7,1,2,3,4,5,6\n",
        [
            {"event_time": 10629342490369879, "sid": 67, "v": 0, "a": 0},
            {"event_time": 10629342491420152, "sid": 66, "v": 12, "a": 7},
        ],
    ),
    "debs2014": (
        "2967740693,1379879533,82.042,0,1,0,12\n",
        [
            {
                "event_time": 1379879533 * SECOND,
                "house_id": 12,
                "household_id": 0,
                "plug_id": 1,
                "property": 0,
                "value": 82.042,
            }
        ],
    ),
    "debs2015": (
        "07290D3599E7A0D62097A346EFCC1FB5,E7750A37CAB07D0DFF0AF7E3573AC141,2013-01-01 00:00:00,2013-01-01 00:02:00,"
        "120,0.44,-73.956528,40.716976,-73.962440,40.715008,CSH,3.50,0.50,0.50,0.00,0.00,4.50\n",
        [
            {
                "event_time": utc(2013, 1, 1, 5),
                "arrival_time": utc(2013, 1, 1, 5, 2),
                "medallion": "07290D3599E7A0D62097A346EFCC1FB5",
                "trip_distance": 0.44,
                "total_amount": 4.5,
            }
        ],
    ),
    "hhar": (
        "Index,Arrival_Time,Creation_Time,x,y,z,User,Model,Device,gt\n"
        "0,1424696633908,1424696631913248572,-5.958191,0.6880646,8.135345,a,nexus4,nexus4_1,stand\n",
        [
            {
                "event_time": 1424696631913248572,
                "arrival_time": 1424696633908 * 10**6,
                "User": "a",
                "Device": "nexus4_1",
                "x": -5.958191,
                "y": 0.6880646,
                "z": 8.135345,
            }
        ],
    ),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_lines_are_read(name: str, tmp_path: Path) -> None:
    text, rows = PUBLISHED[name]
    file = tmp_path / "published.txt"
    file.write_bytes(text.encode())
    bad = ["empty line"] if name == "nyc_tlc_yellow_csv_2010" else []
    assert rows_of(datasets.source(name, str(file))) == (rows, bad)


def test_the_parquet_edition_of_the_taxi_trips_is_read(tmp_path: Path) -> None:
    moments = pa.array([1704067200_123456, 1704067260_000000], pa.timestamp("us"))
    table = pa.table(
        {
            "VendorID": pa.array([2, 1], pa.int32()),
            "tpep_pickup_datetime": moments,
            "tpep_dropoff_datetime": moments,
            "passenger_count": pa.array([1, None], pa.int64()),
            "store_and_fwd_flag": pa.array(["N", "Y,N"], pa.large_string()),
            "PULocationID": pa.array([186, 140], pa.int32()),
            "DOLocationID": pa.array([79, 236], pa.int32()),
            "total_amount": [22.7, 18.0],
        }
    )
    pq.write_table(table, tmp_path / "trips.parquet")
    source = datasets.source("nyc_tlc_yellow_parquet", str(tmp_path / "trips.parquet"))
    five_hours = 5 * 3600 * SECOND
    first, second = (1704067200_123456_000 + five_hours, 1704067260_000000_000 + five_hours)
    assert rows_of(source)[0] == [
        {"event_time": t, "arrival_time": t, "PULocationID": p, "DOLocationID": d, "total_amount": a}
        for t, p, d, a in ((first, 186, 79, 22.7), (second, 140, 236, 18.0))
    ]
    (split,) = source_splits(source, 1 << 20)
    assert [piece.lines for piece in split.pieces(1 << 20)] == [
        b"2,2024-01-01 00:00:00.123456,2024-01-01 00:00:00.123456,1,N,186,79,22.7\n"
        b'1,2024-01-01 00:01:00.000000,2024-01-01 00:01:00.000000,,"Y,N",140,236,18\n'
    ]


def test_samples_without_a_time_get_their_implied_one(tmp_path: Path) -> None:
    (tmp_path / "acc.txt").write_text(" 0.9180555898766518 -0.1124999994242935 0.5097222514293852 \n1 2 3\n")
    datasets.add_clock(tmp_path / "acc.txt", tmp_path / "timed.txt")
    rows, bad = rows_of(datasets.source("uci_har", str(tmp_path / "timed.txt")))
    assert bad == []
    assert rows == [
        {"event_time": 0, "x": 0.9180555898766518, "y": -0.1124999994242935, "z": 0.5097222514293852},
        {"event_time": 20_000_000, "x": 1.0, "y": 2.0, "z": 3.0},
    ]


def test_every_description_is_tried_here() -> None:
    assert set(datasets.names()) == {*PUBLISHED, "nyc_tlc_yellow_parquet", "uci_har"}
    assert all(datasets.description(name) for name in datasets.names())


def test_an_unknown_data_set_is_told() -> None:
    with pytest.raises(UserError, match="found 'debs2099', allowed: nyc_tlc_yellow_csv, "):
        datasets.source("debs2099", "f")
