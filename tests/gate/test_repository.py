"""Tests the commits that are compared, and the checkouts that come and go."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamgauge.app.gate.repository import Commits, Repository
from streamgauge.config import load
from streamgauge.config.reached import reached
from tests.gate.repositories import benchmark, commit, git, repository


def test_the_head_is_compared_with_the_merge_base(tmp_path: Path) -> None:
    place = tmp_path / "r"
    begin, head = repository(place, benchmark(), benchmark(capacity=1))
    git(place, "checkout", "--quiet", "main")
    commit(place, "what others merged meanwhile", {"other.txt": "x"})
    tested = Repository(place)
    assert tested.commits("main", "change") == Commits(begin, head)
    assert tested.commits("change", "change") == Commits(head, head)  # an A/A check


def test_checkouts_end_with_their_block_and_a_killed_gate_s_are_removed(tmp_path: Path) -> None:
    place, out = tmp_path / "r", tmp_path / "gate" / "checkouts"
    begin, head = repository(place, "base", "head")
    (place / "mine.yaml").write_text("changed and not committed")
    tested = Repository(place)
    left = out / "base"
    git(place, "worktree", "add", "--detach", str(left), head)
    (left / "built").write_text("by a gate that was killed")
    with tested.checkouts(Commits(begin, head), out) as folders:
        assert [(folder / "mine.yaml").read_text() for folder in folders] == ["base", "head"]
        assert not (left / "built").exists()
    with pytest.raises(KeyboardInterrupt), tested.checkouts(Commits(begin, head), out):
        raise KeyboardInterrupt
    assert not out.exists()
    assert git(place, "worktree", "list").count("\n") == 0


def test_a_killed_gate_s_checkouts_are_forgotten_if_the_user_has_removed_their_folder(tmp_path: Path) -> None:
    place, link = tmp_path / "r", tmp_path / "link"
    begin, head = repository(place, "base", "head")
    (tmp_path / "out").mkdir()
    link.symlink_to(tmp_path / "out")
    git(place, "worktree", "add", "--detach", str(link / "checkouts" / "base"), head)
    (tmp_path / "out" / "checkouts").rename(tmp_path / "removed")
    with Repository(place).checkouts(Commits(begin, head), link / "checkouts"):
        assert git(place, "worktree", "list").count("\n") == 2
    assert git(place, "worktree", "list").count("\n") == 0


def test_checkouts_of_the_user_that_are_away_are_not_forgotten(tmp_path: Path) -> None:
    place, own = tmp_path / "r", tmp_path / "disk" / "own"
    begin, head = repository(place, "base", "head")
    git(place, "worktree", "add", "--detach", str(own), head)
    own.rename(tmp_path / "away")
    with Repository(place).checkouts(Commits(begin, head), tmp_path / "gate" / "checkouts"):
        pass
    assert git(place, "worktree", "list").count("\n") == 1


def test_a_file_is_found_in_the_repository_also_through_a_link(tmp_path: Path) -> None:
    place = tmp_path / "r"
    repository(place, "base", "head")
    (tmp_path / "link").symlink_to(place)
    tested = Repository(tmp_path / "link")
    assert tested.inside(tmp_path / "link" / "mine.yaml") == Path("mine.yaml")
    assert tested.inside(place / "mine.yaml") == Path("mine.yaml")
    assert tested.inside(tmp_path / "other.yaml") is None


def test_a_build_is_among_what_a_file_reaches(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("t,k\n1,a\n")
    (tmp_path / "mine.yaml").write_text(benchmark({"build": "make jar"}))
    assert [(one.kind, one.key, one.name) for one in reached(load(tmp_path / "mine.yaml"))] == [
        ("code", "systems.job.engine", "tests.gate.engines:Answering"), ("program", "gate.build", "make jar"),
    ]  # fmt: skip
