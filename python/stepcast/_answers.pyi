# Written by python/make_stubs.py from docs/schemas/*.json; do not edit.
from os import PathLike
from typing import Any, ClassVar, Iterator, KeysView, Mapping, TypeVar, Union

_A = TypeVar("_A", bound="Answer")

class Record:
    """An object of a document: its keys are attributes. Lists are tuples."""
    def __getitem__(self, key: str) -> Any: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    def __contains__(self, key: object) -> bool: ...
    def keys(self) -> KeysView[str]: ...
    def get(self, key: str, default: Any = None) -> Any: ...
    def to_dict(self) -> dict[str, Any]: ...

class Table:
    """Rows with named columns; an Arrow stream."""
    @staticmethod
    def of_rows(rows: list[dict[str, Any]]) -> Table: ...
    @property
    def columns(self) -> tuple[str, ...]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, name: str) -> list[Any]: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def to_dict(self) -> dict[str, list[Any]]: ...
    def to_csv(self, path: Union[str, PathLike[str], None] = None) -> str | None: ...
    def to_pandas(self) -> Any: ...
    def to_polars(self) -> Any: ...

class Answer(Record):
    """What a verb answers: a document of docs/json.md."""
    schema: str
    version: str
    def __getattr__(self, name: str) -> Any: ...
    @classmethod
    def from_dict(cls: type[_A], document: Mapping[str, Any]) -> _A: ...
    def to_json(self) -> str: ...
    @property
    def tables(self) -> tuple[str, ...]: ...
    def table(self, name: str) -> Table: ...

class Sharding(Answer): ...
class Calibration(Answer): ...

def from_dict(document: Mapping[str, Any], tables: dict[str, Table] | None = None) -> Answer: ...
def from_json(text: str, tables: dict[str, Table] | None = None) -> Answer: ...

class Forecast(Answer):
    kind: str
    """transformer, trace, dlrm: predictions; replay: recorded work with simulated waiting; measurement: as recorded"""
    model: str | None
    """name of the model"""
    traces: str | None
    """the traces that were read"""
    parameters: int | None
    """of the model"""
    step: int | None
    """number of the recorded step"""
    platform: str | None
    """name of the platform"""
    gpu: str | None
    """name of the device"""
    n_gpus: int
    """GPUs in all"""
    layout: Record
    """settings by name: degrees, batches, sharding, recomputation, ..."""
    step_time_ms: float
    """the step: the longest of all ranks"""
    step_time_p10_ms: float
    """80 of 100 measurements should lie between p10 and p90"""
    step_time_p90_ms: float
    source: str
    """what most of it rests on"""
    throughput: _Forecast_throughput
    """work per time"""
    critical_class: int
    """position in rank_classes: the last to end, of several the busiest"""
    rank_classes: tuple[_Forecast_rank_class, ...]
    """ranks that do the same, and where their step goes"""
    n_collectives: int
    """of the step, listed or not"""
    collectives: tuple[_Forecast_collective, ...]
    """by first arrival; of many, those that cost most"""
    critical_path: _Forecast_critical_path
    """what the end of the step hangs on"""
    coverage: _Forecast_coverage
    """what the predicted time of the work rests on"""
    memory: _Forecast_memory | None
    """of one GPU, where known"""
    expert_load: _Forecast_expert_load | None
    """what uneven experts cost, where a load was asked for"""
    training: _Forecast_training | None
    """a whole training at this step time, where asked for"""
    explained: tuple[_Forecast_item_list, ...]
    """operations of a layer as they were priced, where asked for"""
    published: _Forecast_published | None
    """composed as the published method does, where asked for"""
    series: _Forecast_series | None
    """several recorded steps, where asked for"""
    scenarios: _Forecast_scenarios | None
    """straggler scenarios, where asked for"""
    notes: tuple[str, ...]
    """what was assumed, what is not modelled"""
    def parts(self) -> list[tuple[str, float]]: ...
    def plot(self, ax: Any = None) -> Any: ...

