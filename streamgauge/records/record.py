"""The form that all records share, and how they are written and read: whole files, lists, and lines of a log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from streamgauge.base.errors import Damaged
from streamgauge.base.jsonl import append_json, read_jsonl, read_record, read_records, write_record, write_records

VERSION: Literal[1] = 1
#: what to do about a record that is not what was written
AGAIN = "run its stage again"
#: configuration of a dataclass that is a record: a number may be infinite
WITH_CONSTANTS = ConfigDict(ser_json_inf_nan="constants")


class Part(BaseModel):
    """Part of a record: frozen, and without keys that nobody knows. A number may be infinite."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants", defer_build=True)

    def to_json(self) -> dict[str, Any]:
        return self.model_dump(mode="json")


def wrong_version(record: Mapping[str, Any]) -> str:
    """Says what is wrong with the version of a stored record; empty if nothing is."""
    version = record.get("version")
    if type(version) is int and version == VERSION:
        return ""
    return f"version: found {'none' if version is None else repr(version)}, allowed: {VERSION}"


class Record(Part):
    """A file that a stage writes, or one object of a list or a log. A record of another form has another version."""

    #: its file holds a list of them
    in_list: ClassVar[bool] = False
    version: Literal[1] = VERSION

    @classmethod
    def of(cls, record: Mapping[str, Any], where: object, todo: str = AGAIN) -> Self:
        """Reads a record that another program may have written, hence without a version.

        Raises Damaged, which names `where` and the first wrong key.
        """
        if "version" in record and (wrong := wrong_version(record)):
            raise Damaged(where, wrong, todo)
        try:
            return cls.model_validate(record)
        except ValidationError as problem:
            first = problem.errors(include_url=False)[0]
            key, given = ".".join(map(str, first["loc"])), first["input"]
            shown = "" if isinstance(given, dict | list) else f", found {given!r}"
            raise Damaged(where, f"damaged, {key}: {first['msg'].lower()}{shown}", todo) from None

    @classmethod
    def stored(cls, record: Mapping[str, Any], where: object, todo: str = AGAIN) -> Self:
        """Reads a record that this project wrote, so that it has a version. Raises Damaged, as `of` does."""
        if wrong := wrong_version(record):
            raise Damaged(where, wrong, todo)
        return cls.of(record, where, todo)

    def write(self, path: Path) -> None:
        """Writes the record as a whole file, with its checksum."""
        write_record(path, self.to_json())

    @classmethod
    def write_all(cls, path: Path, records: Sequence[Self]) -> None:
        """Writes a file with a list of records, each with its checksum."""
        write_records(path, [record.to_json() for record in records])

    @classmethod
    def read(cls, path: Path, todo: str = AGAIN) -> Self:
        """Reads what `write` wrote. Raises OSError, or Damaged."""
        return cls.stored(read_record(path, todo), path, todo)

    @classmethod
    def read_all(cls, path: Path, todo: str = AGAIN) -> list[Self]:
        """Reads what `write_all` wrote. Raises OSError, or Damaged."""
        return [cls.stored(record, path, todo) for record in read_records(path, todo)]


class Line(Record):
    """A line of a log. Fields that were not given are not written."""

    def to_json(self) -> dict[str, Any]:
        return {"version": self.version, **self.model_dump(mode="json", exclude_unset=True)}

    def append(self, path: Path) -> None:
        """Appends the line to a log, with its checksum."""
        append_json(path, self.to_json())

    @classmethod
    def read_log(cls, path: Path, todo: str = AGAIN) -> list[Self]:
        """Reads a log, whose last line may be torn. Raises Damaged."""
        return [cls.stored(line, path, todo) for line in read_jsonl(path)]
