"""Tests where the control group of a process is found, in texts as kernels and containers write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamgauge.base import cgroups
from streamgauge.base.cgroups import directory, group_of, memory_limit

FIRST = """\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
"""
GROUPS = "4:memory:/jobs/one\n2:cpu,cpuacct:/\n1:name=systemd:/\n0::/user.slice\n"
DOCKER = "700 690 0:29 /docker/abc /sys/fs/cgroup/cpu ro,nosuid - cgroup cgroup rw,cpu\n"
SECOND = "42 32 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"


@pytest.mark.parametrize(
    ("mounts", "groups", "controller", "place"),
    [
        (FIRST, GROUPS, "cpu", "/sys/fs/cgroup/cpu,cpuacct/"),
        (FIRST, GROUPS, "memory", "/sys/fs/cgroup/memory/jobs/one"),
        (FIRST, GROUPS, "", "/sys/fs/cgroup/unified/user.slice"),
        (FIRST, GROUPS, "cpuset", None),
        (DOCKER, "2:cpu:/docker/abc\n", "cpu", "/sys/fs/cgroup/cpu"),
        (DOCKER, "2:cpu:/docker/abc/inner\n", "cpu", "/sys/fs/cgroup/cpu/inner"),
        (DOCKER, "2:cpu:/docker/abcd\n", "cpu", None),
        (SECOND, "0::/a/b:c.scope\n", "", "/sys/fs/cgroup/a/b:c.scope"),
        (SECOND, "0::/a\n", "cpu", None),
    ],
)
def test_the_group_of_a_process_is_below_the_mount(
    mounts: str, groups: str, controller: str, place: str | None
) -> None:
    assert directory(mounts, groups, controller) == (None if place is None else Path(place))


def test_the_limit_of_memory_is_the_least_of_a_process_s_own_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "a" / "b"
    own.mkdir(parents=True)
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "a" / "memory.max").write_text("300\n")
    monkeypatch.setattr(cgroups, "group_of", lambda controller="": None if controller else own)
    assert memory_limit() == 300
    (own / "memory.max").write_text("max\n")
    assert memory_limit() == 300
    (own / "memory.max").write_text("200\n")
    assert memory_limit() == 200
    monkeypatch.setattr(cgroups, "group_of", lambda controller="": own if controller else None)
    assert memory_limit() is None
    (own / "memory.limit_in_bytes").write_text("100\n")
    assert memory_limit() == 100


def test_a_process_that_is_gone_has_no_group() -> None:
    assert group_of(2**30) is None
