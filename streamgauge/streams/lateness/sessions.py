"""Sessions of an engine that joins an event to an open session before it judges whether the event is late. Pure."""

from __future__ import annotations

import numpy as np

from streamgauge.base.arrow import Ints, Mask


def left_out(keys: Ints, event_us: Ints, watermark_us: Ints, gap_us: int) -> Mask:
    """True for events that touch no open session of their key, and whose own one has ended; as they came, one by one.

    keys: a number for each key. watermark_us: the watermark when each event came.
    """
    late_alone = event_us + gap_us <= watermark_us
    whole = np.zeros(len(event_us), np.int64)
    return _pieces(keys, event_us, watermark_us, gap_us, whole, late_alone, joins_first=True) < 0


def pieces(
    keys: Ints, event_us: Ints, watermark_us: Ints, gap_us: int, true: Ints, *, joins_first: bool = True
) -> Ints:
    """Returns the number of the emitted session that each event is in; -1 where it is left out.

    true: the number of its session if nothing is late. A session that has ended can only be touched from behind the
    watermark, so keys without such events keep theirs.
    """
    return _pieces(keys, event_us, watermark_us, gap_us, true, event_us <= watermark_us, joins_first=joins_first)


def _pieces(
    keys: Ints, event_us: Ints, watermark_us: Ints, gap_us: int, true: Ints, behind: Mask, *, joins_first: bool
) -> Ints:
    """Simulates the keys of the events that are behind, one event after the other; the others keep their number."""
    found = true.copy()
    if not behind.any():
        return found
    concerned = np.flatnonzero(np.isin(keys, np.unique(keys[behind])))
    live: dict[int, list[tuple[int, int, list[int]]]] = {}
    emitted: list[list[int]] = []
    columns = (concerned, keys[concerned], event_us[concerned], watermark_us[concerned])
    for n, key, start, watermark in zip(*(column.tolist() for column in columns), strict=True):
        end, stay, members = start + gap_us, [], [n]
        begins, ends = start, end
        touched = []
        for other in live.get(key, []):
            if other[1] <= watermark:
                emitted.append(other[2])
            elif start <= other[1] and other[0] <= end:
                touched.append(other)
                begins, ends = min(begins, other[0]), max(ends, other[1])
            else:
                stay.append(other)
        if ends <= watermark or (not joins_first and end <= watermark):
            found[n] = -1
            live[key] = [*stay, *touched]
            continue
        if touched:
            touched.sort(key=lambda one: len(one[2]))
            members = touched.pop()[2]
            members.extend([n, *(m for other in touched for m in other[2])])
        live[key] = [*stay, (begins, ends, members)]
    emitted.extend(one[2] for some in live.values() for one in some)
    for number, members in enumerate(emitted, int(true.max()) + 1):
        found[members] = number
    return found
