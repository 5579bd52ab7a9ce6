"""Headless Chromium, and Airflow's web page as a person uses it in a browser."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--allow-file-access-from-files",
]


@contextmanager
def chromium(profile: Path) -> Iterator[Any]:
    """Yields a browser with a profile of its own; skips the test where there is none, but in CI fails it."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if not program or not driver:
        reason = f"needs a browser and its driver: chromium {program}, chromedriver {driver}"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        yield browser
    finally:
        browser.quit()


class AirflowPage:
    """A person's steps in Airflow's web page. Each waits for what it needs, at most a minute, then leaves the page.

    An open page draws and asks all the time, which takes a third of a core.
    """

    def __init__(self, browser: Any, url: str, user: str, password: str) -> None:
        self._browser, self._url = browser, url
        browser.set_window_size(1400, 1200)
        browser.get(url)
        self._found("input[name=username]").send_keys(user)
        self._found("input[name=password]").send_keys(f"{password}\n")
        self._found("a[href$='/dags']")
        self._leave()

    def trigger(self, dag: str, run: str, leave_out: Sequence[str]) -> None:
        """Triggers a run by the form, in which all is chosen at first; leave_out: names to take away."""
        self._browser.get(f"{self._url}/dags/{dag}")
        self._found("button[aria-label='Trigger Dag']").click()
        for name in leave_out:
            self._found(f"[role=dialog] [aria-label='Remove {name}']").click()
        self._button("Advanced Options").click()
        self._found("[role=dialog] input[name=dagRunId]").send_keys(run)
        self._button("Trigger").click()
        self._wait(lambda: f"/runs/{run}" in self._browser.current_url)
        self._leave()

    def clear(self, dag: str, run: str, task: str) -> None:
        """Clears a task and those after it. task: name, of a mapped one with its number, as make/mapped/1."""
        self._browser.get(f"{self._url}/dags/{dag}/runs/{quote(run)}/tasks/{task}")
        self._found("button[aria-label$='to clear']").click()
        self._button("Confirm")
        self._wait(self._confirmed, every=2.0)
        self._leave()

    def _confirmed(self) -> bool:
        """True once the dialog is closed; else clicks, as the dialog ignores a click while it still asks the server."""
        if not self._all("[data-scope=dialog][role=dialog][data-state=open]"):
            return True
        for button in self._all("[role=dialog] button"):
            if button.text == "Confirm" and button.is_enabled():
                button.click()
        return False

    def follow(self, dag: str, run: str, task: str, link: str) -> tuple[str, str]:
        """Follows a link of a task; returns the address to which it leads, and the text there."""
        self._browser.get(f"{self._url}/dags/{dag}/runs/{quote(run)}/tasks/{task}/details")
        self._wait(lambda: [a for a in self._all("a") if a.text == link])[0].click()
        self._wait(lambda: not self._browser.current_url.endswith("/details"))
        self._found("h1")
        address, text = self._browser.current_url, self._browser.page_source
        self._leave()
        return address, text

    def _leave(self) -> None:
        self._browser.get("about:blank")

    def _all(self, selector: str) -> list[Any]:
        return list(self._browser.find_elements("css selector", selector))

    def _found(self, selector: str) -> Any:
        return self._wait(lambda: self._all(selector))[0]

    def _button(self, text: str) -> Any:
        """The button of an open dialog with this text."""
        return self._wait(lambda: [one for one in self._all("[role=dialog] button") if one.text == text])[0]

    def _wait(self, condition: Any, every: float = 0.5) -> Any:
        from selenium.common.exceptions import StaleElementReferenceException
        from selenium.webdriver.support.wait import WebDriverWait

        wait = WebDriverWait(self._browser, 60, every, [StaleElementReferenceException])
        return wait.until(lambda _: condition())
