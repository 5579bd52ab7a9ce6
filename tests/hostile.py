"""Draws hostile input from a grammar: files, options, benchmark files, records, wire messages. All by a seed.

    python -m tests.hostile --seed 3 --draws 1000

Each draw is a command in a process of its own, in a folder of its own. It falls short if it prints a stack trace, if it
fails with more or fewer lines than its mistakes, leaves something behind, takes over 60 s, or over 2 GB.
"""

from __future__ import annotations

import argparse
import bz2
import contextlib
import gzip
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.flips import flipped, replay_is_refused, sound_files

SECONDS, BYTES = 60.0, 2 << 30
SOUND: dict[str, Any] = {
    "name": "x",
    "source": {"files": "f.csv", "time": {"column": "t", "unit": "s"}, "max_bad_fraction": 0.5},
    "experiments": [{"name": "e", "target_percent": 20, "delay": {"max": "5s"}}],
    "workloads": [{"name": "w", "query": "passthrough"}],
    "systems": [{"name": "s", "engine": "known"}],
}
ODD: list[Any] = [
    None, True, False, 0, -1, 2**63, 2**70, 1e308, -1e-320, float("nan"), float("inf"), "", " ", "x", "a b", "../x",
    "\0", "é", "ü" * 40, "x" * 5000, "1_0", "1e3", "0x1", "2 weeks", "-3s", "%Q", "s3://no/x", [], {}, [1], {"a": 1},
    [[[]]], "nan", "yes", "::", ";", "/dev/zero", "nope", "late20", -0.0, 1.5,
]  # fmt: skip
NAMES = [
    "f.csv",
    "pipe",
    "folder",
    "none.csv",
    "/dev/null",
    "/dev/zero",
    "",
    "x" * 300,
    "f.csv/x",
    "-",
    "\n",
    "s3://x/y",
]


@dataclass
class Draw:
    """A command: its arguments, and the files in its folder."""

    arguments: list[str]
    files: dict[str, bytes] = field(default_factory=dict)
    stdin: bytes = b""
    told: str = ""  # what it prints if it succeeds, where that is known


@dataclass
class Ended:
    code: int
    out: str
    err: str
    seconds: float
    bytes: int
    left: list[str]


def table(random: random.Random) -> bytes:
    """A file of events, which is seldom sound."""
    rows = [
        f"{random.randrange(-5, 10 ** random.randrange(1, 12))},{random.choice('abc')}"
        for _ in range(random.randrange(60))
    ]
    lines = [row.encode() for row in rows]
    for _ in range(random.randrange(4)):
        at = random.randrange(len(lines) + 1)
        lines.insert(at, random.choice([
            b"", b",", b"\xff\xfe", b'"', b'"1', b"1", b"\0" * 9, random.randbytes(30), b"x" * 70_000,
            b"9" * 30 + b",a", b"nan,a", b"1.5,a", b"-0,a", "١,a".encode(), b"1 ,a", b"\r", b"1,a\r",
        ]))  # fmt: skip
    data = random.choice([b"t,v\n", b"t;v\n", b"\xef\xbb\xbft,v\r\n", b"t,t\n", b"", b"\n", b'"t","v"\n'])
    data += random.choice([b"\n", b"\r\n"]).join(lines) + random.choice([b"", b"\n", b"\n\n"])
    data = random.choice([lambda d: d] * 6 + [gzip.compress, bz2.compress])(data)
    if random.random() < 0.15:
        data = bytearray(data)
        for _ in range(min(len(data), 5)):
            data[random.randrange(len(data))] = random.randrange(256)
        data = bytes(data[: random.randrange(len(data) + 1)])
    return random.choice(
        [data] * 12 + [random.randbytes(500), b"PAR1" + random.randbytes(200) + b"PAR1", b"\x28\xb5\x2f\xfd" + data]
    )


