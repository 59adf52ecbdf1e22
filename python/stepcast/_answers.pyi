# Written by python/write_types.py (`./dev docs`): what _answers.py holds, with the members of docs/schemas/.

from collections.abc import Iterable, Iterator, KeysView
from os import PathLike
from typing import Any, Final

from typing_extensions import Self

class _Document:
    def __getitem__(self, key: str) -> Any: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    def __contains__(self, key: object) -> bool: ...
    def keys(self) -> KeysView[str]: ...
    def get(self, key: str, default: Any = None) -> Any: ...
    def to_dict(self) -> dict[str, Any]: ...

class Record(_Document):
    def __getattr__(self, name: str) -> Any: ...

class Table:
    @staticmethod
    def of_rows(rows: Iterable[dict[str, Any]]) -> Table: ...
    @staticmethod
    def of_jsonl(path: str | PathLike[str]) -> Table: ...
    @property
    def columns(self) -> tuple[str, ...]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, name: str) -> Any: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def to_dict(self) -> dict[str, list[Any]]: ...
    def to_csv(self, path: str | PathLike[str] | None = None) -> str | None: ...
    def to_parquet(self, path: str | PathLike[str]) -> None: ...
    def to_pandas(self) -> Any: ...
    def to_polars(self) -> Any: ...

class Answer(_Document):
    @classmethod
    def from_dict(cls, document: dict[str, Any]) -> Self: ...
    def to_json(self) -> str: ...
    @property
    def tables(self) -> tuple[str, ...]: ...
    def table(self, name: str) -> Table: ...

class AnyAnswer(Answer):
    """An answer of another schema, at run time an Answer."""

    def __getattr__(self, name: str) -> Any: ...

class Calibration(AnyAnswer): ...

def from_dict(document: dict[str, Any], tables: dict[str, Table] | None = None) -> AnyAnswer: ...
def from_json(text: str | bytes, tables: dict[str, Table] | None = None) -> AnyAnswer: ...

class Throughput(_Document):
    samples_per_step: Final[float | None]
    tokens_per_step: Final[float | None]
    sample: Final[str]
    model_flops: Final[float | None]
    hardware_flops: Final[float | None]
    peak_tflops_per_gpu: Final[float | None]
    samples_per_s: Final[float | None]
    tokens_per_s: Final[float | None]
    tokens_per_s_per_gpu: Final[float | None]
    tflops_per_gpu: Final[float | None]
    hardware_tflops_per_gpu: Final[float | None]
    mfu: Final[float | None]
    hfu: Final[float | None]

class Stream(_Document):
    name: Final[str]
    tasks: Final[int]
    parts_ms: Final[Record]
    kernels_ms: Final[Record]
    transfer_ms: Final[float]
    exposed_comm_ms: Final[float]
    memcpy_ms: Final[float]
    exposed_memcpy_ms: Final[float]
    idle_ms: Final[Record]

class Thread(_Document):
    name: Final[str]
    busy_ms: Final[float]
    idle_ms: Final[Record]
    busy_by_op_ms: Final[Record]

class RankClass(_Document):
    name: Final[str]
    rank: Final[int | None]
    n_ranks: Final[int]
    window_ms: Final[float]
    start_offset_ms: Final[float]
    computation_ms: Final[float]
    computation_by_class_ms: Final[Record]
    exposed_comm_ms: Final[float]
    exposed_comm_by_group_ms: Final[Record]
    exposed_memcpy_ms: Final[float]
    idle_ms: Final[Record]
    gpu_active_ms: Final[float]
    transfer_ms: Final[float]
    overlap_ms: Final[float]
    collective_wait_ms: Final[float]
    kernels_ms: Final[Record]
    baseline_ms: Final[float]
    streams: Final[tuple[Stream, ...]]
    threads: Final[tuple[Thread, ...]]

class CollectiveMember(_Document):
    rank_class: Final[int]
    arrival_us: Final[float]
    wait_us: Final[float]
    transfer_us: Final[float]
    exposed_us: Final[float]

class Collective(_Document):
    name: Final[str]
    ordinal: Final[int]
    operation: Final[str]
    group: Final[str]
    message_bytes: Final[float | None]
    came_last: Final[int]
    transfer_us: Final[float]
    total_wait_us: Final[float]
    longest_wait_us: Final[float]
    members: Final[tuple[CollectiveMember, ...]]

class PathShare(_Document):
    what: Final[str]
    time_ms: Final[float]
    steps: Final[int]

class PathStep(_Document):
    rank_class: Final[int]
    what: Final[str]
    start_ms: Final[float]
    time_ms: Final[float]

class CriticalPath(_Document):
    length_ms: Final[float]
    ends_on: Final[int | None]
    n_steps: Final[int]
    by_class: Final[tuple[PathShare, ...]]
    by_rank: Final[tuple[PathShare, ...]]
    by_name: Final[tuple[PathShare, ...]]
    steps: Final[tuple[PathStep, ...]]

class UnmodelledWork(_Document):
    name: Final[str]
    n: Final[int]
    time_ms: Final[float]

