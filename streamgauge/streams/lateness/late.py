"""Says which events an operator loses to a watermark, by the rules that an engine declares. Pure."""

from __future__ import annotations

import numpy as np

from streamgauge.base.arrow import Ints, Mask
from streamgauge.records.rules import Operator, Rules


def first_ends(event_us: Ints, operator: Operator) -> Ints:
    """Returns when the first window that holds each event ends, µs."""
    ends: Ints = event_us - np.mod(event_us - operator.offset_us, operator.slide_us) + operator.slide_us
    return ends


def late(event_us: Ints, watermark_us: Ints, operator: Operator, rules: Rules) -> Mask:
    """True where the watermark had passed the end of the first thing that the operator keeps an event for.

    That is a window, a session of that event alone, or the event's own time.
    """
    if operator.kind == "never":
        return np.zeros(len(event_us), bool)
    if operator.kind == "window":
        return first_ends(event_us, operator) <= watermark_us
    if operator.kind == "session":
        return event_us + operator.length_us <= watermark_us
    return event_us <= watermark_us if rules.equal_is_late else event_us < watermark_us
