"""Random texts of the events: taken from small pools, or cut out of one long text. All draws follow from the seed."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from streamgauge.base.arrow import Ints
from streamgauge.streams.disorder.delays import splitmix
from streamgauge.streams.nexmark import views
from streamgauge.streams.nexmark.views import Texts

Draws = NDArray[np.uint64]
POOL = 4096
#: shift that moves the low half of a draw into the high half, from which `below` draws
HALF = np.uint64(32)
CHANNELS = 10_000
CITIES = [
    "Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent", "Cheyenne",
]  # fmt: skip
STATES = ["AZ", "CA", "ID", "OR", "WA", "WY"]
FIRST_NAMES = ["Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter"]
LAST_NAMES = ["Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris"]
HOT_CHANNELS = ["Google", "Facebook", "Baidu", "Apple"]
_ALPHABET = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz" * 12 + b" " * 26, np.uint8)
_TEXT = 1 << 16


def below(bits: Draws, bound: int | Ints) -> Ints:
    """Uniform whole numbers in [0, bound), bound < 2^31, from the high half of each draw."""
    limit = np.uint64(bound) if isinstance(bound, int) else bound.astype(np.uint64)
    return ((bits >> HALF) * limit >> HALF).view(np.int64)


@cache
def letters(longest: int) -> NDArray[np.uint8]:
    """The long text: random letters, about every 13th a space, the same for every seed."""
    return _ALPHABET[below(splitmix(13, np.arange(_TEXT + longest)), len(_ALPHABET))]


def cut(bits: Draws, lengths: Ints, longest: int) -> Texts:
    """Texts of these lengths (at most `longest`), each cut out of letters() at a place that is drawn."""
    return views.cut_out(letters(max(longest, 12)), below(bits, _TEXT), lengths)


def padding(bits: Draws, sizes: Ints, average: int) -> Ints:
    """Lengths of paddings that fill events of these sizes up to the average, a fifth more or less."""
    room = np.maximum(average - sizes, 0)
    spread = (room + 2) // 5
    lengths: Ints = room - spread + below(bits, np.maximum(2 * spread, 1))
    return lengths


@cache
def cities() -> Texts:
    return views.pool(CITIES)


@cache
def states() -> Texts:
    return views.pool(STATES)


@cache
def names() -> Texts:
    return views.pool([f"{first} {last}" for first, last in product(FIRST_NAMES, LAST_NAMES)])


@cache
def emails(seed: int) -> Texts:
    bits = splitmix(seed, np.arange(4 * POOL)).reshape(4, POOL)
    users, hosts = (_words(cut(bits[k], 3 + below(bits[k + 1], most - 3), most)) for k, most in ((0, 7), (2, 5)))
    return views.pool([f"{user}@{host}.com" for user, host in zip(users, hosts, strict=True)])


@cache
def credit_cards(seed: int) -> Texts:
    digits = below(splitmix(seed, np.arange(4 * POOL)), 10_000).reshape(POOL, 4)
    return views.pool([" ".join(f"{block:04d}" for block in card) for card in digits.tolist()])


@cache
def channels() -> Texts:
    """Names of all channels, hot ones first."""
    return views.pool([*HOT_CHANNELS, *(f"channel-{number}" for number in range(CHANNELS))])


@cache
def urls(seed: int) -> Texts:
    """URLs, one per channel; nine of ten of those that are not hot name their channel's id."""
    count = len(HOT_CHANNELS) + CHANNELS
    bits = splitmix(seed, np.arange(4 * count)).reshape(4, count)
    words = [_words(cut(bits[k], 3 + below(bits[k] << HALF, 2), 5)) for k in range(3)]
    addresses = [f"https://www.nexmark.com/{a}/{b}/{c}/item.htm?query=1" for a, b, c in zip(*words, strict=True)]
    has_channel = below(bits[3], 10) > 0
    for number in np.flatnonzero(has_channel[len(HOT_CHANNELS) :]):
        addresses[number + len(HOT_CHANNELS)] += f"&channel_id={_reversed(int(number))}"
    return views.pool(addresses)


@cache
def extras(seed: int, size: int, average: int) -> Texts:
    """Pool of paddings that fill events of one size up to the average."""
    bits = splitmix(seed, np.arange(2 * POOL)).reshape(2, POOL)
    return cut(bits[0], padding(bits[1], np.full(POOL, size), average), average + POOL)  # a fifth more than room


def _words(texts: Texts) -> list[str]:
    column = views.column(len(texts.lengths), None, [(np.arange(len(texts.lengths)), texts)])
    return [text.replace(" ", "_") for text in column.to_pylist()]


def _reversed(number: int) -> int:
    """Absolute value of the signed number with the 32 bits in reverse: Java's Math.abs(Integer.reverse(number))."""
    value = int(f"{number:032b}"[::-1], 2)
    return abs(value - (1 << 32) if value >> 31 else value)