class Coverage(_Document):
    measured: Final[float]
    fitted: Final[float]
    analytic: Final[float]
    assumed: Final[float]
    unmodelled: Final[tuple[UnmodelledWork, ...]]

class StageMemory(_Document):
    weights_GiB: Final[float]
    gradients_GiB: Final[float]
    optimizer_GiB: Final[float]
    activations_GiB: Final[float]
    working_GiB: Final[float]
    communication_GiB: Final[float]
    reserve_GiB: Final[float]
    total_GiB: Final[float]
    dispatched_GiB: Final[float]
    verdict: Final[str]
    allocated_GiB: Final[float | None]
    reserved_GiB: Final[float | None]
    worst_imbalance_GiB: Final[float | None]

class Memory(_Document):
    verdict: Final[str]
    peak_memory_GiB: Final[float]
    available_GiB: Final[float]
    margin_GiB: Final[float]
    worst_stage: Final[int]
    stages: Final[tuple[StageMemory, ...]]
    worst_imbalance: Final[float | None]
    fits_to_imbalance: Final[float | None]

class ExpertLoad(_Document):
    load: Final[str]
    busiest_over_mean: Final[float]
    balanced_step_ms: Final[float]
    cost_ms: Final[float]

class MeasuredStep(_Document):
    layout: Final[str]
    measured_ms: Final[float]
    forecast_ms: Final[float]
    own_factor: Final[float]

class Anchor(_Document):
    step_time_ms: Final[float]
    step_time_p10_ms: Final[float]
    step_time_p90_ms: Final[float]
    factor: Final[float]
    compute_factor: Final[float]
    communication_factor: Final[float]
    host_factor: Final[float]
    alike_factor: Final[float]
    measured: Final[tuple[MeasuredStep, ...]]

class MeasuredCause(_Document):
    what: Final[str]
    step_time_ms: Final[float]
    likelihood: Final[float]
    look_at: Final[str]
    is_other_unit: Final[bool]

class PublishedRuns(_Document):
    source: Final[str]
    model: Final[str]
    gpu: Final[str]
    precision: Final[str]
    framework: Final[str]
    min_gpus: Final[int]
    max_gpus: Final[int]
    runs: Final[int]
    measured_over_forecast: Final[float]
    min_measured_over_forecast: Final[float]
    max_measured_over_forecast: Final[float]
    distance: Final[float]
    differs: Final[str]

class MeasuredCheck(_Document):
    verdict: Final[str]
    sentence: Final[str]
    measured_ms: Final[float]
    forecast_ms: Final[float]
    forecast_p10_ms: Final[float]
    forecast_p90_ms: Final[float]
    measured_over_forecast: Final[float]
    causes: Final[tuple[MeasuredCause, ...]]
    nearest_published: Final[PublishedRuns | None]

class _ForecastMembersPower(_Document):
    node_W: Final[float]
    node_p10_W: Final[float]
    node_p90_W: Final[float]
    gpu_W: Final[float]
    waiting_share: Final[float]
    cluster_W: Final[float]
    joules_per_token: Final[float | None]
    limit_W: Final[float | None]

class _ForecastMembersNetworkTiers(_Document):
    nodes: Final[int]
    oversubscription: Final[float]
    load: Final[float]

class _ForecastMembersNetworkKinds(_Document):
    group: Final[str]
    alone: Final[float]
    slowdown: Final[float]

class _ForecastMembersNetwork(_Document):
    background_load: Final[float]
    tiers: Final[tuple[_ForecastMembersNetworkTiers, ...]]
    kinds: Final[tuple[_ForecastMembersNetworkKinds, ...]]
    sweeps: Final[int]
    residual: Final[float]

class _ForecastMembersPools(_Document):
    platform: Final[str]
    gpu: Final[str]
    zone: Final[str]
    n_gpus: Final[int]
    holds: Final[str]
    layers: Final[tuple[int, ...]]
    micro_batches: Final[int | None]
    busy_share: Final[float]
    peak_memory_GiB: Final[float]
    available_GiB: Final[float]
    price_per_gpu_hour: Final[float | None]

class _ForecastMembersPoolLayouts(_Document):
    layout: Final[str]
    flags: Final[str]
    over: Final[str]
    shares: Final[str]
    step_time_ms: Final[float]
    step_time_p10_ms: Final[float]
    step_time_p90_ms: Final[float]
    tokens_per_s: Final[float]
    spare_GiB: Final[float]

class TrainingStops(_Document):
    name: Final[str]
    every_steps: Final[float]
    s: Final[float]

class TrainingRunLosses(_Document):
    cause: Final[str]
    interruptions: Final[float]
    mean_time_h: Final[float]
    mean_time_p10_h: Final[float]
    mean_time_p90_h: Final[float]
    down_percent: Final[float]
    again_percent: Final[float]

class TrainingRunScale(_Document):
    n_gpus: Final[int]
    effective_share_percent: Final[float]
    days: Final[float]

