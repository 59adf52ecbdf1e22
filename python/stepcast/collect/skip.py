"""Work that cannot be done here is skipped by name, and never ends a run."""

from __future__ import annotations


class Skip(Exception):
    """Raised where something cannot be measured; the text says why in a few words."""


def reason_of(error: BaseException) -> str:
    """One line that says why `error` kept a case from being measured."""
    if isinstance(error, Skip):
        return str(error)
    first_line = (str(error).strip().splitlines() or [""])[0]
    if "out of memory" in first_line or isinstance(error, MemoryError):
        return "out of memory"
    return f"{type(error).__name__}: {first_line}"[:200]


def is_fatal(error: BaseException) -> bool:
    """True where the device cannot be used any more: every later call would fail with the same message."""
    text = str(error)
    return any(words in text for words in ("illegal memory access", "device-side assert", "unspecified launch failure",
                                           "misaligned address", "illegal instruction"))
