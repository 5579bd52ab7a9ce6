"""Compares streams whose rows differ in their work by a known part, on a real engine.

    .venv/bin/python -m benchmarks.more_work configs/flights.yaml --system spark
        [--processes 2] [--comparisons 2] [--blocks 6] [--long 1000] [--markdown]

The events of the file come with a text in place of their key, of 20, `--long` and 1.1 times `--long` characters: each
of them is sent, copied, hashed and compared. A row costs a + b · characters. From the rates with the short and the long
text follow a and b, and from them the ratio that is expected of the third.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml
from rich.console import Console
from rich.table import Table

from benchmarks.same_stream import comparisons
from benchmarks.search import as_markdown
from streamgauge.catalog.artifacts import Artifact, Store
from streamgauge.config import Benchmark, load
from streamgauge.streams.keys import stream_key

_SHORT, _MORE = 20, 1.1
#: of the driver: a batch of long rows has to fit into a third of it
_MEMORY_MB = 4096


class Sources(Store):
    """A store in which each experiment has the stream of another source."""

    def __init__(self, root: Path, own: dict[str, str]) -> None:
        """own: key of a stream's source, by the key that the benchmark of all asks for."""
        super().__init__(root)
        self._own = own

    def need(self, kind: str, key: str, made_by: str, *, hashed: bool = True) -> Artifact:
        return super().need(kind, self._own.get(key, key), made_by, hashed=hashed)


def made(file: Path, key: str, characters: int, place: Path, system: str) -> Path:
    """Writes a benchmark file whose events have a key of so many characters; returns its path."""
    content = yaml.safe_load(file.read_text())
    source, name = content["source"], f"text{characters}"
    events = place / f"{name}.csv"
    with gzip.open(file.parent / source["files"], "rt") as given, events.open("w", newline="") as out:
        rows = csv.DictReader(given)
        assert rows.fieldnames is not None
        written = csv.DictWriter(out, rows.fieldnames)
        written.writeheader()
        for row in rows:
            written.writerow(row | {key: (f"{row[key]}-" * characters)[:characters]})
    source["files"] = str(events)
    content["experiments"] = [content["experiments"][0] | {"name": name, "seed": characters}]
    content["systems"] = [one for one in content["systems"] if one["name"] == system]
    content.pop("cells", None)
    content["replay"] = content.get("replay", {}) | {"max_memory_mb": _MEMORY_MB}
    path = place / f"{name}.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def main() -> int:
    parser = argparse.ArgumentParser(description="Comparisons of streams with known work, on a real engine")
    parser.add_argument("file", type=Path)
    parser.add_argument("--system", required=True)
    parser.add_argument("--artifacts", type=Path, default=Path("artifacts"))
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--comparisons", type=int, default=2, help="of each process")
    parser.add_argument("--blocks", type=int, default=6, help="of a comparison")
    parser.add_argument("--long", type=int, default=1000, help="characters")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    args = parser.parse_args()
    table = Table("process", "rate with 10 % more text", "90 % interval", "expected", "interval holds it")
    with tempfile.TemporaryDirectory() as folder:
        place, of = Path(folder), dict[str, Benchmark]()
        key = load(args.file).workloads[0].key
        assert key is not None
        for characters in (args.long, round(_MORE * args.long), _SHORT):
            path = made(args.file, key, characters, place, args.system)
            command = [str(Path(sys.executable).with_name("streamgauge")), "run", str(path), "--only", "generate"]
            subprocess.run([*command, "--artifacts", str(args.artifacts)], check=True, stdout=sys.stderr)
            of[path.stem] = load(path)
        long, *others = of.values()
        search = long.search.model_copy(
            update={"proof_steps": 0, "processes": 1, "blocks": args.blocks * args.comparisons, "ratio_error": 1.0}
        )
        experiments = (*long.experiments, *(one.experiments[0] for one in others))
        benchmark, store = long.model_copy(update={"experiments": experiments, "search": search}), Store(args.artifacts)
        keys = {
            stream_key(store, benchmark, one.experiments[0]): stream_key(store, one, one.experiments[0])
            for one in of.values()
        }
        for process in range(1, args.processes + 1):
            results = comparisons(benchmark, Sources(args.artifacts, keys), place / str(process), args.blocks)
            for longer, short in zip(results[1], results[2], strict=True):
                per_character = (1 - 1 / short.ratio) / (args.long - _SHORT)  # of the long row's cost
                expected = 1 / (1 + (_MORE - 1) * args.long * per_character)
                held = "yes" if longer.low <= expected <= longer.high else "no"
                row = (str(process), f"{longer.ratio:.3f}", f"{longer.low:.3f} to {longer.high:.3f}", f"{expected:.3f}")
                table.add_row(*row, held)
                print(*row, f"short: {short.ratio:.3f} ({short.low:.3f} to {short.high:.3f})", file=sys.stderr)
    print("\n".join(as_markdown(table))) if args.markdown else Console(width=120).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
