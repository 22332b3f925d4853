"""Memory of large arrays, used again once nobody reads them.

An operating system gives memory page by page, as it is first written to, and a process gives the
memory of arrays back. Of a gradient, whose results are as large as all the parameters, that is a
sixth of the time.
"""

from __future__ import annotations

import math
import sys
import threading
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

LEAST = 1 << 16  # bytes; of less, the process keeps hold itself
GREATEST = 1 << 22  # bytes; for more, NumPy asks the system for large pages
MOST = 1 << 27  # bytes that are kept, in use or not

_IDLE = 3  # references to a buffer that nobody reads: the shelf's, a variable's, an argument's

_lock = threading.Lock()
_shelf: dict[int, list[Array]] = {}  # bytes by their number; the number used last stands last


def empty(shape: tuple[int, ...], dtype: Any) -> Array:
    """An array whose elements are whatever is there, as `numpy.empty` makes it, not owning them."""
    kind = np.dtype(dtype)
    size = math.prod(shape) * kind.itemsize
    if not LEAST <= size < GREATEST:
        return np.empty(shape, kind)
    with _lock:
        same = _shelf.setdefault(size, [])
        _shelf[size] = _shelf.pop(size)
        for buffer in same:
            if sys.getrefcount(buffer) == _IDLE:
                break
        else:
            buffer = np.empty(size, np.uint8)
            if _room(size):
                same.append(buffer)
        array: Array = buffer.view(kind).reshape(shape)
    return array


def held() -> int:
    """The bytes that are kept."""
    return sum(size * len(buffers) for size, buffers in _shelf.items())


def _room(size: int) -> bool:
    """Whether so many bytes more may be kept; what is idle goes, the longest unused first."""
    for other in list(_shelf):
        if held() + size <= MOST:
            return True
        buffers = _shelf[other]
        for place in reversed(range(len(buffers))):
            buffer = buffers[place]
            if sys.getrefcount(buffer) == _IDLE:
                del buffers[place]
        if not buffers and other != size:
            del _shelf[other]
    return held() + size <= MOST
