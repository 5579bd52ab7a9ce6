"""Tests what proof trials prove; the rules are compared with the package MLRsearch."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from streamgauge.bench.search.proof import LOOKS, classify, loads_of, refuted
from streamgauge.config import Search
from streamgauge.records.measurement import Outcome, Purpose, TrialRecord, Verdict, Window

RATE = 1000.0


def trials(purpose: Purpose, outcomes: list[Outcome]) -> list[TrialRecord]:
    return [TrialRecord(1, purpose, RATE, 10.0, Verdict(outcome, "")) for outcome in outcomes]


def by_mlrsearch(looks: list[bool]) -> tuple[bool, bool]:
    """(may still become a lower bound, is one whatever follows) after these looks of one second each."""
    # imported here: it looks at all modules that are loaded, which takes seconds in each process that collects tests
    from MLRsearch.discrete_load import DiscreteLoad
    from MLRsearch.discrete_result import DiscreteResult
    from MLRsearch.discrete_width import DiscreteWidth
    from MLRsearch.load_rounding import LoadRounding
    from MLRsearch.target_spec import TargetSpec
    from MLRsearch.target_stat import TargetStat

    rounding = LoadRounding(min_load=1.0, max_load=1e6, float_goals=[0.01])
    width = DiscreteWidth(rounding=rounding, float_width=0.01)
    target = TargetSpec(0.0, 0.5, width, 1.0, float(LOOKS), 2, False, None)
    stat = TargetStat(target)
    load = DiscreteLoad(rounding=rounding, float_load=RATE).rounded_down()
    for good in looks:
        stat.add(DiscreteResult(1.0, float(load), offered_count=1000, loss_count=0 if good else 1, discrete_load=load))
    estimates: tuple[bool, bool] = stat.estimates()
    return estimates


@given(st.sampled_from(["below", "above"]), st.lists(st.booleans(), max_size=2))
def test_a_load_is_classified_as_mlrsearch_does_with_the_ladder_as_one_look(side: Purpose, passed: list[bool]) -> None:
    outcomes: list[Outcome] = ["sustainable" if good else "unsustainable" for good in passed]
    found = classify(trials(side, outcomes))
    may, must = by_mlrsearch([side == "below", *passed])
    expected = {(True, True): "recovers", (False, False): "falls behind", (True, False): "open"}[may, must]
    assert found == expected


def test_a_trial_whose_sign_is_unclear_decides_nothing() -> None:
    assert classify(trials("below", ["inconclusive"])) == "undecided"
    assert classify(trials("below", ["inconclusive", "sustainable"])) == "recovers"


def test_trials_of_a_process_that_was_lost_prove_nothing_about_the_next_one() -> None:
    def trial(life: int, outcome: Outcome) -> TrialRecord:
        return TrialRecord(1, "below", RATE, 10.0, Verdict(outcome, ""), life=life)

    first, second = (Window(1, "ladder", 1000, (), life=life) for life in (1, 2))
    measured: list[Window | TrialRecord] = [first, trial(1, "unsustainable"), second, trial(2, "unsustainable")]
    assert refuted(measured, 1) == 0, "one look in each life"
    assert refuted([*measured, trial(2, "unsustainable")], 1) == 5
    (load,) = loads_of(Search(), measured)
    assert [one.life for one in load.trials] == [2]
    (load,) = loads_of(Search(), [second, trial(0, "sustainable"), trial(3, "sustainable")])
    assert [one.life for one in load.trials] == [0, 3], "an old record, and a system that needs no warm-up"
