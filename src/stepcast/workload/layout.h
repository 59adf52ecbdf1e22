// A Layout: the distributed training of a Transformer - degrees of parallelism, batches, precision,
// recomputation, sharding, overlap, fusion, and the framework.
//
//   Layout layout{.degrees = {.tensor = 8, .pipeline = 16, .data = 4},
//                 .batch = {.micro_batch_sequences = 1, .global_batch_sequences = 1536,
//                           .seq_len_tokens = 2048}};
//   STEPCAST_TRY(check(layout, model, 512));
//   layout.micro_batches();      // per data-parallel rank and step: 384
//
// Defaults are those of Megatron-LM where it has the concept, unless a comment says otherwise. Values left
// open (`std::nullopt`, `any`) are chosen from `framework` when operations are generated.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/operation/dtype.h"
#include "stepcast/operation/operation.h"
#include "stepcast/workload/transformer.h"

namespace stepcast {

// The tensors that data-parallel ranks shard instead of replicating.
enum class Sharding : std::uint8_t {
  none,   // plain data parallelism: gradients are all-reduced
  zero1,  // optimizer states (Megatron's distributed optimizer)
  zero2,  // also gradients; FSDP SHARD_GRAD_OP keeps gathered weights between forward and backward
  zero3,  // also weights; FSDP FULL_SHARD
};
[[nodiscard]] std::string_view to_string(Sharding sharding);

// The order of forward and backward passes of a pipeline.
enum class PipelineSchedule : std::uint8_t {
  one_f_one_b,     // non-interleaved 1F1B
  interleaved,     // 1F1B over virtual_stages > 1 chunks per GPU
  gpipe,           // all forwards, then all backwards
  zero_bubble_h1,  // ZB-H1: weight gradients fill the drain, memory as 1F1B
  dual_pipe,       // DualPipe: from both ends; every rank also has the stage of its mirror rank
  // Two chunks per GPU in a V: the first GPU has the first and the last chunk. zb_v has no bubble where all
  // passes take equal times; v_half and v_min keep about half and about a third of the activations of 1F1B.
  zb_v,
  v_half,
  v_min,
};
// Whether weight gradients are separate passes.
[[nodiscard]] constexpr bool splits_backward(PipelineSchedule schedule) {
  return schedule >= PipelineSchedule::zero_bubble_h1;
}
// Whether the second chunk of every GPU runs in reverse stage order.
[[nodiscard]] constexpr bool is_v_shaped(PipelineSchedule schedule) {
  return schedule >= PipelineSchedule::zb_v;
}
// The stage of chunk `chunk` of the model, and the model's number of chunk `local` of a stage.
[[nodiscard]] constexpr std::uint32_t stage_of_chunk(PipelineSchedule schedule, std::uint32_t stages,
                                                     std::uint32_t chunk) {
  return is_v_shaped(schedule) && chunk >= stages ? 2 * stages - 1 - chunk : chunk % stages;
}
[[nodiscard]] constexpr std::uint32_t chunk_of_stage(PipelineSchedule schedule, std::uint32_t stages,
                                                     std::uint32_t stage, std::uint32_t local) {
  return is_v_shaped(schedule) && local > 0 ? 2 * stages - 1 - stage : local * stages + stage;
}
[[nodiscard]] std::string_view to_string(PipelineSchedule schedule);

// How context-parallel ranks exchange keys and values.
enum class ContextParallelKind : std::uint8_t {
  ring,        // keys and values are passed around point to point (Megatron `p2p`)
  all_to_all,  // from a split by sequence to a split by heads and back (Ulysses, Megatron `a2a`)
  all_gather,  // keys and values are gathered before attention (Llama 3)
};
[[nodiscard]] std::string_view to_string(ContextParallelKind kind);

// Which activations are recomputed in the backward pass.
enum class Recompute : std::uint8_t {
  none,
  selective,  // core of attention: scores, softmax, dropout, weighted values; no effect on flash attention
  selective_ops,  // TorchTitan `op`: keeps results of attention and of every second GEMM
  full,           // keeps only the input of a layer
};
[[nodiscard]] std::string_view to_string(Recompute recompute);

// The training framework. Its defaults are in workload/framework_rule.h.
enum class Framework : std::uint8_t {
  unknown,
  megatron,    // Megatron-LM, Megatron Core, Megatron-DeepSpeed without ZeRO
  nemo,        // NeMo on Megatron Core and Transformer Engine
  automodel,   // NeMo Automodel: kernels like NeMo's, weights sharded by FSDP2
  torchtitan,  // FSDP2, DTensor, torch.compile
  fsdp,        // PyTorch FSDP: Composer, LLM Foundry
  deepspeed,   // ZeRO engine
  neox,        // GPT-NeoX: Megatron's layers, unfused norms and rotation, on DeepSpeed
  pytorch,     // eager PyTorch with DDP; Hugging Face Trainer
  libai,       // OneFlow LiBai
  maxtext,     // JAX: XLA compiles the whole step
  count        // number of values, not a framework
};
[[nodiscard]] std::string_view to_string(Framework framework);

// Implementation of attention.
enum class AttentionMethod : std::uint8_t {
  unfused,  // batched GEMM, masked softmax, dropout, batched GEMM
  flash,    // one fused kernel; see LayerChoices::attention_kernel
};
[[nodiscard]] std::string_view to_string(AttentionMethod method);

// When FSDP starts to gather the weights of a unit in the backward pass.
enum class Prefetch : std::uint8_t {
  none,  // when the unit needs them
  post,  // when the computation of the previous unit has ended (FSDP BACKWARD_POST, Composer's default)
  pre,   // before the computation of the previous unit starts (FSDP BACKWARD_PRE, PyTorch's default)
};
[[nodiscard]] std::string_view to_string(Prefetch prefetch);

// Origin of the scales of fp8 operands, which determines the reads and writes of casts.
enum class Fp8Scaling : std::uint8_t {
  delayed,    // from the maxima of previous steps: cast in one pass (Transformer Engine's default)
  dynamic,    // from the current tensor: one pass for the maximum and one for the cast
  rowwise,    // dynamic, one scale per row
  blockwise,  // dynamic, one scale per 1x128 or 128x128 block (DeepSeek-V3)
  // One scale per 32 elements, applied by the units of Blackwell; tensors are cast along both axes in one
  // pass.
  mxfp8,
};
[[nodiscard]] std::string_view to_string(Fp8Scaling scaling);

// The GEMMs that run in fp8 when Precision::compute is fp8. Attention, router, norms, embedding and the rest
// run in Precision::other.
struct Fp8Recipe {
  Fp8Scaling scaling = Fp8Scaling::delayed;
  bool attention_linears = true;  // QKV and output projection
  bool ffn_linears = true;        // GEMMs of feed-forward layers
  bool logits = false;            // output matrix
  bool weight_gradients = true;   // false: weight-gradient GEMMs stay in Precision::other
  // Sharded weights are gathered as fp8 (TorchTitan's fp8 all-gather, --fp8-param-gather).
  bool gather_weights = false;
  bool attention = false;  // fp8 inside fused attention
  // Dynamic scaling: norms and activations find the maximum of their output (Transformer Engine).
  bool fused_maxima = false;
  // Tensor-parallel ranks gather activations and output gradients as fp8 (Transformer Engine, TorchTitan with
  // scales per tensor).
  bool gather_activations = false;
  std::int64_t first_layers = 0;  // number of layers at each end that stay in Precision::other
  std::int64_t last_layers = 0;
  friend bool operator==(const Fp8Recipe&, const Fp8Recipe&) = default;
};

// Element types of a training step.
struct Precision {
  DType compute = DType::bf16;    // of GEMMs: fp32, tf32, fp16, bf16, fp8, fp4
  DType other = DType::bf16;      // of activations and all work that fp8 excludes; fp32 under fp32 and tf32
  DType gradients = DType::fp32;  // accumulation type (Megatron with bf16: fp32, with fp16: fp16)
  DType reduction = DType::fp32;  // communication type of gradients
  bool master_weights = true;     // separate copy of the weights for the optimizer
  DType master = DType::fp32;     // type of the master weights
  DType moments = DType::fp32;    // of Adam
  bool loss_scaling = false;      // for fp16: scale, unscale, check for infinities
  Fp8Recipe fp8;                  // used if compute is fp8
  // fp32 convolutions do not use TF32 units, which PyTorch uses by default where a GPU has them.
  bool fp32_convolutions = false;
  friend bool operator==(const Precision&, const Precision&) = default;
};
// The default types of frameworks for a compute type: fp16 keeps and reduces gradients in fp16 and scales the
// loss; bf16 and fp8 keep them in fp32; fp32 and tf32 have no master weights.
[[nodiscard]] Precision precision_for(DType compute);

// The optimizer and its passes over the parameters.
struct OptimizerSetup {
  OptimizerKind kind = OptimizerKind::adam;
  OptimizerImplementation implementation = OptimizerImplementation::fused;
  bool cpu_offload = false;   // states and update on the CPU; gradients are copied down, weights up
  bool gradient_clip = true;  // by global norm; Megatron: --clip-grad 1.0
  // Extra passes over weights and gradients for the log: --log-params-norm, --log-num-zeros-in-grad.
  bool parameter_norm = false, gradient_zeros = false;
  std::int64_t newton_schulz_iterations = 0;  // 0: the optimizer's default; Megatron: --muon-num-ns-steps
  friend bool operator==(const OptimizerSetup&, const OptimizerSetup&) = default;
};

// Kernels that frameworks fuse. Defaults: Megatron-LM's.
struct FusedKernels {
  bool softmax = true;          // scale, mask and softmax (unfused attention only)
  bool bias_activation = true;  // bias with GELU or SwiGLU
  bool bias_dropout_add = true;
  bool norm = true;
  bool rotary = true;
  bool cross_entropy = false;                // one kernel over the logits
  bool weight_gradient_accumulation = true;  // the GEMM adds into the gradient buffer
  bool compiled = false;                     // torch.compile fuses element-wise chains
  bool permutation = true;                   // of tokens to the order of their experts and back
  friend bool operator==(const FusedKernels&, const FusedKernels&) = default;
};

// Degrees of parallelism. tensor x context x data x pipeline = GPUs; experts are distributed within these.
struct Degrees {
  std::int64_t tensor = 1;
  std::int64_t pipeline = 1;
  std::int64_t context = 1;
  std::int64_t data = 1;
  // Ranks that share the experts of a layer. Their groups are inside the data- and context-parallel ranks,
  // and also inside the tensor-parallel ones where expert_tensor is smaller than tensor.
  std::int64_t expert = 1;
  std::int64_t expert_tensor = 0;   // tensor parallelism within an expert; 0: equal to tensor
  std::int64_t virtual_stages = 1;  // chunks of layers per GPU; > 1: interleaved
  friend bool operator==(const Degrees&, const Degrees&) = default;
};

// Batch sizes in sequences of seq_len_tokens tokens.
struct Batch {
  std::int64_t micro_batch_sequences = 1;
  std::int64_t global_batch_sequences = 1;
  std::int64_t seq_len_tokens = 0;
  friend bool operator==(const Batch&, const Batch&) = default;
};

// Parts of a layer that selective recomputation recomputes (--recompute-modules).
struct RecomputedModules {
  bool core_attention = true;  // scores to weighted values; no effect on flash attention
  bool norms = false;
  bool ffn = false;                 // dense feed-forward layers
  bool latent_projections = false;  // from the latent vectors to queries, keys and values (mla_up_proj)
  bool experts = false;             // whole expert layers
  bool expert_activation = false;   // moe_act
  bool shared_experts = false;
  friend bool operator==(const RecomputedModules&, const RecomputedModules&) = default;
};

// Parts of a layer with their saved tensors offloaded to the host, as in Megatron Core.
struct OffloadedModules {
  bool attention_norm = false, qkv = false, core_attention = false, attention_projection = false,
       ffn_norm = false, expert_inputs = false, expert_activation = false;
  friend bool operator==(const OffloadedModules&, const OffloadedModules&) = default;
};

// The results of the forward pass of a layer.
struct LayerResults {
  bool input = false, qkv = false, attention = false, attention_output = false, ffn_up = false,
       ffn_down = false;
  friend bool operator==(const LayerResults&, const LayerResults&) = default;
};

// Recomputation and its options.
struct Recomputation {
  Recompute kind = Recompute::none;
  RecomputedModules modules;  // used by selective recomputation
  // Full recomputation: only the last of every n layers is recomputed (TorchTitan's selective_ac_option).
  std::int64_t every_n_layers = 1;
  // Full recomputation: only the first n layers of every (virtual) stage (--recompute-method block).
  std::optional<std::int64_t> layers_per_stage;
  // Full recomputation: inputs are kept of every n-th layer (--recompute-method uniform).
  std::int64_t chunk_layers = 1;
  // Full recomputation: results that are kept nevertheless, and the results and inputs that the CPU keeps
  // (policies of JAX by name).
  LayerResults kept, kept_by_host;
  friend bool operator==(const Recomputation&, const Recomputation&) = default;
};

// Communication inside a layer that overlaps its computation.
struct LayerOverlap {
  bool tensor_parallel = false;  // --tp-comm-overlap: gathers and scatters overlap their GEMMs
  // The asynchronous all-gather of --sequence-parallel overlaps the weight-gradient GEMM.
  bool sequence_parallel_weight_gradient = true;
  // The token all-to-all of one micro-batch overlaps the computation of another
  // (--overlap-moe-expert-parallel-comm).
  bool expert = false;
  // With `expert`: weight gradients are computed after input gradients, overlapping the all-to-all
  // (--delay-wgrad-compute).
  bool delayed_weight_gradient = false;
  // The token all-to-all overlaps the shared experts of the layer (--moe-shared-expert-overlap).
  bool shared_experts = false;
  friend bool operator==(const LayerOverlap&, const LayerOverlap&) = default;
};

// Parts that are launched as one CUDA graph, so that their kernels cost no host time (--cuda-graph-scope).
struct CudaGraphs {
  bool attention = false;
  bool ffn = false;              // dense feed-forward layers
  bool router = false;           // moe_router
  bool expert_dispatch = false;  // moe_preprocess
  bool experts = false;
  bool full_iteration = false;  // the whole forward and backward pass
  friend bool operator==(const CudaGraphs&, const CudaGraphs&) = default;
};
// One graph per layer.
[[nodiscard]] constexpr CudaGraphs graphs_of_layers() { return {true, true, true, true, true, false}; }

// Implementation of the token all-to-all (--moe-token-dispatcher-type).
enum class TokenDispatcher : std::uint8_t {
  all_to_all,  // NCCL
  all_gather,  // NCCL; every rank sees all tokens
  deepep,      // flex: DeepEP
  hybridep,    // flex: HybridEP
};
[[nodiscard]] std::string_view to_string(TokenDispatcher dispatcher);

// Storage of frozen weights of linear layers (bitsandbytes). They are dequantised to the compute type before
// each GEMM. Embedding, output matrix, norms and adapters are stored in the compute type.
enum class FrozenWeights : std::uint8_t {
  as_computed,  // in the compute type
  int8,         // one scale per row
  nf4,          // one fp32 scale per 64 weights; fp4 has the same size
  nf4_double,   // 8-bit scales, and one fp32 scale per 256 of them (QLoRA's double quantisation)
};
[[nodiscard]] std::string_view to_string(FrozenWeights kind);
// Bytes per weight: stored with scales, and read and written by a dequantisation in addition to its result.
struct FrozenWeightBytes {
  double stored = 0, read = 0, written = 0;
};
// All 0 for as_computed.
[[nodiscard]] FrozenWeightBytes bytes_of(FrozenWeights kind);

// Low-rank adapters (LoRA) on frozen weights: GEMMs with matrices of `rank` columns and rows.
struct Adapters {
  std::int64_t rank = 0;                                                       // 0: none
  bool qkv = true, attention_output = true, ffn_up = false, ffn_down = false;  // layers with adapters
  bool dropout = false;                                                        // on the input of each adapter
  friend bool operator==(const Adapters&, const Adapters&) = default;
};

// The implementation of one layer. Together with degrees and micro-batch, it determines the operations of a
// layer (layer_key()).
struct LayerChoices {
  bool sequence_parallel = false;  // norms and dropout on 1/tensor of the tokens
  ContextParallelKind context_parallel_kind = ContextParallelKind::ring;
  // Tokens of the busiest expert-parallel rank over the mean; 1: balanced.
  double expert_imbalance = 1;
  // Limit of tokens per expert, as a multiple of the mean; nullopt: no token is dropped.
  std::optional<double> expert_capacity_factor;
  bool expert_pads_to_capacity = false;  // every expert computes on as many rows as its capacity
  AttentionMethod attention = AttentionMethod::flash;
  // Queries, keys and values are packed without padding before flash attention, and the result is scattered
  // back (LLM Foundry until 2023, even if there is no padding).
  bool attention_unpads = false;
  AttentionKernel attention_kernel = AttentionKernel::any;  // any: by device, framework and release date
  Precision precision;
  FusedKernels fused;
  Recomputation recompute;
  bool activation_offload = false;             // kept activations are copied to the CPU
  std::int64_t activation_offload_layers = 0;  // only those of the first layers of a stage; 0: of all layers
  OffloadedModules offloaded;  // in all layers; a few layers in use stay on the device (memory.h)
  LayerOverlap overlap;
  CudaGraphs cuda_graphs;
  TokenDispatcher dispatcher = TokenDispatcher::all_to_all;
  bool narrow_dispatch = false;           // a library sends tokens to experts in 8 bits; results return in 16
  bool narrow_activation_inputs = false;  // inputs of activations are kept in 8 bits for the backward pass
  // The weights of the model are frozen: no gradients, optimizer states or reduction for them.
  bool frozen_base = false;
  FrozenWeights frozen_weights = FrozenWeights::as_computed;  // other kinds require frozen_base
  Adapters adapters;
  // Every micro-batch first runs forward through a frozen copy of the model, or with adapters through the
  // model without them: preference training such as DPO and KTO.
  bool reference_model = false;
  // Rows of seq_len_tokens contain packed sequences of this mean length, and attention does not cross their
  // borders; 0: every row is one sequence.
  double packed_mean_tokens = 0;
  // Share of the tokens that reach the vocabulary layer and the loss: the masked tokens of an encoder.
  double predicted_token_share = 1;
  // Host time per operator of an eager stack, including modules and autograd, in launches of a kernel
  // (StepAssumptions::host_launch_us) on a host of 2022. nullopt: unknown; only launches are counted.
  std::optional<double> operator_launches;
  friend bool operator==(const LayerChoices&, const LayerChoices&) = default;
};

// Visits of the busiest expert-parallel rank over the mean of all ranks, limited by the capacity; padded
// experts are always full.
[[nodiscard]] double kept_imbalance(const LayerChoices& layer);

// The pipeline.
struct PipelineChoices {
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  // Layers of every stage in the order of the model, degrees.pipeline x degrees.virtual_stages numbers.
  // Empty: equal numbers.
  std::vector<std::int64_t> layers_per_stage;
  bool p2p_scatter_gather = true;  // activations are sent once per tensor-parallel group
  bool overlap = false;            // send/receive overlaps computation; Megatron: on with interleaving
  friend bool operator==(const PipelineChoices&, const PipelineChoices&) = default;
};

// Sharding between data-parallel ranks, and the communication of gradients and weights.
struct ShardingChoices {
  Sharding kind = Sharding::none;
  // zero2 and zero3: ranks per copy of the model; 0: all data-parallel (and context-parallel) ranks. Fewer:
  // hybrid sharding, with an all-reduce between copies.
  std::int64_t shard_group_size = 0;
  bool forward_prefetch = false;               // PyTorch's default
  Prefetch backward_prefetch = Prefetch::pre;  // PyTorch's default; Composer: post
  bool reshard_after_forward = true;           // zero3; false: gathered weights stay until backward
  // zero2 and zero3: gradients are reduced after every micro-batch (FSDP's default); false: after the last
  // one (no_sync).
  bool reduce_every_micro_batch = true;
  bool parameter_offload = false;         // weights are stored on the CPU (ZeRO-Infinity)
  bool overlap_gradient_reduce = false;   // --overlap-grad-reduce: buckets overlap the last backward
  bool overlap_parameter_gather = false;  // --overlap-param-gather: overlaps the next forward
  // Bucket size of a data-parallel reduction, in parameters. nullopt: the framework's default (Megatron:
  // max(40e6, 1e6 x degrees.data); PyTorch DDP: 25 MiB).
  std::optional<std::int64_t> bucket_parameters;
  friend bool operator==(const ShardingChoices&, const ShardingChoices&) = default;
};

// The framework and its release.
struct Software {
  Framework framework = Framework::unknown;
  std::string version;  // "24.11.1", "v0.7.0"; empty: unknown
  std::string date;     // "2023-07" or "2023-07-31"; empty: unknown, taken as the newest
  // Per tensor-parallel rank; 0: the framework's default, see padded_vocab_size().
  std::int64_t vocab_divisible_by = 0;
  // Whether the release is of `first` ("2024" or "2024-09") or later.
  [[nodiscard]] bool is_of(std::string_view first) const { return date.empty() || date >= first; }
  friend bool operator==(const Software&, const Software&) = default;
};

// A complete training layout. Plain data; check() validates it.
struct Layout {
  Degrees degrees;
  Batch batch;
  LayerChoices layer;
  PipelineChoices pipeline;
  ShardingChoices sharding;
  OptimizerSetup optimizer;
  Software software;
  // From the fastest to the slowest changing degree (--use-tp-pp-dp-mapping: "tp-cp-ep-pp-dp").
  std::string rank_order = "tp-cp-ep-dp-pp";

