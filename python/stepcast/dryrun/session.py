"""The run of one rank: the mode, the recorder, and the choice of the step."""

from __future__ import annotations

import gc
import json
import math
import os
import re
import sys
import time
from typing import Any, Dict, Optional, Set


class Session:
    """`job`: the settings that launch.py wrote for this rank."""

    current: "Session"

    def __init__(self, job: Dict[str, Any]) -> None:
        self.job = job
        self.notes = []
        self.who = "the program"  # used in messages
        self.started = time.monotonic()
        self._signatures: Set[Optional[str]] = set()
        self._waits_for_forward = True
        self.groups: Any = None
        Session.current = self

    def start(self) -> None:
        try:
            import torch
        except ImportError as problem:
            self.fail(f"no PyTorch for {sys.executable}: {problem}; install it there: {sys.executable} -m pip install torch")
        if not hasattr(torch._C, "_cuda_getCurrentStream"):
            self.fail(f"PyTorch {torch.__version__} of {sys.executable} is built without CUDA; install the wheel that has it: "
                      "pip install torch --index-url https://download.pytorch.org/whl/cu130")
        from stepcast.dryrun import compiled, extensions, files, graphs, imports, mode, patches, recorder

        guesses = mode.Guesses(self.job.get("guess", {}).get("nonzero", 0.5))
        self.recorder = recorder.Recorder(self.on_step)
        self.guesses = guesses
        self.mode = mode.DryMode(self.recorder, guesses)
        patches.install(self.recorder.memory)
        self.seem_real = patches.seem_real
        modules = patches.Modules(self.on_forward)
        self.recorder.module_of = modules.current
        self.optimizer = patches.follow_optimizers(self.recorder.boundary)
        mode.Threads(self.mode)
        graphs.install(self.recorder)
        self.compiled = compiled.Compiled(self.mode, self.job.get("compile") == "eager")
        self.compiled.install(modules.hidden)
        files.install(self.compiled.note)
        hooks = imports.Imports(self.compiled.launched)
        hooks.after("triton.runtime", self.compiled.on_triton)
        hooks.after("safetensors", files.on_safetensors)
        hooks.after("safetensors.torch", files.on_safetensors_torch)
        hooks.after("deepspeed.ops.adam.fused_adam", lambda module: setattr(module, "FusedAdam", extensions.FusedAdam))  # compiles kernels
        if self.job.get("shared"):
            from stepcast.dryrun import groups

            self.groups = groups.install(self.mode, self.recorder, self.job)
            self.groups.tell = self.tell
        torch._C._set_only_lift_cpu_tensors(True)  # torch.tensor(..., device="cuda") then copies with an operator that the mode sees
        self.mode.__enter__()

    def on_forward(self, module: Any) -> None:
        self.seem_real()
        if self.job.get("compile") == "compiled":
            self.compiled.whole(module)
        if self._waits_for_forward and self.recorder.step is None and os.getpid() == self.recorder.pid:
            self.recorder._begin()

    def next_call(self) -> None:
        """Prepares another call of the function. If it built its model and optimizer, it will build them again, which is not part of the
        step."""
        gc.collect()
        self._waits_for_forward = self.optimizer() is None
        if self._waits_for_forward:
            self.recorder.drop()

    def tell(self, state: str, **more: Any) -> None:
        """Writes the state for launch.py, atomically."""
        path = self.job["status"]
        with open(path + ".new", "w", encoding="utf-8") as file:
            json.dump({"state": state, "steps": self.recorder.steps if hasattr(self, "recorder") else 0, **more}, file)
        os.replace(path + ".new", path)

    def end(self, code: int, state: str, **more: Any) -> None:
        self.tell(state, **more)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

    def fail(self, text: str) -> None:
        self.end(2, "failed", message=text)

    def on_step(self, recorder: Any) -> None:
        step = recorder.last
        at, most = self.job.get("at"), 6
        signature = step.signature.hexdigest() if step is not None else None
        if at is not None:
            found = recorder.steps >= at
        else:
            # Runs everything on another stream, like the warm-up before the capture of a CUDA graph.
            warms_up = step is not None and step.leaves and all(leaf.stream != 0 for leaf in step.leaves)
            found = signature is not None and signature in self._signatures and not warms_up
            if not found and recorder.steps >= most:
                found = True
                self.notes.append(f"the launches of the first {most} steps differ; step {recorder.steps} was taken")
        self._signatures.add(signature)
        self._waits_for_forward = False
        self.tell("running", operators=recorder.operators)
        if found and step is not None:
            self.finish(None)

    def finish(self, error: Optional[str]) -> None:
        """Writes the record, if any, and ends the process."""
        if self.mode.old_dispatch_mode_flags:
            self.mode.__exit__(None, None, None)
        step = self.recorder.last
        if error is not None and (step is None or not self.job.get("keep_going")):
            self.fail_with(error, self.recorder.runtime.reached())
        if step is None:
            self.fail(f"{self.who} ended without a step of a PyTorch optimizer (torch.optim.Optimizer.step), "
                      "where a training step ends")
        if error is not None:
            self.notes.append(f"{self.who} failed after step {self.recorder.steps}")
        self.recorder.write(self.job["trace"], self.header(), self.groups.described() if self.groups is not None else [])

        more = {"peers": sorted(self.groups.peers), "stages": list(self.groups.stages.values()),
                "kinds": self.groups.kinds} if self.groups is not None else {}
        self.end(0, "recorded", **more, operators=len(step.leaves), peak=step.peak, seconds=time.monotonic() - self.started)

    def fail_with(self, error: str, reached: str) -> None:
        if not reached and any(sign in error for sign in ("huggingface.co", "huggingface_hub")):
            reached = "a model or data set of the Hugging Face hub is not on this machine; a model of its configuration alone does: " \
                "AutoModelForCausalLM.from_config(config)"
        if not reached and ("can't allocate memory" in error or "\nMemoryError" in error):
            reached = f"this machine has too little memory for what {self.who} keeps on the CPU"
        lacks = re.search(r"cannot import name '(\w+)' from '((\w+)[\w.]*)' \(unknown location\)", error)  # hides the error of imports.py
        if lacks is not None:
            reached = reached or f"stepcast dryrun has no {lacks[2]}.{lacks[1]}: install {lacks[3]}, or run the program without it"
        self.end(2, "failed", message=reached or misfit(error, self.who, self.job["world_size"]) or f"{self.who} failed", error=error)

    def header(self) -> Dict[str, Any]:
        import torch

        sizes = [f"{what} ({count} times)" for what, count in self.guesses.used.items() if what not in self.guesses.of_values]
        assumed = ["assumed where the data decides: " + "; ".join(sizes)] if sizes else []
        return {"format": 1, "made_by": "stepcast dryrun", "rank": self.job["rank"], "world_size": self.job["world_size"],
                "ranks": self.job.get("ranks", [self.job["rank"]]), "step": self.recorder.steps, "platform": self.job.get("platform"),
                "gpu": self.job.get("gpu"), "program": self.job["program"]["command"], "torch": torch.__version__,
                **self.compiled.counts(), "guesses": self.guesses.used, "notes": [*self.notes, *self.compiled.notes, *assumed],
                "tf32": _tf32(torch),
                "cudnn_benchmark": bool(torch.backends.cudnn.benchmark)}


