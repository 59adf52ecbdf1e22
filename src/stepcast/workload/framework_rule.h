// What training frameworks do unless told otherwise: one row per Framework, which readers of descriptions, counts of work
// and memory, and the layout search ask.
//
//   const FrameworkRule& rule = rule_of(Framework::torchtitan);
//   rule.fused.norm                 PyTorch's own kernels: norms alone are fused
//   rule.sharding.shards_weights()  weights are sharded unless told otherwise
//
// Facts are as commonly known of each framework; documentation and sources were not read again (docs/constants.md).
// set_software_defaults() (describe/software_defaults.h) puts those that a Layout can hold into it; those that depend on
// the device, on the release or on sizes are asked through workload/framework_behavior.h.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "stepcast/base/stated.h"
#include "stepcast/workload/layout.h"

namespace stepcast {

// Whose linear layers run in fp8.
enum class Fp8Linears : std::uint8_t {
  own,                 // tensor-parallel ranks gather what is not cast yet
  transformer_engine,  // kernels in front of a cast find the maximum; ranks cast first and gather then
  torch_ao,  // ranks cast first, too; layers keep their input as it came and cast it again (Float8Linear)
};

struct Fp8Habits {
  Stated<Fp8Linears> linears;
  Stated<bool> keeps_weights;  // in fp8, where the computation is in fp8, and gathers them so
};

// The fused attention kernel of releases before `since`, and the `newer` one since then.
struct AttentionHabit {
  Stated<AttentionKernel> kernel, newer;
  Stated<std::string_view> since;   // "2024"; empty: all releases have the newer one
  Stated<bool> newer_needs_hopper;  // other devices keep `kernel`
  Stated<AttentionMethod> in_fp32;
};

// What runs at the same time as computation.
struct OverlapHabits {
  // False: the user asks for it with flags (Megatron-LM's --overlap-grad-reduce).
  Stated<bool> gradient_reduction;
  Stated<bool> parameter_gather;
  Stated<bool> interleaved_sends;         // between the stages of interleaved pipelines
  Stated<bool> tensor_parallel;           // under sequence parallelism
  Stated<bool> sequence_parallel_gather;  // with the weight gradient
};

// Nothing: as precision_for() has them.
struct TypeHabits {
  Stated<std::optional<DType>> gradients;  // accumulated and reduced in
  Stated<std::optional<DType>> states;     // master weights and moments
};

struct LayerHabits {
  Stated<bool> one_program;      // a compiler turns the step into one program: the host launches no kernels
  Stated<bool> routes_by_masks;  // experts of a fixed capacity are filled by GEMMs with masks
  Stated<bool> joins_gated_weights;  // both matrices of a gated unit are one (linear_fc1)
  // Operators of its eager layers are counted (JobSettings say how many), each with its time on the host.
  Stated<bool> counts_operators;
  // PyTorch runs its operators one by one: each kernel costs what the platform's host takes for an operator.
  Stated<bool> launches_operators;
  Stated<bool> autocasts;  // operands of products are cast one by one (torch.autocast)
  // Models are Hugging Face's unless a command line of Megatron-LM describes one: kernels are those of eager PyTorch.
  Stated<bool> runs_plain_models;
  // Queries, keys, values, gate and input of a gated unit are products of their own, with an adapter each (PEFT).
  Stated<bool> adapts_each_projection;
  Stated<TokenDispatcher> dispatcher;
  Stated<Recompute> recompute;  // where nothing is said
};

// What is in memory at the worst moment of the loss, besides logits.
enum class LossMemory : std::uint8_t {
  softmax,         // an fp32 softmax that becomes the gradient in place; assumed
  liger,           // the same; a fused loss takes the vocabulary layer with it, in chunks of tokens
  megatron_fused,  // the same, and fp32 logits where the loss is fused
  torch,           // PyTorch's operators one by one, until a compiler merges them
};

// How weights that ranks share are gathered.
enum class WeightGathers : std::uint8_t {
  freed,  // what is used is freed
  fsdp1,  // the root of the model (embedding, last norm, vocabulary layer) stays over the whole step
  fsdp2,  // the same, through buffers of a stream of its own, and gradients are copied for their reduction
};

struct MemoryHabits {
  Stated<LossMemory> loss;
  Stated<WeightGathers> gathers;
  Stated<bool> torch_pipelining;  // buffers of torch.distributed.pipelining (PipelineStage)
  Stated<bool> recomputes_tower;  // full recomputation includes the layers of a vision tower
};

struct SizeHabits {
  Stated<std::int64_t>
      vocabulary_multiple;  // word embeddings have a multiple of this many rows per tensor-parallel rank
  Stated<std::optional<std::int64_t>>
      bucket_parameters;  // nothing: Megatron Core's, which grow with the ranks
  Stated<std::string_view>
      accumulates_since;  // releases that take several micro-batches without a pipeline; empty: all
};

// One way to share weights, gradients and states that a layout search tries.
struct SearchedSharding {
  Sharding kind = Sharding::none;
  std::int32_t nodes = 0;    // whose ranks hold one copy together (hybrid sharding); 0: all
  bool inside_node = false;  // tried only where all GPUs are one node
};

// When weights are sharded.
enum class WeightSharding : std::uint8_t {
  asked_for,
  first,   // a usual layout shards weights before it splits tensors, after the other ZeRO stages
  always,  // unless told otherwise, and under a pipeline, too
};

// What a framework can be told to share.
struct ShardingKinds {
  Stated<bool> zero1, zero2, zero3, hybrid;
  Stated<std::string_view> instead;  // behind their list in a message

  [[nodiscard]] constexpr bool has(Sharding kind, bool is_hybrid) const {
    if (is_hybrid) return hybrid;
    if (kind == Sharding::zero1) return zero1;
    if (kind == Sharding::zero2) return zero2;
    return kind == Sharding::none || zero3;
  }
  // "none, zero3 or hybrid:N"
  [[nodiscard]] std::string words() const;
};

struct ShardingHabits {
  Stated<WeightSharding> weights;
  Stated<bool> published_with_experts;  // steps of sharded experts under expert parallelism
  ShardingKinds kinds;
  Stated<std::span<const SearchedSharding>> searched;

  [[nodiscard]] constexpr bool shards_weights() const { return *weights == WeightSharding::always; }
};

struct SearchHabits {
  Stated<bool>
      has_megatron_flags;  // recomputation, dispatchers, offloading of Megatron Core, which refinement varies
  Stated<bool> plans_post_training;  // training layouts of post-training are searched
  Stated<std::string_view> told_in;  // the words of a plan: "Megatron", "TorchTitan", "DeepSpeed"
};

struct FrameworkRule {
  Stated<Framework> framework;
  Stated<std::string_view> name;
  // Parts of a text that name it, blanks between; `=` in front: the whole text.
  Stated<std::string_view> spellings;
  // Of several that a text names ("NeMo / Megatron Core", "Megatron-DeepSpeed") the one with the lowest number is meant.
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

[[nodiscard]] const FrameworkRule& rule_of(Framework framework);
[[nodiscard]] inline const FrameworkRule& rule_of(const Layout& layout) {
  return rule_of(layout.software.framework);
}

// "Megatron-LM", "NeMo / Megatron Core", "llm-foundry (PyTorch FSDP)", "TorchTitan torch.compile", ...
// `unknown` where no row is named.
[[nodiscard]] Framework parse_framework(std::string_view text);
// All but `unknown`: "megatron, nemo, ..., libai or maxtext", with `before_last` between the last two.
[[nodiscard]] std::string framework_names(std::string_view before_last = ", ");

}  // namespace stepcast
