"""`stepcast dryrun`: runs a training program of PyTorch on this machine's CPU and records what it asks the GPUs to do.

The package is called as the function that it hides: `stepcast.dryrun(step)` works once a module of it was imported, too.
"""

import sys
import types
from typing import Any


class _Callable(types.ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from stepcast._verbs import dryrun

        return dryrun(*args, **kwargs)

    @property
    def __signature__(self) -> Any:
        import inspect

        from stepcast._verbs import dryrun

        return inspect.signature(dryrun)


sys.modules[__name__].__class__ = _Callable