def misfit(error: str, who: str, gpus: int) -> str:
    """One line if the program cannot run on this number of GPUs, from its error and source: its requirement, and a number that works."""
    def multiple(of: int) -> str:
        return f"{head} a multiple of {of}; write --gpus {of}, {2 * of}, {3 * of}, ..." if gpus % of else ""

    lines = error.strip().splitlines()
    source = max((i for i, line in enumerate(lines) if line.startswith("    ") and line.strip(" ~^")), default=0)
    said, source_line = "\n".join(lines[source + 1:]), "".join(lines[source:source + 1])
    head = f"{who} does not run on --gpus {gpus}: the number must be"
    mesh = re.search(r"device mesh of ([\dx ]+) = (\d+) ranks", said)
    if mesh is not None:
        return f"{head} {mesh[2]}, which its device mesh of {mesh[1]} asks for; write --gpus {mesh[2]}, or change the mesh"
    product = re.search(r"((?:\w+\(\d+\) \* )+\w+\(\d+\)) != WORLD_SIZE", said)  # TorchTitan
    if product is not None:
        return multiple(math.prod(map(int, re.findall(r"\((\d+)\)", product[1]))))
    divisible = re.search(r"(\d+)\D{1,60}divisible by\D{1,60}(\d+)", said)
    if divisible is not None and str(gpus) in divisible.groups():
        of, by = map(int, divisible.groups())
        return multiple(by) if of == gpus else f"{head} a divisor of {of}"
    by = re.search(rf"{gpus} ranks and (\d+) \w+ devices", said) or re.search(r"world_?size\W*%\s*(\d+)", source_line, re.IGNORECASE)
    if by is not None:
        return multiple(int(by[1]))
    about = gpus > 1 and re.search(r"world.?size", said + source_line, re.IGNORECASE)
    return f"{who} failed, and its error is about its {gpus} ranks; another --gpus may do" if about else ""


def _tf32(torch: Any) -> Dict[str, Any]:
    """The older settings raise an error if the program used the newer ones (PyTorch 2.9)."""
    backends = torch.backends
    try:
        return {"matmul": bool(backends.cuda.matmul.allow_tf32), "cudnn": bool(backends.cudnn.allow_tf32),
                "float32_matmul_precision": torch.get_float32_matmul_precision()}
    except RuntimeError:
        matmul, cudnn = (s.fp32_precision == "tf32" for s in (backends.cuda.matmul, backends.cudnn.conv))
        return {"matmul": matmul, "cudnn": cudnn, "float32_matmul_precision": "high" if matmul else "highest"}