class _Forecast_throughput(Record):
    samples_per_step: float | None
    """null: not known"""
    tokens_per_step: float | None
    """null: not known"""
    model_flops: float | None
    """of forward and backward on all GPUs, causal attention as it is"""
    hardware_flops: float | None
    """with what recomputation repeats"""
    peak_tflops_per_gpu: float | None
    """dense, in the type of the products"""
    samples_per_s: float | None
    tokens_per_s: float | None
    tokens_per_s_per_gpu: float | None
    tflops_per_gpu: float | None
    """of the model"""
    hardware_tflops_per_gpu: float | None
    """of what runs"""
    mfu: float | None
    """model FLOPs over the peak, a fraction"""
    hfu: float | None
    """hardware FLOPs over the peak, a fraction"""

class _Forecast_rank_class(Record):
    name: str
    """rank N, pipeline stage N"""
    rank: int | None
    """number of the rank, where the class is one recorded rank"""
    n_ranks: int
    """ranks that do the same"""
    window_ms: float
    """the step of these ranks: sum of the four parts that follow"""
    start_offset_ms: float
    """they began so much later than the first rank"""
    computation_ms: float
    """some stream runs a kernel that is no communication"""
    computation_by_class_ms: Record
    """computation_ms by class of kernel; kernels that run at the same time share that time"""
    exposed_comm_ms: float
    """nothing computes, and a collective transfers"""
    exposed_comm_by_group_ms: Record
    """exposed_comm_ms by group of ranks; transfers at the same time share that time"""
    exposed_memcpy_ms: float
    """nothing computes or transfers, and a copy or fill runs"""
    idle_ms: Record
    """by cause: cpu (not launched yet), other_stream, other_rank (a collective waits for a rank), pipeline (nothing has arrived from another stage), between_steps, rest"""
    gpu_active_ms: float
    """computation, transfer or copy on any stream"""
    transfer_ms: float
    """union of all transfers"""
    overlap_ms: float
    """of it under computation"""
    collective_wait_ms: float
    """union of all waiting in collectives, hidden or not"""
    kernels_ms: Record
    """computation by class, summed over streams"""
    baseline_ms: float
    """published baseline: the busiest stream, no CPU, no waiting"""
    streams: tuple[_Forecast_stream, ...]
    """GPU streams"""
    threads: tuple[_Forecast_thread, ...]
    """CPU threads"""

class _Forecast_stream(Record):
    name: str
    """as the trace or the description calls it"""
    tasks: int
    """tasks that touch the window"""
    parts_ms: Record
    """embedding, gemm, attention, memory (kernels and copies), other, communication_transfer, communication_waiting, idle: they sum to the window"""
    kernels_ms: Record
    """computation by class of kernel"""
    transfer_ms: float
    """collectives, without waiting for other ranks"""
    exposed_comm_ms: float
    """of it while no stream of the rank computes"""
    memcpy_ms: float
    """copies and fills"""
    exposed_memcpy_ms: float
    """of it while no stream of the rank computes"""
    idle_ms: Record
    """by cause; other_rank and pipeline are waiting inside transfers"""

class _Forecast_thread(Record):
    name: str
    """as the trace calls it"""
    busy_ms: float
    """own work"""
    idle_ms: Record
    """by cause: gpu, other_thread, rest"""
    busy_by_op_ms: Record
    """by outermost framework op or annotation, longest first; the empty key is outside any"""

class _Forecast_collective(Record):
    name: str
    """with ordinal the key of the collective"""
    ordinal: int
    """which of that name, in the order of the first arrivals"""
    operation: str
    """all_reduce, all_to_all, send_receive, ..."""
    group: str
    """label of the group of ranks"""
    message_bytes: float | None
    """as nccl-tests counts; null: not known"""
    came_last: int
    """position in rank_classes; the first of several"""
    transfer_us: float
    """shortest of the members'"""
    total_wait_us: float
    """over members"""
    longest_wait_us: float
    """of the members"""
    members: tuple[_Forecast_collective_member, ...]
    """who takes part"""

