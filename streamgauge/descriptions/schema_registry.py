"""Settings of a schema registry, and what the formats of values need: a registry, or the writer's schema."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from streamgauge.base import variables
from streamgauge.base.errors import UserError
from streamgauge.base.field_types import Model
from streamgauge.base.places import small_text
from streamgauge.base.reached import Reached
from streamgauge.base.secrets import names_user

#: what a registry calls the language of a schema
Kind = Literal["AVRO", "JSON", "PROTOBUF"]
#: formats whose values begin with the number of a schema, and the language of their schemas
REGISTERED: dict[str, Kind] = {"confluent-avro": "AVRO", "confluent-json": "JSON"}


def _http(address: str) -> str:
    if names_user(address):
        raise ValueError("found a user part (not shown), allowed: an address without one; use user and password")
    parts = urlsplit(address)
    if parts.query or parts.fragment:
        raise ValueError("found a query (not shown), allowed: http://host:port/path; use token")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"found {address!r}, allowed: http://host:port/path or https://…")
    return address.rstrip("/")


def _variable(given: object) -> object:
    """Looks before anything else does, as other messages would show what they found."""
    if not variables.is_one(given):
        raise ValueError("found a secret (not shown), allowed: ${VARIABLE}, of the environment")
    return given


Secret = Annotated[str, BeforeValidator(_variable)]


class SchemaRegistry(Model):
    """A schema registry that speaks Confluent's interface."""

    address: Annotated[str, AfterValidator(_http)] = Field(
        description="http or https address of the registry's Confluent interface, such as http://127.0.0.1:8081"
    )
    user: str | None = Field(default=None, description="user, or key of an API; with password")
    password: Secret | None = Field(default=None, description="password of the user, as ${VARIABLE}")
    token: Secret | None = Field(default=None, description="bearer token instead of a user, as ${VARIABLE}")
    ca: str | None = Field(default=None, description="file of certificates that sign the registry's, as PEM")

    @model_validator(mode="after")
    def _one_login(self) -> Self:
        if (self.user is None) != (self.password is None):
            raise ValueError("user: give it with password, or neither")
        if self.user is not None and self.token is not None:
            raise ValueError("token: found with user, allowed: one of the two")
        return self

    def located(self, base: Path) -> Self:
        """The same, with the file of certificates resolved from base."""
        return self if self.ca is None else self.model_copy(update={"ca": os.path.normpath(base.absolute() / self.ca)})

    def reached(self) -> Iterator[Reached]:
        """Yields the host, and the variables of the environment that are read."""
        yield Reached("host", "registry.address", self.address)
        for key, value in (("user", self.user), ("password", self.password), ("token", self.token)):
            for name in variables.named(value or ""):
                yield Reached("variable", f"registry.{key}", name)


def check_registry(registry: SchemaRegistry | None, *formats: str) -> None:
    """Raises ValueError unless there is a registry where one of the formats needs it, and there alone."""
    if any(form in REGISTERED for form in formats) != (registry is not None):
        raise ValueError(f"registry: needed by {' and '.join(REGISTERED)}, and by those alone")


def check_writer_schema(writer_schema: str | None, form: str) -> None:
    """Raises ValueError unless there is a schema where values of plain Avro are read, and there alone."""
    if (form == "avro") != (writer_schema is not None):
        raise ValueError("writer_schema: needed to read avro, and by that alone: Avro's schema, or a file with it")


def schema_text(given: str, base: Path, key: str) -> str:
    """Returns a schema that is given as JSON, or the text of its file. Raises UserError if that cannot be read."""
    return given if given.lstrip()[:1] in tuple('[{"') else text_of(base / given, key)


def text_of(file: Path, key: str) -> str:
    """Text of a file that a key names. Raises UserError."""
    try:
        return small_text(file, most_bytes=1 << 20)
    except OSError as problem:
        raise UserError(f"{key}: {file}: {problem.strerror}") from None
    except UnicodeDecodeError as problem:
        raise UserError(f"{key}: {file}: byte {problem.start} is not UTF-8") from None
