"""`streamgauge ui` in a process, and the few REST calls that a person's clicks would make."""

from __future__ import annotations

import json
import re
import subprocess
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.e2e.processes import free_port, start, wait_for


class Airflow:
    def __init__(self, url: str, user: str, password: str) -> None:
        self._url, self._token = url, ""
        self._token = self._ask("/auth/token", {"username": user, "password": password})["access_token"]

    def __call__(self, path: str, body: dict[str, Any] | None = None) -> Any:
        return self._ask("/api/v2" + path, body)

    def _ask(self, path: str, body: dict[str, Any] | None) -> Any:
        request = urllib.request.Request(
            self._url + path,
            data=None if body is None else json.dumps(body).encode(),
            headers={"content-type": "application/json", "authorization": f"Bearer {self._token}"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def told(self, path: str) -> dict[str, Any]:
        """Returns nothing while Airflow is busy, or has not read the DAG yet."""
        with suppress(OSError):
            return dict(self(path))
        return {}

    def trigger(self, dag: str, run: str, **conf: Any) -> None:
        wait_for(lambda: self.told(f"/dags/{dag}"), "DAG", 240, every=2)
        self(f"/dags/{dag}/dagRuns", {"logical_date": None, "dag_run_id": run, "conf": conf})

    def finished(self, dag: str, run: str, names: list[str]) -> dict[tuple[str, str], dict[str, Any]]:
        """Waits for the run's end; its task instances by (task, name of the map index), and the run by ("", "")."""
        path = f"/dags/{dag}/dagRuns/{run.replace('+', '%2B')}"
        wait_for(lambda: self.told(path).get("state") in ("success", "failed"), "end of the run", 800, every=4)
        found = self(f"{path}/taskInstances")["task_instances"]
        tasks = {(t["task_id"], names[t["map_index"]] if t["map_index"] >= 0 else ""): t for t in found}
        return tasks | {("", ""): self(path)}


def start_ui(place: Path, log: Path, **variables: str) -> subprocess.Popen[bytes]:
    """Airflow with the benchmark files in place/configs; artifacts are in place/artifacts."""
    arguments = ["ui", str(place / "configs"), "--artifacts", str(place / "artifacts"), "--port", str(free_port())]
    return start(arguments, log, **variables)


def come_up(process: subprocess.Popen[bytes], log: Path) -> Airflow:
    wait_for(lambda: "password" in log.read_text() or process.poll() is not None, "web page", 300)
    said = re.search(r"(http://\S+)\s+user (\S+)\s+password (\S+)", log.read_text())
    assert said, log.read_text()
    return Airflow(*said.groups())
