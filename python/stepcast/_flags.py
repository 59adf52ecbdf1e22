"""Keywords of the verbs and their types. Written by python/write_flags.py (`./dev docs`)."""

from collections.abc import Iterable
from os import PathLike
from typing import TypedDict, Union

Path = Union[str, PathLike[str]]
Number = Union[float, str]  # 15e12, "15T"
Text = Union[str, float, PathLike[str]]
Value = Union[bool, Text, Iterable[Text]]  # of a flag of Megatron-LM


class PredictFlags(TypedDict, total=False):
    ignore_key: Union[Text, Iterable[Text]]
    image_size: int
    images: int
    text_only: bool
    platform: Text
    pools: Text
    zone: Union[Text, Iterable[Text]]
    nodes: int
    gpus_per_node: int
    dtype: Text
    framework: Text
    framework_date: Text
    tp: int
    tensor_model_parallel_size: int
    pp: int
    pipeline_model_parallel_size: int
    vp: int
    num_virtual_stages_per_pipeline_rank: int
    schedules: Text
    cp: int
    context_parallel_size: int
    ep: int
    expert_model_parallel_size: int
    etp: int
    expert_tensor_parallel_size: int
    expert_load: Text
    sharding: Text
    sp: Text
    mbs: Union[Union[int, str], Iterable[Union[int, str]]]
    micro_batch_size: Union[Union[int, str], Iterable[Union[int, str]]]
    gbs: Union[Union[int, str], Iterable[Union[int, str]]]
    global_batch_size: Union[Union[int, str], Iterable[Union[int, str]]]
    seq: int
    seq_length: int
    lora_rank: int
    lora_dropout: Number
    lora_base_weights: Text
    reference_model: bool
    dpo: bool
    packed_mean_tokens: Number
    command_line: Text
    strict: bool
    config: Text
    torchtitan: Text
    deepspeed: Text
    from_log: Text
    tables: Text
    indices: Text
    plan: Text
    stack: Text
    release: Text
    round: Text
    exchange_dtype: Text
    rl: Text
    prompts: int
    generations: int
    lengths: Text
    prompt_tokens: int
    oversampling: Number
    policy: Text
    generation_gpus: int
    generation_tp: int
    generation_pp: int
    generation_dtype: Text
    generation_memory: Number
    reward_model: Text
    recorded_on: Text
    kernels: Text
    host: Text
    step: int
    shapes_of_step: int
    ranks: Text
    ranks_from: Text
    batch: Union[int, Iterable[int]]
    recorded_batch: Union[int, Iterable[int]]
    second_trace: Union[Text, Iterable[Text]]
    samples_per_step: Number
    tokens_per_step: Number
    like_median_rank: bool
    barrier: bool
    overlap: Text
    bucket_size_mb: Number
    recompute: Text
    data_parallel_ranks: int
    links_of: Text
    rank_platform: Union[Text, Iterable[Text]]
    all_steps: bool
    scenarios: int
    seed: int
    jitter: Union[Text, Iterable[Text]]
    what_if: Union[Text, Iterable[Text]]
    measured: Union[Text, Iterable[Text]]
    background_load: Number
    power_limit: Text
    layout: Text
    same_layout: bool
    explain: bool
    advice: Text
    require_fit: bool
    timeline: Path
    chakra: Text
    per_rank: bool
    sensitivity: bool
    report: Path
    train_tokens: Number
    train_samples: Number
    train_iterations: Number
    gpu_hour_price: Number
    currency: Text
    failures: Text
    recovery: Union[Text, Iterable[Text]]
    gpu_power_watts: Number
    carbon_intensity: Number
    use_distributed_optimizer: bool
    zero_stage: Text
    use_megatron_fsdp: bool
    recompute_granularity: Text
    sequence_parallel: bool
    optimizer_cpu_offload: bool
    num_layers: Value
    encoder_num_layers: Value
    decoder_num_layers: Value
    decoder_seq_length: Value
    hybrid_layer_pattern: Value
    hybrid_override_pattern: Value
    hybrid_attention_ratio: Value
    hybrid_mlp_ratio: Value
    is_hybrid_model: Value
    mamba_state_dim: Value
    mamba_head_dim: Value
    mamba_num_groups: Value
    mamba_num_heads: Value
    experimental_attention_variant: Value
    linear_attention_freq: Value
    linear_conv_kernel_dim: Value
    linear_key_head_dim: Value
    linear_value_head_dim: Value
    linear_num_key_heads: Value
    linear_num_value_heads: Value
    dsa_indexer_n_heads: Value
    dsa_indexer_head_dim: Value
    dsa_indexer_topk: Value
    dsa_indexer_topk_freq: Value
    dsa_indexer_skip_topk_offset: Value
    hidden_size: Value
    ffn_hidden_size: Value
    num_attention_heads: Value
    kv_channels: Value
    max_position_embeddings: Value
    mtp_num_layers: Value
    num_query_groups: Value
    num_key_value_heads: Value
    vocab_size: Value
    padded_vocab_size: Value
    rotary_percent: Value
    hidden_dropout: Value
    attention_dropout: Value
    group_query_attention: Value
    use_rotary_position_embeddings: Value
    swiglu: Value
    gated_linear_unit: Value
    quick_geglu: Value
    squared_relu: Value
    disable_bias_linear: Value
    add_bias_linear: Value
    add_qkv_bias: Value
    untie_embeddings_and_output_weights: Value
    share_embeddings_and_output_weights: Value
    qk_layernorm: Value
    attention_output_gate: Value
    softmax_type: Value
    no_position_embedding: Value
    position_embedding_type: Value
    normalization: Value
    tokenizer_type: Value
    tokenizer_model: Value
    window_size: Value
    num_experts: Value
    num_moe_experts: Value
    moe_router_topk: Value
    moe_ffn_hidden_size: Value
    moe_shared_expert_intermediate_size: Value
    moe_shared_expert_gate: Value
    moe_latent_size: Value
    moe_layer_freq: Value
    multi_latent_attention: Value
    q_lora_rank: Value
    kv_lora_rank: Value
    qk_head_dim: Value
    qk_pos_emb_head_dim: Value
    v_head_dim: Value
    model_parallel_size: Value
    data_parallel_size: Value
    virtual_pipeline_model_parallel_size: Value
    num_layers_per_virtual_pipeline_stage: Value
    decoder_first_pipeline_num_layers: Value
    decoder_last_pipeline_num_layers: Value
    num_layers_in_first_pipeline_stage: Value
    num_layers_in_last_pipeline_stage: Value
    pipeline_model_parallel_layout: Value
    account_for_embedding_in_pipeline_split: Value
    account_for_loss_in_pipeline_split: Value
    use_tp_pp_dp_mapping: Value
    batch_size: Value
    encoder_seq_length: Value
    fp16: Value
    bf16: Value
    fp8_format: Value
    fp8: Value
    fp8_hybrid: Value
    fp8_e4m3: Value
    accumulate_allreduce_grads_in_fp32: Value
    grad_reduce_in_fp32: Value
    grad_reduce_in_bf16: Value
    fp8_recipe: Value
    no_fp8_wgrad: Value
    fp8_param_gather: Value
    fp8_param: Value
    fp8_dot_product_attention: Value
    fp8_multi_head_attention: Value
    first_last_layers_bf16: Value
    num_layers_at_start_in_bf16: Value
    num_layers_at_end_in_bf16: Value
    fp4_format: Value
    fp4: Value
    main_grads_dtype: Value
    main_params_dtype: Value
    exp_avg_dtype: Value
    cp_comm_type: Value
    moe_router_num_groups: Value
    moe_router_group_topk: Value
    moe_expert_capacity_factor: Value
    moe_pad_expert_input_to_capacity: Value
    pipeline_schedule: Value
    moe_fp8_dispatch: Value
    activation_func_fp8_input_store: Value
    attention_backend: Value
    use_flash_attn: Value
    use_flash_attn_v2: Value
    use_legacy_models: Value
    transformer_impl: Value
    recompute_activations: Value
    checkpoint_activations: Value
    deepspeed_activation_checkpointing: Value
    recompute_modules: Value
    recompute_method: Value
    activations_checkpoint_method: Value
    recompute_num_layers: Value
    activations_checkpoint_num_layers: Value
    checkpoint_num_layers: Value
    no_masked_softmax_fusion: Value
    no_scaled_masked_softmax_fusion: Value
    no_bias_gelu_fusion: Value
    no_bias_swiglu_fusion: Value
    bias_activation_fusion: Value
    no_bias_dropout_fusion: Value
    no_rope_fusion: Value
    cross_entropy_loss_fusion: Value
    moe_permute_fusion: Value
    no_gradient_accumulation_fusion: Value
    tp_comm_overlap: Value
    no_tp_comm_overlap: Value
    delay_wgrad_compute: Value
    moe_token_dispatcher_type: Value
    moe_flex_dispatcher_backend: Value
    moe_enable_deepep: Value
    cuda_graph_impl: Value
    cuda_graph_scope: Value
    cuda_graph_modules: Value
    enable_cuda_graph: Value
    external_cuda_graph: Value
    cpu_offloading_num_layers: Value
    fine_grained_activation_offloading: Value
    offload_modules: Value
    moe_shared_expert_overlap: Value
    overlap_moe_expert_parallel_comm: Value
    no_async_tensor_model_parallel_allreduce: Value
    overlap_p2p_communication: Value
    no_overlap_p2p_communication: Value
    no_scatter_gather_tensors_in_pipeline: Value
    overlap_grad_reduce: Value
    overlap_param_gather: Value
    data_parallel_sharding_strategy: Value
    num_distributed_optimizer_instances: Value
    use_torch_fsdp2: Value
    use_custom_fsdp: Value
    ddp_bucket_size: Value
    bucket_size: Value
    make_vocab_size_divisible_by: Value
    optimizer: Value
    muon_num_ns_steps: Value
    cpu_optimizer: Value
    clip_grad: Value
    deterministic_mode: Value
    log_params_norm: Value
    log_num_zeros_in_grad: Value
    eval_interval: Value
    eval_iters: Value
    save_interval: Value
    async_save: Value
    fp32_convolutions: Value
    frozen_base: Value
    lora_target_modules: Value
    predicted_token_share: Value


