// Default behaviour of training frameworks: one row per Framework, used by readers of descriptions, by the
// computation of work and memory, and by the layout search.
//
//   const FrameworkRule& rule = rule_of(Framework::torchtitan);
//   rule.fused.norm                 PyTorch's kernels: only norms are fused
//   rule.sharding.shards_weights()  weights are sharded by default
//
// The values are common knowledge about each framework; documentation and sources were not consulted again
// (docs/constants.md). set_software_defaults() (describe/software_defaults.h) copies the values that a Layout
// can represent into it. Values that depend on the device, the release or sizes are computed by
// workload/framework_behavior.h.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "stepcast/base/stated.h"
#include "stepcast/workload/layout.h"

namespace stepcast {

// Implementation of linear layers in fp8.
enum class Fp8Linears : std::uint8_t {
  own,                 // the framework's; tensor-parallel ranks gather before the cast
  transformer_engine,  // kernels before a cast find the maximum; ranks cast, then gather
  torch_ao,  // ranks cast, then gather; layers keep their uncast input and cast it again (Float8Linear)
};

// Defaults of fp8 training.
struct Fp8Habits {
  Stated<Fp8Linears> linears;
  Stated<bool> keeps_weights;  // weights are kept and gathered in fp8 where the computation is in fp8
};

// The default fused attention kernel: `kernel` in releases before `since`, `newer` from then on.
struct AttentionHabit {
  Stated<AttentionKernel> kernel, newer;
  Stated<std::string_view> since;   // "2024"; empty: `newer` in all releases
  Stated<bool> newer_needs_hopper;  // other devices keep `kernel`
  Stated<AttentionMethod> in_fp32;  // attention where the computation is in fp32
};

// Communication that overlaps computation by default.
struct OverlapHabits {
  // False: only with flags of the user (Megatron-LM's --overlap-grad-reduce).
  Stated<bool> gradient_reduction;
  Stated<bool> parameter_gather;
  Stated<bool> interleaved_sends;         // between the stages of interleaved pipelines
  Stated<bool> tensor_parallel;           // under sequence parallelism
  Stated<bool> sequence_parallel_gather;  // with the weight-gradient GEMM
};

// Element types that differ from precision_for(); none: as there.
struct TypeHabits {
  Stated<std::optional<DType>> gradients;  // gradients are accumulated and reduced in this type
  Stated<std::optional<DType>> states;     // master weights and moments
};

// Implementation of layers.
struct LayerHabits {
  Stated<bool> one_program;      // a compiler turns the step into one program: the host launches no kernels
  Stated<bool> routes_by_masks;  // experts with a fixed capacity are filled by GEMMs with masks
  Stated<bool> joins_gated_weights;  // the two matrices of a gated unit are one (linear_fc1)
  // The operators of eager layers are counted (JobSettings give their number), each with its host time.
  Stated<bool> counts_operators;
  // PyTorch runs its operators one by one: each kernel costs the platform's host time of an operator.
  Stated<bool> launches_operators;
  Stated<bool> autocasts;  // operands of GEMMs are cast one by one (torch.autocast)
  // Models are Hugging Face's, except those described by a Megatron-LM command line: kernels are those of
  // eager PyTorch.
  Stated<bool> runs_plain_models;
  // Queries, keys, values, gate and input of a gated unit are separate GEMMs, each with an adapter (PEFT).
  Stated<bool> adapts_each_projection;
  Stated<TokenDispatcher> dispatcher;
  Stated<Recompute> recompute;  // default
};

// Buffers at the memory peak of the loss, in addition to logits.
enum class LossMemory : std::uint8_t {
  softmax,         // an fp32 softmax that becomes the gradient in place; assumed
  liger,           // like softmax; a fused loss includes the vocabulary layer, in chunks of tokens
  megatron_fused,  // like softmax, plus fp32 logits where the loss is fused
  torch,           // PyTorch's operators one by one, until a compiler merges them
};

// Lifetime of gathered weights under weight sharding.
enum class WeightGathers : std::uint8_t {
  freed,  // freed after use
  fsdp1,  // the root of the model (embedding, last norm, vocabulary layer) stays for the whole step
  fsdp2,  // like fsdp1, through buffers of a separate stream; gradients are copied for their reduction
};

// Memory behaviour.
struct MemoryHabits {
  Stated<LossMemory> loss;
  Stated<WeightGathers> gathers;
  Stated<bool> torch_pipelining;  // buffers of torch.distributed.pipelining (PipelineStage)
  Stated<bool> recomputes_tower;  // full recomputation includes the layers of a vision tower
};

// Default sizes.
struct SizeHabits {
  // Rows of word embeddings per tensor-parallel rank are a multiple of this.
  Stated<std::int64_t> vocabulary_multiple;
  Stated<std::optional<std::int64_t>> bucket_parameters;  // none: Megatron Core's, which grow with the ranks
  // First release with gradient accumulation without a pipeline; empty: all.
  Stated<std::string_view> accumulates_since;
};

// One way to shard weights, gradients and states that a layout search tries.
struct SearchedSharding {
  Sharding kind = Sharding::none;
  std::int32_t nodes = 0;    // nodes per copy of the model (hybrid sharding); 0: all
  bool inside_node = false;  // tried only where all GPUs are one node
};

// When weights are sharded by default.
enum class WeightSharding : std::uint8_t {
  asked_for,  // only on request
  first,   // on request; a usual layout shards weights before it splits tensors, after the other ZeRO stages
  always,  // by default, also under a pipeline
};

// Kinds of sharding that a framework supports.
struct ShardingKinds {
  Stated<bool> zero1, zero2, zero3, hybrid;
  Stated<std::string_view> instead;  // appended to the list of kinds in a message

