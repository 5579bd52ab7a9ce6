"""Sends metrics as JSON by HTTP POST; docs/metrics.schema.json specifies the body."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

import urllib3

from streamgauge.base.errors import UserError
from streamgauge.base.variables import value_of
from streamgauge.config import MetricsSink
from streamgauge.metrics.snapshot import Snapshot


class HttpSink:
    """Takes only 2xx with a whole body as a delivery, follows no redirect, and never logs a header."""

    def __init__(self, settings: MetricsSink) -> None:
        assert settings.url is not None
        self._url = settings.url
        self.name = f"http {urlsplit(settings.url).hostname}"
        headers = secret_headers(settings.headers_from_env)
        self.secrets = (*headers.values(), urlsplit(settings.url).query or "\0")
        self._headers = {"Content-Type": "application/json", **headers}
        self._pool = urllib3.PoolManager(
            timeout=urllib3.Timeout(total=settings.timeout.seconds), retries=False, maxsize=1
        )

    def write(self, snapshot: Snapshot) -> None:
        answer = self._pool.request("POST", self._url, json=snapshot.body(), headers=self._headers)
        if not 200 <= answer.status < 300:
            raise ConnectionError(f"the server answered HTTP {answer.status}")

    def close(self) -> None:
        self._pool.clear()


def secret_headers(headers_from_env: Mapping[str, str]) -> dict[str, str]:
    """Reads headers whose values are in environment variables. Raises UserError, which never names a value."""
    headers = {}
    for header, variable in headers_from_env.items():
        value = value_of(variable, f"headers_from_env.{header}")
        if not (value.isascii() and value.isprintable()):
            raise UserError(f"headers_from_env.{header}: {variable} holds characters that no header may have")
        headers[header] = value
    return headers
