"""`stepcast dryrun`: runs a PyTorch training program on the CPU of this machine and records what it asks the GPUs to do.

The package can be called like the function that it hides, so that `stepcast.dryrun(step)` also works after an import of it.
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
