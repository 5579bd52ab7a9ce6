"""Whole gates, on commits whose systems are of known speed."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner, Result

from streamgauge.app.cli import application
from streamgauge.app.gate import verdict
from streamgauge.app.gate.pairs import Pairs
from streamgauge.app.gate.repository import Repository
from streamgauge.base.folders import LOCKS
from streamgauge.config import load
from streamgauge.config.gate import Gate
from streamgauge.records.gate import GateCheck, GateRepetition
from streamgauge.records.release import Reason, State
from tests.gate.repositories import benchmark, commit, git, repository


@pytest.fixture(autouse=True)
def own_lock(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LOCKS, str(tmp_path_factory.mktemp("locks")))


def gate(place: Path, *more: str, base: str = "main", head: str = "HEAD") -> Result:
    command = ["gate", str(place / "mine.yaml"), "--base", base, "--head", head, "--repository", str(place)]
    options = ["--output", str(place / "gate"), "--artifacts", str(place / "artifacts")]
    return CliRunner().invoke(application(), [*command, *options, *more])


@pytest.mark.prove
@pytest.mark.e2e
def test_a_slower_head_is_no_go_after_as_few_pairs_as_are_clear_and_nothing_is_left(tmp_path: Path) -> None:
    place = tmp_path / "r"
    base, head = repository(place, benchmark({"build": "pwd > built"}), benchmark(capacity=10_000))
    done = gate(place, "--json")
    assert done.exit_code == 1, done.stderr
    check = GateCheck.read(place / "gate" / "gate.json")
    assert json.loads(done.stdout.splitlines()[-1]) == check.to_json()
    assert (check.verdict, check.exit_code, check.base_commit, check.head_commit) == ("no-go", 1, base, head)
    [series] = check.series
    assert series.ratio == pytest.approx(2, rel=0.2)
    assert check.pairs == 3
    lines = GateRepetition.read_log(place / "gate" / "gate.jsonl")
    assert "".join(line.side[0] for line in lines) == "bccbbc"
    assert [line.asked for line in lines] == [True, True, False, False, False, False]  # answers once of each side
    assert (place / "gate" / "comment.md").read_text().startswith("## ❌ Streamgauge gate: no-go\n")
    assert ElementTree.parse(place / "gate" / "junit.xml").getroot().get("failures") == "3"
    assert git(place, "worktree", "list").count("\n") == 0
    assert not (place / "gate" / "gate-checkouts").exists()
    builds = [(place / "gate" / f"build-{side}.log").exists() for side in ("base", "head")]
    assert builds == [True, False]  # each as its own copy of the file says


def test_a_wrong_answer_is_no_go_whatever_the_speed(tmp_path: Path) -> None:
    place = tmp_path / "r"
    repository(place, benchmark(), benchmark(capacity=40_000, wrong="3 rows are missing"))
    done = gate(place)
    assert done.exit_code == 1, done.stderr
    assert done.stdout.splitlines()[0].startswith("no-go: e.all, head: 3 rows are missing;")
    assert GateCheck.read(place / "gate" / "gate.json").pairs == 1


#: a pair fits into the budget, and no second one
SHORT = {"answers": "skip", "minutes": 0.02}


def test_a_head_that_does_not_run_twice_in_a_row_is_no_go(tmp_path: Path) -> None:
    place = tmp_path / "r"
    repository(place, benchmark(SHORT), benchmark(SHORT, dies=str(tmp_path / "nowhere" / "died")))
    done = gate(place)
    assert done.exit_code == 1, done.stderr
    line = done.stdout.splitlines()[0]
    assert line.startswith(
        "no-go: e.all, head: 2 of 2 processes did not run, and the base's did: systems.job: no license;"
    )
    why = "other than in the base's copy, and each side has its own: dies"
    reasons = GateCheck.read(place / "gate" / "gate.json").reasons
    assert Reason("settings", "note", "systems.job", why) in reasons


def test_a_head_that_is_killed_among_waiting_events_twice_in_a_row_is_no_go(tmp_path: Path) -> None:
    place = tmp_path / "r"
    repository(place, benchmark(SHORT), benchmark(SHORT, killed=True))
    done = gate(place)
    assert done.exit_code == 1, done.stderr
    line = done.stdout.splitlines()[0]
    assert line.startswith("no-go: e.all, head: 2 of 2 processes did not run, and the base's did: system job ended")


def test_a_head_that_once_does_not_run_is_measured_again_and_counted(tmp_path: Path) -> None:
    place = tmp_path / "r"
    repository(place, benchmark(SHORT), benchmark(SHORT, dies=str(tmp_path / "died")))
    done = gate(place)
    assert done.exit_code == 0, done.stderr
    check = GateCheck.read(place / "gate" / "gate.json")
    assert (check.verdict, check.series[0].n_candidate) == ("inconclusive", 1)
    why = "1 of 2 processes did not run, and the base's did: systems.job: no license"
    assert Reason("output", "note", "e.all, head", why) in check.reasons


def test_the_base_s_settings_judge_and_a_copy_that_is_not_used_is_told(tmp_path: Path) -> None:
    place = tmp_path / "r"
    easy = benchmark({**SHORT, "minutes": 60, "slower_percent": 1000}, name="renamed").replace("all", "every")
    repository(place, benchmark(SHORT), easy)
    done = gate(place)
    assert done.exit_code == 0, done.stderr
    check = GateCheck.read(place / "gate" / "gate.json")
    assert (check.verdict, check.budget_minutes, check.series[0].tolerance) == ("inconclusive", 0.02, 0.05)
    doubt = (
        "its settings are those of the named file, as its own copy cannot be used: system: found 'renamed', "
        "allowed: job"
    )
    assert [one for one in check.reasons if one.kind == "settings"] == [
        Reason("settings", "open", "base", doubt),
        Reason("settings", "note", "gate", "those of the base's copy decide; the head's copy has others"),
        Reason("settings", "note", "workloads", "other than in the base's copy; those of the named file hold for both"),
    ]
    assert f"base: {doubt}; " in done.stdout
    assert doubt in (place / "gate" / "comment.md").read_text()


def of_base(place: Path, base: str, head: str, named: str, file: str = "mine.yaml") -> tuple[Gate | None, list[Reason]]:
    """The settings that judge, and the reasons, for these copies at the base, at the head and in the checkout."""
    repository(place, base, base, **{file: head})
    (place / file).write_text(named)
    tested = Repository(place)
    asked = verdict.Asked(place / file, tested, "main", "change", tested.commits("main", "change"), place / "gate")
    judged, reasons = verdict.with_settings_of_base(load(place / file), asked)
    return judged.gate, reasons


NO_COPY = "the base has no copy of this file with a valid section gate, so the head's settings judge"


@pytest.mark.parametrize(
    ("gate", "state", "more"),
    [
        ({"slower_percent": 1000, "compare": ["cpu"]}, "open", ", which are laxer than the defaults"),
        ({"answers": "skip", "compare": ["cpu"]}, "open", ", which are laxer than the defaults"),
        ({"compare": ["speed"]}, "open", ", which are laxer than the defaults"),
        ({"slower_percent": 3, "compare": ["speed", "cpu"]}, "note", ""),
    ],
)
def test_a_head_whose_own_settings_judge_is_told_of(
    tmp_path: Path, gate: dict[str, object], state: State, more: str
) -> None:
    head = benchmark(gate)
    assert of_base(tmp_path / "new", benchmark(), head, head, "other.yaml") == (
        load(tmp_path / "new" / "other.yaml").gate, [Reason("settings", state, "gate", NO_COPY + more)],
    )  # fmt: skip
    without = benchmark().partition("gate:")[0] + benchmark()[benchmark().index("name: mine") :]
    assert of_base(tmp_path / "old", without, head, head)[1] == [Reason("settings", state, "gate", NO_COPY + more)]


@pytest.mark.parametrize("gate", [{"system": "new"}, {}])
def test_a_system_that_the_head_renames_is_compared_by_its_new_name(tmp_path: Path, gate: dict[str, str]) -> None:
    head = benchmark(gate, name="new")
    judge, reasons = of_base(tmp_path / "r", benchmark({"system": "job", "minutes": 2}), head, head)
    assert judge is not None
    assert (judge.system, judge.minutes) == ("new", 2)
    why = "'new', as the named file says, which has none that the base's copy names"
    assert reasons == [
        Reason("settings", "open", "gate.system", why),
        Reason("settings", "note", "gate", "those of the base's copy decide; the head's copy has others"),
    ]


def test_what_others_have_merged_and_a_build_of_its_own_is_not_the_head_s_difference(tmp_path: Path) -> None:
    merged = benchmark({"minutes": 3}).replace("all", "every")
    judge, reasons = of_base(tmp_path / "r", benchmark(), benchmark({"build": "make"}), merged)
    assert (judge and judge.minutes, reasons) == (1, [])


def test_cpu_time_that_nobody_tells_is_one_line_after_the_first_process(tmp_path: Path) -> None:
    place = tmp_path / "r"
    settings = benchmark({"answers": "skip", "compare": ["speed", "cpu"]})
    repository(place, settings, settings)
    done = gate(place)
    assert (done.exit_code, done.stderr.splitlines()[-1]) == (
        3, "streamgauge: gate.compare: job tells no CPU time; compare: [speed] needs none"
    )  # fmt: skip


BUILD = {"build": "echo reading; test ! -e broken || { echo 'error: no such class'; exit 3; }"}


@pytest.mark.parametrize(
    ("base", "head", "line"),
    [
        ("nowhere", "HEAD", "--base: found 'nowhere', allowed: a branch, tag or commit of {place}; fetch it first"),
        ("main", "nowhere", "--head: found 'nowhere', allowed: a branch, tag or commit of {place}; fetch it first"),
        ("alone", "HEAD", "--base alone: has no commit in common with HEAD"),
        ("main", "HEAD", "gate.build: head: {build!r} ended with 3; its last lines: reading | error: no such class; "
         "its output: {place}/gate/build-head.log"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_and_no_verdict(tmp_path: Path, base: str, head: str, line: str) -> None:
    place = tmp_path / "r"
    repository(place, benchmark(), benchmark(BUILD), broken="")
    git(place, "checkout", "--quiet", "--orphan", "alone")
    commit(place, "another begin", {})
    git(place, "checkout", "--quiet", "change")
    done = gate(place, base=base, head=head)
    assert done.exit_code == 3
    said = [one for one in done.stderr.splitlines() if one.startswith("streamgauge: ")]
    assert said == [f"streamgauge: {line.format(place=place, build=BUILD['build'])}"]
    assert git(place, "worktree", "list").count("\n") == 0


def test_a_gate_without_a_verdict_leaves_none_of_an_earlier_one(tmp_path: Path) -> None:
    place = tmp_path / "r"
    repository(place, benchmark(), benchmark(BUILD), broken="")
    earlier = [place / "gate" / name for name in ("comment.md", "junit.xml", "gate.json", "build-base.log")]
    mine = [place / "gate" / name / "mine.txt" for name in ("work", "checkouts/base")]
    for file in mine:
        file.parent.mkdir(parents=True)
        file.touch()
    for head in ("HEAD", "nonsense"):  # one that is not built, and one that is not there
        for file in earlier:
            file.write_text("go")
        assert gate(place, head=head).exit_code == 3
        assert [file.name for file in earlier if file.exists()] == []
    assert all(file.exists() for file in mine)


def test_a_head_that_is_behind_the_base_is_compared_with_itself_and_told(tmp_path: Path) -> None:
    place = tmp_path / "r"
    repository(place, benchmark(SHORT), benchmark(SHORT))
    done = gate(place, base="change", head="main")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.splitlines()[1] == "The base and the head are the same commit: an A/A check."


def test_what_is_not_committed_is_not_measured_in_silence(tmp_path: Path) -> None:
    place = tmp_path / "r"
    repository(place, benchmark(), benchmark(), **{"my röws.csv": "t,k\n"})
    (place / "my röws.csv").write_text("t,k\n1,b\n")
    done = gate(place)
    assert done.exit_code == 3
    assert done.stderr.splitlines()[-1] == (
        "streamgauge: --head: found 1 changed file not committed, such as my röws.csv; the gate "
        "measures commits: commit or stash them"
    )


def test_a_shallow_clone_says_what_to_fetch(tmp_path: Path) -> None:
    whole, place = tmp_path / "whole", tmp_path / "r"
    repository(whole, benchmark(), benchmark())
    git(tmp_path, "clone", "--quiet", "--depth", "1", "--no-single-branch", f"file://{whole}", "r")
    done = gate(place, base="origin/main")
    assert done.exit_code == 3
    assert done.stderr.splitlines()[-1] == (
        "streamgauge: --base origin/main: has no commit in common with HEAD, as this clone is shallow; fetch the whole "
        "history (fetch-depth: 0, or git fetch --unshallow)"
    )


def test_no_repository_is_one_line(tmp_path: Path) -> None:
    place, bare = tmp_path / "r", tmp_path / "bare"
    repository(place, benchmark(), benchmark())
    git(tmp_path, "init", "--quiet", "--bare", "bare")
    for folder, why in ((tmp_path, "not a git repository"), (bare, "this operation must be run in a work tree")):
        done = gate(place, "--repository", str(folder))
        assert done.exit_code == 3
        line = done.stderr.splitlines()[-1]
        assert line.startswith(f"streamgauge: --repository {folder}: git finds no checkout there: {why}")
        assert line.endswith("; clone it, or name another folder")


def test_an_unfinished_gate_of_the_same_goes_on_and_a_finished_one_begins_anew(tmp_path: Path) -> None:
    one = GateRepetition(gate="same", cell="e.all", side="baseline", round=1, values={"x": 1.0}, seconds=2.0)
    kept = Pairs.of(tmp_path, "same")
    kept.add(one)
    assert Pairs.of(tmp_path, "same").repetitions == [one]
    assert Pairs.of(tmp_path, "other").repetitions == []
    assert Pairs.of(tmp_path, "same").repetitions == []  # the other one has deleted it
    kept.add(one)
    (tmp_path / "gate.json").write_text("{}")
    assert Pairs.of(tmp_path, "same").repetitions == []
