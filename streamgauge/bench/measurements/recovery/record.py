"""The record of a cell's recovery, `recovery.json`: trials with a fault, and what each fault costs."""

from __future__ import annotations

from collections.abc import Sequence

from streamgauge.base.words import counted, fewer
from streamgauge.bench.measurements.recovery.section import Kind
from streamgauge.records.answered import RatedRun
from streamgauge.records.record import Part
from streamgauge.records.spread import Spread


class Struck(Part):
    """A trial with a fault. Seconds count from the fault on; None: not seen before the trial ended."""

    valid: bool  # its times count
    reason: str = ""
    struck_s: float | None = None  # since the trial's start
    taken_again_s: float | None = None
    back_s: float | None = None
    peak_age_s: float | None = None
    is_within: bool = False  # its age never left the bound, so it was back as soon as it took events again
    calm_age_s: float | None = None  # largest age before the fault
    calm_cpu_us: float | None = None  # CPU µs per event before the fault; None: not known
    read_again: int | None = None  # rows that it read once more; None: not known
    offered: int = 0
    correct: bool | None = None  # None: the output was not compared
    wrong: str = ""  # how the output differs
    lost: int | None = None  # expected answers that it lacks
    doubled: int | None = None  # answers that it has once more, or that nobody expected
    by_key: bool = False  # each answer was looked for; else the two follow from numbers of answers, and may be larger
    ages: tuple[tuple[float, float], ...] = ()  # seconds since the fault, and age of the oldest event that waits


