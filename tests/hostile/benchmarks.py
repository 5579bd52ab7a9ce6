"""Benchmark files with odd values, lost keys and broken YAML."""

from __future__ import annotations

import json
import random
from typing import Any

import yaml

from tests.hostile.draw import ODD, Draw, sound


def benchmark(random: random.Random) -> Draw:
    raw = sound()
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
