"""Sessions of an engine that joins an event to an open session before it judges whether the event is late. Pure."""

from __future__ import annotations

import numpy as np

from streamgauge.streams.lateness.late import Ints, Mask


def left_out(keys: Ints, event_us: Ints, watermark_us: Ints, gap_us: int) -> Mask:
    """True for events that touch no open session of their key, and whose own one has ended; as they came, one by one.

    keys: a number for each key. watermark_us: the watermark when each event came.
    """
    dropped = np.zeros(len(event_us), bool)
    late_alone = event_us + gap_us <= watermark_us
    if not late_alone.any():
        return dropped
    concerned = np.flatnonzero(np.isin(keys, np.unique(keys[late_alone])))
    live: dict[int, list[tuple[int, int]]] = {}
    columns = (concerned, keys[concerned], event_us[concerned], watermark_us[concerned])
    for n, key, start, watermark in zip(*(column.tolist() for column in columns), strict=True):
        end, stay = start + gap_us, []
        begins, ends = start, end
        for other in live.get(key, []):
            if other[1] <= watermark:
                continue
            if start <= other[1] and other[0] <= end:
                begins, ends = min(begins, other[0]), max(ends, other[1])
            else:
                stay.append(other)
        dropped[n] = ends <= watermark
        live[key] = stay if dropped[n] else [*stay, (begins, ends)]
    return dropped