class Suffered(Part):
    """A fault, and all trials with it."""

    fault: Kind
    interval: str = ""  # of its checkpoints; empty: its own settings hold
    unmeasurable: str = ""  # why it was not brought about
    taken_again_s: Spread | None = None
    back_s: Spread | None = None
    calm_cpu_us: Spread | None = None
    trials: tuple[Struck, ...] = ()

    @property
    def name(self) -> str:
        return self.called(self.fault)

    def called(self, fault: str) -> str:
        """The fault in these words, with the interval of checkpoints."""
        return f"{fault}, checkpoints every {self.interval}" if self.interval else fault

    @property
    def valid(self) -> list[Struck]:
        return [one for one in self.trials if one.valid]

    @property
    def counted(self) -> list[Struck]:
        """Trials whose times count; none if answers of another trial were wrong."""
        return [] if self.wrong else self.valid

    @property
    def compared(self) -> list[Struck]:
        """Trials whose output was compared."""
        return [one for one in self.trials if one.correct is not None]

    @property
    def wrong(self) -> list[Struck]:
        """Trials whose answers were not whole."""
        return [one for one in self.trials if one.correct is False]

    @property
    def correct(self) -> bool | None:
        """False if the output of a trial was wrong; None if one of the others was not compared."""
        if self.wrong:
            return False
        return True if self.trials and len(self.compared) == len(self.trials) else None

    @property
    def void(self) -> str:
        """Reason why its times do not count; empty if they do."""
        if self.unmeasurable:
            return f"not measurable: {self.unmeasurable}"
        if self.wrong:
            return f"its answers were {self.answers}"
        return "" if self.valid else self.trials[-1].reason

    @property
    def fewer(self) -> str:
        """Says that fewer trials count than were asked for; empty if all do, or none."""
        return "" if self.void else fewer(len(self.valid), len(self.trials), "trial")

    @property
    def is_within(self) -> bool:
        """True if all trials count its system as back, and none saw it leave the bound."""
        return self.back_s is not None and all(one.is_within for one in self.counted)

    @property
    def remark(self) -> str:
        """Says what else is to know of its times; empty if there is nothing."""
        return "; ".join(filter(None, [self.fewer, "its age never left the bound" if self.is_within else ""]))

    @property
    def peak_age_s(self) -> float | None:
        """The largest age of all trials that count; None if one ended before the system was back: it might grow."""
        peaks = [one.peak_age_s for one in self.counted if one.peak_age_s is not None]
        return None if self.not_back else max(peaks, default=None)

    @property
    def calm_age_s(self) -> float | None:
        """The largest age before the fault of all trials that count."""
        return max((one.calm_age_s for one in self.counted if one.calm_age_s is not None), default=None)

    @property
    def read_again(self) -> int | None:
        """Most rows that were read once more in a trial."""
        return max((one.read_again for one in self.counted if one.read_again is not None), default=None)

    @property
    def lost(self) -> int | None:
        """Answers that were lost in all trials whose output was compared; None if one of them does not tell."""
        return _sum([one.lost for one in self.compared])

    @property
    def doubled(self) -> int | None:
        """Answers that were doubled in all trials whose output was compared; None if one of them does not tell."""
        return _sum([one.doubled for one in self.compared])

    @property
    def least(self) -> str:
        """Words before `lost` and `doubled` where they may be larger: a lost answer hides a doubled one."""
        return "" if all(one.by_key for one in self.wrong) else "at least "

    @property
    def not_back(self) -> int:
        """Number of trials that count and did not see the system back."""
        return sum(one.back_s is None for one in self.counted)

    @property
    def unknown(self) -> str:
        """Reason why a time that each trial should have is not known."""
        return next((one.reason for one in self.counted if one.back_s is None), "not known of each trial")

    @property
    def promise(self) -> str:
        """The strongest promise that its answers keep, or the weakest that they break; empty if that is not known."""
        if any(one.lost for one in self.wrong):
            return "broken promise: at least once"
        if any(one.doubled for one in self.wrong):
            return "broken promise: exactly once"
        if not self.correct or self.doubled is None:
            return ""
        return f"kept promise: {'at least' if self.doubled else 'exactly'} once"

    @property
    def answers(self) -> str:
        """Answers in words, with the promise that they keep or break."""
        return "; ".join(filter(None, [self._counts, self.promise]))

    @property
    def _counts(self) -> str:
        """Answers in words: right, not compared, or how often they were wrong and by how much."""
        counts = [(name, sum(getattr(one, name) or 0 for one in self.compared)) for name in ("lost", "doubled")]
        parts = [f"{self.least}{count:,} {name}" for name, count in counts if count]
        if not self.wrong:
            partly = f"right where compared, in {len(self.compared)} of {len(self.trials)} trials"
            return ", ".join(["right" if self.correct else partly if self.compared else "not compared", *parts])
        often = f"wrong in {len(self.wrong)} of {len(self.compared)}"
        if any(one.lost is None for one in self.wrong):
            return often  # the trial has its own words for it
        return f"{often}: {', '.join(parts)}" if parts else f"{often}: other values"

    @property
    def sentence(self) -> str:
        """Sentence with what the fault costs."""
        if self.void:
            return f"{self.name}: {'' if self.unmeasurable else 'void: '}{self.void}"
        answers = "; ".join(filter(None, [f"answers {self.answers}", self.remark]))
        if self.back_s is None:
            return f"{self.name}: not back in {self.not_back} of {len(self.valid)} trials, {self.unknown}; {answers}"
        interval = self.back_s.interval
        about = f" ({interval[0]:.3g} to {interval[1]:.3g})" if interval else ""
        what = "taken again" if self.is_within else "back"
        return f"{self.name}: {what} after {self.back_s.value:.3g} s{about}; {answers}"


def uncompared(trials: Sequence[Struck]) -> str:
    """Says that the answers of only some of these trials were compared, or of none; empty if each was."""
    compared = sum(one.correct is not None for one in trials)
    if compared == len(trials):
        return ""
    return f"{compared} of {counted(len(trials), 'trial')} compared" if compared else "answers were not compared"


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [one for one in counts if one is not None]
    return sum(known) if len(known) == len(counts) else None


class RecoveryRun(RatedRun):
    """Content of recovery.json."""

    seconds: float
    cut_seconds: float
    max_age_s: float  # it is back while no event waits for longer
    faults: tuple[Suffered, ...] = ()
    no_intervals: str = ""  # why it was not measured at the intervals of checkpoints that were asked for

    @property
    def outputs(self) -> dict[str, bool | None]:
        return {one.name: one.correct for one in self.faults if not one.unmeasurable}

    @property
    def partly(self) -> dict[str, tuple[int, int]]:
        return {
            one.name: (len(one.compared), len(one.trials))
            for one in self.faults
            if one.compared and one.correct is None
        }
