"""The page over time shows the known change and no other, whether read as text or in a browser."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from streamgauge.app.nights.series import looks
from streamgauge.catalog import results
from streamgauge.records.judgement import Judgement, Look, ReleaseVerdict, Rerun, SelfTest
from streamgauge.results.index import Index
from streamgauge.results.report import dashboard
from streamgauge.stats.ab import compare
from streamgauge.stats.outcomes import Change
from tests.command import Answer, Call, run
from tests.index import example
from tests.index.nights import thirty_nights


@pytest.fixture
def index(tmp_path: Path) -> Index:
    thirty_nights(tmp_path)
    index = Index(f"sqlite:///{tmp_path / 'results.db'}")
    index.rebuild((tmp_path / "runs").iterdir())
    return index


def build(index: Index, page: Path) -> list[str]:
    return dashboard.build(index, page, looks(index))


CHANGED = "flights late20 q0 spark-4.3 micro-batch event_latency_ms_p99_at_80pct: +"


def test_the_known_change_and_no_other(index: Index, tmp_path: Path) -> None:
    (said,) = build(index, tmp_path / "page.html")
    assert said.startswith(CHANGED)
    assert "since 2026-04-21" in said
    assert "suspect: not rerun" in said
    page = (tmp_path / "page.html").read_text()
    assert "1 change in 24 series" in page
    assert "the driver slipped" in page


def test_what_a_rerun_said_and_an_output_that_changed(index: Index, tmp_path: Path) -> None:
    (key,) = [s.key for s in index.series(workload="q0", system="spark-4.3", metric="event_latency_ms_p99_at_80pct")]
    last = example.run(tmp_path, "night-30", example.result(
        "night-30", 12_344.0, workload="q2", system="spark-4.3", mode="micro-batch", metric="output_rows", unit="rows",
        at="2026-05-01T02:00:00+00:00",
    ))  # fmt: skip
    results.judge(last, Judgement("night-30", key, "2026-04-21T02:00:00+00:00", "regression", 0.12, Look()))
    index.add_run(last)
    changed, wrong = build(index, tmp_path / "page.html")
    assert f"; regression; to accept it: streamgauge results accept {key} --reason" in changed
    assert wrong == (
        "flights late20 q2 spark-4.3 micro-batch output_rows: "
        "output changed from 12\u202f345 to 12\u202f344 on 2026-05-01"
    )


def test_a_regression_that_a_person_accepts_is_shown_with_their_reason_and_is_no_longer_bad(
    index: Index, tmp_path: Path
) -> None:
    (key,) = [s.key for s in index.series(workload="q0", system="spark-4.3", metric="event_latency_ms_p99_at_80pct")]
    night, moment = tmp_path / "runs" / "night-29", "2026-04-21T02:00:00+00:00"
    whose = ["results", "accept", key, "--artifacts", str(tmp_path), "--author", "Ada", "--reason"]

    def accept(*reason: str) -> Answer:
        return run(Call([*whose, *reason]))

    accept("new disk").refused(f"series {key}: found no regression to accept; open: none")
    results.judge(night, Judgement("night-29", key, moment, "regression", 0.12, Look()))
    index.add_run(night)
    accept(" ").refused("with a reason and a name")
    accept("new disk", "--since", "2026-04-20").refused("since 2026-04-20; open: 2026-04-21")
    page = tmp_path / "page.html"
    build(index, page)
    assert 'class="verdict bad"' in page.read_text()

    assert accept("a new, safer disk").out == f"accepted +12.0% since {moment}: a new, safer disk\n"
    [changed] = build(index, page)
    assert changed.endswith("accepted by Ada: a new, safer disk")
    assert 'class="verdict bad"' not in page.read_text()
    accept("twice").refused("found no regression to accept")
    index.rebuild((tmp_path / "runs").iterdir())
    outcomes = [one["outcome"] for one in example.judgement_rows(index, key)]
    assert outcomes == ["regression", "accepted"], "the records have both"


def test_a_step_that_a_rerun_confirmed_is_there_however_small(index: Index, tmp_path: Path) -> None:
    """A night judges its own series, the page all of them; and a place may move while values arrive."""
    metric = "event_latency_ms_p99_at_80pct"
    keys = {q: index.series(workload=q, system="spark-4.3", metric=metric)[0].key for q in ("q0", "q1")}
    change = Change(9, 0.03, (0.02, 0.04), 0.93, 1.0, 1.03)
    run = tmp_path / "runs" / "night-29"
    for key, day in ((keys["q0"], 19), (keys["q1"], 16)):
        at, evidence = f"2026-04-{day}T02:00:00+00:00", Rerun(change=change)
        judged = Judgement("night-29", key, at, "regression", 0.03, evidence)
        results.judge(run, judged)
    index.add_run(run)
    by_query = {line.split()[2]: line for line in build(index, tmp_path / "page.html")}
    assert by_query.keys() == {"q0", "q1"}
    assert "since 2026-04-21" in by_query["q0"]
    assert "; regression; to accept it: " in by_query["q0"]
    assert "+3.0\u202f% since 2026-04-16" in by_query["q1"]
    assert "; regression; to accept it: " in by_query["q1"]


def test_what_systems_can_do_what_releases_were_told_and_the_noise_of_a_series_stand_on_the_page(
    tmp_path: Path,
) -> None:
    begin = datetime(2026, 4, 1, 2, tzinfo=UTC)
    for night in range(30):
        at = (begin + timedelta(days=night)).isoformat()
        about = {"workload": "q7", "system": "spark", "mode": "streaming", "at": at}
        gone = {"reason": "no such operator"} if night == 29 else {}
        path = example.run(
            tmp_path, f"n{night:02}",
            example.result(
                f"n{night:02}", 0.0 if gone else 1.0, metric="output_supported", unit="yes", **about, **gone,
            ),
            example.result(f"n{night:02}", 2.0 + night % 3 / 100, metric="query_seconds", unit="s", **about),
        )  # fmt: skip
    index = Index(f"sqlite:///{tmp_path / 'results.db'}")
    index.rebuild((tmp_path / "runs").iterdir())
    (seconds,) = index.series(metric="query_seconds")
    comparison = replace(compare([1.0] * 4, [1.0] * 4), noise_floor=0.0321, detectable_effect=0.0654)
    results.judge(path, Judgement("n29", seconds.key, at, "self", 0.001, SelfTest(comparison=comparison)))
    because = ("q7 is no longer supported",)
    evidence = ReleaseVerdict(verdict="no-go", baseline="4.2.1", candidate="4.3.0", reasons=because)
    results.judge(path, Judgement("n29", "", at, "release_check", 0.0, evidence))
    index.add_run(path)
    (said,) = build(index, tmp_path / "page.html")
    assert said == "flights late20 q7 spark streaming output_supported: no longer supported on 2026-04-30"
    page = " ".join((tmp_path / "page.html").read_text().split())
    assert "q7 is no longer supported" in page
    assert "no-go" in page
    assert page.count("no such operator") >= 2, "beside the query and beside its features"
    assert "3.21" in page
    assert "6.54" in page


@pytest.mark.parametrize(("nights", "said"), [(1, "1 of 8 values"), (7, "7 of 8 values")])
def test_while_nothing_can_be_judged_the_page_says_so_and_is_grey(tmp_path: Path, nights: int, said: str) -> None:
    thirty_nights(tmp_path, nights=nights)
    index = Index(f"sqlite:///{tmp_path / 'results.db'}")
    index.rebuild((tmp_path / "runs").iterdir())
    assert build(index, tmp_path / "page.html") == []
    page = (tmp_path / "page.html").read_text()
    assert f"Too early to judge: {said}" in page
    assert 'class="verdict plain"' in page
    assert page.count('class="chart"') == (0 if nights == 1 else 12), "a line needs two points"
    assert page.count('class="spark"') == (0 if nights == 1 else 24)


def test_what_changed_stands_first_with_its_history(index: Index, tmp_path: Path) -> None:
    build(index, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    first = page.partition('id="series"')[2].partition("<tbody>")[2].partition("</tr>")[0]
    assert "flights q0, late20" in first
    assert "p99 event-time latency at 80\u202f% of the rate" in first
    assert first.count("<circle") == 1, "the change is marked"
    assert page.index('id="flights-q0"') < page.index('id="flights-q1"')


def test_a_series_with_a_zero_and_one_too_short_are_not_judged_and_say_why(tmp_path: Path) -> None:
    index = Index(f"sqlite:///{tmp_path / 'results.db'}")
    zero = [example.result("r", float(n), at=f"2026-03-{n + 1:02}T02:00:00+00:00") for n in range(12)]
    index.add_run(example.run(tmp_path, "r", *zero, example.result("r", 5.0, workload="short")))
    assert build(index, tmp_path / "page.html") == []
    page = (tmp_path / "page.html").read_text()
    assert "a value is zero or below: no ratio can be formed" in page
    assert "1 value: at least 8 are needed to detect a change" in page
    assert 'class="verdict plain"' in page
    assert "No series could be judged; each row says why" in page


def test_an_empty_index_is_a_page_too(tmp_path: Path) -> None:
    answer = run(Call(["dashboard", "--out", str(tmp_path / "p.html"), "--artifacts", str(tmp_path)]))
    assert answer.out == f"page: {tmp_path / 'p.html'}\n"
    assert "The index holds no results yet." in (tmp_path / "p.html").read_text()
    answer = run(Call(["dashboard", "--out", str(tmp_path / "p.html"), "--artifacts", str(tmp_path), "--json"]))
    assert answer.json == {"page": str(tmp_path / "p.html"), "changes": []}
    run(Call(["dashboard", "--out", str(tmp_path / "no" / "p.html"), "--artifacts", str(tmp_path)])).refused(
        "cannot be written"
    )