class _Forecast_collective_member(Record):
    rank_class: int
    """position in rank_classes"""
    arrival_us: float
    """on the clock of the timeline"""
    wait_us: float
    """for the last member it depends on"""
    transfer_us: float
    """from then on"""
    exposed_us: float
    """of it while no stream of the rank computes"""

class _Forecast_critical_path(Record):
    length_ms: float
    """from the earliest start of a rank to the end of the step"""
    ends_on: int | None
    """position in rank_classes"""
    n_steps: int
    """tasks and delays"""
    by_class: tuple[_Forecast_path_share, ...]
    """complete, longest first"""
    by_rank: tuple[_Forecast_path_share, ...]
    """complete, longest first"""
    by_name: tuple[_Forecast_path_share, ...]
    """the longest"""
    steps: tuple[_Forecast_path_step, ...]
    """in the order of time, where asked for"""

class _Forecast_path_share(Record):
    what: str
    """class, rank, or framework op and task"""
    time_ms: float
    """on the path"""
    steps: int
    """of the path"""

class _Forecast_path_step(Record):
    rank_class: int
    """position in rank_classes"""
    what: str
    """as in by_name"""
    start_ms: float
    """on the clock of the timeline"""
    time_ms: float
    """length"""

class _Forecast_coverage(Record):
    measured: float
    """share of the time"""
    fitted: float
    """share of the time"""
    analytic: float
    """share of the time"""
    assumed: float
    """share of the time"""
    unmodelled: tuple[_Forecast_unmodelled_work, ...]
    """work without a model, most time first"""

class _Forecast_unmodelled_work(Record):
    name: str
    """of the operation"""
    n: int
    """tasks"""
    time_ms: float
    """that the forecast counts for them"""

class _Forecast_memory(Record):
    verdict: str
    """fits, tight, does_not_fit"""
    peak_memory_GiB: float
    """of the fullest stage"""
    available_GiB: float
    """of the device"""
    margin_GiB: float
    """negative: so much too little"""
    worst_stage: int
    """the fullest stage"""
    stages: tuple[_Forecast_stage_memory, ...]
    """of the pipeline"""
    worst_imbalance: float | None
    """visits over the mean of a rank that all tokens of its group go to"""
    fits_to_imbalance: float | None
    """of the busiest rank, with which every stage fits; 0: none"""

class _Forecast_stage_memory(Record):
    weights_GiB: float
    """in the type of the computation, and fp32 copies"""
    gradients_GiB: float
    optimizer_GiB: float
    """moments"""
    activations_GiB: float
    """kept for the backward passes under way"""
    working_GiB: float
    """of one layer or the head while it runs"""
    communication_GiB: float
    """buffers of the collective library"""
    reserve_GiB: float
    """context of the device, and what the allocator cannot use"""
    total_GiB: float
    """sum of these"""
    dispatched_GiB: float
    """of the activations: tokens at their experts"""
    verdict: str
    """fits, tight, does_not_fit: this stage; empty: of recorded steps"""
    all_to_one_GiB: float | None
    """in all, if all tokens of an expert-parallel group went to one rank; null: tokens are dropped, or no experts"""

class _Forecast_expert_load(Record):
    load: str
    """as it was asked for"""
    busiest_over_mean: float
    """visits of the rank that all wait for"""
    balanced_step_ms: float
    """the step with balanced experts"""
    cost_ms: float
    """the step less that"""

class _Forecast_training(Record):
    samples: float | None
    """as asked"""
    tokens: float | None
    """as asked"""
    iterations: float
    """as asked, or what the samples or tokens need"""
    time_s: float
    """at this step time"""
    gpu_hours: float
    """of all GPUs"""
    price: float | None
    """in the currency of the price that was given"""
    energy_MWh: float | None
    """at the power that was given"""

class _Forecast_item_list(Record):
    name: str
    """layer, forward; head, backward; ..."""
    gpu_us: float
    """sum of what nothing hides"""
    host_us: float
    """what launching takes beyond that"""
    items: tuple[_Forecast_item, ...]
    """in the order in which they run"""