  // Whether a kind is supported; `is_hybrid`: weight sharding in groups.
  [[nodiscard]] constexpr bool has(Sharding kind, bool is_hybrid) const {
    if (is_hybrid) return hybrid;
    if (kind == Sharding::zero1) return zero1;
    if (kind == Sharding::zero2) return zero2;
    return kind == Sharding::none || zero3;
  }
  // The supported kinds: "none, zero3 or hybrid:N".
  [[nodiscard]] std::string words() const;
};

// Sharding behaviour.
struct ShardingHabits {
  Stated<WeightSharding> weights;
  Stated<bool> published_with_experts;  // runs with sharded experts under expert parallelism were published
  ShardingKinds kinds;
  Stated<std::span<const SearchedSharding>> searched;

  [[nodiscard]] constexpr bool shards_weights() const { return *weights == WeightSharding::always; }
};

// Behaviour in the layout search.
struct SearchHabits {
  // Refinement varies the recomputation, dispatchers and offloading of Megatron Core.
  Stated<bool> has_megatron_flags;
  Stated<bool> plans_post_training;  // training layouts of post-training are searched
  Stated<std::string_view> told_in;  // syntax of a printed plan: "Megatron", "TorchTitan", "DeepSpeed"
};

// The row of a framework.
struct FrameworkRule {
  Stated<Framework> framework;
  Stated<std::string_view> name;
  // Parts of a text that name it, separated by blanks; `=` in front: the whole text.
  Stated<std::string_view> spellings;
  // Where a text names several frameworks ("NeMo / Megatron Core", "Megatron-DeepSpeed"), the lowest number
  // wins.
  Stated<int> precedence;
  Stated<FusedKernels> fused;
  Fp8Habits fp8;
  AttentionHabit attention;
  OverlapHabits overlap;
  TypeHabits types;
  LayerHabits layers;
  MemoryHabits memory;
  SizeHabits sizes;
  ShardingHabits sharding;
  SearchHabits search;

  [[nodiscard]] constexpr bool has_transformer_engine() const {
    return *fp8.linears == Fp8Linears::transformer_engine;
  }
};

// The row of a framework; valid for the whole run.
[[nodiscard]] const FrameworkRule& rule_of(Framework framework);
[[nodiscard]] inline const FrameworkRule& rule_of(const Layout& layout) {
  return rule_of(layout.software.framework);
}

// The framework in a text: "Megatron-LM", "NeMo / Megatron Core", "llm-foundry (PyTorch FSDP)", "TorchTitan
// torch.compile", ... `unknown` if no row matches.
[[nodiscard]] Framework parse_framework(std::string_view text);
// All names but `unknown`: "megatron, nemo, ..., libai or maxtext", with `before_last` between the last two.
[[nodiscard]] std::string framework_names(std::string_view before_last = ", ");

}  // namespace stepcast
