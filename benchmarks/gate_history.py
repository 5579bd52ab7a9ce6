"""Runs the gate on this repository's own history, and on made-up heads, with the example job on a real Kafka broker.

    .venv/bin/python -m benchmarks.gate_history [--commits 10] [--minutes 4] [--only history|slow]
        [--slower-percent 5] [--output FOLDER]

The system is `examples/jobs/late_flights.py` at each commit; the program that measures is today's. The pull requests of
the history are the last commits that touched the job's folder, each against its parent. Then come heads that are made
up: one that adds a comment, one that answers a carrier wrongly, and three that take 5, 10 and 30 % more CPU time.
How much that is, the first of them tells: the median CPU time per event of its base. The slower heads spin for so much
CPU time of their thread, once a batch for all of its records.

Commits are made in a clone that is removed at the end. A gate whose verdict lies in the folder, on the same base and
with the same minutes, is not run again.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from streamgauge.app.gate.pairs import RECORD, REPETITIONS
from streamgauge.app.services.broker import Broker
from streamgauge.bench.compare.forms import percent
from streamgauge.config.gate import GATE_CPU
from streamgauge.records.gate import GateCheck, GateRepetition

ROOT = Path(__file__).parents[1]
FOLDER = "examples/jobs"
JOB = f"{FOLDER}/late_flights.py"
#: the CPU time takes least from neighbours, and a Python job is warm soon
GATE = {"rate": 2000, "compare": ["cpu"], "warmup_seconds": 3, "seconds": 5}
SLOWER = (30, 10, 5)
#: begin of the last lines of the job's loop
LOOP = "    if messages:\n"
SPIN = """\
    until = time.thread_time_ns() + {ns} * len(messages)
    while time.thread_time_ns() < until:
        pass
"""
COLUMNS = ("head", "verdict", "pairs", "minutes", "CPU time per event", "would have been seen", "why")


@dataclass(frozen=True)
class Clone:
    """A clone of this repository, in which commits may be made."""

    folder: Path
    tip: str

    @classmethod
    def of(cls, folder: Path) -> Clone:
        git(folder.parent, "clone", "--quiet", "--shared", str(ROOT), str(folder))
        return cls(folder, git(folder, "rev-parse", "HEAD"))

    def requests(self, number: int) -> Iterator[tuple[str, str]]:
        """Yields the last commits that touched the job's folder, if their parent has the job; with that parent."""
        for line in git(self.folder, "rev-list", "--no-merges", "--parents", self.tip, "--", FOLDER).splitlines():
            commit = line.split()[0]
            base = f"{commit}^"
            if number and git(self.folder, "ls-tree", "--name-only", base, JOB):
                number -= 1
                yield git(self.folder, "rev-parse", base), commit

    def changed(self, texts: dict[str, str]) -> str:
        """Commits the job with other texts, on top of the clone's tip; returns the commit."""
        git(self.folder, "checkout", "--quiet", "--detach", self.tip)
        file = self.folder / JOB
        text = file.read_text(encoding="utf-8")
        for old, new in texts.items():
            if old not in text:
                raise SystemExit(f"{JOB}: found no {old!r}; the made-up heads need it")
            text = text.replace(old, new)
        file.write_text(text, encoding="utf-8")
        git(self.folder, "-c", "user.name=made up", "-c", "user.email=made@up", "commit", "--quiet", "-am", "made up")
        return git(self.folder, "rev-parse", "HEAD")


@dataclass(frozen=True)
class Gates:
    """Runs gates of one benchmark file, whose folders lie in `output`."""

    clone: Clone
    file: Path
    output: Path
    minutes: float

    def row(self, name: str, title: str, base: str, head: str) -> str:
        """Judges that head, unless it was judged before; returns a row of the table."""
        folder = self.output / name
        if not self._is_judged(folder, base):
            program, artifacts = Path(sys.executable).with_name("streamgauge"), self.output / "artifacts"
            command = [program, "gate", self.file, "--base", base, "--head", head, "--repository", self.clone.folder]
            options = ["--minutes", self.minutes, "--output", folder, "--artifacts", artifacts]
            done = subprocess.run([str(part) for part in (*command, *options)], stdout=subprocess.DEVNULL)
            if not self._is_judged(folder, base):
                return row(title, f"none (exit code {done.returncode})", "", "", "", "", "")
        check = GateCheck.read(folder / RECORD)
        [cpu] = check.series
        figures = (percent(cpu), f"{100 * cpu.seen:.1f} %") if cpu.seen is not None else ("", "")
        why = "; ".join(one.why for one in check.reasons if one.what != cpu.name) or cpu.reason
        return row(title, check.verdict, str(check.pairs), f"{check.minutes['measuring']:.1f}", *figures, why)

    def _is_judged(self, folder: Path, base: str) -> bool:
        if not (folder / RECORD).exists():
            return False
        check = GateCheck.read(folder / RECORD)
        return (check.base_commit, check.budget_minutes) == (base, self.minutes)


