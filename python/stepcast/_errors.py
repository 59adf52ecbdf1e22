"""What is raised where the program would end with an exit code; the text is the line that it prints."""

from typing import Any



class Error(Exception):
    """Anything that stepcast has to say about a call that failed."""


class InputError(Error, ValueError):
    """What was given cannot be used (exit code 2). `answer` holds what could be said all the same, or None."""

    answer = None


class MachineError(Error, RuntimeError):
    """The machine failed, not what was given: no memory, a full disk (exit code 1)."""


class _AnswerRefused(Error):
    """An answer that the caller does not want to go on with; `answer` is that answer."""

    def __init__(self, message: str, answer: Any = None) -> None:
        super().__init__(message)
        self.answer = answer


class DoesNotFit(_AnswerRefused):
    """`predict(require_fit=True)`, and the memory does not suffice (exit code 3)."""


class Differs(_AnswerRefused):
    """`compare(fail_above="3%")`, and the step times differ by more (exit code 4)."""
