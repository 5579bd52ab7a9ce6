"""Network namespaces as hosts on this machine: own addresses, a bridge between them, delay and loss if wanted."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

from tests.conftest import ROOT

MAC = "02:5e:00:00:00:{:02x}"


class Unavailable(Exception):
    """Reason why this machine cannot simulate several hosts."""


class Hosts:
    """`with Hosts(["a", "b"], delay_ms=5) as hosts: subprocess.run(hosts.command("a", ["ping", hosts["b"]]))`.

    mbit: what each host's link sends at most, in Mbit/s; only without delay and loss. Nothing shows in the machine's
    own network. `how` names what adds the delay: tc netem, or our own switch
    where the kernel has no netem. Raises Unavailable without iproute2 or the right to make namespaces.
    """

    def __init__(self, names: Sequence[str], *, delay_ms: float = 0, loss_percent: float = 0, mbit: float = 0) -> None:
        self._addresses = {name: f"10.77.0.{number}" for number, name in enumerate(names, 1)}
        self._delay_ms, self._loss_percent, self._mbit = delay_ms, loss_percent, mbit
        self._switch: subprocess.Popen[str] | None = None
        self._mark = f"sg{os.getpid()}"
        self.how = "veth and a bridge"

    def __getitem__(self, name: str) -> str:
        return self._addresses[name]

    def command(self, name: str, command: Sequence[str]) -> list[str]:
        return ["ip", "netns", "exec", self._space(name), *command]

    def kill(self, name: str) -> int:
        """Kills every process of a host; returns how many."""
        killed: set[str] = set()
        while pids := _ip("netns", "pids", self._space(name)).split():
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            killed.update(pids)
        return len(killed)

    def __enter__(self) -> Self:
        if shutil.which("ip") is None:
            raise Unavailable("no iproute2 here (scripts/install-iproute.sh)")
        try:
            self._build()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._remove()

    def _build(self) -> None:
        for name in ("switch", *self._addresses):
            _ip("netns", "add", self._space(name))
        ports = {name: f"port{number}" for number, name in enumerate(self._addresses)}
        slow = self._delay_ms > 0 or self._loss_percent > 0
        if not slow or self._has_netem():
            self._bridge(ports, slow)
        else:
            self._own_switch(ports)
        for number, (name, address) in enumerate(self._addresses.items()):
            space = self._space(name)
            _ip("-n", space, "link", "set", "eth0", "address", MAC.format(number + 1))
            _ip("-n", space, "address", "add", f"{address}/24", "dev", "eth0")
            for device in ("lo", "eth0"):
                _ip("-n", space, "link", "set", device, "up")

    def _bridge(self, ports: dict[str, str], slow: bool) -> None:
        middle = self._space("switch")
        _ip("-n", middle, "link", "add", "bridge", "type", "bridge")
        _ip("-n", middle, "link", "set", "bridge", "up")
        for name, port in ports.items():
            space = self._space(name)
            _ip("-n", middle, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", space)
            _ip("-n", middle, "link", "set", port, "master", "bridge", "up")
            if slow:
                self._netem(space, "eth0")
            elif self._mbit:
                rate = ["rate", f"{self._mbit}mbit", "burst", "128kb", "latency", "50ms"]
                _run(["tc", "-n", space, "qdisc", "add", "dev", "eth0", "root", "tbf", *rate])
        if slow:
            self.how = "veth, a bridge, and tc netem"

    def _own_switch(self, ports: dict[str, str]) -> None:
        figures = [str(self._delay_ms), str(self._loss_percent)]
        command = self.command("switch", [sys.executable, "-m", "tests.e2e.switch", *figures, *ports.values()])
        self._switch = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._switch.stdout is not None
        if self._switch.stdout.readline() != "ready\n":
            raise Unavailable("no TAP devices here (/dev/net/tun), and no netem")
        for name, port in ports.items():
            _ip("-n", self._space("switch"), "link", "set", port, "netns", self._space(name), "name", "eth0")
        self.how = "TAP devices and a switch of our own, as this kernel has no netem"

    def _has_netem(self) -> bool:
        try:
            self._netem(self._space("switch"), "lo")
        except Unavailable:
            return False
        return True

    def _netem(self, space: str, device: str) -> None:
        wanted = ["delay", f"{self._delay_ms}ms", "loss", f"{self._loss_percent}%"]
        _run(["tc", "-n", space, "qdisc", "add", "dev", device, "root", "netem", *wanted])

    def _space(self, name: str) -> str:
        return f"{self._mark}-{name}"

    def _remove(self) -> None:
        if self._switch is not None:
            self._switch.communicate()
            self._switch = None
        existing = _ip("netns", "list").split()
        for name in (*self._addresses, "switch"):
            if self._space(name) in existing:
                self.kill(name)
                _ip("netns", "delete", self._space(name))


def _ip(*arguments: str) -> str:
    return _run(["ip", *arguments])


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise Unavailable(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout
