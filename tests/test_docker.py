"""Checks docker/ without an engine: it is linted, fits the schema, has only known names and no secret."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import tomllib
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from packaging.specifiers import SpecifierSet

from streamgauge.app.airflow.home import PATIENCE, POOL, environment
from tests.conftest import ROOT

DOCKER = ROOT / "docker"
BIN = Path(sys.executable).parent
DOCKERFILE = (DOCKER / "Dockerfile").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load((DOCKER / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if "build" in service}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
#: its image starts as root; docs and the compose file say so
ROOTS = {"graphite"}


@pytest.fixture(scope="module")
def secrets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "secrets"
    subprocess.run([DOCKER / "make-secrets.sh", folder], check=True)
    return folder


@pytest.mark.parametrize("file", sorted(DOCKER.rglob("*Dockerfile*")), ids=lambda file: file.name)
def test_hadolint_has_nothing_to_say(file: Path) -> None:
    done = subprocess.run([BIN / "hadolint", "--failure-threshold", "style", file], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def test_compose_file_is_of_the_compose_specification_s_schema() -> None:
    schema = files("check_jsonschema") / "builtin_schemas" / "vendor" / "compose-spec.json"
    validator = jsonschema.validators.validator_for(content := json.loads(schema.read_text()))(content)
    assert [error.message for error in validator.iter_errors(COMPOSE)] == []
    broken = {"services": {"a": {"image": "b", "cap_dorp": ["ALL"]}}}
    assert not validator.is_valid(broken)


def test_every_name_that_a_service_uses_is_declared(secrets: Path) -> None:
    for name, service in SERVICES.items():
        assert set(service.get("secrets", [])) <= COMPOSE["secrets"].keys(), name
        assert set(service["networks"]) <= COMPOSE["networks"].keys(), name
        assert set(service.get("depends_on", {})) <= SERVICES.keys(), name
        volumes = {volume.split(":")[0] for volume in service.get("volumes", []) if volume[0] not in "./$"}
        assert volumes <= COMPOSE["volumes"].keys(), name
    used = {secret for service in SERVICES.values() for secret in service.get("secrets", [])}
    assert used == COMPOSE["secrets"].keys()
    assert {secret["file"] for secret in COMPOSE["secrets"].values()} == {
        f"secrets/{f.name}" for f in secrets.iterdir()
    }


def test_secrets_are_random_kept_and_for_nobody_else_s_eyes(secrets: Path, tmp_path: Path) -> None:
    before = {file.name: file.read_text() for file in secrets.iterdir()}
    subprocess.run([DOCKER / "make-secrets.sh", secrets], check=True)
    assert {file.name: file.read_text() for file in secrets.iterdir()} == before
    assert stat.S_IMODE(secrets.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in secrets.iterdir()} == {0o644}
    assert not any(text.endswith("\n") for text in before.values()), "Airflow takes what a command prints as it is"
    subprocess.run([DOCKER / "make-secrets.sh", tmp_path / "other"], check=True)
    alike = {name for name, text in before.items() if (tmp_path / "other" / name).read_text() == text}
    assert alike == {"connections.yaml"}


def test_a_secret_that_is_empty_is_made_anew_and_keeps_a_program_from_its_start(secrets: Path, tmp_path: Path) -> None:
    shutil.copytree(secrets, tmp_path / "mine")
    (tmp_path / "mine" / "driver_token").write_text("")

    def start() -> subprocess.CompletedProcess[str]:
        command: list[str | Path] = [DOCKER / "entrypoint.sh", "sh", "-c", 'printf %s "$STREAMGAUGE_TOKEN"']
        environment = {"PATH": os.environ["PATH"], "SECRETS": str(tmp_path / "mine")}
        return subprocess.run(command, env=environment, capture_output=True, text=True)

    done = start()
    assert (done.returncode, done.stdout) == (1, "")
    assert "driver_token: cannot be read, or is empty" in done.stderr
    subprocess.run([DOCKER / "make-secrets.sh", tmp_path / "mine"], check=True)
    assert len(start().stdout) == 32


def test_no_secret_is_in_a_file_of_the_repository_or_in_an_environment() -> None:
    listed = subprocess.run(["git", "check-ignore", "docker/secrets/fernet_key", "docker/.env"], cwd=ROOT, text=True,
                            capture_output=True).stdout.split()  # fmt: skip
    assert listed == ["docker/secrets/fernet_key", "docker/.env"]
    for name, service in SERVICES.items():
        for key, value in service.get("environment", {}).items():
            if re.search("PASSWORD|SECRET|TOKEN|KEY", key):
                assert str(value).startswith("/run/secrets/"), f"{name}: {key}"
    assert not re.search("PASSWORD|SECRET|TOKEN", DOCKERFILE)


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_is_watched_pinned_and_without_rights(name: str) -> None:
    service = SERVICES[name]
    assert ("healthcheck" in service) != (name == "airflow-init")
    if name not in OURS:
        assert re.search(r":\d+\.\d+(\.\d+)?(-\w+)?$", service["image"]), "a full version, not a moving tag"
    if name not in ROOTS:
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert name in OURS or service["user"] not in ("root", "0")
    for port in service.get("ports", []):
        assert port.startswith("${LISTEN:-127.0.0.1}:"), "open to this host only, unless told otherwise"


@pytest.mark.parametrize("name", OURS)
def test_what_a_service_runs_is_in_its_image(name: str) -> None:
    command = [str(word) for word in SERVICES[name]["command"]]
    check = SERVICES[name].get("healthcheck", {}).get("test", ["CMD", "python"])
    if SERVICES[name]["build"]["target"] == "generator":
        command = ["streamgauge", "driver", *command]
    for program in (command[0], check[1].split()[0]):
        inside = program.startswith("/opt/streamgauge/")
        assert (ROOT / program.removeprefix("/opt/streamgauge/") if inside else BIN / program).exists(), program
    if check[0] == "CMD" and len(check) > 2:
        assert (ROOT / check[2].removeprefix("/opt/streamgauge/")).exists()


def test_images_end_as_user_10001_with_what_the_lock_file_says() -> None:
    last = {stage.split()[0]: stage for stage in re.split(r"^FROM \S+ AS ", DOCKERFILE, flags=re.MULTILINE)[1:]}
    targets = {service["build"]["target"] for service in OURS.values()}
    assert targets == {"generator", "spark", "airflow"}
    for target in targets:
        assert "\nUSER 10001:10001\n" in last[target]
    installs = [line for line in DOCKERFILE.splitlines() if re.search(r"\b(pip|uv|npm|curl|wget) ", line)]
    [uv] = [line for line in installs if "pip install" in line]
    [version] = re.findall(r"UV_VERSION := (\S+)", (ROOT / "Makefile").read_text())
    assert uv.split()[-1] == f"uv=={version}"
    for line in installs:
        assert line == uv or shlex.split(line)[:5] == ["RUN", "uv", "sync", "--frozen", "--no-default-groups"]
        assert set(re.findall(r"--extra (\S+)", line)) <= PROJECT["optional-dependencies"].keys()
    [python] = re.findall(r"^ARG PYTHON=(.+)$", DOCKERFILE, re.MULTILINE)
    assert SpecifierSet(PROJECT["requires-python"]).contains(python)


def test_context_is_small_and_holds_what_is_copied() -> None:
    lines = (ROOT / ".dockerignore").read_text().split()
    wanted = [ROOT / line.removeprefix("!") for line in lines if line.startswith("!") and "*" not in line]
    assert "*" in lines
    assert all(place.exists() for place in wanted)
    files = [file for place in wanted for file in ([place] if place.is_file() else place.rglob("*")) if file.is_file()]
    assert sum(file.stat().st_size for file in files if "__pycache__" not in file.parts) < 8 * 2**20
    assert not any("secrets" in file.parts for file in files)
    copied = {
        word for line in re.findall(r"^COPY (?!--from)(.+)$", DOCKERFILE, re.MULTILINE) for word in line.split()[:-1]
    }
    assert all((ROOT / name).exists() for name in copied)


def test_every_setting_of_airflow_exists_and_secrets_are_read_by_command() -> None:
    done = subprocess.run(["sh", "-c", "set -a; . ./airflow.env; env"], cwd=DOCKER, env={}, check=True,
                          capture_output=True, text=True)  # fmt: skip
    core = find_spec("airflow")
    assert core is not None
    options = yaml.safe_load((Path(str(core.origin)).parent / "config_templates" / "config.yml").read_text())
    variables = dict(line.split("=", 1) for line in done.stdout.splitlines() if line.startswith("AIRFLOW__"))
    assert len(variables) > 10
    for key, value in variables.items():
        section, option = key.lower().removeprefix("airflow__").split("__")
        about = options[section]["options"][option.removesuffix("_cmd")]
        if option.endswith("_cmd"):
            assert about["sensitive"]
            assert value.startswith("cat /run/secrets/")
            assert value.rpartition("/")[2] in COMPOSE["secrets"]
        elif about.get("sensitive"):
            assert json.loads(value) == {"connections_file_path": "/run/secrets/connections.yaml"}
    assert f"pools set {POOL} " in (DOCKER / "airflow-init.sh").read_text()


def test_grafana_asks_services_that_are_there_with_secrets_that_it_has() -> None:
    for file in (DOCKER / "grafana" / "provisioning" / "datasources").glob("*.yaml"):
        text = file.read_text()
        hosts = {source["url"].removeprefix("http://").split(":")[0] for source in yaml.safe_load(text)["datasources"]}
        assert hosts <= SERVICES.keys()
        assert set(re.findall(r"/run/secrets/(\w+)", text)) <= set(SERVICES["grafana"]["secrets"])


@pytest.mark.parametrize("script", sorted(DOCKER.glob("*.sh")), ids=lambda file: file.name)
def test_script_parses_and_may_be_run(script: Path) -> None:
    shell = script.read_text().splitlines()[0].removeprefix("#!")
    assert subprocess.run([shell, "-n", script], capture_output=True).stderr == b""
    assert script.stat().st_mode & stat.S_IXUSR


def test_a_private_airflow_is_as_patient_with_its_api_server_as_the_service() -> None:
    variables = dict(line.split("=", 1) for line in (DOCKER / "airflow.env").read_text().splitlines() if "=" in line)
    assert PATIENCE.items() <= variables.items()
    made = environment(Path("home"), Path("artifacts"), Path("configs"), None)
    assert PATIENCE.items() <= made.items()
