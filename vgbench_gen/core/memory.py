"""What the C library keeps of freed memory; nothing happens where it is not glibc."""

from __future__ import annotations

import ctypes

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h


def keep_freed_memory() -> None:
    """Let the C library keep up to 64 MB of what is freed, for good.

    Images of a few megabytes come and go by the thousand. Where each goes back to the system, the next one is paid for
    page by page: a tenth of the processor time of measuring.
    """
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    set_option(_M_TRIM_THRESHOLD, 64 << 20)
    set_option(_M_MMAP_THRESHOLD, 16 << 20)


def give_memory_back() -> None:
    """Hand all that is free to the system, also what lies between pieces that are not: for the end of a scene."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return
    trim(0)