class PlanFlags(TypedDict, total=False):
    ignore_key: Union[Text, Iterable[Text]]
    image_size: int
    images: int
    text_only: bool
    gpus: Union[Text, Iterable[Text]]
    platform: Union[Text, Iterable[Text]]
    zone: Union[Text, Iterable[Text]]
    gpus_per_node: int
    framework: Text
    framework_date: Text
    gbs: int
    global_batch_size: int
    seq: int
    seq_length: int
    what_if: Union[Text, Iterable[Text]]
    power_limit: Text
    from_: Text
    jobs: Text
    train_tokens: Number
    within: Text
    gpu_hour_price: Union[Text, Iterable[Text]]
    currency: Text
    carbon_intensity: Number
    power_budget: Text
    failures: Text
    recovery: Union[Text, Iterable[Text]]
    tp: Union[int, Iterable[int]]
    tensor_model_parallel_size: Union[int, Iterable[int]]
    pp: Union[int, Iterable[int]]
    pipeline_model_parallel_size: Union[int, Iterable[int]]
    vp: Union[int, Iterable[int]]
    num_virtual_stages_per_pipeline_rank: Union[int, Iterable[int]]
    schedules: Union[Text, Iterable[Text]]
    cp: Union[int, Iterable[int]]
    context_parallel_size: Union[int, Iterable[int]]
    ep: Union[int, Iterable[int]]
    expert_model_parallel_size: Union[int, Iterable[int]]
    etp: Union[int, Iterable[int]]
    expert_tensor_parallel_size: Union[int, Iterable[int]]
    mbs: Union[int, Iterable[int]]
    micro_batch_size: Union[int, Iterable[int]]
    sharding: Union[Text, Iterable[Text]]
    recompute: Union[Text, Iterable[Text]]
    sp: Union[Text, Iterable[Text]]
    dtype: Union[Text, Iterable[Text]]
    max_memory_GiB: Number
    rl: Text
    prompts: int
    generations: int
    lengths: Text
    prompt_tokens: int
    oversampling: Number
    policy: Text
    generation_gpus: int
    generation_tp: int
    generation_pp: int
    generation_dtype: Text
    generation_memory: Number
    reward_model: Text
    objective: Text
    at_most: bool
    jitter: Union[Text, Iterable[Text]]
    top: int
    why: bool
    csv: Path
    threads: int
    report: Path


