"""Settings of metrics, retention, nightly runs and their notifications."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from streamgauge.config.fields import ByteCount, Delay, Model
from streamgauge.units import Duration, parse_bytes


class MetricsSink(Model):
    """A backend that metrics are pushed to."""

    type: str = Field(description="console, http, graphite, otel, or package.module:Class")
    url: str | None = Field(
        default=None, description="http: where to POST; otel: the collector's endpoint, by default that of the SDK"
    )
    host: str | None = Field(default=None, description="graphite: its host")
    port: Annotated[int, Field(ge=1, le=65535)] = 2003
    prefix: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$")] = "streamgauge"
    headers_from_env: dict[str, str] = Field(
        default_factory=dict, description="header -> environment variable that holds its value (http, otel)"
    )
    timeout: Delay = Duration.parse("5s")
    options: dict[str, Any] = Field(default_factory=dict, description="free settings of your own sink class")

    @model_validator(mode="after")
    def _complete(self) -> Self:
        needed = {"http": "url", "graphite": "host"}.get(self.type)
        if needed and getattr(self, needed) is None:
            raise ValueError(f"type {self.type} needs the key {needed}")
        _check_delivery(self.url, self.timeout)
        return self


class Metrics(Model):
    """Backends that a run's metrics are pushed to while it runs, and how often."""

    sinks: tuple[MetricsSink, ...] = ()
    period: Delay = Duration.parse("5s")
    buffer: Annotated[int, Field(ge=1, le=10_000)] = Field(
        default=60, description="pushes kept while the backend does not answer"
    )

    @field_validator("period")
    @classmethod
    def _long_enough(cls, period: Duration) -> Duration:
        if period < Duration.parse("100ms"):
            raise ValueError(f"found {period}, allowed: 100ms or more")
        return period


class Retention(Model):
    """Limits of the disk space that artifacts take, and which data is kept; results are never deleted."""

    disk_budget: ByteCount = Field(
        default=parse_bytes("50GiB"), description="checked before a run, which deletes old data first"
    )
    keep_runs: Annotated[int, Field(ge=1)] = Field(
        default=3, description="the newest runs of each benchmark keep their data"
    )


class Webhook(Model):
    """URL that a nightly run's report is POSTed to, as JSON."""

    url: str | None = None
    url_variable: str | None = Field(default=None, description="the environment variable that holds a secret URL")
    headers_from_env: dict[str, str] = Field(
        default_factory=dict, description="header -> environment variable that holds its value"
    )
    timeout: Delay = Duration.parse("10s")

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.url is None) == (self.url_variable is None):
            raise ValueError("give exactly one of url, url_variable")
        _check_delivery(self.url, self.timeout)
        return self


class Email(Model):
    """Addresses and SMTP server for a nightly run's report."""

    host: str
    port: Annotated[int, Field(ge=1, le=65535)] = 25
    security: Literal["none", "starttls", "tls"] = "none"
    sender: str
    to: Annotated[tuple[str, ...], Field(min_length=1)]
    user_variable: str | None = Field(default=None, description="the environment variable that holds the user")
    password_variable: str | None = Field(default=None, description="the environment variable that holds the password")
    timeout: Delay = Duration.parse("10s")

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.user_variable is None) != (self.password_variable is None):
            raise ValueError("give both of user_variable, password_variable, or none")
        for address in (self.sender, *self.to):
            if not re.fullmatch(r"[^@\s,]+@[^@\s,]+", address):
                raise ValueError(f"found {address!r}, allowed: an address such as team@example.org")
        if self.password_variable and self.security == "none" and self.host not in ("localhost", "127.0.0.1", "::1"):
            raise ValueError("security: found none with a password, allowed: starttls or tls")
        _check_delivery(None, self.timeout)
        return self


class Nightly(Model):
    """A scheduled run that is judged against the nights before it."""

    schedule: str | None = Field(default=None, description="cron expression; none: only when triggered")
    repetitions: Annotated[tuple[Annotated[int, Field(ge=4, le=100)], ...], Field(min_length=1, max_length=4)] = Field(
        default=(8, 16),
        description="repetitions per side in a suspect's first rerun, and in further ones while it is inconclusive",
    )
    max_reruns: Annotated[int, Field(ge=0)] = Field(default=3, description="most suspects rerun in a night")
    self_tests: Annotated[int, Field(ge=0)] = Field(
        default=1, description="cells and queries that are compared with themselves (A/A) in a night, in rotation"
    )
    notify: Literal["problems", "always"] = "problems"
    webhook: Webhook | None = None
    email: Email | None = None


def _check_delivery(url: str | None, timeout: Duration) -> None:
    if url is not None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("url: allowed: http://host:port/path or https://…")
        if parts.username or parts.password:
            raise ValueError("url: found credentials; use headers_from_env, which keeps them out of files and logs")
    if timeout.ps <= 0:
        raise ValueError(f"timeout: found {timeout}, allowed: above 0")
