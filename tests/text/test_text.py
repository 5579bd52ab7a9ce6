"""Lines and fields against a naive reader that goes line by line and character by character."""

from __future__ import annotations

import gzip
import re
from decimal import Decimal
from fractions import Fraction
from math import floor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgauge.base.errors import UserError
from streamgauge.base.lines import first_lines, line_count
from streamgauge.config import Source, TimeColumn
from streamgauge.streams.text import ranges, rows
from streamgauge.streams.text.parse import TOO_LONG, layout_of, names_in, parse
from streamgauge.streams.text.splits import header, source_splits

anytime = settings(deadline=None)  # the machine is shared
NAMES = ["k", "t", "x", "a"]
LETTERS = st.sampled_from([*'0123456789-.,"\n\r; \t|ae', "ü", "\ud800"])
blobs = st.one_of(
    st.text(LETTERS, max_size=120).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.lists(
        st.tuples(
            st.sampled_from(["a", '"b,c"', '"d""e"', "", "ü"]),
            st.sampled_from(["1", "-5", '"7"', "9223372036854775808", "1.5", "x", ""]),
            st.sampled_from(["3", "", "oops", "-0", '"4"', " 5\t", "6e0"]),
            st.sampled_from(["8", "", "late", "9,10", '"']),
        ),
        max_size=12,
    ).map(lambda rows: "".join(",".join(row) + "\r\n" for row in rows).encode()),
)


def described(**changes: Any) -> Source:
    plain: dict[str, Any] = {
        "files": "f",
        "header": False,
        "column_names": NAMES,
        "columns": {"k": "string", "x": "int64"},
    }
    return Source.model_validate(
        {**plain, "time": {"column": "t", "unit": "ns"}, "arrival": {"column": "a", "unit": "ns"}, **changes}
    )


def split_fields(line: str, separator: str, quote: str | None) -> list[str]:
    fields, inside = [""], False
    for character in line:
        inside ^= character == quote
        if character == separator and not inside:
            fields.append("")
        else:
            fields[-1] += character
    fields = [field.strip(" \t".replace(separator, "")) for field in fields]
    enclosed = [len(f) >= 2 and quote is not None and f[0] == f[-1] == quote for f in fields]
    return [f[1:-1] if bare else f for f, bare in zip(fields, enclosed, strict=True)]


def number(text: str, *, down: bool) -> int | str:
    """The number as Python's Decimal reads it; down: a fraction is rounded down, else it is refused."""
    if not re.fullmatch(r"[+-]?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]{1,4})?", text):
        return "not"
    value = Fraction(Decimal(text))
    if value.denominator > 1 and not down:
        return "not"
    return floor(value) if -(2**63) <= floor(value) < 2**63 else "beyond"


def naive(data: bytes, source: Source) -> tuple[list[tuple[Any, ...]], list[tuple[int, bytes, str]]]:
    """Good rows (seq, time, line, arrival, k, x) and bad ones (seq, text, first word of the reason)."""
    good: list[tuple[Any, ...]] = []
    bad: list[tuple[int, bytes, str]] = []
    lines = data.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    for seq, raw in enumerate(lines):
        try:
            text = raw.removesuffix(b"\r").decode()
        except UnicodeDecodeError:
            bad.append((seq, raw, "not"))
            continue
        if source.quote and text.count(source.quote) % 2:
            bad.append((seq, raw, "unbalanced"))
            continue
        fields = split_fields(text, source.separator, source.quote)
        if text == "" or len(fields) < len(NAMES):
            bad.append((seq, raw, "fewer" if text else "empty"))
            continue
        key, time, value, arrival = fields[:4]
        at = number(time, down=True)
        whole = number(value, down=False) if value else None
        if isinstance(at, str):
            bad.append((seq, raw, "time" if time else "empty"))
        elif isinstance(whole, str):
            bad.append((seq, raw, "x"))
        else:
            came = number(arrival, down=True)
            quote = source.quote or ""
            good.append(
                (
                    seq,
                    at,
                    raw + b"\n",
                    None if isinstance(came, str) else came,
                    key.replace(quote * 2, quote) or None,
                    whole,
                )
            )
    return good, bad


def ours(data: bytes, source: Source, first_seq: int = 0) -> tuple[list[tuple[Any, ...]], list[tuple[int, bytes, str]]]:
    found = parse(ranges.ended(data), layout_of(source, NAMES, "f"), first_seq)
    bad = [
        (first_seq + row["at"], row["text"], row["reason"].split()[0])
        for row in (found.bad.to_pylist() if found.bad else [])
    ]
    return [tuple(row.values()) for row in found.events.to_pylist()], bad