class ShardFlags(TypedDict, total=False):
    tables: Text
    indices: Text
    generate: Text
    save_tables: Path
    gpus: int
    platform: Text
    gpus_per_node: int
    gbs: int
    global_batch_size: int
    stack: Text
    release: Text
    round: Text
    dtype: Text
    exchange_dtype: Text
    sharders: Union[Text, Iterable[Text]]
    plan: Union[Text, Iterable[Text]]
    now: Text
    seed: int
    evaluations: int
    seconds: Number
    output: Path
    report: Path


class ReplayFlags(TypedDict, total=False):
    step: int
    ranks: Text
    ranks_from: Text
    advice: Text
    report: Path
    timeline: Path
    with_measured: bool
    critical_path: int
    collectives: int
    verbose: bool
    own_delays: bool
    smallest_handoff: bool
    all_steps: bool
    scenarios: int
    seed: int
    jitter: Union[Text, Iterable[Text]]
    samples_per_step: Number
    tokens_per_step: Number
    train_samples: Number
    train_tokens: Number
    train_iterations: Number
    gpu_hour_price: Number
    currency: Text
    gpu_power_watts: Number
    carbon_intensity: Number
    threads: int


class InspectFlags(TypedDict, total=False):
    ranks: Text
    ranks_from: Text
    report: Path
    operations: bool
    profiler_trace: Text
    batch: int
    tables: Text
    tf32: bool


class CompareFlags(TypedDict, total=False):
    fail_above: Text
    rows: int
    report: Path


class DryrunFlags(TypedDict, total=False):
    gpus: int
    platform: Text
    output: Path
    at: int
    timeout: Number
    keep_going: bool
    eager: bool
    compiled: bool
    guess: Text
    what_if: Union[Text, Iterable[Text]]