def one_shot(random: random.Random) -> Draw:
    command = random.choice(["analyze", "generate"])
    options: list[str] = []
    for name, values in {
        "--time": ["t", "t", "t", "0", "1", "9", "v", "", "²"],
        "--unit": ["s", "s", "ms", "ps", "sec", ""],
        "--format": ["%Y-%m-%d", "%Q", "", "yyyy", "%f%f"],
        "--zone": ["UTC", "Europe/Berlin", "Mars", ""],
        "--separator": [",", ";", "tab", "::", "", '"'],
        "--order": ["file", "event_time", "arrival", "x"],
        "--arrival": ["t", "v", "none"],
        "--arrival-unit": ["s", "x"],
        "--max-bad-fraction": ["0", "1", "0.5", "2", "nan", "-1", "x"],
        "--master": ["", "x", "local[0]", "local[99999]", "yarn", "spark://127.0.0.1:1"],
        "--nope": ["1"],
    }.items():
        chance = {"--time": 0.95, "--unit": 0.7, "--max-bad-fraction": 0.6}.get(name, 0.08)
        if random.random() < chance:
            options += [name, random.choice(values)]
    if command == "generate":
        for name, values in {
            "--target": ["20", "0", "100", "101", "-1", "nan", "x", "1e-9"],
            "--seed": ["1", "0", "-1", "x", "1" * 50],
            "--out": ["out", "out", "out", "f.csv", "folder", ".", "", "x" * 300, "a/b/c", "f.csv/x"],
            "--max": ["5s", "2 weeks", "0s", "1e9d", "-1s"],
            "--min": ["0s", "9s"],
            "--delay": ["uniform", "pareto", "nope", "os:nope", "empirical"],
            "--on-infeasible": ["closest", "error", "x"],
            "--quarantine": ["bad", "folder", "none/x", "bad.parquet"],
        }.items():
            if random.random() < {"--target": 0.95, "--seed": 0.95, "--out": 0.97, "--on-infeasible": 0.6}.get(
                name, 0.15
            ):
                options += [name, random.choice(values)]
        options += random.choice([[], [], ["--csv"], ["--csv-parts"]])
    options += random.choice([[], ["--json"]])
    names = [random.choice(["f.csv"] * 12 + NAMES) for _ in range(random.choice([1, 1, 1, 1, 2, 0]))]
    return Draw([command, *names, *options], {"f.csv": table(random)}, table(random))


def benchmark(random: random.Random) -> Draw:
    raw = json.loads(json.dumps(SOUND))
    for _ in range(random.randrange(4)):
        node: Any = raw
        while isinstance(node, dict | list) and node and random.random() < 0.75:
            key = random.choice(list(node) if isinstance(node, dict) else range(len(node)))
            if not isinstance(node[key], dict | list) or random.random() < 0.3:
                break
            node = node[key]
        if isinstance(node, dict) and node:
            kind, key = random.randrange(4), random.choice(list(node))
            if kind == 0:
                del node[key]
            elif kind == 1:
                node[key + random.choice(["s", "_", "x"])] = node.pop(key)
            else:
                node[
                    random.choice([key, key, "search", "latency", "replay", "nightly", "release", "metrics", "scale"])
                ] = random.choice(ODD)
    text = yaml.safe_dump(raw, allow_unicode=True) if random.random() < 0.8 else json.dumps(raw)
    if random.random() < 0.2:
        at = random.randrange(len(text) + 1)
        text = (
            text[:at]
            + random.choice(["\t", "- ", "{", "[", "&a *a", "!!python/object:os.system x", "\0", "é", "'"])
            + text[at:]
        )
    name = random.choice(["b.yaml", "b.yaml", "b.json"])
    commands = [["check", name], ["check", name, "--json"], ["run", name, "--scale", "x"], ["gc", "--keep-runs", "x"]]
    return Draw(
        random.choice(commands[:2] * 8 + commands),
        {name: text.encode("utf-8", "surrogatepass"), "f.csv": b"t\n1\n3\n2\n"},
    )