class TrainingRun(_Document):
    failures: Final[str]
    effective_share_percent: Final[float]
    effective_share_p10_percent: Final[float]
    effective_share_p90_percent: Final[float]
    days: Final[float]
    days_p10: Final[float]
    days_p90: Final[float]
    days_without_losses: Final[float]
    interruptions: Final[float]
    mean_time_to_interruption_h: Final[float]
    checkpoint_mode: Final[str]
    checkpoint_GB: Final[float]
    checkpoint_interval_min: Final[float]
    checkpoint_stops_s: Final[float]
    checkpoint_safe_after_s: Final[float]
    checkpoint_percent: Final[float]
    waiting_percent: Final[float]
    held_gpus: Final[float]
    losses: Final[tuple[TrainingRunLosses, ...]]
    scale: Final[tuple[TrainingRunScale, ...]]
    most_useful_gpus: Final[float]

class Training(_Document):
    samples: Final[float | None]
    tokens: Final[float | None]
    iterations: Final[float]
    time_s: Final[float]
    gpu_hours: Final[float]
    price: Final[float | None]
    energy_MWh: Final[float | None]
    co2_t: Final[float | None]
    stops: Final[tuple[TrainingStops, ...]]
    step_p50_ms: Final[float]
    step_p90_ms: Final[float]
    step_p99_ms: Final[float]
    run: Final[TrainingRun | None]

class Item(_Document):
    name: Final[str]
    what: Final[str]
    n: Final[float]
    start_us: Final[float]
    time_us: Final[float]
    alone_us: Final[float]
    alone_p10_us: Final[float]
    alone_p90_us: Final[float]
    hidden_us: Final[float]
    exposed_us: Final[float]
    flops: Final[float]
    bytes: Final[float]
    overlapped: Final[bool]
    source: Final[str]
    record: Final[str]

class ItemList(_Document):
    name: Final[str]
    gpu_us: Final[float]
    host_us: Final[float]
    items: Final[tuple[Item, ...]]

class Published(_Document):
    step_time_ms: Final[float]
    longest_forward_ms: Final[float]
    longest_backward_ms: Final[float]
    passes_ms: Final[float]
    all_reduce_ms: Final[float]
    update_ms: Final[float]

class SeriesStep(_Document):
    step: Final[int]
    step_time_ms: Final[float]
    measured_ms: Final[float]
    left_out: Final[str]

class Quantiles(_Document):
    n: Final[int]
    mean_ms: Final[float]
    p50_ms: Final[float]
    p90_ms: Final[float]
    p99_ms: Final[float]
    max_ms: Final[float]

class SeriesRank(_Document):
    rank: Final[int | None]
    step: Final[Quantiles]
    measured: Final[Quantiles]
    host_ms: Final[float]
    gpu_ms: Final[float]
    data_skew_ms: Final[float]
    hardware_ms: Final[float]

class SpreadShare(_Document):
    what: Final[str]
    over_steps: Final[float]
    over_ranks: Final[float]

class Series(_Document):
    steps: Final[tuple[SeriesStep, ...]]
    step: Final[Quantiles]
    measured: Final[Quantiles]
    ranks: Final[tuple[SeriesRank, ...]]
    deviation_over_steps_ms: Final[float]
    deviation_over_ranks_ms: Final[float]
    spread: Final[tuple[SpreadShare, ...]]

class TailCause(_Document):
    rank: Final[int | None]
    what: Final[str]
    scenarios: Final[int]
    share: Final[float]
    mean_excess_ms: Final[float]

class Scenarios(_Document):
    seed: Final[int]
    drawn_from: Final[str]
    step: Final[Quantiles]
    ranks: Final[tuple[Quantiles, ...]]
    tail_from_ms: Final[float]
    n_tail: Final[int]
    tail: Final[tuple[TailCause, ...]]

class Action(_Document):
    change: Final[str]
    reason: Final[str]
    step_time_ms: Final[float]
    promised_step_time_ms: Final[float]
    saved_ms: Final[float]
    saved_percent: Final[float]
    saved_p10_ms: Final[float]
    saved_p90_ms: Final[float]
    certainty: Final[str]
    peak_memory_GiB: Final[float | None]
    memory_change_GiB: Final[float | None]
    n_gpus: Final[int]
    saved_days: Final[float | None]
    command: Final[str]

class _ForecastMembersWhatToChange(_Document):
    sentence: Final[str]
    actions: Final[tuple[Action, ...]]

class _PlanMembersLayoutsCounted(_Document):
    all: Final[int]
    cannot_run: Final[int]
    same_as_another: Final[int]
    too_large: Final[int]
    priced: Final[int]

class Rejection(_Document):
    layouts: Final[int]
    reason: Final[str]
    example: Final[str]
    cure: Final[str]

class _PlanMembersChosenLayoutPercentOfStep(_Document):
    computation: Final[float]
    exposed_communication: Final[float]
    bubble: Final[float]
    rest: Final[float]