class _Forecast_item(Record):
    name: str
    """what it is in the layer"""
    what: str
    """operation with its shapes, or transfer with its group"""
    n: float
    """repetitions; times are those of all of them"""
    start_us: float
    """from that of the list"""
    time_us: float
    """with what runs beside it"""
    alone_us: float
    """with nothing beside it"""
    alone_p10_us: float
    alone_p90_us: float
    hidden_us: float
    """of a transfer: behind computation"""
    exposed_us: float
    """of a transfer: waited for"""
    flops: float
    """of one repetition"""
    bytes: float
    """of one repetition: read and written, or the message"""
    overlapped: bool
    """a transfer that runs beside the next operation"""
    source: str
    """what its time rests on"""
    record: str
    """kernel model that answered"""

class _Forecast_published(Record):
    step_time_ms: float
    """as published, from the same prices"""
    longest_forward_ms: float
    """of the stages, with transfers"""
    longest_backward_ms: float
    """of the stages, with transfers"""
    passes_ms: float
    """of all micro-batches"""
    all_reduce_ms: float
    """gradients of the first stage"""
    update_ms: float
    """optimizer and all-gather"""

class _Forecast_series(Record):
    steps: tuple[_Forecast_series_step, ...]
    """in their order"""
    step: _Forecast_quantiles
    """longest of all ranks, over the steps that count"""
    measured: _Forecast_quantiles
    """the same as recorded"""
    ranks: tuple[_Forecast_series_rank, ...]
    """in the order of rank_classes"""
    deviation_over_steps_ms: float
    """standard deviation of a rank's step"""
    deviation_over_ranks_ms: float
    """standard deviation of the ranks' mean steps"""
    spread: tuple[_Forecast_spread_share, ...]
    """what the variances come from; shares sum to 1"""

class _Forecast_series_step(Record):
    step: int
    """number of the recorded step"""
    step_time_ms: float
    """longest of all ranks"""
    measured_ms: float
    """longest of all ranks; 0: not known"""
    left_out: str
    """why the statistics leave it out; empty: they do not"""

class _Forecast_quantiles(Record):
    n: int
    """times"""
    mean_ms: float
    p50_ms: float
    """by the nearest rank"""
    p90_ms: float
    p99_ms: float
    max_ms: float

class _Forecast_series_rank(Record):
    rank: int | None
    """number of the rank"""
    step: _Forecast_quantiles
    """over the steps that count"""
    measured: _Forecast_quantiles
    """over the steps that count; n is 0 where nothing is known"""
    host_ms: float
    """CPU time of a step, mean"""
    gpu_ms: float
    """kernels, copies and fills of a step, mean"""
    data_skew_ms: float
    """so much more than the mean rank because its operators have more work"""
    hardware_ms: float
    """so much more than the mean rank because the same work takes longer"""

class _Forecast_spread_share(Record):
    what: str
    """host, gpu, network, pcie, other_rank, rest: what the rank does or waits for"""
    over_steps: float
    """share of the variance of a rank's step over the steps"""
    over_ranks: float
    """share of the variance of the ranks' mean steps"""

class _Forecast_scenarios(Record):
    seed: int
    """the same seed draws the same scenarios"""
    drawn_from: str
    """what factors on the times of ranks were drawn from"""
    step: _Forecast_quantiles
    """longest of all ranks"""
    ranks: tuple[_Forecast_quantiles, ...]
    """in the order of rank_classes"""
    tail_from_ms: float
    """slow are scenarios from here on"""
    n_tail: int
    """slow scenarios"""
    tail: tuple[_Forecast_tail_cause, ...]
    """what makes them slow, most scenarios first"""

class _Forecast_tail_cause(Record):
    rank: int | None
    """number of the rank; null: no single one"""
    what: str
    """host, gpu, network; none: nothing slow is on the critical path"""
    scenarios: int
    """slow ones in which nothing lengthens the critical path more"""
    share: float
    """of the slow scenarios"""
    mean_excess_ms: float
    """on the critical path, against the mean factors"""

