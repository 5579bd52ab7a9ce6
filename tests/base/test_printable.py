"""Tests that names and values from files of others are no commands to terminals, spreadsheets and TeX."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table

from streamgauge.base.console import Console
from streamgauge.base.printing import as_cell, printable


@given(st.text())
def test_a_printed_text_moves_no_cursor_and_turns_no_direction(text: str) -> None:
    shown = printable(text)
    assert all(one in "\n\t" or not (ord(one) < 32 or 127 <= ord(one) < 160) for one in shown)
    assert not set(shown) & set("\u202e\u2066\u2028")


def test_escape_codes_are_shown_as_text() -> None:
    assert printable("a\x1b[31mred\x1b]0;title\x07\tb\n\x9b2J\u202e") == (
        "a\\x1b[31mred\\x1b]0;title\\x07\tb\n\\x9b2J\\u202e"
    )


def test_colours_of_a_table_are_its_own_also_on_a_terminal() -> None:
    written = io.StringIO()
    console = Console(file=written, force_terminal=True, color_system="standard", width=80, highlight=False)
    table = Table("a")
    table.add_row("[red]x[/]\x1b[8my")
    console.print(table)
    console.print("z\x1b]0;t\x07", markup=False)
    assert "\x1b[31mx" in written.getvalue()
    assert "\\x1b[8my" in written.getvalue()
    assert "z\\x1b]0;t\\x07" in written.getvalue()


@pytest.mark.parametrize(
    ("text", "cell"),
    [("=1+1", "'=1+1"), ("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"), ("@SUM(A1)", "'@SUM(A1)"), ("-2+3", "'-2+3"),
     ("\t=1", "'\t=1"), ("\r=1", "'\r=1"), ("\uff1d1", "'\uff1d1"), ("-2.5", "-2.5"), ("+3", "+3"), ("-1e-9", "-1e-9"),
     ("a=1", "a=1"), ("", "")],
)  # fmt: skip
def test_a_cell_is_no_formula_and_a_number_stays_one(text: str, cell: str) -> None:
    assert as_cell(text) == cell