class _PlanMembersChosenLayout(_Document):
    of: Final[int]
    changes: Final[tuple[str, ...]]
    promised_step_time_ms: Final[float]
    promised_step_time_p10_ms: Final[float]
    promised_step_time_p90_ms: Final[float]
    promised_tokens_per_s_per_gpu: Final[float]
    layout: Final[str]
    tensor_parallel: Final[int]
    pipeline_parallel: Final[int]
    virtual_stages: Final[int]
    schedule: Final[str]
    context_parallel: Final[int]
    data_parallel: Final[int]
    expert_parallel: Final[int]
    expert_tensor_parallel: Final[int]
    micro_batch_sequences: Final[int]
    sharding: Final[str]
    recompute: Final[str]
    sequence_parallel: Final[bool]
    dtype: Final[str]
    step_time_ms: Final[float]
    step_time_p10_ms: Final[float]
    step_time_p90_ms: Final[float]
    behind_fastest_ms: Final[float]
    uncertainty_of_difference_ms: Final[float]
    cannot_be_told_from_fastest: Final[bool]
    rank: Final[int]
    unmeasured_kind: Final[str | None]
    tokens_per_s_per_gpu: Final[float]
    mfu: Final[float | None]
    percent_of_step: Final[_PlanMembersChosenLayoutPercentOfStep]
    peak_memory_GiB: Final[float]
    memory_margin_GiB: Final[float]
    worst_stage: Final[int]
    memory_verdict: Final[str]
    megatron_flags: Final[str | None]
    torchtitan_toml: Final[str | None]
    deepspeed_json: Final[str | None]

class LayoutPercentOfStep(_Document):
    computation: Final[float]
    exposed_communication: Final[float]
    bubble: Final[float]
    rest: Final[float]

class Layout(_Document):
    layout: Final[str]
    tensor_parallel: Final[int]
    pipeline_parallel: Final[int]
    virtual_stages: Final[int]
    schedule: Final[str]
    context_parallel: Final[int]
    data_parallel: Final[int]
    expert_parallel: Final[int]
    expert_tensor_parallel: Final[int]
    micro_batch_sequences: Final[int]
    sharding: Final[str]
    recompute: Final[str]
    sequence_parallel: Final[bool]
    dtype: Final[str]
    step_time_ms: Final[float]
    step_time_p10_ms: Final[float]
    step_time_p90_ms: Final[float]
    behind_fastest_ms: Final[float]
    uncertainty_of_difference_ms: Final[float]
    cannot_be_told_from_fastest: Final[bool]
    rank: Final[int]
    unmeasured_kind: Final[str | None]
    tokens_per_s_per_gpu: Final[float]
    mfu: Final[float | None]
    percent_of_step: Final[LayoutPercentOfStep]
    peak_memory_GiB: Final[float]
    memory_margin_GiB: Final[float]
    worst_stage: Final[int]
    memory_verdict: Final[str]
    megatron_flags: Final[str | None]
    torchtitan_toml: Final[str | None]
    deepspeed_json: Final[str | None]

class _PlanMembersRefined(_Document):
    of: Final[int]
    step_time_ms: Final[float]
    step_time_p10_ms: Final[float]
    step_time_p90_ms: Final[float]
    peak_memory_GiB: Final[float]
    changes: Final[tuple[str, ...]]
    layers_per_stage: Final[tuple[int, ...]]
    megatron_flags: Final[str]

class PricedLayout(_Document):
    layout: Final[str]
    tensor_parallel: Final[int]
    pipeline_parallel: Final[int]
    virtual_stages: Final[int]
    schedule: Final[str]
    context_parallel: Final[int]
    data_parallel: Final[int]
    expert_parallel: Final[int]
    expert_tensor_parallel: Final[int]
    micro_batch_sequences: Final[int]
    sharding: Final[str]
    recompute: Final[str]
    sequence_parallel: Final[bool]
    dtype: Final[str]
    step_time_ms: Final[float]
    peak_memory_GiB: Final[float]
    memory_margin_GiB: Final[float]

class _PlanMembersNowNearby(_Document):
    changes: Final[int]
    which: Final[str]
    becomes: Final[PricedLayout]

class _PlanMembersNow(_Document):
    layout: Final[str]
    tensor_parallel: Final[int]
    pipeline_parallel: Final[int]
    virtual_stages: Final[int]
    schedule: Final[str]
    context_parallel: Final[int]
    data_parallel: Final[int]
    expert_parallel: Final[int]
    expert_tensor_parallel: Final[int]
    micro_batch_sequences: Final[int]
    sharding: Final[str]
    recompute: Final[str]
    sequence_parallel: Final[bool]
    dtype: Final[str]
    step_time_ms: Final[float | None]
    why_no_time: Final[str | None]
    nearby: Final[tuple[_PlanMembersNowNearby, ...]]

class _PlanMembersJitter(_Document):
    of: Final[int]
    mean_ms: Final[float]
    p50_ms: Final[float]
    p90_ms: Final[float]
    slowdown: Final[float]

class Pair(_Document):
    measured: Final[float]
    simulated: Final[float]
    error_percent: Final[float]

class Spread(_Document):
    n: Final[int]
    median: Final[float]
    p95: Final[float]
    max: Final[float]

class _ReplayMembersDiagnosisTwiceAsFast(_Document):
    resource: Final[str]
    saved_ms: Final[float]

class Culprits(_Document):
    gpu: Final[float]
    host: Final[float]
    pcie: Final[float]
    network: Final[float]
    data_skew: Final[float]
    late_start: Final[float]
    rest: Final[float]