@pytest.mark.parametrize("separator", [",", ";", "\t", "|", " "])
@pytest.mark.parametrize("quote", ['"', None])
@settings(deadline=None, max_examples=50)
@given(data=blobs)
def test_every_line_is_read_as_a_naive_reader_reads_it(separator: str, quote: str | None, data: bytes) -> None:
    data = data.replace(b",", separator.encode()) if separator != "," else data
    source = described(separator=separator, quote=quote)
    assert ours(data, source) == naive(data, source)


def test_rows_come_out_whole() -> None:
    source = described(columns={"k": "string", "x": "float64"})
    data = b'u,1,2.5,7\n"v,w",-2,,x\nz,3,1e3,\n,"4",nan?,1\n'
    good, bad = ours(data, source, 100)
    assert good == [
        (100, 1, b"u,1,2.5,7\n", 7, "u", 2.5),
        (101, -2, b'"v,w",-2,,x\n', None, "v,w", None),
        (102, 3, b"z,3,1e3,\n", None, "z", 1000.0),
    ]
    assert bad == [(103, b',"4",nan?,1', "x")]


@anytime
@given(data=blobs, step=st.integers(1, 40))
def test_splits_of_any_size_hold_each_line_once(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, step: int
) -> None:
    file = tmp_path_factory.getbasetemp() / "ranges.txt"
    file.write_bytes(data)
    cuts = ranges.splits(0, len(data), step)
    parts = [ranges.read_lines(str(file), 0, low, high) for low, high in cuts]
    assert b"".join(parts) == data
    assert all(part.endswith(b"\n") for part in [part for part in parts if part][:-1])
    counts = [ranges.count_lines(str(file), 0, low, high) for low, high in cuts]
    assert counts == [line_count(part) for part in parts]


@anytime
@given(data=blobs, size=st.integers(1, 40), skip=st.integers(0, 5))
def test_gzip_blocks_hold_whole_lines(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, size: int, skip: int
) -> None:
    file = tmp_path_factory.getbasetemp() / "blocks.gz"
    file.write_bytes(gzip.compress(data[:9]) + gzip.compress(data[9:]))  # several members are one file
    parts = list(ranges.blocks(str(file), skip, size))
    assert b"".join(parts) == data[skip:]
    assert all(part.endswith(b"\n") for part in parts[:-1])


def test_crlf_bom_and_a_missing_last_newline(tmp_path: Path) -> None:
    file = tmp_path / "f.csv"
    file.write_bytes(b"\xef\xbb\xbft,v\r\n1,a\r\n2,b\rc\r\n3,d")
    source = Source.model_validate({"files": str(file), "time": {"column": "t", "unit": "ns"}})
    (split,) = source_splits(source, 1 << 20)
    assert split.count() == 3
    ((data, *_),) = split.pieces(1 << 20)
    lines = parse(data, split.layout, 0).events["line"].to_pylist()
    assert lines == [b"1,a\r\n", b"2,b\rc\r\n", b"3,d\n"]


def test_a_line_end_in_quotes_ends_the_line_and_its_pieces_are_bad(tmp_path: Path) -> None:
    file = tmp_path / "f.csv"
    file.write_text('t,v\n1,"a, b"\n2,"a\nb"\n3,c\n')
    (split,) = source_splits(
        Source.model_validate({"files": str(file), "time": {"column": "t", "unit": "ns"}}), 1 << 20
    )
    found = parse(next(iter(split.pieces(1 << 20))).lines, split.layout, 0)
    assert found.events["seq"].to_pylist() == [0, 3]
    assert found.bad is not None
    assert [(row["at"], row["reason"]) for row in found.bad.to_pylist()] == [
        (1, "unbalanced quote"),
        (2, "unbalanced quote"),
    ]


def test_the_first_lines_of_a_block() -> None:
    assert first_lines(b"a\rb\nc\nd\n", 2) == b"a\rb\nc\n"


def test_names_of_a_header() -> None:
    assert names_in(b'vendor_id, pickup ,"a,b"\n', described(), "f") == ["vendor_id", "pickup", "a,b"]


@pytest.mark.parametrize(
    ("header", "column", "said"),
    [
        (b"a;b;c\n", "b", "no column 'b'; found 1: 'a;b;c'; the separator ',' does not occur there"),
        (b"a,b,c\n", "d", "no column 'd'; found 3: 'a', 'b', 'c'"),
        (b"a,b,c\n", 3, "no column 3; found 3"),
        (b"a,b,b\n", "b", "2 columns are named 'b'"),
    ],
)
def test_a_missing_column_is_told_with_those_found(header: bytes, column: str | int, said: str) -> None:
    source = Source.model_validate({"files": "f", "time": {"column": column}})
    with pytest.raises(UserError, match=r"^f: source\.time\.column: ") as told:
        layout_of(source, names_in(header, source, "f"), "f")
    assert said in str(told.value)