class Replay(Answer):
    step_time_ms: float
    """simulated; the longest of all ranks"""
    measured_step_time_ms: float
    """the longest of all ranks"""
    step_error_percent: float
    global_window_ms: _Replay_pair
    """earliest step start to the last end of a step or of its GPU work, over all ranks"""
    kernel_start_error_us: _Replay_spread
    """starts of GPU work relative to the step's start, all ranks"""
    verdict: str
    """what holds the step back and who lets the others wait, in one sentence"""
    diagnosis: _Replay_diagnosis
    """what holds the simulated step back"""
    warning: str | None
    """a step is off by more than 2 %, or starts of its GPU work by more than 1 % of it"""
    inputs: tuple[_Replay_inputs, ...]
    ranks: tuple[_Replay_rank, ...]
    """in the order of rank_classes of both forecasts"""
    collective_waits: tuple[_Replay_collective_waits, ...]
    """in the order of simulated.collectives"""
    baseline: _Replay_baseline
    """published baseline over all ranks"""
    variants: Record
    """the same traces under other rules: naive, smallest_handoff"""
    constants: tuple[_Replay_constants, ...]
    simulated: Forecast
    """kind replay"""
    measured: Forecast
    """kind measurement"""

class _Replay_pair(Record):
    measured: float
    simulated: float
    error_percent: float

class _Replay_spread(Record):
    n: int
    median: float
    p95: float
    max: float

class _Replay_diagnosis(Record):
    platform: str | None
    """whose peaks and links are beside what was achieved; null: none has the GPU that recorded"""
    culprits_ms: _Replay_culprits
    """of the mean step: it sums to it"""
    collectives: int
    """of two ranks and more"""
    ties: int
    """of them: the last two arrivals within 50 us"""
    ranks: tuple[_Replay_diagnosis_ranks, ...]
    """in the order of rank_classes"""
    operators: tuple[_Replay_diagnosis_operators, ...]
    """those in which the slowest rank is furthest from the median one, by time"""
    awaited_operators: tuple[_Replay_diagnosis_awaited_operators, ...]
    """CPU operators that the GPU waits for, longest first"""
    groups: tuple[_Replay_diagnosis_groups, ...]
    """collectives by process group and operation, most time first"""
    classes: tuple[_Replay_diagnosis_classes, ...]
    """kernels by class, longest first"""
    peak_tflops: float | None
    """of the platform in the type with most FLOPs"""
    peak_memory_GBps: float | None
    """of the platform"""

class _Replay_culprits(Record):
    gpu: float
    """kernels, fills, copies on the device, dependencies between streams"""
    host: float
    """the CPU"""
    pcie: float
    """copies between host and device"""
    network: float
    """transfers of collectives"""
    data_skew: float
    """kernels of the last rank, as far as it has more work in the same operators than the median rank"""
    late_start: float
    """the last rank began its step later"""
    rest: float
    """gaps between queued kernels, work from before the step, nothing left to do"""

class _Replay_diagnosis_ranks(Record):
    rank: int
    came_last: int
    """collectives, ties left out"""
    caused_wait_ms: float
    """waiting of the others in them"""
    waited_ms: float
    """itself, also behind own work"""
    own_ms: _Replay_culprits
    """what the rank does or waits for by itself"""
    through_others_ms: _Replay_culprits
    """while it only waits for another rank: what that one hangs on; with own_ms it sums to the step"""
    caused_by_ms: _Replay_culprits
    """what held the rank while the others waited for it: sums to caused_wait_ms"""
    gpu_busy_ms: float
    """some stream computes, transfers or copies"""
    computing_ms: float
    """some stream runs a kernel that is no communication"""
    kernels_ms: float
    """sum of these kernels"""
    kernels_of_known_work_ms: float
    """of it those whose work is known"""
    flops: float
    """of the known work"""
    bytes: float
    """of the known work"""

class _Replay_diagnosis_operators(Record):
    name: str
    """innermost operator; empty: outside any"""
    on: str
    median_ms: float
    """over ranks"""
    slowest_rank: int
    slowest_ms: float
    work_ratio: float | None
    """FLOPs or bytes of the slowest rank over those of the median rank, the larger; 1 where no work is known; null: the median rank has none"""
    ranks_ms: tuple[float, ...]
    """[rank class]"""

