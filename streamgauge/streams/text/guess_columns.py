"""Guesses the columns that a stream may keep, and their kinds."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import pyarrow as pa

from streamgauge.base.schemas import RESERVED
from streamgauge.streams.text.guess_times import NUMBER

_PHONE = re.compile(r"\+[0-9]{7,}", re.ASCII)


def kept(columns: Sequence[Sequence[str]], names: list[str] | None, *, flat: bool) -> dict[str, object]:
    """The columns as a stream may have them, each under its own name or one that is allowed.

    flat: a column whose name is missing or not the only one is known by its index.
    """
    columns_kept: dict[str, object] = {}
    known = names if names is not None else [""] * len(columns)
    allowed = usable(known)
    own_names, taken = set(allowed), {name.lower() for name in allowed}
    for index, (name, values) in enumerate(zip(known, columns, strict=False)):
        kind = kind_of([value for value in values if value])
        if name in own_names:
            columns_kept[name] = kind
        elif flat and (not name or known.count(name) > 1):
            own = f"column_{index}"
            while own.lower() in taken:
                own += "_"
            taken.add(own.lower())
            columns_kept[own] = {"path": index, "type": kind}
        elif known.count(name) == 1:
            last = re.sub(r"\W+", "_", name.split(".")[-1], flags=re.ASCII).strip("_")
            whole = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")
            numbered = (f"{last or 'column'}_{n}" for n in range(1, len(known) + 2))
            own = next(
                one
                for one in (last, whole, *numbered, f"column_{index}")
                if re.match(r"[A-Za-z_]", one) and one.lower() not in RESERVED | taken
            )
            taken.add(own.lower())
            columns_kept[own] = {"path": name, "type": kind}
    return columns_kept


def usable(names: Sequence[str]) -> list[str]:
    """Names of those given that a column of a stream may have."""
    usable_names: dict[str, str] = {}  # by the name in lower case, as SQL takes it
    for name in names:
        allowed = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_ -]*", name) and names.count(name) == 1
        if allowed and name.lower() not in RESERVED:
            usable_names.setdefault(name.lower(), name)
    return list(usable_names.values())


def kind_of(values: list[str]) -> str:
    if not values or not all(map(NUMBER.fullmatch, values)):
        return "string"
    digits = [value.lstrip("+-") for value in values]
    if any(value[0] == "0" and value[1:2].isdigit() for value in digits):
        return "string"  # a zip code or an id, which would lose its zeros
    if all(_PHONE.fullmatch(value) for value in values):
        return "string"  # phone numbers, which would lose their plus
    if any(set(".eE") & set(value) for value in values):
        return "float64" if all(map(math.isfinite, map(float, values))) else "string"
    return "int64" if all(-(2**63) <= int(value) < 2**63 for value in values) else "string"


def kind_of_type(kind: pa.DataType) -> str:
    """The kind of a Parquet column whose every value can be read as such."""
    if pa.types.is_floating(kind):
        return "float64"
    return "int64" if pa.types.is_integer(kind) and kind != pa.uint64() else "string"
