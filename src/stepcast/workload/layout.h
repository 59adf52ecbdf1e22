// A Layout: how a Transformer is trained on many GPUs - degrees of parallelism, batches, precision, what is
// recomputed, sharded, overlapped and fused, and by whose software.
//
//   Layout layout{.degrees = {.tensor = 8, .pipeline = 16, .data = 4},
//                 .batch = {.micro_batch_sequences = 1, .global_batch_sequences = 1536,
//                           .seq_len_tokens = 2048}};
//   STEPCAST_TRY(check(layout, model, 512));
//   layout.micro_batches();      // per data-parallel rank and step: 384
//
// Defaults are those of Megatron-LM where it has the concept, unless a comment says otherwise. What is left
// to the software (`std::nullopt`, `any`) is chosen by whoever generates operations, from `framework`.
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

// What data-parallel ranks keep a share of, instead of all of it.
enum class Sharding : std::uint8_t {
  none,   // plain data parallelism: gradients are all-reduced
  zero1,  // optimizer states (Megatron's distributed optimizer)
  zero2,  // and gradients; FSDP SHARD_GRAD_OP keeps gathered weights between forward and backward
  zero3,  // and weights; FSDP FULL_SHARD
};
[[nodiscard]] std::string_view to_string(Sharding sharding);

enum class PipelineSchedule : std::uint8_t {
  one_f_one_b,     // non-interleaved 1F1B
  interleaved,     // 1F1B over virtual_stages > 1 chunks per GPU
  gpipe,           // all forwards, then all backwards
  zero_bubble_h1,  // ZB-H1: weight gradients fill the drain, memory as 1F1B
  dual_pipe,       // DualPipe: from both ends, every rank holds the stage of its mirror, too
  // Two chunks per GPU, there and back again: the first GPU has the first and the last chunk. Without a bubble where all
  // passes take as long; about half, about a third of the activations of 1F1B.
  zb_v,
  v_half,
  v_min,
};
// Weight gradients are passes of their own.
[[nodiscard]] constexpr bool splits_backward(PipelineSchedule schedule) {
  return schedule >= PipelineSchedule::zero_bubble_h1;
}
[[nodiscard]] constexpr bool is_v_shaped(PipelineSchedule schedule) {
  return schedule >= PipelineSchedule::zb_v;
}
// The stage that holds chunk `chunk` of the model, and the number in the model of the chunk `local` of a stage.
[[nodiscard]] constexpr std::uint32_t stage_of_chunk(PipelineSchedule schedule, std::uint32_t stages,
                                                     std::uint32_t chunk) {
  return is_v_shaped(schedule) && chunk >= stages ? 2 * stages - 1 - chunk : chunk % stages;
}
[[nodiscard]] constexpr std::uint32_t chunk_of_stage(PipelineSchedule schedule, std::uint32_t stages,
                                                     std::uint32_t stage, std::uint32_t local) {
  return is_v_shaped(schedule) && local > 0 ? 2 * stages - 1 - stage : local * stages + stage;
}
[[nodiscard]] std::string_view to_string(PipelineSchedule schedule);

enum class ContextParallelKind : std::uint8_t {
  ring,        // keys and values travel around point to point (Megatron `p2p`)
  all_to_all,  // sequence to heads and back (Ulysses, Megatron `a2a`)
  all_gather,  // keys and values are gathered first (Llama 3)
};
[[nodiscard]] std::string_view to_string(ContextParallelKind kind);

enum class Recompute : std::uint8_t {
  none,
  selective,      // the core of attention: scores, softmax, dropout, product with values. Nothing to do
                  // where attention is flash
  selective_ops,  // TorchTitan `op`: keeps results of attention and of every second matrix product
  full,           // keeps the input of a layer alone
};
[[nodiscard]] std::string_view to_string(Recompute recompute);

