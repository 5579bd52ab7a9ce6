"""Files of events, seldom sound, and the options of analyze and generate."""

from __future__ import annotations

import bz2
import gzip
import random

from tests.hostile.draw import Draw

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
    data = random.choice([*[b"t,v\n"] * 8, b"t;v\n", b"\xef\xbb\xbft,v\r\n", b"t,t\n", b"", b"\n", b'"t","v"\n'])
    data += random.choice([b"\n", b"\r\n"]).join(lines) + random.choice([b"", b"\n", b"\n\n"])
    data = random.choice([lambda d: d] * 6 + [gzip.compress, bz2.compress])(data)
    if random.random() < 0.15:
        broken = bytearray(data)
        for _ in range(min(len(broken), 5)):
            broken[random.randrange(len(broken))] = random.randrange(256)
        data = bytes(broken[: random.randrange(len(broken) + 1)])
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
        "--max-bad-fraction": ["1", "0", "0.5", "2", "nan", "-1", "x"],
        "--master": ["local[0]", "", "x", "local[99999]", "yarn", "spark://127.0.0.1:1"],
        "--nope": ["1"],
    }.items():
        chance = {"--time": 0.95, "--unit": 0.7, "--max-bad-fraction": 0.6}.get(name, 0.08)
        if random.random() < chance:
            options += [name, values[0] if random.random() < 0.8 else random.choice(values)]
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
                options += [name, values[0] if random.random() < 0.8 else random.choice(values)]
        options += random.choice([[], [], ["--csv"], ["--csv-parts"]])
    options += random.choice([[], ["--json"]])
    names = [random.choice(["f.csv"] * 60 + NAMES) for _ in range(random.choice([*[1] * 9, 2, 0]))]
    return Draw([command, *names, *options], {"f.csv": table(random)}, table(random))
