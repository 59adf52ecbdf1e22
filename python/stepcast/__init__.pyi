from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from typing import Any, Union, overload

from stepcast._answers import Answer as Answer
from stepcast._answers import Calibration as Calibration
from stepcast._answers import Comparison as Comparison
from stepcast._answers import Forecast as Forecast
from stepcast._answers import Inspection as Inspection
from stepcast._answers import Plan as Plan
from stepcast._answers import Record as Record
from stepcast._answers import Replay as Replay
from stepcast._answers import Sharding as Sharding
from stepcast._answers import Table as Table
from stepcast._answers import from_dict as from_dict
from stepcast._answers import from_json as from_json
from stepcast._errors import Differs as Differs
from stepcast._errors import DoesNotFit as DoesNotFit
from stepcast._errors import Error as Error
from stepcast._errors import InputError as InputError
from stepcast._errors import MachineError as MachineError
from stepcast.recording import capture as capture
from stepcast.recording import hf_callback as hf_callback
from stepcast.recording import patch_optimizer as patch_optimizer

__version__: str
__all__: list[str]

_Path = Union[str, PathLike[str]]
_Places = Union[_Path, Iterable[_Path]]
_Words = Union[str, Iterable[str]]
_Counts = Union[int, Iterable[int]]
_Progress = Union[Callable[[str], object], None]

@overload
def predict(
    model: _Path | None = None,
    *,
    progress: _Progress = None,
    platform: _Path = ...,
    gpus: int = ...,
    nodes: int = ...,
    gpus_per_node: int = ...,
    tp: int = ...,
    pp: int = ...,
    cp: int = ...,
    ep: int = ...,
    mbs: int = ...,
    gbs: int = ...,
    seq: int = ...,
    dtype: str = ...,
    framework: str = ...,
    what_if: _Words = ...,
    train_tokens: float = ...,
    gpu_hour_price: float = ...,
    trace: _Places = ...,
    **flags: Any,
) -> Forecast: ...
@overload
def predict(
    model: _Path | None = None,
    *,
    progress: _Progress = None,
    platform: _Path = ...,
    gpus: Iterable[int],
    nodes: int = ...,
    gpus_per_node: int = ...,
    tp: int = ...,
    pp: int = ...,
    cp: int = ...,
    ep: int = ...,
    mbs: int = ...,
    gbs: int = ...,
    seq: int = ...,
    dtype: str = ...,
    framework: str = ...,
    what_if: _Words = ...,
    train_tokens: float = ...,
    gpu_hour_price: float = ...,
    trace: _Places = ...,
    **flags: Any,
) -> Answer: ...
def what_to_change(model: _Path | None = None, *, progress: _Progress = None, **flags: Any) -> Record | None: ...
def dryrun(
    step: Callable[[], object] | Iterable[_Path],
    *,
    progress: _Progress = None,
    gpus: int = ...,
    platform: _Path = ...,
    output: _Path = ...,
    at: int = ...,
    timeout: float = ...,
    keep_going: bool = ...,
    guess: str = ...,
    eager: bool = ...,
    compiled: bool = ...,
    what_if: _Words = ...,
) -> Forecast: ...
def replay(
    *places: _Places,
    progress: _Progress = None,
    step: int = ...,
    ranks: str = ...,
    all_steps: bool = ...,
    scenarios: int = ...,
    timeline: _Path = ...,
    **flags: Any,
) -> Replay: ...
def plan(
    model: _Path | None = None,
    *,
    progress: _Progress = None,
    platform: _Places = ...,
    gpus: _Counts = ...,
    gbs: int = ...,
    seq: int = ...,
    top: int = ...,
    train_tokens: float = ...,
    **flags: Any,
) -> Plan: ...
def shard(
    model: _Path | None = None,
    *,
    progress: _Progress = None,
    gpus: int = ...,
    platform: _Path = ...,
    tables: _Path = ...,
    output: _Path = ...,
    **flags: Any,
) -> Sharding: ...
class Resharder:
    plan: _Path
    def __init__(self, model: _Path | None = None, *, plan: _Path, gpus: int = ..., platform: _Path = ..., **flags: Any) -> None: ...
    def decide(
        self,
        indices: _Path | None = None,
        *,
        proposed: Iterable[_Path] = ...,
        output: _Path | None = None,
        progress: _Progress = None,
    ) -> Sharding: ...
def calibrate(
    kind: str, *files: _Places, progress: _Progress = None, platform: _Path = ..., output: _Path = ..., **flags: Any
) -> Calibration: ...
def inspect(*places: _Places, progress: _Progress = None, **flags: Any) -> Inspection: ...
def compare(
    a: Answer | _Path, b: Answer | _Path, *, progress: _Progress = None, fail_above: str = ..., **flags: Any
) -> Comparison: ...
def import_ranks(
    traces: Iterable[_Path | Sequence[_Path]],
    folder: _Path,
    executor: Any = None,
    *,
    step: int | None = None,
    all_steps: bool = False,
    progress: _Progress = None,
) -> list[str]: ...
def sweep(spec: _Path | dict[str, Any], executor: Any = None, *, progress: _Progress = None) -> Table: ...
def models() -> Answer: ...
def platforms(name: _Path | None = None) -> Answer: ...