def records(random: random.Random) -> Draw:
    sound = {
        "benchmark": "b", "experiment": "e", "workload": "w", "system": "s", "mode": "streaming", "metric": "m_ms",
        "unit": "ms", "value": 1.0, "run_id": "r", "config_hash": "c", "at": "2026-03-01T02:00:00+00:00", "machine": {},
        "software": {},
    }  # fmt: skip
    lines: list[bytes] = []
    for _ in range(random.randrange(1, 6)):
        record: Any = dict(sound)
        for _ in range(random.randrange(3)):
            record[random.choice([*record, "more"])] = random.choice(ODD)
        record = random.choice([record] * 5 + [[1, 2], "x", 5, None])
        line = json.dumps(record).encode()
        lines.append(random.choice([line] * 5 + [line[: len(line) // 2], b"\xff\xfe", b"[" * 5000, b"", b"NaN"]))
    files = {"artifacts/runs/r/results.jsonl": b"\n".join(lines) + random.choice([b"", b"\n"])}
    if random.random() < 0.3:
        files["artifacts/runs/r/judgements.jsonl"] = random.choice(lines)
    command = random.choice([
        ["results", "rebuild"], ["results", "add", "r"], ["results", "list"], ["results", "series"],
        ["results", "list", "--since", "x"],
        ["dashboard", "--out", "page.html"], ["results", "add", random.choice(["../r", "none", "", "r/../r"])],
        ["results", "rebuild", "--database", random.choice(["sqlite:////nope/x.db", "mysql://x", "x", "sqlite:///f"])],
    ])  # fmt: skip
    return Draw([*command], files)


def wire(random: random.Random) -> Draw:
    verbs = [
        "hello",
        "latest",
        "read",
        "progress",
        "report",
        "open",
        "start",
        "rows",
        "samples",
        "serve",
        "stop",
        "x",
        None,
    ]
    message: Any = {"verb": random.choice(verbs), "version": random.choice([1, 1, *ODD[:8]])}
    for _ in range(random.randrange(5)):
        message[
            random.choice(
                ["attempt", "from", "to", "partition", "offsets", "rate", "seconds", "body", "wait_ms", "token"]
            )
        ] = random.choice(ODD)
    line = json.dumps(message).encode()
    line = random.choice([line] * 6 + [random.randbytes(40), b"[" * 4000, line[:-3], b"GET / HTTP/1.1\r"])
    return Draw(["wire"], {"message": line + b"\n"})


#: modules that leave a file in the folder when they are imported, and a script that does when it is started
MARKERS = {
    "marker_module.py": b"open('ran-module', 'w').close()\ndef __getattr__(name): return lambda *_: 1\n",
    "marker_package/__init__.py": b"open('ran-package', 'w').close()\n",
    "marker_package/sub.py": b"def __getattr__(name): return lambda *_: 1\n",
    "marker.sh": b"#!/bin/sh\ntouch ran-script\n",
    "marker.sql": b"copy (select 1) to 'ran-sql'",
}
SECURITY = [
    "plugin.library.paths", "bootstrap.servers", "metadata.broker.list", "ssl.engine.location", "ssl.providers",
    "sasl.kerberos.kinit.cmd", "oauth_cb", "error_cb", "security.protocol", "sasl.username", "sasl.password",
    "ssl.ca.location", "ssl.keystore.location", "sasl.oauthbearer.token.endpoint.url", "debug",
]  # fmt: skip
OTHERS_SQL = [
    "copy (select 1) to 'ran-sql'", "select * from read_text('f.csv')", "attach 'ran-sql.db'", "install httpfs",
    "select 1; copy (select 2) to 'ran-sql'", "marker.sql", "select * from range(1000000000000)", "set threads = 64",
    "select * from read_csv('http://HOST/x')", "pipe.sql",
]  # fmt: skip


def stranger(random: random.Random, host: str = "127.0.0.1:1") -> Draw:
    """A benchmark file that names code, programs, libraries, hosts and variables; `check` shall leave all alone."""
    raw: Any = json.loads(json.dumps(SOUND))
    own = random.choice(
        ["marker_module:thing", "marker_package.sub:thing", "marker_package.sub:a.b", "./m:x", ":", "a:b"]
    )
    far = random.choice(["gs://HOST/x", "s3://no/x", "s3a://user:SECRET@no/x", "hdfs://HOST/x", "abfs://a@HOST/x"])
    variable = random.choice(["${AWS_SECRET_ACCESS_KEY}", "${HOME}", "${NOT_SET}", "{{ 7*7 }}", "$(touch ran-shell)"])
    job: Any = {"name": "j", "engine": "job", "bootstrap": "HOST", "command": ["./marker.sh", variable]}

    def system(**keys: Any) -> None:
        raw["systems"] = [{"name": "s", "engine": "known"} | keys]

    def a_job(**keys: Any) -> None:
        raw["systems"] = [job | keys]

    url = random.choice(
        ["http://HOST/x", "https://HOST", "javascript:x", "file:///etc/passwd", "http://u:SECRET@HOST/"]
    )
    values = ["./libmarker.so", "HOST", "x", variable]
    kinds: list[Callable[[], object]] = [
        lambda: a_job(security={key: random.choice(values) for key in random.sample(SECURITY, random.randrange(1, 4))}),
        lambda: a_job(security={"sasl.password": variable, "security.protocol": "SASL_PLAINTEXT"}),
        lambda: a_job(environment={"LD_PRELOAD": "./libmarker.so"}),
        lambda: a_job(answer={"sql": random.choice(OTHERS_SQL), "key": ["v"]}),
        lambda: system(engine=own),
        lambda: system(engine="spark", conf={"spark.jars": "http://HOST/x.jar"}, master="spark://HOST"),
        lambda: system(engine="spark", python="./marker.sh", checkpoints=far),
        lambda: system(engine="flink", flink_home=random.choice([".", far]), conf={"env.java.opts": variable}),
        lambda: raw.update(search={"verdict": own}),
        lambda: raw["experiments"][0].update(delay={"distribution": own, "max": "5s"}),
        lambda: raw["experiments"][0].update(
            delay={"distribution": "empirical", "profile": random.choice([far, "pipe"])}
        ),
        lambda: raw.update(metrics={"sinks": [{"type": random.choice([own, "http"]), "url": url}]}),
        lambda: raw.update(metrics={"sinks": [{"type": "graphite", "host": "127.0.0.1", "port": 9}]}),
        lambda: raw.update(nightly={"webhook": {"url": url}, "notifiers": [{"notifier": "marker_package.sub.Thing"}]}),
        lambda: raw["source"].update(files=random.choice([far, ["f.csv", far], "{{ 7*7 }}.csv", "file:///dev/zero"])),
        lambda: raw["source"].update(expectations=[far]),
        lambda: raw.update(replay={"remote": ["HOST"], "cafile": far, "token_variable": "HOME"}),
        lambda: raw.update(description=random.choice(["{{ 7*7 }}", "\x1b]0;x\x07", "[x](javascript:1)"])),
    ]
    for kind in random.sample(kinds, random.choice([1, 1, 2, 3])):
        kind()
    text = yaml.safe_dump(raw, allow_unicode=True).replace("HOST", host)
    arguments = ["check", "b.yaml", *random.choice([[], ["--json"]])]
    return Draw(arguments, {"b.yaml": text.encode(), "f.csv": b"t,v\n1,2\n3,4\n2,5\n", **MARKERS})


def flipped_bit(random: random.Random) -> Draw:
    """A file of a sound store in which one bit is another, read by a command."""
    files, listed = sound_files()
    readers: dict[str, list[tuple[list[str], str]]] = {
        "results.db": [(["results", "list", "--json"], listed), (["results", "rebuild"], ""), (["results", "add"], "")],
        "results.jsonl": [(["results", "rebuild"], ""), (["results", "add"], "")],
        "benchmark.json": [(["check", "artifacts/runs/night1/benchmark.json"], "")],
        "part-0.parquet": [(["replay"], "")],
        "manifest.json": [(["replay"], "")],
    }
    name = random.choice([name for name in files if Path(name).name in readers])
    arguments, told = random.choice(readers[Path(name).name])
    (data,) = flipped(files[name], random.randrange(2**32), 1)
    return Draw(arguments, files | {name: data, "f.csv": b"t\n1\n2\n"}, told=told)


def _replay(work: Path) -> int:
    refused = replay_is_refused(work)
    if refused:
        print(f"streamgauge: {refused}", file=sys.stderr)
    return 2 if refused else 0


KINDS: dict[str, Callable[[random.Random], Draw]] = {
    "files and options": one_shot, "benchmark files": benchmark, "records": records, "wire messages": wire,
    "strangers": stranger,
    "flipped bit": flipped_bit,
}  # fmt: skip


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
        return Ended(usage[0], out, err, time.monotonic() - began, usage[1] * 1024, left + new)
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
        os.environ |= {"TMPDIR": str(place / "tmp"), "STREAMGAUGE_ARTIFACTS": "artifacts"}
        tempfile.tempdir = None
        for number, name in ((0, "stdin"), (1, "out"), (2, "err")):
            os.dup2(os.open(place / name, os.O_RDWR | os.O_CREAT), number)
        sys.stdin, sys.stdout, sys.stderr = (os.fdopen(n, mode) for n, mode in ((0, "r"), (1, "w"), (2, "w")))
        sys.argv = ["streamgauge", *draw.arguments]
        sys.path.insert(0, str(work))
        own = {"wire": _wire, "replay": _replay}.get(draw.arguments[0])
        code = own(work) if own else _command()
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        import atexit

        atexit._run_exitfuncs()
        os._exit(code)


def _command() -> int:
    from streamgauge import cli

    try:
        cli.main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def _wire(work: Path) -> int:
    from streamgauge.driver.requests import Malformed, checked, parsed

    try:
        checked(parsed((work / "message").read_bytes()))
    except Malformed as problem:
        print(f"streamgauge: {problem}", file=sys.stderr)
        return 2
    return 0


def shortcomings(draw: Draw, end: Ended) -> Iterator[str]:
    """Yields what a draw's end falls short of."""
    if "Traceback" in end.err + end.out or (end.code in (70, 1) and not _may_end_with_1(draw)):
        yield f"a stack trace, or exit code {end.code}"
    if end.code < 0:
        yield f"killed by signal {-end.code}"
    lines = [line for line in end.err.splitlines() if line.startswith("streamgauge")]
    if end.code and not lines and not _may_end_with_1(draw):
        yield "no line that says why"
    if any(len(line) > 4000 for line in lines):
        yield "a line of more than 4,000 characters"
    if end.code == 2 and end.out and "--json" not in draw.arguments and not _may_end_with_1(draw):
        yield "output beside the mistake"
    if not end.code and "--json" in draw.arguments and not _is_json(end.out):
        yield "no JSON"
    if any(name.startswith(("ran-", "tmp/ran-")) for name in end.left):
        yield "ran code that the file names"
    if not end.code and draw.told not in ("", end.out):
        yield "other figures than those that were written"
    if end.seconds > SECONDS:
        yield f"{end.seconds:.0f} s"
    if end.bytes > BYTES:
        yield f"{end.bytes >> 20} MiB"
    allowed = ("artifacts", "page.html") if draw.arguments[0] in ("results", "dashboard", "check", "run") else ()
    left = [name for name in end.left if end.code and not name.startswith((*allowed, "f"))]
    if left:
        yield f"left behind: {', '.join(left[:4])}"


def _is_json(text: str) -> bool:
    """True if a text is strict JSON, which has no NaN and no Infinity."""

    def refused(name: str) -> None:
        raise ValueError(name)

    try:
        json.loads(text, parse_constant=refused)
    except ValueError:
        return False
    return True


def _may_end_with_1(draw: Draw) -> bool:
    """True if broken lines of records are left out with a warning each, beside the output and before the exit code."""
    return draw.arguments[0] in ("results", "dashboard")


def hostile(seed: int, draws: int, progress: bool = False) -> tuple[Counter[str], list[str]]:
    """Returns how many draws of each kind ended with which code, and a line for each shortcoming."""
    counts: Counter[str] = Counter()
    short: list[str] = []
    kinds = list(KINDS)
    for number in range(draws):
        kind = kinds[number % len(kinds)]
        draw = KINDS[kind](random.Random(f"{seed} {number}"))
        end = ended(draw)
        counts[f"{kind}: exit code {end.code}"] += 1
        for why in shortcomings(draw, end):
            told = end.err.strip().splitlines()[-1:] or [""]
            short.append(f"{number} ({kind}): {why}: {' '.join(draw.arguments)[:200]!r}: {told[0][:300]}")
        if progress and sys.stderr.isatty():
            print(f"\r{number + 1} of {draws}, {len(short)} fell short", end="", file=sys.stderr)
    return counts, short


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--only", type=int, help="run this draw alone and print what it said")
    given = parser.parse_args()
    import streamgauge.cli
    import streamgauge.spark.analyze
    import streamgauge.spark.generate
    import streamgauge.spark.ingest  # noqa: F401

    if given.only is not None:
        draw = list(KINDS.values())[given.only % len(KINDS)](random.Random(f"{given.seed} {given.only}"))
        end = ended(draw)
        print(draw.arguments, draw.files, end, sep="\n")
        return 0
    counts, short = hostile(given.seed, given.draws, progress=True)
    for what, count in sorted(counts.items()):
        print(f"{count:6,}  {what}")
    print("\n".join(["fell short:", *short]) if short else "fell short: nothing")
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