def test_a_name_without_a_header_is_told() -> None:
    source = Source.model_validate({"files": "f", "header": False, "time": {"column": "t"}})
    with pytest.raises(UserError, match="no header; give a 0-based index"):
        layout_of(source, None, "f")


def test_a_header_that_is_not_utf8_is_told() -> None:
    with pytest.raises(UserError, match="line 1: not UTF-8"):
        names_in(b"t,\xff\n", described(), "f")


def test_files_share_one_header_whatever_its_line_end_and_mark(tmp_path: Path) -> None:
    texts = {"a": b"\xef\xbb\xbfk,t,x,a\r\n1,2,3,4\r\n", "b": b"k,t,x,a\n1,2,3,4", "c": b"t,k,x,a\n1,2,3,4\n"}
    for name, text in texts.items():
        (tmp_path / name).write_bytes(text)
    alike, different = ([str(tmp_path / name) for name in names] for names in ("ab", "abc"))
    assert header(described(files=alike, header=True)) == b"k,t,x,a\r\n"
    assert header(described(files=different, header=False)) == b""
    with pytest.raises(UserError, match=r"c: its header is not that of .*a, and a CSV stream has one header"):
        header(described(files=different, header=True))


def test_the_names_of_parquet_columns_are_a_header_too(tmp_path: Path) -> None:
    pq.write_table(pa.table({"t": [1], "a,b": [2], 'say "x"': [3]}), tmp_path / "f.parquet")
    source = described(files=str(tmp_path / "f.parquet"), format="parquet", arrival=None, columns={})
    assert header(source) == b't,"a,b","say ""x"""\n'


def test_one_line_of_other_bytes_is_bad_alone() -> None:
    data = "ü,1,,\n".encode() * 3 + b"\xfc,2,,\n" + "ö,3,,\n".encode()
    good, bad = ours(data, described())
    assert [row[0] for row in good] == [0, 1, 2, 4]
    assert bad == [(3, b"\xfc,2,,", "not")]


def test_lines_share_the_bytes_of_their_block() -> None:
    data = b"u,1,2,7\n" * 1000
    events = parse(data, layout_of(described(), NAMES, "f"), 0).events
    address = np.frombuffer(data, np.uint8).ctypes.data
    assert events["line"].chunk(0).buffers()[2].address == address


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("size", [7, 40, 1 << 20])
def test_a_line_beyond_the_bound_is_cut_where_it_can_be_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: bool, size: int
) -> None:
    monkeypatch.setattr(ranges, "LONGEST_LINE", 20)
    own = [b"a", b"b" * 20, b"c" * 21, b"", b"d" * 300, b"e", b"f" * 95]
    text = b"\n".join(own)
    file = tmp_path / "f"
    file.write_bytes(gzip.compress(text) if packed else text)
    if packed:
        found = list(map(ranges.ended, ranges.blocks(str(file), 0, size)))
    else:
        cuts = ranges.splits(0, len(text), size)
        found = [ranges.ended(ranges.read_lines(str(file), 0, low, high)) for low, high in cuts]
    assert all(len(data) <= size + 22 for data in found)
    lines = b"".join(found).split(b"\n")
    assert lines.pop() == b""
    assert len(lines) == len(own)
    for line, whole in zip(lines, own, strict=True):
        assert line == whole or (len(line) > 20 and whole.startswith(line) and len(whole) > 20)


def test_a_line_beyond_the_bound_goes_to_the_quarantine_by_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamgauge.streams.text.parse.LONGEST_LINE", 2000)
    source = Source(files=("f.csv",), time=TimeColumn(column=0, unit="s"), header=False)
    long = b"2," + b"x" * 3000
    found = parse(b"1,a\n" + long + b"\n3,b\n", layout_of(source, None, "f.csv"), 10)
    assert found.events["seq"].to_pylist() == [10, 12]
    assert found.bad is not None
    assert found.bad.to_pylist() == [{"at": 1, "reason": TOO_LONG, "text": long[:1024]}]


def test_floating_numbers_of_parquet_have_all_their_digits() -> None:
    """Arrow writes an exponent below 1e-6 and from 1e10 on, and times in milliseconds are larger."""
    given = [1512086400250.0, None, 1.5, 15120864002.5, 1e-7, -2e12, 0.0, 9.3e18, 1e20]
    batch = pa.record_batch({"t": pa.array(given, pa.float64())})
    assert rows.lines(batch, ",", None, "f").decode().splitlines() == [
        "1512086400250", "", "1.5", "15120864002.5", "0.0000001", "-2000000000000", "0", "9300000000000000000",
        "100000000000000000000",
    ]  # fmt: skip
    assert [Fraction(line) for line in rows.lines(batch, ",", None, "f").decode().splitlines() if line] == [
        Fraction(value) if value != 1e-7 else Fraction(1, 10**7) for value in given if value is not None
    ]
