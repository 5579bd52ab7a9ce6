"""The benchmarks of which Airflow has DAGs, and the cron schedules by which these run."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from streamgauge.base.errors import UserError
from streamgauge.bench.measure.checks import check_names
from streamgauge.config import Benchmark, load


def files_in(place: Path) -> list[Path]:
    """Lists the benchmark files in a folder, or the one file."""
    if place.is_file():
        return [place]
    return sorted(file for file in place.glob("*") if file.suffix in (".yaml", ".yml", ".json"))


def load_all(files: Iterable[Path]) -> tuple[dict[Path, Benchmark], list[str]]:
    """Maps files to their benchmarks; also returns one line for each file that is invalid or repeats a name."""
    benchmarks: dict[Path, Benchmark] = {}
    problems: list[str] = []
    for file in files:
        try:
            benchmark = load(file)
            check_names(benchmark)
            check(benchmark, f"{file}: ")
            for other, known in benchmarks.items():
                if known.name == benchmark.name:
                    raise UserError(
                        f"{file}: name: found {known.name!r}, which {other} has; each benchmark needs its own name"
                    )
            benchmarks[file] = benchmark
        except UserError as problem:
            problems.append(str(problem))
        except Exception as problem:  # a file must not end the nights of all others
            problems.append(" ".join(f"{file}: {type(problem).__name__}: {problem}".split()))
    return benchmarks, problems


def schedules(benchmark: Benchmark) -> dict[str, str]:
    """Maps the schedule keys that the benchmark file sets to their cron expressions."""
    nightly = benchmark.nightly.schedule if benchmark.nightly else None
    return {key: cron for key, cron in (("schedule", benchmark.schedule), ("nightly.schedule", nightly)) if cron}


def check(benchmark: Benchmark, where: str = "") -> None:
    """Raises UserError, which begins with `where`, for what is no cron expression; needs the extra `airflow`."""
    from croniter import croniter

    for key, schedule in schedules(benchmark).items():
        if not croniter.is_valid(schedule):
            raise UserError(f"{where}{key}: found {schedule!r}, allowed: a cron expression such as 0 3 * * * or @daily")
