"""Settings of nightly runs and of how their report is sent."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, NonNegativeInt, model_validator

from streamgauge.base.field_types import Delay, Model, SecretHeaders, check_delivery
from streamgauge.base.units import Duration


class Webhook(Model):
    """URL that a nightly run's report is POSTed to, as JSON."""

    url: str | None = Field(default=None, description="URL that is POSTed to; give it or url_variable")
    url_variable: str | None = Field(default=None, description="the environment variable that holds a secret URL")
    headers_from_env: SecretHeaders = Field(
        default_factory=dict, description="header -> environment variable that holds its value"
    )
    timeout: Delay = Field(default=Duration.parse("10s"), description="longest time for one attempt")

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.url is None) == (self.url_variable is None):
            raise ValueError("give exactly one of url, url_variable")
        check_delivery(self.url, self.timeout)
        return self


class Notifier(Model):
    """A notifier of Airflow or of one of its providers, which tells a nightly run's report."""

    notifier: Annotated[str, Field(pattern=r"^[A-Za-z_][\w.]*\.[A-Za-z_]\w*$")] = Field(
        description="class of the notifier: package.module.Class of Airflow, of a provider or of your own"
    )
    arguments: dict[str, Any] = Field(
        default_factory=dict,
        description="arguments of the notifier; {text}, {state} and {page} in a text stand for the report's",
    )


class Nightly(Model):
    """A scheduled run that is judged against the nights before it."""

    schedule: str | None = Field(
        default=None, description="cron expression; without it, nightly runs are started by hand"
    )
    repetitions: Annotated[tuple[Annotated[int, Field(ge=4, le=100)], ...], Field(min_length=1, max_length=4)] = Field(
        default=(8, 16),
        description="repetitions per side in a suspect's first rerun, and in further ones while it is inconclusive",
    )
    max_reruns: NonNegativeInt = Field(default=3, description="largest number of suspects that are rerun in a night")
    self_tests: NonNegativeInt = Field(
        default=1, description="cells and queries that are compared with themselves (A/A) in a night, in rotation"
    )
    notify: Literal["problems", "always"] = Field(
        default="problems", description="sends the report only after a night with problems, or always"
    )
    webhook: Webhook | None = Field(default=None, description="URL that the report is POSTed to")
    heartbeat: Webhook | None = Field(
        default=None,
        description="URL of a monitor that is POSTed to after every night; it raises the alarm if no POST arrives",
    )
    apprise_variable: str | None = Field(
        default=None,
        description="the environment variable that holds URLs of Apprise, separated by spaces, such as mailtos://… and "
        "slack://…",
    )
    issues: bool = Field(
        default=False,
        description="sends the issue text of each new change by Apprise, too, as a message of its own",
    )
    notifiers: tuple[Notifier, ...] = Field(default=(), description="notifiers of Airflow that tell the report")

    @model_validator(mode="after")
    def _has_a_way_for_issues(self) -> Self:
        if self.issues and self.apprise_variable is None:
            raise ValueError("issues: found true without apprise_variable, which names where they go")
        return self
