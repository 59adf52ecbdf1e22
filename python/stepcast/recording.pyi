from collections.abc import Iterable
from os import PathLike
from types import TracebackType
from typing import Any, Union

_Path = Union[str, PathLike[str]]

class Recording:
    directory: str
    at: int
    steps: int
    warmup: int
    count: int
    files: list[str]
    def __init__(
        self,
        directory: _Path,
        *,
        at: int = 20,
        steps: int = 3,
        warmup: int = 2,
        ranks: str | Iterable[int] = "auto",
        shapes: bool = True,
        stacks: bool = False,
        memory: bool = False,
        execution_trace: bool = True,
    ) -> None: ...
    def __enter__(self) -> Recording: ...
    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> bool: ...
    def step(self) -> None: ...
    def close(self) -> None: ...

def capture(
    directory: _Path,
    *,
    at: int = 20,
    steps: int = 3,
    warmup: int = 2,
    ranks: str | Iterable[int] = "auto",
    shapes: bool = True,
    stacks: bool = False,
    memory: bool = False,
    execution_trace: bool = True,
) -> Recording: ...
def hf_callback(directory: _Path, **options: Any) -> Any: ...
def patch_optimizer(directory: _Path, **options: Any) -> Recording: ...
def install_hook() -> None: ...
def main(words: list[str] | None = None) -> int: ...
