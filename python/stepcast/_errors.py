"""What is raised where the program would end with an exit code; the text is the line that it prints."""


class Error(Exception):
    """Anything that stepcast has to say about a call that failed."""


class InputError(Error, ValueError):
    """What was given cannot be used (exit code 2). `answer` holds what could be said all the same, or None."""

    answer = None


class MachineError(Error, RuntimeError):
    """The machine failed, not what was given: no memory, a full disk (exit code 1)."""


class DoesNotFit(Error):
    """`predict(require_fit=True)`, and the memory does not suffice (exit code 3). `answer` is the forecast."""

    def __init__(self, message, answer):
        super().__init__(message)
        self.answer = answer