// What each does unless told otherwise: workload/framework_rule.h.
enum class Framework : std::uint8_t {
  unknown,
  megatron,    // Megatron-LM, Megatron Core, Megatron-DeepSpeed without ZeRO
  nemo,        // NeMo on Megatron Core and Transformer Engine
  automodel,   // NeMo Automodel: kernels as NeMo's, weights sharded by FSDP2
  torchtitan,  // FSDP2, DTensor, torch.compile
  fsdp,        // PyTorch FSDP: Composer, LLM Foundry
  deepspeed,   // ZeRO engine
  neox,        // GPT-NeoX: Megatron's layers, unfused norms and rotation, on DeepSpeed
  pytorch,     // eager PyTorch with DDP; Hugging Face Trainer
  libai,       // OneFlow LiBai
  maxtext,     // JAX: XLA compiles the whole step
  count
};
[[nodiscard]] std::string_view to_string(Framework framework);

enum class AttentionMethod : std::uint8_t {
  unfused,  // batched gemm, masked softmax, dropout, batched gemm
  flash,    // one kernel; which: LayerChoices::attention_kernel
};
[[nodiscard]] std::string_view to_string(AttentionMethod method);

enum class Prefetch : std::uint8_t {
  none,  // the gather of a unit starts when it is needed
  post,  // when the computation of the unit before has ended (FSDP BACKWARD_POST, Composer's default)
  pre,   // before the computation of the unit before begins (FSDP BACKWARD_PRE, PyTorch's default)
};
[[nodiscard]] std::string_view to_string(Prefetch prefetch);

// How fp8 operands get their scales, which decides what the casts read and write.
enum class Fp8Scaling : std::uint8_t {
  delayed,    // from the maxima of former steps: cast in one pass (Transformer Engine's default)
  dynamic,    // from this tensor: a pass for the maximum and one for the cast
  rowwise,    // dynamic, a scale per row
  blockwise,  // dynamic, a scale per 1x128 or 128x128 block (DeepSeek-V3)
  mxfp8,  // a scale per 32 elements, which the units of Blackwell apply themselves; tensors are cast twice,
          // along either axis, in one pass without a maximum of the whole
};
[[nodiscard]] std::string_view to_string(Fp8Scaling scaling);

// Which matrix products run in fp8 when Precision::compute is fp8. Attention, router, norms, embedding and
// the rest run in Precision::other.
struct Fp8Recipe {
  Fp8Scaling scaling = Fp8Scaling::delayed;
  bool attention_linears = true;  // QKV and output projection
  bool ffn_linears = true;
  bool logits = false;
  bool weight_gradients = true;  // false: these products stay in Precision::other
  // Sharded weights travel as fp8 (TorchTitan's fp8 all-gather, --fp8-param-gather)
  bool gather_weights = false;
  bool attention = false;  // fp8 inside fused attention
  // Dynamic scaling: norms and activations find the maximum of what they write (Transformer Engine).
  bool fused_maxima = false;
  // Tensor-parallel ranks gather activations and output gradients as fp8 (Transformer Engine, TorchTitan with
  // scales per tensor).
  bool gather_activations = false;
  std::int64_t first_layers = 0;  // layers at either end that stay in Precision::other
  std::int64_t last_layers = 0;
  friend bool operator==(const Fp8Recipe&, const Fp8Recipe&) = default;
};

struct Precision {
  DType compute = DType::bf16;     // of matrix products: fp32, tf32, fp16, bf16, fp8
  DType other = DType::bf16;       // of activations and what fp8 leaves; fp32 under fp32 and tf32
  DType gradients = DType::fp32;   // they are accumulated in (Megatron with bf16: fp32, with fp16: fp16)
  DType reduction = DType::fp32;   // gradients travel in
  bool master_weights = true;      // fp32 weights beside those of the computation
  DType master = DType::fp32;      // type of the master weights
  DType moments = DType::fp32;     // Adam's
  bool loss_scaling = false;       // fp16: scale, unscale, check for infinities
  Fp8Recipe fp8;                   // used if compute is fp8
  bool fp32_convolutions = false;  // of fp32: not on TF32 units, as PyTorch lets them run where a GPU has any
  friend bool operator==(const Precision&, const Precision&) = default;
};
// As frameworks set it up for a type of computation: fp16 keeps and reduces gradients in fp16 and scales the
// loss; bf16 and fp8 in fp32; fp32 and tf32 need no master weights.
[[nodiscard]] Precision precision_for(DType compute);