class _Replay_diagnosis_awaited_operators(Record):
    name: str
    """outermost operator or annotation of the launching thread"""
    gpu_idle_ms: float
    """all ranks; they sum to the idle time for the CPU"""
    gaps: int
    """stretches of idle time"""
    ranks_ms: tuple[float, ...]
    """[rank class]"""

class _Replay_diagnosis_groups(Record):
    group: str
    operation: str
    n_ranks: int
    n: int
    """collectives"""
    message_bytes: float
    """sum"""
    transfer_ms: float
    """sum, without waiting"""
    mean_wait_ms: float
    """sum over collectives, mean over ranks"""
    bus_GBps: float | None
    """as nccl-tests counts it"""
    largest_message_bytes: float
    largest_bus_GBps: float | None
    """of the largest message"""
    link_GBps: float | None
    """one direction, per GPU; null: not known"""
    link: str

class _Replay_diagnosis_classes(Record):
    class_: str
    time_ms: float
    """kernels of all ranks"""
    of_known_work_ms: float
    flops: float
    """of the known work"""
    bytes: float
    """of the known work"""

class _Replay_inputs(Record):
    rank: int | None
    world_size: int | None
    profiler: str
    """file"""
    execution_trace: str | None
    """file"""
    device: str | None
    events: int
    """read"""
    skipped_events: Record
    """by reason"""

class _Replay_rank(Record):
    rank: int
    step_time_ms: float
    """simulated"""
    measured_step_time_ms: float
    """CPU duration of ProfilerStep"""
    step_error_percent: float
    """(simulated - measured) / measured"""
    gpu_window_ms: _Replay_pair
    """step start to the last GPU end of work launched in it"""
    memory: _Replay_rank_memory | None
    """largest totals of the caching allocator in the recorded step, where they were recorded"""
    explained: _Replay_rank_explained

class _Replay_rank_memory(Record):
    peak_allocated_bytes: int
    peak_reserved_bytes: int

class _Replay_rank_explained(Record):
    simulated_wait_us: float
    """of the step, the thread that ends it does nothing"""
    recorded_wait_us: float
    """waiting in calls beyond their base cost"""
    unexplained_wait_us: float
    """of it, what no dependency accounts for; left out of the replay"""
    gpu_late_us: float
    """time in which GPU work that every known dependency let start had not started; no cause is known"""
    late_gpu_work: int
    """how much work that was"""
    graph_nodes: int
    """later nodes of graph launches, which keep their recorded distances"""
    overlapping_kernels: int
    """GPU work that began before the one ahead on its stream had ended; held by its start"""
    kept_starts: int
    """starts and returns kept as recorded: they waited for work from before the file"""
    kept_delay_us: Record
    """recorded delays that stand on a dependency as they are, by origin"""
    edges: Record
    """dependencies by origin"""
    left_over_kernels: int
    """GPU work in the window whose launch lies before it"""
    kernel_start_error_us: _Replay_spread

class _Replay_collective_waits(Record):
    name: str
    ordinal: int
    members: tuple[_Replay_collective_waits_members, ...]

class _Replay_collective_waits_members(Record):
    rank: int
    simulated_wait_us: float
    measured_wait_us: float
    """stay minus the shortest stay of all"""

class _Replay_baseline(Record):
    time_ms: float
    rank: int | None
    stream: str

class _Replay_constants(Record):
    name: str
    value_us: float
    clean: int
    """operations it was learned from"""
    all: int
    """operations of that kind"""
    fallback: bool
    """none was clean: from related ones"""

class Plan(Answer):
    model: str
    platform: str
    gpu: str
    n_gpus: int
    global_batch_sequences: int
    seq_len_tokens: int
    memory_GiB: float
    """of a GPU"""
    space: Record
    """every list of the product, as text"""
    layouts_counted: _Plan_layouts_counted
    cannot_run: tuple[_Plan_cannot_run, ...]
    same_as_another: tuple[_Plan_same_as_another, ...]
    too_large: tuple[_Plan_too_large, ...]
    n_cannot_be_told_apart: int
    chosen: int
    """index into layouts"""
    layouts: tuple[_Plan_layouts, ...]
    notes: tuple[str, ...]
    refined: tuple[_Plan_refined, ...]

