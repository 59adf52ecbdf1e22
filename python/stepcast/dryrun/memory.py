"""Simulated GPU memory: the lifetimes of fake storages, and the behaviour of PyTorch's caching allocator."""

from __future__ import annotations

import bisect
import threading
import weakref
from typing import Any, Dict, List, Set, Tuple

_MiB = 1 << 20


class Memory:
    """Current and peak allocated bytes, in units of 512 bytes as in the allocator."""

    def __init__(self) -> None:
        self.allocated = 0
        self.peak = 0  # since mark()
        self.events: List[Tuple[int, int]] = []  # (storage, bytes): positive for allocations, negative for frees
        self._bytes: Dict[int, int] = {}
        self._ids: Dict[int, int] = {}  # address of a live storage -> its number
        self._next = 1
        self._workspaces: Set[Any] = set()
        self._lock = threading.RLock()

    def mark(self) -> None:
        self.peak = self.allocated

    def number_of(self, tensor: Any) -> int:
        """The number of the tensor's storage. Each allocation gets a new number."""
        storage = tensor.untyped_storage()
        known = self._ids.get(storage._cdata)
        if known is not None:
            return known
        with self._lock:
            number, self._next = self._next, self._next + 1
            address = storage._cdata
            self._ids[address] = number
            self._bytes[number] = 0
            weakref.finalize(storage, self._freed, address, number).atexit = False
            if tensor.device.type == "cuda":
                self._resize(number, storage.nbytes())
            return number

    def workspace(self, of: Any, size: int) -> None:
        """Memory that a library allocates once for each `of` and keeps."""
        with self._lock:
            if of not in self._workspaces:
                self._workspaces.add(of)
                number, self._next = self._next, self._next + 1
                self._bytes[number] = 0
                self._resize(number, size)

    def held(self, storage: Any) -> int:
        """The number of a storage that uses GPU memory now, otherwise 0."""
        number = self._ids.get(storage._cdata, 0)
        return number if self._bytes.get(number) else 0

    def resized(self, storage: Any) -> None:
        number = self._ids.get(storage._cdata)
        if number is not None:
            with self._lock:
                self._resize(number, storage.nbytes())

    def _resize(self, number: int, size: int) -> None:
        before, now = self._bytes[number], -(-size // 512) * 512
        if before == now:
            return
        if before:
            self.events.append((number, -before))
        if now:
            self.events.append((number, now))
        self._bytes[number] = now
        self.allocated += now - before
        self.peak = max(self.peak, self.allocated)

    def _freed(self, address: int, number: int) -> None:
        with self._lock:
            self._resize(number, 0)
            if self._ids.get(address) == number:
                del self._ids[address]
            del self._bytes[number]


def reserved_peak(events: List[Tuple[int, int]]) -> int:
    """Peak bytes that the caching allocator takes from the driver: best fit; segments of 2 MiB for requests up to 1 MiB, of 20 MiB up
    to 10 MiB, and of a multiple of 2 MiB above. Segments are never returned."""
    pools: Dict[bool, List[Tuple[int, int, int]]] = {True: [], False: []}  # (free bytes, segment, offset), sorted
    segments: List[Dict[int, int]] = []  # memory from the driver, divided into blocks: free ones by their offset
    placed: Dict[int, Tuple[int, int, int, bool]] = {}
    reserved = 0
    for number, change in events:
        if change > 0:
            small = change <= _MiB
            pool = pools[small]
            at = bisect.bisect_left(pool, (change, -1, -1))
            # Large blocks are not split if the rest would be below 1 MiB. A very large block is not used for a small request.
            if at == len(pool):
                size = 2 * _MiB if small else 20 * _MiB if change < 10 * _MiB else -(-change // (2 * _MiB)) * 2 * _MiB
                segments.append({0: size})
                reserved += size
                found, segment, offset = size, len(segments) - 1, 0
            else:
                found, segment, offset = pool.pop(at)
            rest = found - change
            taken = change if rest >= (512 if small else _MiB + 1) else found
            free = segments[segment]
            free.pop(offset, None)
            if taken < found:
                free[offset + taken] = found - taken
                bisect.insort(pool, (found - taken, segment, offset + taken))
            placed[number] = (segment, offset, taken, small)
            continue
        if number not in placed:
            continue
        segment, offset, size, small = placed.pop(number)
        pool, free = pools[small], segments[segment]
        after = free.pop(offset + size, None)
        if after is not None:
            pool.pop(bisect.bisect_left(pool, (after, segment, offset + size)))
            size += after
        for start, length in free.items():
            if start + length == offset:
                pool.pop(bisect.bisect_left(pool, (length, segment, start)))
                del free[start]
                offset, size = start, size + length
                break
        free[offset] = size
        bisect.insort(pool, (size, segment, offset))
    return reserved
