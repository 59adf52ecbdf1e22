from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Union

from typing_extensions import Unpack

from stepcast._answers import Answer as Answer
from stepcast._answers import AnyAnswer
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
from stepcast._flags import CompareFlags, DryrunFlags, InspectFlags, PlanFlags, PredictFlags, ReplayFlags, ShardFlags
from stepcast.recording import capture as capture
from stepcast.recording import hf_callback as hf_callback
from stepcast.recording import patch_optimizer as patch_optimizer

__version__: str
__all__: list[str]

_Path = Union[str, PathLike[str]]
_Places = Union[_Path, Iterable[_Path]]
_Progress = Union[Callable[[str], object], None]

def predict(
    model: _Path | None = None,
    *,
    progress: _Progress = None,
    gpus: int = ...,
    trace: _Places = ...,
    **flags: Unpack[PredictFlags],
) -> Forecast: ...
def predict_series(
    model: _Path | None = None,
    *,
    progress: _Progress = None,
    gpus: int | Iterable[int] = ...,
    trace: _Places = ...,
    **flags: Unpack[PredictFlags],
) -> AnyAnswer: ...
def what_to_change(
    model: _Path | None = None,
    *,
    progress: _Progress = None,
    gpus: int = ...,
    trace: _Places = ...,
    **flags: Unpack[PredictFlags],
) -> Record | None: ...
def dryrun(
    step: Callable[[], object] | Iterable[_Path], *, progress: _Progress = None, **flags: Unpack[DryrunFlags]
) -> Forecast: ...
def example_trace() -> Path: ...
def replay(*places: _Places, progress: _Progress = None, **flags: Unpack[ReplayFlags]) -> Replay: ...
def plan(model: _Path | None = None, *, progress: _Progress = None, **flags: Unpack[PlanFlags]) -> Plan: ...
def shard(model: _Path | None = None, *, progress: _Progress = None, **flags: Unpack[ShardFlags]) -> Sharding: ...
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
def inspect(*places: _Places, progress: _Progress = None, **flags: Unpack[InspectFlags]) -> Inspection: ...
def compare(
    a: Answer | _Path, b: Answer | _Path, *, progress: _Progress = None, **flags: Unpack[CompareFlags]
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
def models() -> AnyAnswer: ...
def platforms(name: _Path | None = None) -> AnyAnswer: ...
