"""Work that is not possible here is skipped with a reason, and never ends a run."""

from __future__ import annotations


class Skip(Exception):
    """Raised if something cannot be measured. The text gives the reason in a few words."""


def reason_of(error: BaseException) -> str:
    """One line with the reason why `error` prevented a measurement."""
    if isinstance(error, Skip):
        return str(error)
    first_line = (str(error).strip().splitlines() or [""])[0]
    if "out of memory" in first_line or isinstance(error, MemoryError):
        return "out of memory"
    return f"{type(error).__name__}: {first_line}"[:200]


def is_fatal(error: BaseException) -> bool:
    """True if the device cannot be used any more: all later calls would fail with the same message."""
    text = str(error)
    return any(words in text for words in ("illegal memory access", "device-side assert", "unspecified launch failure",
                                           "misaligned address", "illegal instruction"))
