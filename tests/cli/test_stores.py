"""One-shot commands read from an object store and write to one, with the bytes that a disk gets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from streamgauge.base.places import Remote, place
from tests.command import Answer, Call, run
from tests.stores import object_store

OPTIONS = ["--time", "t", "--unit", "s", "--target", "10", "--seed", "1", "--csv", "--json"]


@pytest.fixture(scope="module")
def root() -> Iterator[str]:
    with object_store() as (url, _):
        yield url


def generate(source: str, out: str) -> Answer:
    return run(Call(["generate", source, *OPTIONS, "--out", out]))


def test_from_a_store_to_a_store(root: str, tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("t,v\n" + "".join(f"{i},{i % 7}\n" for i in range(500)))
    place(f"{root}/f.csv").write_bytes((tmp_path / "f.csv").read_bytes())
    here = generate(str(tmp_path / "f.csv"), str(tmp_path / "out")).json
    there = generate(f"{root}/f.csv", f"{root}/out").json
    assert there["files"] == [file.replace(str(tmp_path), root) for file in here["files"]]
    assert there | {"files": []} == here | {"files": []}
    for file in here["files"]:
        assert place(file.replace(str(tmp_path), root)).read_bytes() == Path(file).read_bytes()
    names = {path.name for path in place(f"{root}/out").iterdir()}
    assert names == {path.name for path in (tmp_path / "out").iterdir()}
    generate(f"{root}/f.csv", f"{root}/out").refused("out: exists already; name a directory that does not")


@pytest.mark.usefixtures("root")
def test_a_store_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("t\n1\n")
    generate(str(tmp_path / "f.csv"), "s3://nobody-has-this/out").refused("s3://nobody-has-this: no such bucket")


def test_a_target_that_cannot_be_reached_leaves_nothing_there(root: str, tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("t\n" + "1\n" * 10)
    out = place(f"{root}/none")
    assert generate(str(tmp_path / "f.csv"), str(out)).code == 2
    assert isinstance(out, Remote)
    assert list(out.iterdir()) == []
