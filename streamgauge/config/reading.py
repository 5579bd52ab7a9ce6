"""Reads a benchmark file into its model. Messages name the key, what was found, what is allowed."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic.json_schema import GenerateJsonSchema

from streamgauge.base import secrets
from streamgauge.base.canonical import canonical, has_its_sha256
from streamgauge.base.errors import Damaged, UserError
from streamgauge.base.field_types import Model
from streamgauge.base.jsonl import SEAL, read_record, unsealed, write_record
from streamgauge.base.places import small_text
from streamgauge.base.units import Duration
from streamgauge.config import mistakes
from streamgauge.config.benchmark import Benchmark, Overrides
from streamgauge.config.debs2019 import from_debs2019
from streamgauge.config.sections import benchmark_model, never_asked
from streamgauge.descriptions.streams import DelaySpec

log = logging.getLogger("streamgauge")
M = TypeVar("M", bound=Model)


def load(path: Path, overrides: Overrides | None = None, *, systems_at: Path | None = None) -> Benchmark:
    """Reads a benchmark file and applies the overrides. Raises UserError.

    The file may be YAML, the JSON of the DEBS 2019 poster, or a release check's manifest. Relative file names in it are
    resolved from its folder (in a manifest: from the working directory). systems_at: folder from which those of systems
    are resolved instead.
    """
    path = Path(path)
    for line in never_asked():
        log.warning(line)
    try:
        text = small_text(path, most_bytes=16 << 20)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; name a benchmark file (configs/ has examples)") from None
    except (OSError, UnicodeDecodeError) as problem:
        why = problem.strerror if isinstance(problem, OSError) else problem
        raise UserError(f"{path}: cannot be read as UTF-8 text: {why}") from None
    raw = parsed(path, text)
    try:
        raw = unsealed(raw)
    except ValueError as problem:
        todo = f"take another copy, or delete its key {SEAL} if it was changed on purpose"
        raise Damaged(path, f"damaged, {problem}", todo) from None
    try:
        secrets.learn(raw)
    except RecursionError:  # an alias within what it names
        raise UserError(f"{path}: {_NESTED}") from None
    for key in secrets.places_of_masks(raw.get("configuration", raw)):
        raise UserError(
            f"{path}: {key}: found {secrets.MASK}, which stands for a secret in a run's record; write ${{VARIABLE}} "
            "of the environment, or the secret, in its place"
        )
    base = path.parent
    if "dataSource" in raw:
        benchmark = parse(benchmark_model(), from_debs2019(raw, path), str(path))
    elif "configuration" in raw:
        if not has_its_sha256(raw):
            raise UserError(f"{path}: its sha256 does not match: the file was changed after it was written")
        benchmark, base = parse(benchmark_model(), raw["configuration"], str(path)), Path()
    else:
        benchmark = mistakes.check(benchmark_model(), raw, mistakes.in_file(str(path), text))
    source = benchmark.source
    located = {
        key: tuple(_located(name, base) for name in names)
        for key, names in (("files", source.files), ("expectations", source.expectations))
    }
    replay = benchmark.replay
    if replay.cafile:
        replay = replay.model_copy(update={"cafile": _located(replay.cafile, base)})
    experiments = tuple(e.model_copy(update={"delay": _with_profiles(e.delay, base)}) for e in benchmark.experiments)
    benchmark = benchmark.model_copy(
        update={
            "source": source.model_copy(update={**located, "kafka": source.kafka and source.kafka.located(base)}),
            "experiments": experiments,
            "replay": replay,
            "systems": tuple(system.located(systems_at or base) for system in benchmark.systems),
        }
    )
    return overrides.apply(benchmark) if overrides else benchmark


def _with_profiles(delay: DelaySpec, base: Path) -> DelaySpec:
    """Returns the delays with the places of the profiles that they are drawn from or fitted to."""
    update: dict[str, object] = {"profile": _located(delay.profile, base)} if delay.profile else {}
    if (outages := delay.outages) and outages.like:
        update["outages"] = outages.model_copy(update={"like": _located(outages.like, base)})
    return delay.model_copy(update=update)


def parsed(path: Path, text: str) -> dict[str, Any]:
    """Returns the keys of a file in JSON or YAML, as they are written. Raises UserError."""
    try:
        # JSON is not read as YAML, which takes 1e-05 for text
        raw = json.loads(text, object_pairs_hook=_once) if path.suffix == ".json" else yaml.load(text, _UniqueKeyLoader)
    except ValueError as problem:
        raise UserError(f"{path}: not valid {'JSON' if path.suffix == '.json' else 'YAML'}: {problem}") from None
    except RecursionError:
        raise UserError(f"{path}: {_NESTED}") from None
    except yaml.YAMLError as problem:
        line, what = "", str(problem)
        if isinstance(problem, yaml.MarkedYAMLError) and problem.problem_mark:
            line, what = f" line {problem.problem_mark.line + 1}:", str(problem.problem)
        raise UserError(f"{path}:{line} not valid YAML: {what}") from None
    if not isinstance(raw, dict):
        raise UserError(f"{path}: found {type(raw).__name__}, allowed: a mapping with name, source, experiments")
    return raw


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = dict(pairs)
    if len(keys) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"found key {next(n for n in names if names.count(n) > 1)!r} twice, allowed: once")
    return keys


def parse(model: type[M], raw: object, where: str) -> M:
    """Validates raw against the model. Raises Mistakes, which names `where` and the key."""
    return mistakes.check(model, raw, lambda path: ": ".join(filter(None, (where, ".".join(map(str, path))))))


def schema() -> dict[str, Any]:
    """JSON Schema of the benchmark file, for editors."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Streamgauge benchmark",
        **benchmark_model().model_json_schema(schema_generator=_WrittenDefaults),
    }