def row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def git(folder: Path, *arguments: str) -> str:
    """Runs git; returns what it prints."""
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def benchmark(file: Path, bootstrap: str, slower_percent: float) -> None:
    """Writes the example's file for the gate: one stream, a section gate, and a command that begins at the checkout."""
    raw = yaml.safe_load((ROOT / FOLDER / "python.yaml").read_text(encoding="utf-8"))
    raw["source"]["files"] = str((ROOT / FOLDER / raw["source"]["files"]).resolve())
    raw["experiments"] = [one for one in raw["experiments"] if one["name"] == "late20"]
    [system] = raw["systems"]
    command = [sys.executable, JOB, *system["command"][2:]]
    system |= {"bootstrap": bootstrap, "command": command, "warm": "2s"}  # each trial's; a longer one takes budget
    file.write_text(yaml.safe_dump({**raw, "gate": {**GATE, "slower_percent": slower_percent}}), encoding="utf-8")


def history(gates: Gates, number: int) -> Iterator[str]:
    """Yields a row for each of the last pull requests."""
    for base, head in gates.clone.requests(number):
        title = git(gates.clone.folder, "log", "-1", "--format=%h %s", head)
        yield gates.row(head[:8], title[:72], base, head)


def made_up(gates: Gates) -> Iterator[str]:
    """Yields a row for each head that is made up."""
    clone = gates.clone
    yield gates.row("equal", "adds a comment", clone.tip, clone.changed({LOOP: f"    # what was read\n{LOOP}"}))
    yield gates.row("wrong", "answers a carrier wrongly", clone.tip, clone.changed({'"US")': '"XX")'}))
    lines = GateRepetition.read_log(gates.output / "equal" / REPETITIONS)
    cpu_us = statistics.median(one.values[GATE_CPU] for one in lines if one.side == "baseline" and not one.void)
    for percents in SLOWER:
        ns = round(10 * percents * cpu_us)  # a per cent of a microsecond is 10 ns
        title = f"takes {percents} % more CPU time: {ns / 1000:.2f} of {cpu_us:.1f} µs"
        head = clone.changed({LOOP: SPIN.format(ns=ns) + LOOP, "import json\n": "import json\nimport time\n"})
        yield gates.row(f"slower-{percents}", title, clone.tip, head)


def main() -> int:
    parser = argparse.ArgumentParser(description="Gates of the repository's own history, on a real broker")
    parser.add_argument("--commits", type=int, default=10)
    parser.add_argument("--minutes", type=float, default=4.0, help="longest time of measuring, for each gate")
    parser.add_argument("--slower-percent", type=float, default=5.0, help="the slowdown that must not be merged")
    parser.add_argument("--only", choices=("history", "slow"), help="one of both parts")
    parser.add_argument("--output", type=Path, default=Path("artifacts/gate-history"), help="keeps the verdicts")
    args = parser.parse_args()
    print(row(*COLUMNS), row(*["---"] * len(COLUMNS)), sep="\n", flush=True)
    with tempfile.TemporaryDirectory(prefix="gate-history-") as scratch:
        place = Path(scratch)
        broker = Broker(place / "broker")
        try:
            benchmark(place / "job.yaml", broker.bootstrap, args.slower_percent)
            gates = Gates(Clone.of(place / "clone"), place / "job.yaml", args.output.absolute(), args.minutes)
            rows = {"history": history(gates, args.commits), "slow": made_up(gates)}
            for part in [args.only] if args.only else rows:
                for one in rows[part]:
                    print(one, flush=True)
        finally:
            broker.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
