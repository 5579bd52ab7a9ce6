"""The words and tables of an advice, for the command and for the page."""

from __future__ import annotations

from collections.abc import Callable

from streamgauge.base.units import PS, Tick, show_ticks
from streamgauge.records.advice import Advice, Errors, Question, Trade, Wait
from streamgauge.records.profile import part_name
from streamgauge.streams.advice.promise import outgrown

Row = tuple[str, ...]
#: kinds of hints that make no advice wrong
_HARMLESS = ("merging", "part_idle")


def headline(advice: Advice) -> str:
    """Says which delay is advised, or why there is none."""
    best = advice.advised
    mend = " Mend first what the hints name." if any(one.kind not in _HARMLESS for one in advice.hints) else ""
    if best is None:
        return f"No delay is advised: {advice.reason}.{mend}"
    what = "events lost" if advice.question.target == "lost" else f"{advice.question.answer}s wrong"
    realised = f"(median {percent(best.realised_p50)}, worst {percent(best.realised_max)})"
    promise = f"The promise of at most {100 * best.promised:g} % of {what}"
    wait = f"Wait {show_exact(best.delay, advice.tick)}."
    return f"{wait} {promise} held in {best.held} of {best.tests} tests {realised}.{mend}"


def of_workload(advice: Advice) -> str:
    """Says whether a workload's own delay keeps the promise, and what is advised."""
    said = ""
    for asked in advice.asked_tests:
        own, promised = show_exact(asked.delay or 0, advice.tick), percent(advice.question.share or 0.0)
        lately = outgrown(asked, advice.question.share or 0.0)
        if lately:
            held = sum(one.share <= (advice.question.share or 0.0) for one in lately)
            said += f"The stream has outgrown the delay of {own}: the promise of {promised} held in {held} of the last "
            said += f"{len(lately)} blocks. "
        else:
            said += f"The delay of {own} held in {asked.held} of {asked.tests} tests. "
    return said + headline(advice)


def has_outgrown(advice: Advice) -> bool:
    """True if a delay that was asked about kept the promise earlier in the stream, and keeps it no longer."""
    return any(outgrown(asked, advice.question.share or 0.0) is not None for asked in advice.asked_tests)


def tests(advice: Advice) -> str:
    """Says how the rules were tested."""
    what = "lost" if advice.question.target == "lost" else "wrong"
    share = 100 * (advice.question.share or 0)
    return f"Each rule chose a delay on the past; at most {share:g} % was to be {what} in the block after it."


def show_exact(ticks: int, tick: Tick) -> str:
    """A delay as text: rounded for reading, and exactly where that differs."""
    milliseconds = ticks * PS[tick] / PS["ms"]
    seconds = f"{milliseconds / 1000:,.3f}".rstrip("0").rstrip(".") + " s"
    about = show_ticks(ticks, tick)
    return seconds if about.endswith(" s") else f"{seconds} ({about})"


def answers(asked: Question, tick: Tick) -> str:
    length = show_ticks(asked.length, tick)
    by = f", by {asked.key}" if asked.key else ""
    return {
        "tumbling": f"windows of {length}{by}",
        "sliding": f"windows of {length}, one every {show_ticks(asked.slide, tick)}{by}",
        "session": f"sessions with a gap of {length}{by}",
        "join": f"pairs of events at most {length} apart{by}",
        "event": "each event by itself",
    }[asked.answers]


def percent(share: float) -> str:
    """A share as text, in percent of three digits."""
    return f"{100 * share:.3g} %"


def rules(advice: Advice) -> list[Row]:
    """Returns the table of the rules, its header first."""
    header = ("held", "median", "worst", "delay from all", "rule")
    return [header, *(
        (
            f"{one.held} of {one.tests}", percent(one.realised_p50), percent(one.realised_max),
            show_exact(one.delay, advice.tick) if one.delay is not None else "", one.rule,
        )
        for one in advice.rules
    )]  # fmt: skip