class _ReplayMembersDiagnosisRanks(_Document):
    rank: Final[int]
    came_last: Final[int]
    caused_wait_ms: Final[float]
    waited_ms: Final[float]
    own_ms: Final[Culprits]
    through_others_ms: Final[Culprits]
    caused_by_ms: Final[Culprits]
    gpu_busy_ms: Final[float]
    computing_ms: Final[float]
    kernels_ms: Final[float]
    kernels_of_known_work_ms: Final[float]
    flops: Final[float]
    bytes: Final[float]

class _ReplayMembersDiagnosisOperators(_Document):
    name: Final[str]
    on: Final[str]
    median_ms: Final[float]
    slowest_rank: Final[int]
    slowest_ms: Final[float]
    work_ratio: Final[float | None]
    ranks_ms: Final[tuple[float, ...]]

class _ReplayMembersDiagnosisAwaitedOperators(_Document):
    name: Final[str]
    gpu_idle_ms: Final[float]
    gaps: Final[int]
    ranks_ms: Final[tuple[float, ...]]

class _ReplayMembersDiagnosisGroups(_Document):
    group: Final[str]
    operation: Final[str]
    n_ranks: Final[int]
    n: Final[int]
    message_bytes: Final[float]
    transfer_ms: Final[float]
    mean_wait_ms: Final[float]
    bus_GBps: Final[float | None]
    largest_message_bytes: Final[float]
    largest_bus_GBps: Final[float | None]
    link_GBps: Final[float | None]
    link: Final[str]
    holds_waiting: Final[bool]

class _ReplayMembersDiagnosisClasses(_Document):
    class_: Final[str]
    time_ms: Final[float]
    of_known_work_ms: Final[float]
    flops: Final[float]
    bytes: Final[float]

class _ReplayMembersDiagnosis(_Document):
    platform: Final[str | None]
    bound_by: Final[str]
    twice_as_fast: Final[tuple[_ReplayMembersDiagnosisTwiceAsFast, ...]]
    culprits_ms: Final[Culprits]
    collectives: Final[int]
    ties: Final[int]
    tie_us: Final[float]
    ranks: Final[tuple[_ReplayMembersDiagnosisRanks, ...]]
    operators: Final[tuple[_ReplayMembersDiagnosisOperators, ...]]
    awaited_operators: Final[tuple[_ReplayMembersDiagnosisAwaitedOperators, ...]]
    groups: Final[tuple[_ReplayMembersDiagnosisGroups, ...]]
    classes: Final[tuple[_ReplayMembersDiagnosisClasses, ...]]
    peak_tflops: Final[float | None]
    peak_memory_GBps: Final[float | None]

class _ReplayMembersInputsSpecialSteps(_Document):
    step: Final[int]
    kind: Final[str]

class _ReplayMembersInputs(_Document):
    rank: Final[int | None]
    world_size: Final[int | None]
    profiler: Final[str]
    execution_trace: Final[str | None]
    device: Final[str | None]
    events: Final[int]
    skipped_events: Final[Record]
    special_steps: Final[tuple[_ReplayMembersInputsSpecialSteps, ...]]

class _ReplayMembersShapeGroups(_Document):
    steps: Final[tuple[int, ...]]
    median_step: Final[int]
    median_ms: Final[float]

class _ReplayMembersRanksMemory(_Document):
    peak_allocated_bytes: Final[int]
    peak_reserved_bytes: Final[int]

class _ReplayMembersRanksExplained(_Document):
    simulated_wait_us: Final[float]
    recorded_wait_us: Final[float]
    unexplained_wait_us: Final[float]
    gpu_late_us: Final[float]
    late_gpu_work: Final[int]
    graph_nodes: Final[int]
    overlapping_kernels: Final[int]
    kept_starts: Final[int]
    kept_delay_us: Final[Record]
    edges: Final[Record]
    left_over_kernels: Final[int]
    kernel_start_error_us: Final[Spread]

class _ReplayMembersRanks(_Document):
    rank: Final[int]
    step_time_ms: Final[float]
    measured_step_time_ms: Final[float]
    step_error_percent: Final[float]
    gpu_window_ms: Final[Pair]
    memory: Final[_ReplayMembersRanksMemory | None]
    explained: Final[_ReplayMembersRanksExplained]

class _ReplayMembersCollectiveWaitsMembers(_Document):
    rank: Final[int]
    simulated_wait_us: Final[float]
    measured_wait_us: Final[float]

class _ReplayMembersCollectiveWaits(_Document):
    name: Final[str]
    ordinal: Final[int]
    members: Final[tuple[_ReplayMembersCollectiveWaitsMembers, ...]]

class _ReplayMembersBaseline(_Document):
    time_ms: Final[float]
    rank: Final[int | None]
    stream: Final[str]

class _ReplayMembersConstants(_Document):
    name: Final[str]
    value_us: Final[float]
    clean: Final[int]
    all: Final[int]
    fallback: Final[bool]

