"""A network switch that delays and loses frames, for kernels without netem: `python -m tests.e2e.switch 5 0.1 port…`.

Makes a TAP device for each port in the network namespace it runs in and says "ready"; whoever started it moves them
to where they belong. Ends with its standard input.
"""

from __future__ import annotations

import fcntl
import os
import random
import select
import struct
import sys
import time
from collections import deque
from contextlib import suppress

TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x0002, 0x1000
LONGEST_FRAME = 65_536


def tap(name: str) -> int:
    """The file of a new TAP device: each read and write is one Ethernet frame."""
    port = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(port, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TAP | IFF_NO_PI))
    return port


def switch(ports: list[int], delay_s: float, loss: float) -> None:
    learnt: dict[bytes, int] = {}  # MAC address -> port
    under_way: deque[tuple[float, int, bytes]] = deque()  # one delay for all: first in, first out
    while True:
        wait = max(0.0, under_way[0][0] - time.monotonic()) if under_way else None
        for port in select.select([0, *ports], [], [], wait)[0]:
            if port == 0:
                return
            with suppress(BlockingIOError):
                while frame := os.read(port, LONGEST_FRAME):
                    if random.random() >= loss:
                        under_way.append((time.monotonic() + delay_s, port, frame))
        while under_way and under_way[0][0] <= time.monotonic():
            _, source, frame = under_way.popleft()
            learnt[frame[6:12]] = source
            known = learnt.get(frame[:6])
            for port in ports if known is None else [known]:
                if port != source:
                    with suppress(OSError):  # full, or its host is down: a lost frame
                        os.write(port, frame)


if __name__ == "__main__":
    delay_ms, loss_percent, *names = sys.argv[1:]
    opened = [tap(name) for name in names]
    print("ready", flush=True)
    switch(opened, float(delay_ms) / 1000, float(loss_percent) / 100)
