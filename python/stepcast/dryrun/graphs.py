"""CUDA graphs: operators of a capture are recorded again at every replay, as one launch."""

from __future__ import annotations

import copy
from typing import Any, List

import torch

from stepcast.dryrun.recorder import Leaf, Recorder


def install(recorder: Recorder) -> None:
    class CUDAGraph:
        """Replaces torch.cuda.CUDAGraph."""

        def __init__(self, keep_graph: bool = False) -> None:
            self._leaves: List[Leaf] = []
            self._steps = 0

        def capture_begin(self, *_: Any, **__: Any) -> None:
            self._leaves = recorder.captured = []
            recorder.captured_steps = 0

        def capture_end(self) -> None:
            recorder.captured, self._steps = None, recorder.captured_steps

        def replay(self) -> None:
            if recorder.step is not None:
                with torch._C._profiler._RecordFunctionFast("## Call CompiledFxGraph cuda_graph ##"):
                    for captured in self._leaves:
                        with recorder.again(copy.copy(captured)):
                            pass
            for _ in range(self._steps):  # the graph includes the optimizer step
                recorder.boundary()

        def pool(self) -> Any:
            return (0, id(self))

        def reset(self) -> None:
            self._leaves = []

        def instantiate(self) -> None:
            pass

        enable_debug_mode = instantiate

        def debug_dump(self, debug_path: str) -> None:
            pass

    for module in (torch.cuda, torch.cuda.graphs):
        module.CUDAGraph = CUDAGraph  # type: ignore[attr-defined]
        module.graph_pool_handle = lambda: (0, 1)  # type: ignore[attr-defined]
        module.is_current_stream_capturing = lambda: recorder.captured is not None  # type: ignore[attr-defined]