class _ShardingMembersShardingsRanks(_Document):
    lookup_ms: Final[float]
    lookup_backward_ms: Final[float]
    memory_GiB: Final[float]
    host_memory_GiB: Final[float]
    sent_bytes: Final[float]

class _ShardingMembersShardings(_Document):
    name: Final[str]
    fits: Final[bool]
    expected_step_time_ms: Final[float]
    step_time_ms: Final[float]
    step_time_p10_ms: Final[float]
    step_time_p90_ms: Final[float]
    lookup_imbalance: Final[float]
    exchange_ms: Final[float]
    bound_ms: Final[float]
    moved_tables: Final[int]
    moved_bytes: Final[float]
    ranks: Final[tuple[_ShardingMembersShardingsRanks, ...]]

class _ShardingMembersWhatToChange(_Document):
    sentence: Final[str]
    actions: Final[tuple[Action, ...]]

class Difference(_Document):
    key: Final[str]
    a_ms: Final[float]
    b_ms: Final[float]
    difference_ms: Final[float]

class _ComparisonMembersExplanations(_Document):
    part: Final[str]
    time_ms: Final[float]
    factor: Final[float]
    deviations: Final[float]

class KinetoDevices(_Document):
    id: Final[int]
    name: Final[str]
    memory_bytes: Final[int]
    sm_count: Final[int]

class KinetoKept(_Document):
    cpu_op: Final[int]
    annotation: Final[int]
    step: Final[int]
    runtime_call: Final[int]
    kernel: Final[int]
    memcpy: Final[int]
    memset: Final[int]
    sync: Final[int]

class KinetoSteps(_Document):
    step: Final[int]
    start_ms: Final[float]
    step_time_ms: Final[float]
    kind: Final[str]
    like_step: Final[int | None]

class KinetoThreads(_Document):
    pid: Final[int]
    tid: Final[int]
    name: Final[str]
    cpu_ops: Final[int]
    annotations: Final[int]
    runtime_calls: Final[int]

class KinetoStreams(_Document):
    device: Final[int]
    stream: Final[int]
    kernels: Final[int]
    communication_kernels: Final[int]
    copies: Final[int]
    busy_ms: Final[float]

class KinetoCollectives(_Document):
    kernels: Final[int]
    kernels_with_metadata: Final[int]
    records: Final[int]
    records_with_metadata: Final[int]

class KinetoLinks(_Document):
    gpu_events: Final[int]
    with_launch: Final[int]
    external_id: Final[str]

class KinetoMemory(_Document):
    peak_allocated_bytes: Final[int]
    peak_reserved_bytes: Final[int]

class Kineto(_Document):
    file: Final[str]
    format: Final[str]
    schema: Final[str]
    rank: Final[int | None]
    world_size: Final[int | None]
    devices: Final[tuple[KinetoDevices, ...]]
    events: Final[int]
    first_start_ns: Final[int]
    span_ms: Final[float]
    kept: Final[KinetoKept]
    skipped: Final[Record]
    steps: Final[tuple[KinetoSteps, ...]]
    threads: Final[tuple[KinetoThreads, ...]]
    streams: Final[tuple[KinetoStreams, ...]]
    kernel_time_ms: Final[Record]
    collectives: Final[KinetoCollectives]
    links: Final[KinetoLinks]
    memory: Final[KinetoMemory | None]
    usable_for_replay: Final[bool]
    notes: Final[tuple[str, ...]]

class ExecutionTrace(_Document):
    file: Final[str]
    format: Final[str]
    schema: Final[str]
    rank: Final[int | None]
    nodes: Final[int]
    nodes_with_tensors: Final[int]
    tensor_uses: Final[int]
    threads: Final[int]
    skipped: Final[Record]
    collectives: Final[Record]
    collectives_with_size: Final[int]
    waits: Final[int]

class Chakra(_Document):
    file: Final[str]
    format: Final[str]
    schema: Final[str]
    rank: Final[int | None]
    nodes: Final[int]
    nodes_by_kind: Final[Record]
    dependencies: Final[int]
    dangling_dependencies: Final[int]
    caller_dependencies: Final[int]
    nodes_with_duration: Final[int]
    nodes_with_amounts: Final[int]
    recorded_gpu_ms: Final[float]
    collectives: Final[Record]
    transfer_bytes: Final[float]

class PipelineTimeline(_Document):
    file: Final[str]
    format: Final[str]
    ranks: Final[tuple[int, ...]]
    steps: Final[tuple[int, ...]]
    operators: Final[Record]

class TrainingLogContradiction(_Document):
    lines_ms: Final[float]
    other_ms: Final[float]
    other: Final[str]

class TrainingLogLeftOut(_Document):
    warm_up: Final[int]
    duplicates: Final[int]
    other_batches: Final[int]
    earlier_settings: Final[int]
    other_stretches: Final[int]

class TrainingLogChanges(_Document):
    step: Final[int]
    line: Final[int]
    before_ms: Final[float]
    after_ms: Final[float]

class TrainingLogRestarts(_Document):
    line: Final[int]
    last_step: Final[int]
    next_step: Final[int]

class TrainingLogStalls(_Document):
    step: Final[int]
    line: Final[int]
    lost_ms: Final[float]
    likely: Final[str]
    between_steps: Final[bool]

