"""A store's name behaves as a path does, and never passes for one of this machine."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamgauge.base.errors import UserError
from streamgauge.base.places import Remote, here, place

STORE = place("s3://bench/a b/c:d")


def test_a_uri_is_a_remote_place_and_a_path_is_a_path() -> None:
    assert isinstance(STORE, Remote)
    assert str(STORE) == f"{STORE}" == STORE.as_posix() == "s3://bench/a b/c:d"
    assert place(Path("s3://bench/a b/c:d")) == STORE, "pathlib makes one slash of two"
    assert place(STORE) is STORE
    assert place("s3-like/folder") == Path("s3-like/folder").absolute()
    assert place("file:///tmp/x") == Path("/tmp/x")
    assert not isinstance(place("file:///tmp/x"), Remote)


def test_a_remote_place_is_taken_apart_and_travels_as_a_path_does() -> None:
    assert str(STORE / "x" / "y.json") == "s3://bench/a b/c:d/x/y.json"
    assert str(STORE.parent) == "s3://bench/a b"
    assert str(STORE.with_name("z")) == "s3://bench/a b/z"
    assert (STORE / "x" / "i.html").relative_to(STORE).as_posix() == "x/i.html"
    assert STORE / "." == STORE == STORE.absolute() == STORE.resolve()
    assert sorted([STORE / "b", STORE / "a"]) == [STORE / "a", STORE / "b"]
    again = pickle.loads(pickle.dumps(STORE))
    assert (again, hash(again), type(again)) == (STORE, hash(STORE), Remote)
    assert here(STORE) == Path("artifacts/s3/bench/a b/c:d").absolute()
    assert here(Path("/x")) == Path("/x")


@pytest.mark.parametrize(
    "use",
    [open, os.stat, os.fspath, os.listdir, lambda p: p.stat(), lambda p: p.rename("x"), lambda p: os.path.join(p, "x")],
)
def test_what_knows_only_this_machines_files_refuses_it(use: Callable[[Any], object], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="s3://bench/a b/c:d: this needs a directory of this machine, found a store"):
        use(STORE)
    assert list(tmp_path.iterdir()) == []