struct OptimizerSetup {
  OptimizerKind kind = OptimizerKind::adam;
  OptimizerImplementation implementation = OptimizerImplementation::fused;
  bool cpu_offload = false;   // states and step on the CPU; gradients go down, weights come up
  bool gradient_clip = true;  // global norm and scaling; Megatron: --clip-grad 1.0
  // Passes over weights and gradients for the log: --log-params-norm, --log-num-zeros-in-grad.
  bool parameter_norm = false, gradient_zeros = false;
  std::int64_t newton_schulz_iterations = 0;  // 0: the optimizer's; Megatron: --muon-num-ns-steps
  friend bool operator==(const OptimizerSetup&, const OptimizerSetup&) = default;
};

// Kernels that frameworks merge. Defaults: Megatron-LM's.
struct FusedKernels {
  bool softmax = true;          // scale, mask and softmax (unfused attention only)
  bool bias_activation = true;  // bias and GELU, SwiGLU
  bool bias_dropout_add = true;
  bool norm = true;
  bool rotary = true;
  bool cross_entropy = false;                // one kernel over the logits
  bool weight_gradient_accumulation = true;  // the product adds into the gradient buffer
  bool compiled = false;                     // torch.compile merges element-wise chains
  bool permutation = true;                   // of tokens to their experts and back
  friend bool operator==(const FusedKernels&, const FusedKernels&) = default;
};

// Degrees of parallelism. tensor x context x data x pipeline = GPUs; experts are spread inside those.
struct Degrees {
  std::int64_t tensor = 1;
  std::int64_t pipeline = 1;
  std::int64_t context = 1;
  std::int64_t data = 1;
  // Ranks that share the experts of a layer; their groups lie inside the data- and context-parallel ranks
  // (and the tensor-parallel ones as far as expert_tensor is smaller than tensor).
  std::int64_t expert = 1;
  std::int64_t expert_tensor = 0;   // 0: tensor
  std::int64_t virtual_stages = 1;  // chunks of layers per GPU, > 1: interleaved
  friend bool operator==(const Degrees&, const Degrees&) = default;
};

// In sequences of seq_len_tokens.
struct Batch {
  std::int64_t micro_batch_sequences = 1;
  std::int64_t global_batch_sequences = 1;
  std::int64_t seq_len_tokens = 0;
  friend bool operator==(const Batch&, const Batch&) = default;
};

// Parts of a layer that selective recomputation computes again (--recompute-modules).
struct RecomputedModules {
  bool core_attention = true;  // scores to weighted values; nothing to do where attention is flash
  bool norms = false;
  bool ffn = false;                 // dense ones
  bool latent_projections = false;  // from the latent vectors up: queries, keys, values (mla_up_proj)
  bool experts = false;             // whole expert layers
  bool expert_activation = false;   // moe_act
  bool shared_experts = false;
  friend bool operator==(const RecomputedModules&, const RecomputedModules&) = default;
};

// Parts of a layer that keep what they need backward on the host: saved tensors of the whole part, as in Megatron Core.
struct OffloadedModules {
  bool attention_norm = false, qkv = false, core_attention = false, attention_projection = false,
       ffn_norm = false, expert_inputs = false, expert_activation = false;
  friend bool operator==(const OffloadedModules&, const OffloadedModules&) = default;
};

// What a layer computes forward.
struct LayerResults {
  bool input = false, qkv = false, attention = false, attention_output = false, ffn_up = false,
       ffn_down = false;
  friend bool operator==(const LayerResults&, const LayerResults&) = default;
};

struct Recomputation {
  Recompute kind = Recompute::none;
  RecomputedModules modules;  // under selective recomputation
  // Under full recomputation: the last of every n layers is recomputed (TorchTitan's selective_ac_option).
  std::int64_t every_n_layers = 1;
  // Under full recomputation: only the first n layers of every (virtual) stage (--recompute-method block).
  std::optional<std::int64_t> layers_per_stage;
  // Under full recomputation: inputs are kept of every n-th layer (--recompute-method uniform).
  std::int64_t chunk_layers = 1;
  // Under full recomputation: results that are kept all the same, and which of them, and inputs, the CPU keeps (policies of
  // JAX by name).
  LayerResults kept, kept_by_host;
  friend bool operator==(const Recomputation&, const Recomputation&) = default;
};

