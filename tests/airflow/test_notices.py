"""A night is told to a real web server and a real mail server on the loopback; no secret is ever said."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, LoginPassword

from streamgauge.app.airflow import notices
from streamgauge.base.errors import UserError
from streamgauge.base.jsonl import write_json
from streamgauge.config import Benchmark, parse

pytestmark = pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS")
LINES = [{"state": "regression", "what": "b late20 q7 spark streaming p99", "said": "+12 %, noise floor 3 %"}]
BAD = {"version": 1, "benchmark": "b", "run_id": "b-1", "state": "bad", "complete": True, "lines": LINES}


class Hook:
    """Answers what it is told to; keeps path, headers and body of each call."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, str], Any]] = []
        self.status = 200
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                hook.calls.append((self.path, dict(self.headers), body))
                self.send_response(hook.status)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def hook() -> Iterator[Hook]:
    hook = Hook()
    thread = threading.Thread(target=hook.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield hook
    hook.server.shutdown()
    thread.join()
    hook.server.server_close()


class Inbox:
    def __init__(self) -> None:
        self.mails: list[Any] = []
        self.accounts = [(b"me", b"hunter2")]

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:
        self.mails.append(envelope)
        return "250 OK"

    def authenticate(self, _server: Any, _session: Any, _envelope: Any, _mechanism: str, given: Any) -> AuthResult:
        assert isinstance(given, LoginPassword)
        return AuthResult(success=(given.login, given.password) in self.accounts, handled=False)


@pytest.fixture
def inbox() -> Iterator[tuple[Inbox, int]]:
    box = Inbox()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = Controller(
        box, hostname="127.0.0.1", port=port, authenticator=box.authenticate, auth_require_tls=False, auth_required=True
    )
    server.start()
    yield box, port
    server.stop()


@pytest.fixture
def run(tmp_path: Path) -> Path:
    path = tmp_path / "runs" / "b-1"
    path.mkdir(parents=True)
    write_json(path / "nightly.json", BAD)
    return path


def benchmark(**nightly: Any) -> Benchmark:
    raw = {
        "name": "b",
        "source": {"files": "f.csv", "time": {"column": 0}},
        "experiments": [{"name": "e", "target_percent": 0}],
        "nightly": nightly,
    }
    return parse(Benchmark, raw, "b.yaml")


def account(port: int, password: str = "hunter2") -> str:
    """URL of Apprise for the mail server."""
    return f"mailto://me:{password}@127.0.0.1:{port}?from=gauge@example.org&to=a@example.org"


class Kept:
    """A notifier as Airflow's providers have them: it keeps what it is told."""

    told: ClassVar[list[Any]] = []

    def __init__(self, **arguments: Any) -> None:
        self.arguments = arguments

    def notify(self, context: Any) -> None:
        if self.arguments.get("fails"):
            raise ValueError("hunter2 was refused")
        self.told.append((self.arguments, context))


KEPT = f"{__name__}.Kept"
TEXT = f"Streamgauge b: bad (b-1)\nregression: {LINES[0]['what']}: {LINES[0]['said']}\npage: {{}}"


def test_a_notifier_of_airflow_gets_its_arguments_filled_and_the_context(run: Path) -> None:
    arguments = {"text": "Night: {text}", "blocks": [{"state": "{state}", "n": 1}], "url": "{page}"}
    Kept.told.clear()
    made = benchmark(notifiers=[{"notifier": KEPT, "arguments": one} for one in (arguments, {"to": "others"})])
    names = [f"notifiers.0: {KEPT}", f"notifiers.1: {KEPT}"]
    assert notices.send(made, run, {"dag": "d"}) == names
    page = str(run.parents[1] / "dashboard.html")
    filled = {"text": f"Night: {TEXT.format(page)}", "blocks": [{"state": "bad", "n": 1}], "url": page}
    assert sorted(Kept.told, key=lambda one: "to" in one[0]) == [
        (filled, {"dag": "d"}),
        ({"to": "others"}, {"dag": "d"}),
    ]
    assert notices.send(made, run) == names
    assert len(Kept.told) == 2, "a retried task does not tell it twice"


@pytest.mark.parametrize(
    ("nightly", "said"),
    [
        ({"notifiers": [{"notifier": "no.such.Notifier"}]}, "no.such.Notifier: not delivered: no such notifier"),
        ({"notifiers": [{"notifier": KEPT, "arguments": {"fails": True}}]}, f"{KEPT}: not delivered: ValueError"),
        ({"apprise_variable": "NONE"}, "apprise_variable: the environment variable NONE is not set"),
        ({"apprise_variable": "WRONG"}, "the URL number 2 in WRONG is none that Apprise knows"),
        ({"apprise_variable": "CLOSED"}, "a service of Apprise did not take it"),
    ],
)
def test_a_channel_that_fails_is_one_line_without_its_secrets(
    run: Path, monkeypatch: pytest.MonkeyPatch, nightly: dict[str, Any], said: str
) -> None:
    monkeypatch.setenv("WRONG", "json://127.0.0.1:1/hunter2 hunter2://x")
    monkeypatch.setenv("CLOSED", "json://127.0.0.1:1/hunter2")
    with pytest.raises(UserError) as refused:
        notices.send(benchmark(**nightly), run)
    assert said in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_apprise_tells_each_of_its_services(hook: Hook, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = hook.url.replace("http", "json")
    monkeypatch.setenv("SERVICES", f"{there}/one {there}/two")
    assert notices.send(benchmark(apprise_variable="SERVICES"), run) == ["apprise"]
    assert sorted(path for path, _, _ in hook.calls) == ["/one", "/two"]
    body = hook.calls[0][2]
    assert (body["title"], body["type"]) == ("Streamgauge b: bad (b-1)", "failure")
    assert body["message"] == TEXT.format(run.parents[1] / "dashboard.html")


def test_an_issue_is_sent_once_and_only_when_asked(hook: Hook, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICES", hook.url.replace("http", "json") + "/one")
    (run / "issues").mkdir()
    (run / "issues" / "c0ffee.md").write_text("# Regression: p99 +12.0 %\n\n| from | 400 ms |\n")
    assert notices.send(benchmark(apprise_variable="SERVICES"), run) == ["apprise"]
    asked = benchmark(apprise_variable="SERVICES", issues=True)
    assert notices.send(asked, run) == notices.send(asked, run) == ["apprise", "issue c0ffee"]
    assert [(body["title"], body["message"]) for _, _, body in hook.calls[1:]] == [
        ("Regression: p99 +12.0 %", "| from | 400 ms |")
    ]


def test_the_text_of_an_improvement_is_sent_though_a_good_night_is_not(
    hook: Hook, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVICES", hook.url.replace("http", "json") + "/one")
    write_json(run / "nightly.json", {**BAD, "state": "good", "lines": [{**LINES[0], "state": "improvement"}]})
    (run / "issues").mkdir()
    (run / "issues" / "c0ffee.md").write_text("# Improvement: p99 -12.0 %\n\n| from | 450 ms |\n")
    asked = benchmark(apprise_variable="SERVICES", issues=True)
    assert notices.send(asked, run) == notices.send(asked, run) == ["issue c0ffee"]
    assert [body["title"] for _, _, body in hook.calls] == ["Improvement: p99 -12.0 %"]


def test_a_webhook_gets_the_report_as_json(hook: Hook, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK", hook.url + "/s3cret")
    monkeypatch.setenv("TOKEN", "Bearer t0ken")
    made = benchmark(webhook={"url_variable": "HOOK", "headers_from_env": {"Authorization": "TOKEN"}})
    assert notices.send(made, run) == ["webhook"]
    [(path, headers, body)] = hook.calls
    assert (path, headers["Authorization"]) == ("/s3cret", "Bearer t0ken")
    page = str(run.parents[1] / "dashboard.html")
    assert body == {**BAD, "page": page, "text": TEXT.format(page)}
    assert notices.send(made, run) == ["webhook"]
    assert len(hook.calls) == 1, "a task that is tried again says nothing twice"


def test_an_email_goes_through_a_server_that_wants_a_password(
    inbox: tuple[Inbox, int], run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    box, port = inbox
    monkeypatch.setenv("SERVICES", account(port))
    assert notices.send(benchmark(apprise_variable="SERVICES"), run) == ["apprise"]
    [mail] = box.mails
    assert (mail.mail_from, mail.rcpt_tos) == ("gauge@example.org", ["a@example.org"])
    text = mail.content.decode()
    assert "Subject: Streamgauge b: bad (b-1)" in text
    assert "regression: b late20 q7 spark streaming p99: +12 %, noise floor 3 %" in text
    assert "hunter2" not in text


def test_what_cannot_be_delivered_is_one_line_without_a_secret_and_only_that_is_tried_again(
    hook: Hook, inbox: tuple[Inbox, int], run: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    box, port = inbox
    monkeypatch.setenv("HOOK", hook.url + "/s3cret")
    monkeypatch.setenv("SERVICES", account(port, "wr0ng"))
    made = benchmark(webhook={"url_variable": "HOOK"}, apprise_variable="SERVICES")
    with pytest.raises(UserError) as caught:
        notices.send(made, run)
    assert "nightly.apprise: not delivered: a service of Apprise did not take it" in str(caught.value)
    monkeypatch.setenv("SERVICES", account(port))
    assert notices.send(made, run) == ["apprise", "webhook"]
    assert (len(hook.calls), len(box.mails)) == (1, 1)
    assert not [secret for secret in ("s3cret", "wr0ng", "hunter2") if secret in caplog.text]


@pytest.mark.parametrize(
    ("variable", "said"),
    [
        ("http://127.0.0.1:1/s3cret", r"nightly.webhook: not delivered: NewConnectionError"),
        ("", "nightly.webhook: not delivered: url_variable: the environment variable HOOK is not set; export it"),
    ],
)
def test_a_webhook_that_is_not_there(run: Path, monkeypatch: pytest.MonkeyPatch, variable: str, said: str) -> None:
    monkeypatch.setenv("HOOK", variable)
    with pytest.raises(UserError) as caught:
        notices.send(benchmark(webhook={"url_variable": "HOOK"}), run)
    assert str(caught.value) == said


def test_an_answer_that_is_no_success_is_a_failure(hook: Hook, run: Path) -> None:
    hook.status = 302
    with pytest.raises(UserError, match="not delivered: the webhook answered HTTP 302"):
        notices.send(benchmark(webhook={"url": hook.url}), run)


def test_a_good_night_is_told_only_when_wanted(hook: Hook, run: Path) -> None:
    write_json(run / "nightly.json", {**BAD, "state": "good", "lines": []})
    assert notices.send(benchmark(webhook={"url": hook.url}), run) == []
    assert notices.send(benchmark(webhook={"url": hook.url}, notify="always"), run) == ["webhook"]
    assert len(hook.calls) == 1


@pytest.mark.parametrize(
    ("stages", "said"), [("", "the stage did not run to its end"), ("{damaged\n", "stages.jsonl: line 1: damaged")]
)
def test_a_night_that_left_no_report_is_told_too(hook: Hook, run: Path, stages: str, said: str) -> None:
    (run / "nightly.json").unlink()
    (run / "stages.jsonl").write_text(stages)
    notices.send(benchmark(webhook={"url": hook.url}), run)
    [(_, _, body)] = hook.calls
    (line,) = body["lines"]
    assert (line["state"], line["what"]) == ("failed", "regressions")
    assert said in line["said"]


@pytest.mark.parametrize(
    ("nightly", "said"),
    [
        ({"webhook": {}}, "nightly.webhook: give exactly one of url, url_variable"),
        ({"webhook": {"url": "http://me:pw@host/"}}, "url: found credentials; use headers_from_env"),
        ({"issues": True}, "nightly: issues: found true without apprise_variable, which names where they go"),
        ({"repetitions": [3]}, "nightly.repetitions.0: found 3, allowed: at least 4"),
    ],
)
def test_a_mistake_in_the_benchmark_file(nightly: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError) as caught:
        benchmark(**nightly)
    assert said in str(caught.value)