class _WrittenDefaults(GenerateJsonSchema):
    """Shows a default as a person writes it: a duration as '2s', a group of keys that all have defaults as {}."""

    def encode_default(self, dft: Any) -> Any:
        if isinstance(dft, Duration):
            return str(dft)
        if isinstance(dft, Model):
            return dft.model_dump(mode="json", exclude_defaults=True)
        return super().encode_default(dft)


class _UniqueKeyLoader(yaml.SafeLoader):
    """YAML that refuses a key given twice instead of silently keeping the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":  # <<: keys of an anchor, which may be overridden
                continue
            key = self.construct_object(key_node, deep=deep)
            problem = "is not text" if not isinstance(key, str) else "is given twice" if key in seen else None
            if problem:
                raise yaml.constructor.ConstructorError(None, None, f"the key {key!r} {problem}", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


def _located(name: str, base: Path) -> str:
    """A file name, resolved from base if it is relative; a URL stays as it is."""
    return name if re.match(r"[a-z0-9]+://", name) else os.path.realpath(base / name)


_NESTED = "found keys within keys beyond 100 levels; a benchmark file needs a few"
#: in a run's directory: the benchmark as the run had it
BENCHMARK = "benchmark.json"


def keep(benchmark: Benchmark, run: Path) -> None:
    """Records the benchmark in a run's directory, without its secrets."""
    write_record(run / BENCHMARK, secrets.masked(benchmark.model_dump(mode="json")))


def fingerprint(benchmark: Benchmark) -> str:
    """Hash (16 hex digits) of all settings of a benchmark, with *** for secrets."""
    return hashlib.sha256(canonical(secrets.masked(benchmark.model_dump(mode="json"))).encode()).hexdigest()[:16]


def of_run(directory: Path, now: Benchmark | None = None) -> Benchmark:
    """The benchmark that a run has recorded. Raises UserError if it has recorded none that can be read.

    now: its systems have the secrets of those that the record names.
    """
    try:
        raw = read_record(directory / BENCHMARK, "run its stage report again, which writes it")
    except OSError:
        raise UserError(f"{directory}: this run has no readable {BENCHMARK}; its stage report writes it") from None
    nightly = raw.get("nightly")
    if isinstance(nightly, dict) and nightly.get("email", "") is None:  # no key any more; nobody had asked for it
        del nightly["email"]
    if now is not None:
        today = {system.name: system.model_dump(mode="json") for system in now.systems}
        raw["systems"] = [secrets.restored(one, today.get(one["name"], one)) for one in raw["systems"]]
    return parse(benchmark_model(), raw, str(directory / BENCHMARK))