class _Plan_layouts_counted(Record):
    all: int
    cannot_run: int
    same_as_another: int
    too_large: int
    priced: int

class _Plan_cannot_run(Record):
    layouts: int
    """so many, for this reason"""
    reason: str
    example: str
    cure: str
    """nearest change that makes one run; empty: none is known"""

class _Plan_same_as_another(Record):
    layouts: int
    """so many, for this reason"""
    reason: str
    example: str
    cure: str
    """nearest change that makes one run; empty: none is known"""

class _Plan_too_large(Record):
    layouts: int
    """so many, for this reason"""
    reason: str
    example: str
    cure: str
    """nearest change that makes one run; empty: none is known"""

class _Plan_layouts(Record):
    layout: str
    """in few words"""
    tensor_parallel: int
    pipeline_parallel: int
    virtual_stages: int
    schedule: str
    context_parallel: int
    data_parallel: int
    expert_parallel: int
    expert_tensor_parallel: int
    micro_batch_sequences: int
    sharding: str
    recompute: str
    sequence_parallel: bool
    dtype: str
    step_time_ms: float
    step_time_p10_ms: float
    step_time_p90_ms: float
    behind_fastest_ms: float
    uncertainty_of_difference_ms: float
    """half of the band of the difference to the fastest"""
    cannot_be_told_from_fastest: bool
    tokens_per_s_per_gpu: float
    mfu: float | None
    percent_of_step: _Plan_layouts_percent_of_step
    peak_memory_GiB: float
    """of the worst stage"""
    memory_margin_GiB: float
    worst_stage: int
    memory_verdict: str
    megatron_flags: str | None
    torchtitan_toml: str | None
    deepspeed_json: str | None

class _Plan_layouts_percent_of_step(Record):
    computation: float
    exposed_communication: float
    bubble: float
    rest: float

class _Plan_refined(Record):
    of: int
    """index into layouts"""
    step_time_ms: float
    step_time_p10_ms: float
    step_time_p90_ms: float
    peak_memory_GiB: float
    changes: tuple[str, ...]
    layers_per_stage: tuple[int, ...]
    megatron_flags: str

class Inspection(Answer):
    files: tuple[_Inspection_kineto | _Inspection_execution_trace | _Inspection_chakra | _Inspection_pipeline_timeline | _Inspection_embedding_tables | _Inspection_table_indices | _Inspection_operations | _Inspection_unreadable, ...]

class _Inspection_kineto(Record):
    file: str
    format: str
    schema: str
    """as the file states"""
    rank: int | None
    world_size: int | None
    devices: tuple[_Inspection_kineto_devices, ...]
    events: int
    first_start_ns: int
    span_ms: float
    kept: Record
    """events by kind"""
    skipped: Record
    """events by reason"""
    steps: tuple[_Inspection_kineto_steps, ...]
    threads: tuple[_Inspection_kineto_threads, ...]
    streams: tuple[_Inspection_kineto_streams, ...]
    kernel_time_ms: Record
    """by class"""
    collectives: _Inspection_kineto_collectives
    links: _Inspection_kineto_links
    memory: _Inspection_kineto_memory | None
    """largest totals of the caching allocator, where they were recorded"""
    usable_for_replay: bool
    notes: tuple[str, ...]

class _Inspection_kineto_devices(Record):
    id: int
    name: str
    memory_bytes: int
    sm_count: int

class _Inspection_kineto_steps(Record):
    step: int
    start_ms: float
    step_time_ms: float

class _Inspection_kineto_threads(Record):
    pid: int
    tid: int
    name: str
    cpu_ops: int
    annotations: int
    runtime_calls: int

class _Inspection_kineto_streams(Record):
    device: int
    stream: int
    kernels: int
    communication_kernels: int
    copies: int
    busy_ms: float