class TrainingLog(_Document):
    file: Final[str]
    format: Final[str]
    framework: Final[str]
    lines: Final[int]
    bytes: Final[int]
    step_lines: Final[Record]
    broken_lines: Final[int]
    first_step: Final[int]
    last_step: Final[int]
    steps_per_line: Final[float]
    counted: Final[int]
    from_clock: Final[bool]
    confirmed: Final[bool]
    contradiction: Final[TrainingLogContradiction | None]
    whole_run: Final[bool]
    step_time_ms: Final[float | None]
    step_time_p10_ms: Final[float | None]
    step_time_p90_ms: Final[float | None]
    mean_step_time_ms: Final[float | None]
    why_no_time: Final[str | None]
    trend_percent: Final[float | None]
    rounding_percent: Final[float]
    left_out: Final[TrainingLogLeftOut]
    changes: Final[tuple[TrainingLogChanges, ...]]
    restarts: Final[tuple[TrainingLogRestarts, ...]]
    stalls: Final[tuple[TrainingLogStalls, ...]]
    tokens_per_s_per_gpu: Final[float | None]
    samples_per_s: Final[float | None]
    tflops_per_gpu: Final[float | None]
    peak_memory_GiB: Final[float | None]
    settings_from: Final[str | None]
    why_no_settings: Final[str | None]
    model: Final[str | None]
    n_gpus: Final[int | None]
    gpu: Final[str | None]
    layout: Final[Record]
    not_said: Final[tuple[str, ...]]
    notes: Final[tuple[str, ...]]

class EmbeddingTablesPooling(_Document):
    lookups_per_sample: Final[str]
    tables: Final[int]
    share_of_lookups: Final[float]

class EmbeddingTables(_Document):
    file: Final[str]
    format: Final[str]
    tables: Final[int]
    rows: Final[float]
    weight_bytes: Final[float]
    lookups_per_sample: Final[float]
    heavy_tables: Final[int]
    heavy_share: Final[float]
    heavy_share_of_lookups: Final[float]
    pooling: Final[tuple[EmbeddingTablesPooling, ...]]

class TableIndicesPooling(_Document):
    lookups_per_sample: Final[str]
    tables: Final[int]
    share_of_lookups: Final[float]

class ReuseFactors(_Document):
    lookups: Final[int]
    distinct_rows: Final[int]
    mean_reuse_factor: Final[float]
    hottest_row_lookups: Final[int]
    share_of_distinct_rows: Final[tuple[float, ...]]
    share_of_lookups: Final[tuple[float, ...]]

class TableIndicesByTable(_Document):
    name: Final[str]
    lookups_per_sample: Final[float]
    empty_share: Final[float]
    longest_bag: Final[int]
    highest_index: Final[int]
    reuse: Final[ReuseFactors]

class TableIndices(_Document):
    file: Final[str]
    format: Final[str]
    samples: Final[int]
    tables: Final[int]
    lookups_per_sample: Final[float]
    heavy_tables: Final[int]
    heavy_share: Final[float]
    heavy_share_of_lookups: Final[float]
    pooling: Final[tuple[TableIndicesPooling, ...]]
    file_reuse: Final[ReuseFactors]
    batch_samples: Final[int | None]
    batches: Final[int | None]
    batch_reuse: Final[ReuseFactors | None]
    data_set_reuse: Final[ReuseFactors | None]
    expected_distinct_rows: Final[float]
    by_table: Final[tuple[TableIndicesByTable, ...]]

class OperationsKernelTime(_Document):
    computation_ms: Final[float]
    modelled_ms: Final[float]
    modelled_percent: Final[float]
    communication_ms: Final[float]
    unlinked_ms: Final[float]

class OperationsOperators(_Document):
    operator: Final[str]
    families: Final[tuple[str, ...]]
    count: Final[int]
    flops: Final[float]
    bytes: Final[float]
    recorded_ms: Final[float | None]

class OperationsUnmodelled(_Document):
    operator: Final[str]
    count: Final[int]
    why: Final[str]

class OperationsUnmodelledTime(_Document):
    operator: Final[str]
    recorded_ms: Final[float]

class Operations(_Document):
    file: Final[str]
    format: Final[str]
    schema: Final[str]
    launching_operators: Final[int]
    modelled_operators: Final[int]
    modelled_operators_percent: Final[float]
    kernel_time: Final[OperationsKernelTime | None]
    operators: Final[tuple[OperationsOperators, ...]]
    unmodelled: Final[tuple[OperationsUnmodelled, ...]]
    unmodelled_time: Final[tuple[OperationsUnmodelledTime, ...] | None]

class Unreadable(_Document):
    file: Final[str]
    error: Final[str]

