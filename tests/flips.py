"""Flips bits of files, as a disk or a memory may do."""

from __future__ import annotations

import random

FLIPS = 150


def flipped(data: bytes, seed: int, flips: int = FLIPS) -> list[bytes]:
    """Returns copies of the data, each with another bit flipped."""
    bits = random.Random(seed).sample(range(8 * len(data)), min(flips, 8 * len(data)))
    copies = []
    for bit in bits:
        copy = bytearray(data)
        copy[bit // 8] ^= 1 << bit % 8
        copies.append(bytes(copy))
    return copies
