"""Exceptions for the exit codes of the program. The text is the line that the program prints."""

from typing import Any



class Error(Exception):
    """Base class of all errors of stepcast."""


class InputError(Error, ValueError):
    """The input cannot be used (exit code 2). `answer` is a partial answer, or None."""

    answer = None


class MachineError(Error, RuntimeError):
    """The machine failed, not the input: no memory, a full disk (exit code 1)."""


class _AnswerRefused(Error):
    """An answer that fails a condition of the caller; `answer` is that answer."""

    def __init__(self, message: str, answer: Any = None) -> None:
        super().__init__(message)
        self.answer = answer


class DoesNotFit(_AnswerRefused):
    """`predict(require_fit=True)`: the memory is not sufficient (exit code 3)."""


class Differs(_AnswerRefused):
    """`compare(fail_above="3%")`: the step times differ by more (exit code 4)."""