// Which communication inside a layer runs beside its computation.
struct LayerOverlap {
  bool tensor_parallel = false;  // --tp-comm-overlap: gathers and scatters beside their products
  // Asynchronous all-gather of --sequence-parallel, overlapped with the product.
  bool sequence_parallel_weight_gradient = true;
  // The exchange of tokens of one micro-batch beside the computation of another (--overlap-moe-expert-parallel-comm).
  bool expert = false;
  // With it, weight gradients are computed later than those of the inputs, beside the exchange (--delay-wgrad-compute).
  bool delayed_weight_gradient = false;
  // The exchange of tokens overlaps the shared experts of the layer (--moe-shared-expert-overlap).
  bool shared_experts = false;
  friend bool operator==(const LayerOverlap&, const LayerOverlap&) = default;
};

// What is launched as one CUDA graph, so that its kernels cost the host nothing (--cuda-graph-scope).
struct CudaGraphs {
  bool attention = false;
  bool ffn = false;              // dense ones
  bool router = false;           // moe_router
  bool expert_dispatch = false;  // moe_preprocess
  bool experts = false;
  bool full_iteration = false;  // all of forward and backward
  friend bool operator==(const CudaGraphs&, const CudaGraphs&) = default;
};
// Graphs of whole layers.
[[nodiscard]] constexpr CudaGraphs graphs_of_layers() { return {true, true, true, true, true, false}; }

// Who moves tokens to their experts (--moe-token-dispatcher-type).
enum class TokenDispatcher : std::uint8_t {
  all_to_all,  // NCCL
  all_gather,  // NCCL; every rank sees all tokens
  deepep,      // flex: DeepEP
  hybridep,    // flex: HybridEP
};
[[nodiscard]] std::string_view to_string(TokenDispatcher dispatcher);

// How frozen weights of linear layers are stored (bitsandbytes). They are dequantised to the type of the computation before
// each GEMM. Embedding, output matrix, norms and adapters are stored in that type.
enum class FrozenWeights : std::uint8_t {
  as_computed,
  int8,        // a scale per row
  nf4,         // a scale in fp32 per 64 weights; fp4 is of the same size
  nf4_double,  // scales in 8 bits, and one in fp32 per 256 of them (QLoRA's double quantisation)
};
[[nodiscard]] std::string_view to_string(FrozenWeights kind);
// Bytes per weight with its scales, and what one dequantisation of it reads and writes besides its result.
struct FrozenWeightBytes {
  double stored = 0, read = 0, written = 0;
};
// Of as_computed: none.
[[nodiscard]] FrozenWeightBytes bytes_of(FrozenWeights kind);

// Low-rank adapters (LoRA) beside frozen weights: products with matrices of `rank` columns and rows.
struct Adapters {
  std::int64_t rank = 0;  // 0: none
  bool qkv = true, attention_output = true, ffn_up = false, ffn_down = false;
  bool dropout = false;  // of the input of each
  friend bool operator==(const Adapters&, const Adapters&) = default;
};

// How one layer is computed. Together with degrees and micro-batch this is all that its operations depend on
// (layer_key()).
struct LayerChoices {
  bool sequence_parallel = false;  // norms and dropout on 1/tensor of the tokens
  ContextParallelKind context_parallel_kind = ContextParallelKind::ring;
  // Tokens of the busiest expert-parallel rank over the mean; 1: balanced.
  double expert_imbalance = 1;
  // Tokens an expert takes at most, as a multiple of the mean; nullopt: no token is dropped.
  std::optional<double> expert_capacity_factor;
  bool expert_pads_to_capacity = false;  // every expert computes on as many rows as its capacity
  AttentionMethod attention = AttentionMethod::flash;
  // Queries, keys and values are gathered without padding before flash attention and its result is scattered
  // back (LLM Foundry until 2023, whether or not there is padding).
  bool attention_unpads = false;
  AttentionKernel attention_kernel = AttentionKernel::any;  // any: from device, framework and its date
  Precision precision;
  FusedKernels fused;
  Recomputation recompute;
  bool activation_offload = false;             // kept activations go to the CPU,
  std::int64_t activation_offload_layers = 0;  // those of the first layers of a stage; 0: of all
  OffloadedModules offloaded;                  // of all layers of a chunk but one, which is on its way back
  LayerOverlap overlap;
  CudaGraphs cuda_graphs;
  TokenDispatcher dispatcher = TokenDispatcher::all_to_all;
  bool narrow_dispatch = false;  // a library sends tokens to their experts in 8 bits; results come in 16
  bool narrow_activation_inputs = false;  // what activations need in the backward pass is kept in 8 bits
  // The weights of the model do not change: no gradients, no optimizer states, no reduction for them.
  bool frozen_base = false;
  FrozenWeights frozen_weights = FrozenWeights::as_computed;  // other kinds: with frozen_base
  Adapters adapters;
  // A frozen copy of the model, or under adapters the model without them, runs every micro-batch forward in front of the
  // trained one: preferences of the kind of DPO and KTO.
  bool reference_model = false;
  // Rows of seq_len_tokens are packs of sequences of so many tokens on average, and attention does not cross
  // their borders; 0: every row is one sequence.
  double packed_mean_tokens = 0;
  // Share of the tokens that the vocabulary layer and the loss see: masked ones of an encoder.
  double predicted_token_share = 1;
  // What the host takes for an operator of an eager stack, modules and autograd included, in launches of a kernel
  // (StepAssumptions::host_launch_us) and on a host of 2022. nullopt: not known; launches alone are counted.
  std::optional<double> operator_launches;
  friend bool operator==(const LayerChoices&, const LayerChoices&) = default;
};

