"""Parts are found by name: built in, registered by a package, or named as package.module:name."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from streamgauge.base.errors import UserError
from streamgauge.base.plugins import Parts

Install = Callable[[str, str], None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Installs a package that has metadata alone: its name, and the lines of its group streamgauge.things."""

    def put(package: str, lines: str) -> None:
        info = tmp_path / package / f"{package}-1.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1\n")
        (info / "entry_points.txt").write_text(f"[streamgauge.things]\n{lines}\n")
        monkeypatch.syspath_prepend(str(info.parent))

    return put


THINGS = Parts("things", {"pi": "math:pi", "zero": (0,)}, "thing")


def refused(name: str) -> str:
    with pytest.raises(UserError) as problem:
        THINGS.load(name, "here")
    assert "\n" not in str(problem.value)
    return str(problem.value)


def test_a_part_is_found_through_one_door(install: Install) -> None:
    install("first", "tau = math : tau\npi = math:e")
    assert [THINGS.load(name, "here") for name in ("pi", "zero", "tau", "math:e")] == [
        3.141592653589793, (0,), 6.283185307179586, 2.718281828459045,
    ]  # fmt: skip
    assert THINGS.names() == ("pi", "zero", "tau"), "what is built in keeps its name"
    assert [THINGS.outside(name) for name in ("pi", "tau", "math:e", "no")] == [None, "math:tau", "math:e", None]


def test_a_check_of_a_name_imports_nothing(install: Install, tmp_path: Path) -> None:
    install("first", "loud = loud_part:X")
    (tmp_path / "first" / "loud_part.py").write_text("raise SystemExit('stop\\nit')")
    for name in ("loud", "no.such:name"):
        THINGS.check(name, "here")
    assert "loud_part" not in sys.modules
    assert refused("loud") == "here: loud_part:X cannot be loaded: SystemExit: stop it"


def test_what_cannot_be_had_is_one_line(install: Install) -> None:
    install("first", "twice = math:pi\nodd = math")
    install("second", "twice = math:e")
    assert refused("none") == "here: found 'none', allowed: pi, zero, odd, twice, or package.module:thing"
    assert refused("twice") == "here: twice is registered by second and first; uninstall all but one"
    assert refused("odd") == "here: first registers 'math' as odd, allowed: package.module:name"
    assert refused("math:no") == "here: math:no cannot be loaded: AttributeError: module 'math' has no attribute 'no'"
    assert refused("no.such:name").endswith("install its package, or put its folder on PYTHONPATH")