  // GPUs of the layout.
  [[nodiscard]] std::int64_t world_size() const;
  // Micro-batches per data-parallel rank and optimizer step.
  [[nodiscard]] std::int64_t micro_batches() const;
  // Tensor parallelism within an expert.
  [[nodiscard]] std::int64_t expert_tensor_degree() const {
    return degrees.expert_tensor > 0 ? degrees.expert_tensor : degrees.tensor;
  }
  // Whether experts are distributed differently from the rest of the model: over other ranks, or in fewer
  // parts.
  [[nodiscard]] bool experts_have_own_groups() const {
    return degrees.expert > 1 || expert_tensor_degree() != degrees.tensor;
  }
  // Ranks with the same experts, which reduce their gradients together.
  [[nodiscard]] std::int64_t expert_data_parallel() const;
  // Whether whole weight gradients are accumulated over micro-batches; under zero3 every rank accumulates its
  // shard.
  [[nodiscard]] bool accumulates_gradients() const;
  // Ranks that together have one copy of sharded weights.
  [[nodiscard]] std::int64_t shard_group() const;

  friend bool operator==(const Layout&, const Layout&) = default;
};

// All inputs of a layout to the operations and communication of a layer. Layouts with equal keys have equal
// layer times, whatever their stages, data-parallel ranks and schedule are. (The placement of groups on nodes
// is separate: place().)
struct LayerKey {
  std::int64_t tensor = 1, context = 1, expert = 1, expert_tensor = 1;
  // degrees.pipeline where the layers of a stage share host work per micro-batch; else 0.
  std::int64_t pipeline = 0;
  std::int64_t micro_batch_sequences = 1, seq_len_tokens = 0;
  bool accumulates_gradients = false;
  Framework framework = Framework::megatron;  // provides the layers
  LayerChoices choices;
  friend bool operator==(const LayerKey&, const LayerKey&) = default;
};
[[nodiscard]] LayerKey layer_key(const Layout& layout);

// Whether the model can be trained with this layout, on `n_gpus` GPUs if given. The error names the violated
// constraint and the nearest valid values: "n_layers 30 is not divisible by pipeline_parallel 4 x
// virtual_stages 1; nearest that work: pipeline_parallel 3 or 5".
[[nodiscard]] Status check(const Layout& layout, const Transformer& model,
                           std::optional<std::int64_t> n_gpus = std::nullopt);

// Rows of the word embedding in training: a multiple of vocab_divisible_by x degrees.tensor. Megatron, NeMo,
// DeepSpeed and LiBai: 128; others: 1.
[[nodiscard]] std::int64_t padded_vocab_size(const Transformer& model, const Layout& layout);

// A contiguous range of layers on one pipeline rank.
struct StageChunk {
  std::int64_t pipeline_rank = 0;
  std::int64_t virtual_stage = 0;
  std::int64_t first_layer = 0;
  std::int64_t n_layers = 0;
  friend bool operator==(const StageChunk&, const StageChunk&) = default;
};
// All chunks in the order of the model, each on its stage_of_chunk(). The layout must pass check().
[[nodiscard]] std::vector<StageChunk> stage_chunks(const Transformer& model, const Layout& layout);

// Layers of every chunk when embedding and output count as one layer each; the remainder of an uneven
// division goes to the first chunks (TorchTitan; Megatron with
// --account-for-embedding/loss-in-pipeline-split). 126 layers on 8 chunks: 15, 16 x 6, 15; 61 on 32: 1, 2 x
// 30, 0; 94 on 96: 0, 1 x 94, 0. Empty if a middle chunk would have no layer.
[[nodiscard]] std::vector<std::int64_t> layers_counting_embedding_and_output(std::int64_t n_layers,
                                                                             std::int64_t n_chunks);

// Description of a kind of layout without any published run, such as "experts whose weights are sharded".
// Forecasts of it extrapolate. Empty for all others.
[[nodiscard]] std::string_view unmeasured_kind(bool has_experts, Framework framework, Sharding sharding,
                                               std::int64_t expert_parallel, PipelineSchedule schedule);

// Whether full recomputation recomputes layer `layer` (from 0 within its chunk of stage_chunks()).
[[nodiscard]] bool is_recomputed(const Layout& layout, std::int64_t layer);

}  // namespace stepcast
