"""Tells the allocator to keep the memory that this process frees."""

from __future__ import annotations

import ctypes
from functools import cache

#: names in glibc's malloc.h
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
#: the second is the largest mapping threshold that an older glibc accepts
_KEPT_BYTES, _KEPT_BEFORE = 1 << 30, 1 << 25


@cache
def keep_pages() -> None:
    """Keeps freed memory for the next array: the system would have to map its pages again.

    For processes that make arrays of one size again and again. Does nothing where the C library is not glibc.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return
    mallopt(_MMAP_THRESHOLD, _KEPT_BYTES) or mallopt(_MMAP_THRESHOLD, _KEPT_BEFORE)
    mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
