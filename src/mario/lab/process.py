"""Settings of processes that belong to mario: the command line and its workers. The library never changes them."""

import ctypes
import functools
import os
import sys

# Blocks from this size on are mapped one by one; glibc raises its own limit up to 32 MiB as blocks are freed.
_LARGE = 4 * 2**20
# Free memory to keep at the end of the heap: returning it and asking for it again costs thousands of page faults per
# training step.
_SPARE = 32 * 2**20
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
AWAKE = 0.05
"""Seconds that a rank waits for a message before it sleeps: as long as the ranks of one step may differ."""


@functools.cache
def return_freed_memory() -> bool:
    """Make glibc return freed matrices to the system at once; returns whether that was possible.

    By default glibc keeps freed blocks of up to 32 MiB for reuse. A training step frees matrices of many sizes in an
    order that leaves holes, so the process can hold more memory than it ever uses at once. The setting applies to the
    whole process. It is left alone if the environment sets ``MALLOC_MMAP_THRESHOLD_``.

    Example:
        >>> isinstance(return_freed_memory(), bool)
        True
    """
    if not sys.platform.startswith("linux") or "MALLOC_MMAP_THRESHOLD_" in os.environ:
        return False
    try:
        libc = ctypes.CDLL("libc.so.6")
        return bool(libc.mallopt(_M_MMAP_THRESHOLD, _LARGE) and libc.mallopt(_M_TRIM_THRESHOLD, _SPARE))
    except (OSError, AttributeError):  # another C library
        return False
