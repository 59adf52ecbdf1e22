"""The training steps that are measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import List, Optional, Tuple, Union

from stepcast.collect.kernels.case import Scope
from stepcast.collect.models.dlrm import DlrmShape, seeded_tables
from stepcast.collect.models.transformer import TransformerShape


@dataclass(frozen=True)
class ResNetShape:
    """`blocks` per stage and width of the first one; images are square."""

    blocks: Tuple[int, ...]
    width: int
    image_size: int


@dataclass(frozen=True)
class StepCase:
    """One model with one batch size and element type. bf16: autocast with weights in fp32, except if `pure`."""

    model: str
    shape: Union[TransformerShape, ResNetShape, DlrmShape]
    batch: int
    dtype: str
    optimizer: str
    length: Optional[int] = None  # tokens of a sequence
    pure: bool = False  # weights in the type of the GEMMs
    traced: bool = True

    @property
    def name(self) -> str:
        length = f"_s{self.length}" if self.length else ""
        return f"{self.model}_b{self.batch}{length}_{self.dtype}"


_TRANSFORMERS = (
    # model, shape, (batch, tokens)..., weights in bf16
    ("bert_base", TransformerShape("bert", 768, 12, 12, 3072, 30522, 512), ((16, 512), (64, 128), (4, 512)), False),
    ("gpt2", TransformerShape("gpt2", 768, 12, 12, 3072, 50257, 1024), ((8, 1024), (16, 512), (2, 1024)), False),
    ("xlnet_base", TransformerShape("xlnet", 768, 12, 12, 3072, 32000), ((8, 512), (32, 128)), False),
    ("llama_1b", TransformerShape("llama", 2048, 16, 32, 8192, 128256, 4096, 8), ((2, 2048), (1, 2048)), True),
)


def plan(scope: Scope) -> List[StepCase]:
    """All steps; with `quick`, one batch size and type per model. Traces are recorded for the first batch size."""
    if scope.cpu:
        return _small(scope)
    cases: List[StepCase] = []
    for dtype in ("bf16", "fp32"):
        for model, shape, sizes, pure in _TRANSFORMERS:
            for i, (batch, length) in enumerate(sizes):
                cases.append(StepCase(model, shape, batch, dtype, "adamw", length, pure and dtype == "bf16", i == 0))
        for i, batch in enumerate((128, 32, 256)):
            cases.append(StepCase("resnet50", ResNetShape((3, 4, 6, 3), 64, 224), batch, dtype, "momentum_sgd",
                                  traced=i == 0))
    for table_set in range(4):
        shape = seeded_tables(scope.seed, table_set)
        for i, batch in enumerate((2048, 8192)):
            for dtype in ("fp32", "bf16"):
                cases.append(StepCase(shape.name, shape, batch, dtype, "sgd", traced=i == 0 and dtype == "fp32"))
    if scope.quick:
        cases = [case for case in cases if case.traced and (case.dtype == "bf16" or case.model == "dlrm_0")]
    return cases


def _small(scope: Scope) -> List[StepCase]:
    """Models that a CPU trains in milliseconds, only to show that everything works."""
    cases: List[StepCase] = []
    for family in ("bert", "gpt2", "xlnet", "llama"):
        shape = TransformerShape(family, 64, 2, 4, 128, 1000, 128, 2 if family == "llama" else 0)
        cases.append(StepCase(f"small_{family}", shape, 2, "fp32", "adamw", 32))
    cases.append(StepCase("small_gpt2", cases[1].shape, 2, "bf16", "adamw", 32, traced=False))
    cases.append(StepCase("small_resnet", ResNetShape((1, 1, 1, 1), 8, 32), 4, "fp32", "momentum_sgd"))
    dlrm = seeded_tables(scope.seed, 0, small=True)
    return cases + [StepCase("small_dlrm", dlrm, 64, "fp32", "sgd")]