class Forecast(Answer):
    schema: Final[str]
    version: Final[str]
    kind: Final[str]
    model: Final[str | None]
    traces: Final[str | None]
    parameters: Final[int | None]
    step: Final[int | None]
    platform: Final[str | None]
    gpu: Final[str | None]
    n_gpus: Final[int]
    layout: Final[Record]
    step_time_ms: Final[float]
    step_time_p10_ms: Final[float]
    step_time_p90_ms: Final[float]
    promised_step_time_ms: Final[float | None]
    promised_step_time_p10_ms: Final[float | None]
    promised_step_time_p90_ms: Final[float | None]
    source: Final[str]
    throughput: Final[Throughput]
    critical_class: Final[int]
    rank_classes: Final[tuple[RankClass, ...]]
    n_collectives: Final[int]
    collectives: Final[tuple[Collective, ...]]
    critical_path: Final[CriticalPath]
    coverage: Final[Coverage]
    memory: Final[Memory | None]
    expert_load: Final[ExpertLoad | None]
    anchor: Final[Anchor | None]
    measured_check: Final[MeasuredCheck | None]
    power: Final[_ForecastMembersPower | None]
    network: Final[_ForecastMembersNetwork | None]
    pools: Final[tuple[_ForecastMembersPools, ...]]
    pool_layouts: Final[tuple[_ForecastMembersPoolLayouts, ...]]
    training: Final[Training | None]
    explained: Final[tuple[ItemList, ...]]
    published: Final[Published | None]
    series: Final[Series | None]
    scenarios: Final[Scenarios | None]
    notes: Final[tuple[str, ...]]
    what_to_change: Final[_ForecastMembersWhatToChange | None]
    def parts(self) -> dict[str, float]: ...
    def plot(self, ax: Any = None) -> Any: ...

class Plan(Answer):
    schema: Final[str]
    version: Final[str]
    model: Final[str]
    platform: Final[str]
    gpu: Final[str]
    n_gpus: Final[int]
    global_batch_sequences: Final[int]
    seq_len_tokens: Final[int]
    memory_GiB: Final[float]
    space: Final[Record]
    layouts_counted: Final[_PlanMembersLayoutsCounted]
    cannot_run: Final[tuple[Rejection, ...]]
    same_as_another: Final[tuple[Rejection, ...]]
    too_large: Final[tuple[Rejection, ...]]
    n_cannot_be_told_apart: Final[int]
    chosen: Final[int]
    chosen_layout: Final[_PlanMembersChosenLayout]
    layouts: Final[tuple[Layout, ...]]
    refined: Final[tuple[_PlanMembersRefined, ...]]
    refinement_tried_on: Final[int]
    now: Final[_PlanMembersNow | None]
    pareto: Final[tuple[PricedLayout, ...]]
    jitter: Final[tuple[_PlanMembersJitter, ...] | None]
    notes: Final[tuple[str, ...]]

class Replay(Answer):
    schema: Final[str]
    version: Final[str]
    step_time_ms: Final[float]
    measured_step_time_ms: Final[float]
    step_error_percent: Final[float]
    repeated_step_time_ms: Final[float]
    global_window_ms: Final[Pair]
    kernel_start_error_us: Final[Spread]
    verdict: Final[str]
    diagnosis: Final[_ReplayMembersDiagnosis]
    warning: Final[str | None]
    inputs: Final[tuple[_ReplayMembersInputs, ...]]
    shape_groups: Final[tuple[_ReplayMembersShapeGroups, ...] | None]
    ranks: Final[tuple[_ReplayMembersRanks, ...]]
    collective_waits: Final[tuple[_ReplayMembersCollectiveWaits, ...]]
    baseline: Final[_ReplayMembersBaseline]
    variants: Final[Record]
    constants: Final[tuple[_ReplayMembersConstants, ...]]
    @property
    def simulated(self) -> Forecast: ...
    @property
    def measured(self) -> Forecast: ...

class Sharding(Answer):
    schema: Final[str]
    version: Final[str]
    model: Final[str]
    n_gpus: Final[int]
    global_batch_samples: Final[int]
    verdict: Final[str]
    least_step_time_ms: Final[float]
    shardings: Final[tuple[_ShardingMembersShardings, ...]]
    what_to_change: Final[_ShardingMembersWhatToChange | None]

class Comparison(Answer):
    schema: Final[str]
    version: Final[str]
    a: Final[str]
    b: Final[str]
    verdict: Final[str]
    a_step_time_ms: Final[float]
    b_step_time_ms: Final[float]
    a_step_time_p10_ms: Final[float]
    a_step_time_p90_ms: Final[float]
    b_step_time_p10_ms: Final[float]
    b_step_time_p90_ms: Final[float]
    step_difference_ms: Final[float]
    step_difference_percent: Final[float | None]
    intervals_overlap: Final[bool]
    settings: Final[tuple[str, ...]]
    parts: Final[tuple[Difference, ...]]
    groups: Final[tuple[Difference, ...]]
    rank_classes: Final[tuple[Difference, ...]]
    collectives: Final[tuple[Difference, ...]]
    critical_path: Final[tuple[Difference, ...]]
    explanations: Final[tuple[_ComparisonMembersExplanations, ...]]

class Inspection(Answer):
    schema: Final[str]
    version: Final[str]
    files: Final[tuple[Kineto | ExecutionTrace | Chakra | PipelineTimeline | TrainingLog | EmbeddingTables | TableIndices | Operations | Unreadable, ...]]