// Visits of the busiest expert-parallel rank over the mean of all, as far as a capacity lets it; padded experts are
// always full.
[[nodiscard]] double kept_imbalance(const LayerChoices& layer);

struct PipelineChoices {
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  // Layers of every stage, in the order of the model, degrees.pipeline x degrees.virtual_stages of them.
  // Empty: as many in each.
  std::vector<std::int64_t> layers_per_stage;
  bool p2p_scatter_gather = true;  // activations travel once per tensor-parallel group
  bool overlap = false;            // p2p beside computation; Megatron: on with interleaving
  friend bool operator==(const PipelineChoices&, const PipelineChoices&) = default;
};

// What data-parallel ranks share, and how gradients and weights travel among them.
struct ShardingChoices {
  Sharding kind = Sharding::none;
  // zero2 and zero3: ranks that hold one copy together; 0: all data-parallel (and context-parallel) ranks.
  // Fewer: hybrid sharding, copies are all-reduced.
  std::int64_t shard_group_size = 0;
  bool forward_prefetch = false;               // PyTorch's default
  Prefetch backward_prefetch = Prefetch::pre;  // PyTorch's default; Composer: post
  bool reshard_after_forward = true;           // zero3; false: weights stay until backward
  // zero2 and zero3: gradients are reduced after every micro-batch (FSDP's default); false: after the last
  // (no_sync).
  bool reduce_every_micro_batch = true;
  bool parameter_offload = false;         // weights rest on the CPU (ZeRO-Infinity)
  bool overlap_gradient_reduce = false;   // --overlap-grad-reduce: buckets beside the last backward
  bool overlap_parameter_gather = false;  // --overlap-param-gather: beside the next forward
  // Gradients per bucket of a data-parallel reduction, in parameters. nullopt: the framework's (Megatron:
  // max(40e6, 1e6 x degrees.data); PyTorch DDP: 25 MiB).
  std::optional<std::int64_t> bucket_parameters;
  friend bool operator==(const ShardingChoices&, const ShardingChoices&) = default;
};

// Whose software trains.
struct Software {
  Framework framework = Framework::unknown;
  std::string version;  // "24.11.1", "v0.7.0"; empty: not known
  std::string date;     // "2023-07" or "2023-07-31"; empty: not known, the newest
  // Per tensor-parallel rank; 0: the framework's, see padded_vocab_size()
  std::int64_t vocab_divisible_by = 0;
  // Whether it does what releases do since `first`, "2024" or "2024-09".
  [[nodiscard]] bool is_of(std::string_view first) const { return date.empty() || date >= first; }
  friend bool operator==(const Software&, const Software&) = default;
};

struct Layout {
  Degrees degrees;
  Batch batch;
  LayerChoices layer;
  PipelineChoices pipeline;
  ShardingChoices sharding;
  OptimizerSetup optimizer;
  Software software;
  // From the fastest changing degree to the slowest (--use-tp-pp-dp-mapping: "tp-cp-ep-pp-dp").
  std::string rank_order = "tp-cp-ep-dp-pp";

