"""A client of a schema registry that speaks Confluent's interface; every failure is one line."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from typing import Any, cast
from urllib.parse import quote

from streamgauge.base import variables
from streamgauge.base.errors import UserError
from streamgauge.descriptions.schema_registry import Kind, SchemaRegistry

#: what stands before a registered schema's values: a byte that is 0, and the number of the schema
PREFIX = Struct(">bI")
#: longest time for an answer, in seconds
TIMEOUT_S = 8.0
MOST_BYTES = 16 << 20
_JSON = {"Content-Type": "application/vnd.schemaregistry.v1+json", "Accept": "application/json"}
#: error code of an answer: there is no schema of that number
_UNKNOWN = 40403
_LARGEST_ID = 2**31 - 1


@dataclass(frozen=True)
class Schema:
    """A schema. referenced: those whose names it uses, each after those that it uses itself."""

    kind: Kind
    text: str
    referenced: tuple[str, ...] = ()


class Registry:
    """Reads, registers and removes schemas. Every method raises UserError."""

    def __init__(self, settings: SchemaRegistry) -> None:
        import urllib3

        self._address = settings.address
        self._headers = _JSON | _login(settings)
        if settings.ca is not None and not Path(settings.ca).is_file():
            raise UserError(f"registry.ca: found no file {settings.ca}")
        timeout = urllib3.Timeout(total=TIMEOUT_S)
        self._pool = urllib3.PoolManager(timeout=timeout, retries=False, ca_certs=settings.ca)

    def schema(self, number: int) -> Schema | None:
        """The schema of that number; None if the registry has none."""
        if number > _LARGEST_ID:
            return None
        status, answer = self._ask("GET", f"/schemas/ids/{number}")
        if status == 404 and answer.get("error_code") == _UNKNOWN:
            return None
        return self._schema(self._good("schema", status, answer))

    def register(self, subject: str, kind: Kind, schema: str) -> int:
        """Registers a schema under a subject, unless it is there; returns its number."""
        body = {"schema": schema} | ({} if kind == "AVRO" else {"schemaType": kind})
        answer = self._good("id", *self._ask("POST", f"/subjects/{quote(subject, safe='')}/versions", body))
        return cast("int", answer["id"])

    def remove(self, subjects: Collection[str]) -> None:
        """Removes subjects with their schemas, as far as they are there and the registry lets them go."""
        with suppress(UserError):  # it is away, or refuses them all
            for subject in subjects:
                for how in ("", "?permanent=true"):
                    self._ask("DELETE", f"/subjects/{quote(subject, safe='')}{how}")

    def _schema(self, answer: Mapping[str, Any]) -> Schema:
        texts: dict[str, None] = {}
        self._add_referenced(answer, texts, set())
        return Schema(answer.get("schemaType") or "AVRO", answer["schema"], tuple(texts))

    def _add_referenced(self, answer: Mapping[str, Any], texts: dict[str, None], seen: set[str]) -> None:
        for one in answer.get("references") or ():
            path = f"/subjects/{quote(one['subject'], safe='')}/versions/{one['version']}"
            if path not in seen:
                seen.add(path)
                inner = self._good("schema", *self._ask("GET", path))
                self._add_referenced(inner, texts, seen)
                texts[inner["schema"]] = None

    def _good(self, key: str, status: int, answer: Mapping[str, Any]) -> Mapping[str, Any]:
        """The answer, which has that key. Raises UserError for another one."""
        if status == 200 and key in answer:
            return answer
        if status == 200:
            raise UserError(f"registry.address: {self._address} answers without {key!r}, so it is no schema registry")
        said = " ".join(str(answer.get("message", "no reason")).split())
        raise UserError(f"registry.address: {self._address} answers HTTP {status}: {said}")

    def _ask(self, method: str, path: str, body: object = None) -> tuple[int, dict[str, Any]]:
        """Returns the status and the JSON of an answer."""
        from urllib3.exceptions import HTTPError

        begin = f"registry.address: {self._address}"
        deadline = time.monotonic() + TIMEOUT_S
        try:
            answer = self._pool.request(
                method, self._address + path, json=body, headers=self._headers, redirect=False, preload_content=False
            )
            data = b""
            while chunk := answer.read1(1 << 16):
                data += chunk
                if time.monotonic() > deadline or len(data) > MOST_BYTES:
                    raise UserError(f"{begin} does not come to an end of its answer")
        except (HTTPError, OSError) as problem:
            raise UserError(f"{begin} does not answer ({str(problem).rpartition(': ')[2]})") from None
        if answer.status in (401, 403):
            raise UserError(f"{begin} refuses (HTTP {answer.status}); correct user and password, or token")
        if 300 <= answer.status < 400:
            raise UserError(f"{begin} leads to another address, which is not followed; give that one")
        with suppress(ValueError):
            found = json.loads(data)
            return answer.status, found if isinstance(found, dict) else {}
        raise UserError(f"{begin} answers HTTP {answer.status} without JSON, so it is no schema registry")


def _login(settings: SchemaRegistry) -> dict[str, str]:
    if settings.token is not None:
        token = variables.filled(settings.token, "registry.token")
        if not (token.isascii() and token.isprintable()):
            raise UserError("registry.token: the variable holds characters that no header may have")
        return {"Authorization": f"Bearer {token}"}
    if settings.user is None:
        return {}
    user, password = (variables.filled(getattr(settings, key), f"registry.{key}") for key in ("user", "password"))
    return {"Authorization": f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"}
