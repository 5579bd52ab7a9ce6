"""Sends the report of a nightly run: log lines, a webhook, Apprise, notifiers of Airflow.

Secrets come from the environment and are never logged. The run's notices.jsonl holds what was delivered, so that a
retried task delivers only what is missing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import urllib3

from streamgauge.base.errors import Damaged, UserError
from streamgauge.base.plugins import loaded
from streamgauge.base.variables import filled, value_of
from streamgauge.catalog.run_log import RunLog
from streamgauge.config import Benchmark, Nightly, Notifier, Webhook
from streamgauge.metrics.sinks.http import secret_headers
from streamgauge.records.night import ISSUES, Delivery, NightLine, NightReport

log = logging.getLogger("streamgauge")
REPORT, DELIVERED = "nightly.json", "notices.jsonl"


class Notice(NightReport):
    """The report of a night, with the path of the page of all nights."""

    page: str

    @property
    def subject(self) -> str:
        return f"Streamgauge {self.benchmark}: {self.state} ({self.run_id})"

    @property
    def text(self) -> str:
        """The report as plain text; chat services show the value of a webhook's key `text`."""
        return "\n".join([self.subject, *map(str, self.lines), f"page: {self.page}"])

    def to_json(self) -> dict[str, Any]:
        return super().to_json() | {"text": self.text}


def send(benchmark: Benchmark, run: Path, context: Any = None) -> list[str]:
    """Delivers the run's report to the benchmark's channels and returns those that have it by now.

    context: Airflow's, for its notifiers. Where only problems are to be reported and there are none, only texts of
    issues are delivered, such as that of an improvement. Raises UserError for channels that failed.
    """
    settings, notice = benchmark.nightly or Nightly(), report_of(benchmark, run)
    for line in notice.lines:
        log.info("%s", line)
    if settings.heartbeat is not None:
        beat(settings.heartbeat, notice)
    is_due = notice.state != "good" or settings.notify == "always"
    run.mkdir(parents=True, exist_ok=True)  # it is missing if not even the first stage could start
    delivered = {record.channel for record in Delivery.read_log(run / DELIVERED)}
    channels = _of_report(settings, notice, context) if is_due else {}
    if settings.issues and (variable := settings.apprise_variable):
        for file in sorted((run / ISSUES).glob("*.md")):
            title, _, text = file.read_text().partition("\n")
            shown = (title.removeprefix("# "), text.lstrip())
            channels[f"issue {file.stem}"] = partial(apprised, variable, notice.state, *shown, markdown=True)
    problems = []
    for name in channels.keys() - delivered:
        try:
            channels[name]()
        except Exception as problem:  # a notifier may raise anything
            problems.append(f"nightly.{name}: not delivered: {_harmless(problem)}")
        else:
            log.info("report delivered by %s", name)
            Delivery(channel=name).append(run / DELIVERED)
            delivered.add(name)
    if problems:
        raise UserError("; ".join(sorted(problems)))
    return sorted(delivered)


def _of_report(settings: Nightly, notice: Notice, context: Any) -> dict[str, Callable[[], None]]:
    """The channels of the report, by name."""
    channels: dict[str, Callable[[], None]] = {}
    if webhook := settings.webhook:
        channels["webhook"] = lambda: post(webhook, notice.to_json())
    if variable := settings.apprise_variable:
        channels["apprise"] = lambda: apprised(variable, notice.state, notice.subject, notice.text)
    for number, one in enumerate(settings.notifiers):  # one class may tell several channels
        channels[f"notifiers.{number}: {one.notifier}"] = partial(notified, one, notice, context)
    return channels


def beat(settings: Webhook, notice: Notice) -> None:
    """Tells a monitor that the night took place. A failure is a log line: the monitor alarms by itself."""
    try:
        post(settings, notice.model_dump(include={"benchmark", "run_id", "state"}))
    except (UserError, OSError, urllib3.exceptions.HTTPError) as problem:
        log.warning("nightly.heartbeat: not delivered: %s", _harmless(problem))


