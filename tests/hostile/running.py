"""Runs a draw in a process and a folder of its own, and notes what it prints, leaves, shows and reaches."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.hostile import headers, records, secrets, wire
from tests.hostile.draw import VALUE, VARIABLE, Draw, Ended
from tests.hostile.judging import SECONDS

#: what a draw runs instead of the command, by its first argument: returns the exit code
OWN: dict[str, Callable[[Path], int]] = {
    "wire": wire.parse, "slow": wire.slow, "replay": records.replay, "pages": headers.pages, "shown": secrets.shown,
}  # fmt: skip
#: what `check` shall not do: connect, start, run
REACHES = ("socket.connect", "socket.getaddrinfo", "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn")


def ended(draw: Draw) -> Ended:
    """Runs a draw in a fork, in a folder of its own."""
    place = Path(tempfile.mkdtemp(prefix="streamgauge-hostile-"))
    work = place / "work"
    (work / "folder").mkdir(parents=True)
    (work / "folder" / "kept").touch()
    os.mkfifo(work / "pipe")
    for name, data in draw.files.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_bytes(data)
    (place / "stdin").write_bytes(draw.stdin)
    (place / "tmp").mkdir()
    before, began = _all(work), time.monotonic()
    child = os.fork()
    if not child:
        _become(draw, place, work)
    usage = _wait(child, began)
    try:
        out, err = ((place / name).read_text(errors="replace") for name in ("out", "err"))
        left = [f"tmp/{name}" for name in _all(place / "tmp") if "pytest" not in name]
        new = [name for name in _all(work) if name not in before]
        files = {name: (work / name).read_bytes() for name in new if (work / name).is_file()}
        written = {"out": out.encode(), "err": err.encode(), **files, "a name": "\n".join(new).encode()}
        seen = [name for name, data in written.items() if any(one.encode() in data for one in (*draw.hidden, VALUE))]
        return Ended(usage[0], out, err, time.monotonic() - began, usage[1] * 1024, left + new, seen)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _all(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def _wait(child: int, began: float) -> tuple[int, int]:
    """(exit code, KiB of memory at most); a draw that takes too long is killed."""
    while True:
        found, status, usage = os.wait4(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status), usage.ru_maxrss
        if time.monotonic() - began > SECONDS:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
        time.sleep(0.002)


def _become(draw: Draw, place: Path, work: Path) -> None:
    """Runs the command as this process, and exits."""
    code = 70
    try:
        os.setsid()
        os.chdir(work)
        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
        os.environ |= {"TMPDIR": str(place / "tmp"), "STREAMGAUGE_ARTIFACTS": "artifacts", VARIABLE: VALUE}
        tempfile.tempdir = None
        for number, name in ((0, "stdin"), (1, "out"), (2, "err")):
            os.dup2(os.open(place / name, os.O_RDWR | os.O_CREAT), number)
        sys.stdin, sys.stdout, sys.stderr = (os.fdopen(n, mode) for n, mode in ((0, "r"), (1, "w"), (2, "w")))
        sys.argv = ["streamgauge", *draw.arguments]
        sys.path.insert(0, str(work))
        if draw.arguments[0] == "check":
            sys.addaudithook(_noting)
        code = OWN[draw.arguments[0]](work) if draw.arguments[0] in OWN else _command()
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        import atexit

        atexit._run_exitfuncs()
        os._exit(code)


def _noting(event: str, _: object) -> None:
    if event in REACHES:
        with open(f"ran-{event}", "w"):
            pass


def _command() -> int:
    from streamgauge.app import cli

    try:
        cli.main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0
