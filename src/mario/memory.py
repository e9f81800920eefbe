"""How this process holds its memory."""

import ctypes
import functools
import os
import sys

# Blocks from this size on are mapped one by one; glibc's own bound grows up to 32 MiB as blocks are freed.
_LARGE = 4 * 2**20
# What may lie free at the end of the heap, where smaller blocks are: to give it back and ask for it anew in every step
# costs thousands of page faults.
_SPARE = 32 * 2**20
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3


@functools.cache
def give_back_large_blocks() -> bool:
    """Have freed matrices given back to the system at once, where the C library is glibc; whether that was done.

    By default glibc keeps freed blocks of up to 32 MiB to hand them out again. A training step frees matrices of many
    sizes in an order that leaves holes, and would hold two to three times the memory that it ever uses at once. It
    is done once and for the whole process, unless the environment has ``MALLOC_MMAP_THRESHOLD_``.

    Example:
        >>> isinstance(give_back_large_blocks(), bool)
        True
    """
    if not sys.platform.startswith("linux") or "MALLOC_MMAP_THRESHOLD_" in os.environ:
        return False
    try:
        libc = ctypes.CDLL("libc.so.6")
        return bool(libc.mallopt(_M_MMAP_THRESHOLD, _LARGE) and libc.mallopt(_M_TRIM_THRESHOLD, _SPARE))
    except (OSError, AttributeError):  # another C library
        return False