def report_of(benchmark: Benchmark, run: Path) -> Notice:
    """The report that the stage regressions left, with a line added if the stage did not run to its end."""
    try:
        report = NightReport.read(run / REPORT, "delete the file")
    except (OSError, Damaged):
        report = NightReport(benchmark=benchmark.name, run_id=run.name, state="open", complete=False)
    if not report.complete:
        try:
            last = RunLog(run).latest("regressions")
            why = (last and last.error) or "the stage did not run to its end"
        except Damaged as problem:
            why = str(problem)
        lines = (*report.lines, NightLine("failed", "regressions", why))
        report = report.model_copy(update={"state": "bad", "lines": lines})
    return Notice.model_construct(**dict(report), page=str(run.parents[1] / "dashboard.html"))


def post(settings: Webhook, body: dict[str, Any]) -> None:
    """Posts a JSON object. Raises UserError for any answer but 2xx: redirects are not followed."""
    url = filled(settings.url, "url") if settings.url else value_of(settings.url_variable or "", "url_variable")
    headers = secret_headers(settings.headers_from_env)
    logging.getLogger("urllib3.connectionpool").setLevel(logging.INFO)  # below that it logs URLs
    timeout = urllib3.Timeout(total=settings.timeout.seconds)
    with urllib3.PoolManager(timeout=timeout, retries=False) as pool:
        answer = pool.request("POST", url, json=body, headers={"Content-Type": "application/json", **headers})
    if not 200 <= answer.status < 300:
        raise UserError(f"the webhook answered HTTP {answer.status}")


def apprised(variable: str, state: str, title: str, text: str, *, markdown: bool = False) -> None:
    """Tells a text by Apprise, which knows the services. Raises UserError if one of them has not taken it."""
    import apprise  # it takes a second

    services = apprise.Apprise()
    for number, url in enumerate(value_of(variable, "apprise_variable").split(), 1):
        if not services.add(url):
            raise UserError(f"apprise_variable: the URL number {number} in {variable} is none that Apprise knows")
    kind = {"good": apprise.NotifyType.SUCCESS, "bad": apprise.NotifyType.FAILURE}
    if not services.notify(
        title=title,
        body=text,
        notify_type=kind.get(state, apprise.NotifyType.WARNING),
        body_format=apprise.NotifyFormat.MARKDOWN if markdown else apprise.NotifyFormat.TEXT,
    ):
        raise UserError("a service of Apprise did not take it; its log line says which")


def notified(settings: Notifier, notice: Notice, context: Any) -> None:
    """Tells the report by a notifier of Airflow. Raises UserError if there is none of that name."""
    module, _, name = settings.notifier.rpartition(".")
    notifier = loaded(f"{module}:{name}", "no such notifier")
    if not callable(notifier):
        raise UserError(f"no such notifier: {settings.notifier} is no class")
    arguments = filled(settings.arguments, "arguments")
    notifier(**{key: _filled(value, notice) for key, value in arguments.items()}).notify(context)


def _filled(value: Any, notice: Notice) -> Any:
    """Returns a text with {text}, {state} and {page} replaced, also within lists and objects."""
    if isinstance(value, str):
        for key, text in (("text", notice.text), ("state", notice.state), ("page", notice.page)):
            value = value.replace(f"{{{key}}}", text)
        return value
    if isinstance(value, dict):
        return {key: _filled(one, notice) for key, one in value.items()}
    return [_filled(one, notice) for one in value] if isinstance(value, list) else value


def _harmless(problem: Exception) -> str:
    """Describes a problem without secrets: libraries' messages hold URLs and servers' answers, which may hold some."""
    if isinstance(problem, UserError):
        return str(problem)
    return (problem.strerror if isinstance(problem, OSError) else None) or type(problem).__name__