def parts(advice: Advice) -> str:
    """Says how many parts get an advice; empty where none was asked."""
    given = [one.advised.delay for one in advice.by_part if one.advised is not None]
    if not advice.by_part:
        return ""
    most = f", of at most {show_exact(max(given), advice.tick)}" if given else ""
    return f"If each of {len(advice.by_part):,} parts has a watermark of its own, {len(given):,} get an advice{most}."


def by_part(advice: Advice, shown: int) -> list[Row]:
    """Returns the table of so many parts, its header first."""
    header = ("part", "events", "none lost from", "advised", "held", "reason")
    return _known([header, *(
        (
            part_name(one.part), f"{one.events:,}", show_exact(one.enough, advice.tick),
            show_exact(one.advised.delay, advice.tick) if one.advised else "",
            f"{one.advised.held} of {one.advised.tests}" if one.advised else "",
            (one.reason or "").partition(":")[0],
        )
        for one in advice.by_part[:shown]
    )])  # fmt: skip


def engines(advice: Advice) -> list[Row]:
    """Returns the table of the engines, its header first."""
    header = ("", "delay", "events", "lost", "at any other pace", "bytes of state")
    return [header, *(
        (
            one.engine, show_exact(one.delay, advice.tick), f"{one.loss.events:,}",
            percent(one.loss.events / max(1, one.loss.of)),
            "{:,} to {:,}".format(*one.loss.between) if one.loss.between else "the same",
            "" if one.state_bytes is None else f"{one.state_bytes:,}",
        )
        for one in advice.engines
    )]  # fmt: skip


def marks(advice: Advice) -> list[tuple[str, int]]:
    """The delays of the curve that have a name: the advised one, those that were asked about, and the naive one."""
    advised = [] if advice.advised is None else [("advised", advice.advised.delay)]
    naive = [("naive", one.delay) for one in advice.rules[:1] if one.delay is not None]
    return [*advised, *(("asked", delay) for delay in advice.asked), *naive]


def curve(advice: Advice) -> list[Row]:
    """Returns the table of the curve, its header first, without columns of which nothing is known."""
    shown = _columns(advice)
    header = tuple(name for name, _ in shown)
    return _known([header, *(tuple(text(trade) for _, text in shown) for trade in advice.curve)])


def _known(rows: list[Row]) -> list[Row]:
    """The rows of a table without columns that are empty below the header."""
    kept = [k for k in range(len(rows[0])) if any(row[k] for row in rows[1:])]
    return [tuple(row[k] for k in kept) for row in rows]


def _columns(advice: Advice) -> list[tuple[str, Callable[[Trade], str]]]:
    """The columns of the curve: their names, and the text of each row, empty for what is not known."""
    tick, value = advice.tick, advice.question.value
    marked = {delay: name for name, delay in reversed(marks(advice))}

    def counted(number: int | None) -> str:
        return "" if number is None else f"{number:,}"

    def share(number: int | None, of: int | None) -> str:
        return "" if number is None or not of else percent(number / of)

    def relative(errors: Errors | None, *, worst: bool = False) -> str:
        return "" if errors is None else percent(errors.worst if worst else errors.median)

    def lasting(wait: Wait | None, *, p99: bool = False) -> str:
        ticks = None if wait is None else wait.p99 if p99 else wait.p50
        return "" if ticks is None else show_ticks(ticks, tick)

    return [
        ("", lambda one: marked.get(one.delay, "")),
        ("delay", lambda one: show_exact(one.delay, tick)),
        ("lost", lambda one: share(one.lost, advice.events)),
        ("events", lambda one: counted(one.lost)),
        ("wrong", lambda one: share(one.windows_wrong, one.windows)),
        ("windows", lambda one: counted(one.windows_wrong)),
        ("count off by", lambda one: relative(one.count_error)),
        ("count at worst", lambda one: relative(one.count_error, worst=True)),
        (f"{value} off by", lambda one: relative(one.value_error)),
        (f"{value} at worst", lambda one: relative(one.value_error, worst=True)),
        ("answer after", lambda one: lasting(one.wait)),
        ("p99", lambda one: lasting(one.wait, p99=True)),
        ("open", lambda one: counted(one.open_windows)),
        ("revised", lambda one: counted(one.revised)),
    ]