  [[nodiscard]] std::int64_t world_size() const;
  // Per data-parallel rank and optimizer step: gradient accumulation, or micro-batches of the pipeline.
  [[nodiscard]] std::int64_t micro_batches() const;
  [[nodiscard]] std::int64_t expert_tensor_degree() const {
    return degrees.expert_tensor > 0 ? degrees.expert_tensor : degrees.tensor;
  }
  // Experts are laid out otherwise than the rest of the model: over other ranks, or cut into fewer parts.
  [[nodiscard]] bool experts_have_own_groups() const {
    return degrees.expert > 1 || expert_tensor_degree() != degrees.tensor;
  }
  // Ranks that hold the same experts and reduce their gradients.
  [[nodiscard]] std::int64_t expert_data_parallel() const;
  // Whole weight gradients are added up over micro-batches; under zero3 every rank adds its shard.
  [[nodiscard]] bool accumulates_gradients() const;
  // Ranks that hold one copy of sharded weights together.
  [[nodiscard]] std::int64_t shard_group() const;

  friend bool operator==(const Layout&, const Layout&) = default;
};

// All of a layout that the operations of a layer and their communication depend on: layouts with equal keys
// compute and communicate the same inside the layers of a model, whatever their stages, data-parallel ranks
// and schedule are. (How groups lie on nodes comes on top: place().)
struct LayerKey {
  std::int64_t tensor = 1, context = 1, expert = 1, expert_tensor = 1;
  std::int64_t pipeline =
      0;  // where the layers of a stage share what the host does for a micro-batch; else 0
  std::int64_t micro_batch_sequences = 1, seq_len_tokens = 0;
  bool accumulates_gradients = false;
  Framework framework = Framework::megatron;  // whose layers they are
  LayerChoices choices;
  friend bool operator==(const LayerKey&, const LayerKey&) = default;
};
[[nodiscard]] LayerKey layer_key(const Layout& layout);

// Whether the model can be trained so, on `n_gpus` if given. The sentence names the constraint that is broken
// and the nearest layout that keeps it: "n_layers 30 is not divisible by pipeline_parallel 4 x virtual_stages
// 1; nearest that work: pipeline_parallel 3 or 5".
[[nodiscard]] Status check(const Layout& layout, const Transformer& model,
                           std::optional<std::int64_t> n_gpus = std::nullopt);

// Rows of the word embedding as it is trained: a multiple of vocab_divisible_by x degrees.tensor. Megatron,
// NeMo, DeepSpeed and LiBai: 128; others: 1.
[[nodiscard]] std::int64_t padded_vocab_size(const Transformer& model, const Layout& layout);

// A stretch of layers on one pipeline rank.
struct StageChunk {
  std::int64_t pipeline_rank = 0;
  std::int64_t virtual_stage = 0;
  std::int64_t first_layer = 0;
  std::int64_t n_layers = 0;
  friend bool operator==(const StageChunk&, const StageChunk&) = default;
};
// All chunks in the order of the model, each on its stage_of_chunk(). For a layout
// that passes check().
[[nodiscard]] std::vector<StageChunk> stage_chunks(const Transformer& model, const Layout& layout);

// Layers of every chunk when embedding and output count as a layer each: what remains of an uneven division goes to the first
// chunks (TorchTitan; Megatron with --account-for-embedding/loss-in-pipeline-split). 126 layers on 8 chunks: 15, 16 x 6, 15;
// 61 on 32: 1, 2 x 30, 0; 94 on 96: 0, 1 x 94, 0. Empty for any other number of chunks above that of layers.
[[nodiscard]] std::vector<std::int64_t> layers_counting_embedding_and_output(std::int64_t n_layers,
                                                                             std::int64_t n_chunks);

// A kind of layouts of which no run was ever published with its time, in words: "experts whose weights are sharded".
// Forecasts of it extrapolate. Empty for all others.
[[nodiscard]] std::string_view unmeasured_kind(bool has_experts, Framework framework, Sharding sharding,
                                               std::int64_t expert_parallel, PipelineSchedule schedule);

// Whether full recomputation recomputes layer `layer` (from 0 in its chunk of stage_chunks()).
[[nodiscard]] bool is_recomputed(const Layout& layout, std::int64_t layer);

}  // namespace stepcast
