"""Tells the allocator how this process uses memory."""

from __future__ import annotations

import ctypes
from functools import cache

#: names in glibc's malloc.h
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
#: the second is the largest that an older glibc takes for its mappings
_KEPT_BYTES, _KEPT_BEFORE = 1 << 30, 1 << 25


@cache
def keep_pages() -> None:
    """Lets freed memory wait for the next array instead of going back to the system, whose pages cost time anew.

    For processes that make arrays of one size again and again. Does nothing where the C library is not glibc.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return
    mallopt(_MMAP_THRESHOLD, _KEPT_BYTES) or mallopt(_MMAP_THRESHOLD, _KEPT_BEFORE)
    mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