class _Inspection_kineto_collectives(Record):
    kernels: int
    kernels_with_metadata: int
    records: int
    records_with_metadata: int

class _Inspection_kineto_links(Record):
    gpu_events: int
    with_launch: int
    external_id: str

class _Inspection_kineto_memory(Record):
    peak_allocated_bytes: int
    peak_reserved_bytes: int

class _Inspection_execution_trace(Record):
    file: str
    format: str
    schema: str
    rank: int | None
    nodes: int
    nodes_with_tensors: int
    tensor_uses: int
    threads: int
    skipped: Record
    collectives: Record
    collectives_with_size: int
    waits: int

class _Inspection_chakra(Record):
    file: str
    format: str
    schema: str
    """as the file states"""
    rank: int | None
    nodes: int
    nodes_by_kind: Record
    dependencies: int
    dangling_dependencies: int
    caller_dependencies: int
    nodes_with_duration: int
    nodes_with_amounts: int
    recorded_gpu_ms: float
    collectives: Record
    transfer_bytes: float

class _Inspection_pipeline_timeline(Record):
    file: str
    format: str
    ranks: tuple[int, ...]
    steps: tuple[int, ...]
    operators: Record

class _Inspection_embedding_tables(Record):
    file: str
    format: str
    tables: int
    rows: float
    weight_bytes: float
    lookups_per_sample: float
    heavy_tables: int
    """with 20 lookups per sample and more"""
    heavy_share: float
    heavy_share_of_lookups: float
    pooling: tuple[_Inspection_embedding_tables_pooling, ...]

class _Inspection_embedding_tables_pooling(Record):
    lookups_per_sample: str
    """of the tables counted here"""
    tables: int
    share_of_lookups: float

class _Inspection_table_indices(Record):
    file: str
    format: str
    samples: int
    tables: int
    lookups_per_sample: float
    heavy_tables: int
    """with 20 lookups per sample and more"""
    heavy_share: float
    heavy_share_of_lookups: float
    pooling: tuple[_Inspection_table_indices_pooling, ...]
    file_reuse: _Inspection_reuse_factors
    batch_samples: int | None
    batches: int | None
    batch_reuse: _Inspection_reuse_factors | None
    data_set_reuse: _Inspection_reuse_factors | None
    expected_distinct_rows: float
    """of a batch, or of the file, from the reuse factors of the file or of all files"""
    by_table: tuple[_Inspection_table_indices_by_table, ...]

class _Inspection_table_indices_pooling(Record):
    lookups_per_sample: str
    """of the tables counted here"""
    tables: int
    share_of_lookups: float

class _Inspection_reuse_factors(Record):
    lookups: int
    distinct_rows: int
    mean_reuse_factor: float
    hottest_row_lookups: int
    share_of_distinct_rows: tuple[float, ...]
    """17 bins of lookups per row: (0,1], (1,2], (2,4] ... (16384,32768], above"""
    share_of_lookups: tuple[float, ...]
    """the same bins"""

class _Inspection_table_indices_by_table(Record):
    name: str
    lookups_per_sample: float
    empty_share: float
    longest_bag: int
    highest_index: int
    reuse: _Inspection_reuse_factors

class _Inspection_operations(Record):
    file: str
    format: str
    schema: str
    launching_operators: int
    modelled_operators: int
    modelled_operators_percent: float | None
    kernel_time: Record | None
    operators: tuple[_Inspection_operations_operators, ...]
    unmodelled: tuple[_Inspection_operations_unmodelled, ...]
    unmodelled_time: tuple[_Inspection_operations_unmodelled_time, ...] | None

class _Inspection_operations_operators(Record):
    operator: str
    families: tuple[str, ...]
    count: int
    flops: float
    bytes: float
    recorded_ms: float | None

class _Inspection_operations_unmodelled(Record):
    operator: str
    count: int
    why: str

class _Inspection_operations_unmodelled_time(Record):
    operator: str
    recorded_ms: float

class _Inspection_unreadable(Record):
    file: str
    error: str
