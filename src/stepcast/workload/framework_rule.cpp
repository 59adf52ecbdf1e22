#include "stepcast/workload/framework_rule.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <vector>

#include "stepcast/base/text.h"
#include "stepcast/base/words.h"

// The table of framework rules. Values that several frameworks share are named constants; a row lists its
// values in the order of FrameworkRule.

namespace stepcast {
namespace {

// Kernels of Megatron-LM and of frameworks built on it.
constexpr FusedKernels kMegatronKernels{};
constexpr FusedKernels kMegatronKernelsAndLoss{.cross_entropy = true};
// GPT-NeoX: its norms and rotation consist of separate operators; softmax and bias-GELU kernels are
// Megatron's of 2021.
constexpr FusedKernels kUnfusedNorms{.norm = false, .rotary = false};
// XLA merges chains of element-wise operations.
constexpr FusedKernels kCompiledByXla{.compiled = true};
// PyTorch without a compiler: norms are single kernels, nothing else is fused.
constexpr FusedKernels kEager{.softmax = false,
                              .bias_activation = false,
                              .bias_dropout_add = false,
                              .norm = true,
                              .rotary = false,
                              .cross_entropy = false,
                              .weight_gradient_accumulation = false,
                              .compiled = false};

// TorchTitan's published runs are compiled, including the loss (`compile.enable`).
constexpr FusedKernels kCompiledByTorch{
    .cross_entropy = true, .weight_gradient_accumulation = false, .compiled = true};

constexpr Fp8Habits kOwnFp8{.linears = Fp8Linears::own, .keeps_weights = false};
constexpr Fp8Habits kTransformerEngine{.linears = Fp8Linears::transformer_engine, .keeps_weights = false};
// NeMo's precision `bf16_with_fp8_mixed` keeps weights in fp8 (`fp8_params`).
constexpr Fp8Habits kNemoFp8{.linears = Fp8Linears::transformer_engine, .keeps_weights = true};
constexpr Fp8Habits kTorchAo{.linears = Fp8Linears::torch_ao, .keeps_weights = false};

// The same kernel in all releases and on all devices.
constexpr AttentionHabit all_releases(AttentionKernel kernel,
                                      AttentionMethod in_fp32 = AttentionMethod::flash) {
  return {.kernel = kernel, .newer = kernel, .since = "", .newer_needs_hopper = false, .in_fp32 = in_fp32};
}
// PyTorch's scaled_dot_product_attention; also used for JAX's splash attention, which has no separate rate
// here.
constexpr AttentionHabit kFlash2 = all_releases(AttentionKernel::flash2);
// In eager models no flash kernel accepts fp32.
constexpr AttentionHabit kEagerAttention = all_releases(AttentionKernel::flash2, AttentionMethod::unfused);
constexpr AttentionHabit kFlash1 = all_releases(AttentionKernel::flash1);
// Transformer Engine uses cuDNN's fused attention on Hopper, which uses its new units since cuDNN 9 (2024).
constexpr AttentionHabit kCudnn{.kernel = AttentionKernel::flash2,
                                .newer = AttentionKernel::flash3,
                                .since = "2024",
                                .newer_needs_hopper = true,
                                .in_fp32 = AttentionMethod::flash};
// LLM Foundry and Composer of 2023: Triton or FlashAttention 1.
constexpr AttentionHabit kFlash1Until2024{.kernel = AttentionKernel::flash1,
                                          .newer = AttentionKernel::flash2,
                                          .since = "2024",
                                          .newer_needs_hopper = false,
                                          .in_fp32 = AttentionMethod::flash};

constexpr OverlapHabits kAskedFor{.gradient_reduction = false,
                                  .parameter_gather = false,
                                  .interleaved_sends = true,
                                  .tensor_parallel = false,
                                  .sequence_parallel_gather = true};
// The published NeMo configurations enable every overlap.
constexpr OverlapHabits kEverything{.gradient_reduction = true,
                                    .parameter_gather = true,
                                    .interleaved_sends = true,
                                    .tensor_parallel = true,
                                    .sequence_parallel_gather = true};
constexpr OverlapHabits kAllButTensorParallel{.gradient_reduction = true,
                                              .parameter_gather = true,
                                              .interleaved_sends = true,
                                              .tensor_parallel = false,
                                              .sequence_parallel_gather = true};
// DistributedDataParallel reduces buckets during the last backward pass, FSDP and ZeRO reduce shards.
constexpr OverlapHabits kReduction{.gradient_reduction = true,
                                   .parameter_gather = false,
                                   .interleaved_sends = false,
                                   .tensor_parallel = false,
                                   .sequence_parallel_gather = false};
constexpr OverlapHabits kReductionAndSequence{.gradient_reduction = true,
                                              .parameter_gather = false,
                                              .interleaved_sends = false,
                                              .tensor_parallel = false,
                                              .sequence_parallel_gather = true};

constexpr TypeHabits kUsualTypes{.gradients = std::nullopt, .states = std::nullopt};
// NeMo's performance recipes keep and reduce gradients in bf16; in fp32 some published runs would not fit in
// memory.
constexpr TypeHabits kBf16Gradients{.gradients = DType::bf16, .states = std::nullopt};
// Weights are only in bf16, as models are loaded (`torch_dtype`), and PyTorch's optimizers use the same type.
constexpr TypeHabits kAllBf16{.gradients = DType::bf16, .states = DType::bf16};

// Layers without framework-specific behaviour.
constexpr LayerHabits kPlainLayers{.one_program = false,
                                   .routes_by_masks = false,
                                   .joins_gated_weights = false,
                                   .counts_operators = false,
                                   .launches_operators = false,
                                   .autocasts = false,
                                   .runs_plain_models = false,
                                   .adapts_each_projection = false,
                                   .dispatcher = TokenDispatcher::all_to_all,
                                   .recompute = Recompute::none};
// Eager PyTorch layers.
constexpr LayerHabits kEagerLayers{.one_program = false,
                                   .routes_by_masks = false,
                                   .joins_gated_weights = false,
                                   .counts_operators = false,
                                   .launches_operators = true,
                                   .autocasts = false,
                                   .runs_plain_models = false,
                                   .adapts_each_projection = true,
                                   .dispatcher = TokenDispatcher::all_to_all,
                                   .recompute = Recompute::none};
// TorchTitan's published configurations recompute per operator (`selective_ac_option = "op"`).
constexpr LayerHabits kTorchTitanLayers{.one_program = false,
                                        .routes_by_masks = false,
                                        .joins_gated_weights = false,
                                        .counts_operators = false,
                                        .launches_operators = true,
                                        .autocasts = false,
                                        .runs_plain_models = false,
                                        .adapts_each_projection = true,
                                        .dispatcher = TokenDispatcher::all_to_all,
                                        .recompute = Recompute::selective_ops};
// Eager layers under torch.autocast.
constexpr LayerHabits kAutocastLayers{.one_program = false,
                                      .routes_by_masks = false,
                                      .joins_gated_weights = false,
                                      .counts_operators = false,
                                      .launches_operators = true,
                                      .autocasts = true,
                                      .runs_plain_models = false,
                                      .adapts_each_projection = true,
                                      .dispatcher = TokenDispatcher::all_to_all,
                                      .recompute = Recompute::none};
// Megatron Core: counted operators, joined gate and up matrices.
constexpr LayerHabits kMegatronCore{.one_program = false,
                                    .routes_by_masks = false,
                                    .joins_gated_weights = true,
                                    .counts_operators = true,
                                    .launches_operators = false,
                                    .autocasts = false,
                                    .runs_plain_models = false,
                                    .adapts_each_projection = false,
                                    .dispatcher = TokenDispatcher::all_to_all,
                                    .recompute = Recompute::none};
// NeMo uses Megatron Core's layers in tuned form, without counted operators.
constexpr LayerHabits kTunedMegatronCore{.one_program = false,
                                         .routes_by_masks = false,
                                         .joins_gated_weights = true,
                                         .counts_operators = false,
                                         .launches_operators = false,
                                         .autocasts = false,
                                         .runs_plain_models = false,
                                         .adapts_each_projection = false,
                                         .dispatcher = TokenDispatcher::all_to_all,
                                         .recompute = Recompute::none};
// NeMo Automodel: tokens are dispatched by DeepEP.
constexpr LayerHabits kDeepEp{.one_program = false,
                              .routes_by_masks = false,
                              .joins_gated_weights = false,
                              .counts_operators = false,
                              .launches_operators = false,
                              .autocasts = false,
                              .runs_plain_models = false,
                              .adapts_each_projection = true,
                              .dispatcher = TokenDispatcher::deepep,
                              .recompute = Recompute::none};
// Hugging Face models.
constexpr LayerHabits kHuggingFaceLayers{.one_program = false,
                                         .routes_by_masks = false,
                                         .joins_gated_weights = false,
                                         .counts_operators = false,
                                         .launches_operators = true,
                                         .autocasts = false,
                                         .runs_plain_models = true,
                                         .adapts_each_projection = true,
                                         .dispatcher = TokenDispatcher::all_to_all,
                                         .recompute = Recompute::none};
// JAX: one compiled program per step.
constexpr LayerHabits kXlaProgram{.one_program = true,
                                  .routes_by_masks = true,
                                  .joins_gated_weights = false,
                                  .counts_operators = false,
                                  .launches_operators = false,
                                  .autocasts = false,
                                  .runs_plain_models = false,
                                  .adapts_each_projection = false,
                                  .dispatcher = TokenDispatcher::all_to_all,
                                  .recompute = Recompute::full};

constexpr MemoryHabits kUsualMemory{.loss = LossMemory::softmax,
                                    .gathers = WeightGathers::freed,
                                    .torch_pipelining = false,
                                    .recomputes_tower = false};
constexpr MemoryHabits kMegatronMemory{.loss = LossMemory::megatron_fused,
                                       .gathers = WeightGathers::freed,
                                       .torch_pipelining = false,
                                       .recomputes_tower = false};
// DeepSpeed trains Hugging Face models; their checkpointing also wraps the layers of a tower.
constexpr MemoryHabits kZero{.loss = LossMemory::liger,
                             .gathers = WeightGathers::freed,
                             .torch_pipelining = false,
                             .recomputes_tower = true};
constexpr MemoryHabits kFsdp1{.loss = LossMemory::liger,
                              .gathers = WeightGathers::fsdp1,
                              .torch_pipelining = false,
                              .recomputes_tower = true};
constexpr MemoryHabits kFsdp2{.loss = LossMemory::torch,
                              .gathers = WeightGathers::fsdp2,
                              .torch_pipelining = true,
                              .recomputes_tower = true};

// Megatron-LM's --make-vocab-size-divisible-by.
constexpr SizeHabits kMegatronSizes{
    .vocabulary_multiple = 128, .bucket_parameters = std::nullopt, .accumulates_since = ""};
constexpr SizeHabits kUnpadded{
    .vocabulary_multiple = 1, .bucket_parameters = std::nullopt, .accumulates_since = ""};
// DistributedDataParallel: 25 MiB of fp32 gradients (bucket_cap_mb).
constexpr SizeHabits kDdpBuckets{
    .vocabulary_multiple = 1, .bucket_parameters = 25 * 1024 * 1024 / 4, .accumulates_since = ""};
// TorchTitan accumulates gradients since its release 0.1.0 (`training.global_batch_size`).
constexpr SizeHabits kTorchTitanSizes{
    .vocabulary_multiple = 1, .bucket_parameters = std::nullopt, .accumulates_since = "2025-06"};

constexpr SearchedSharding kZeroStages[] = {
    {Sharding::none}, {Sharding::zero1}, {Sharding::zero2}, {Sharding::zero3}};
constexpr SearchedSharding kStatesAlone[] = {{Sharding::none}, {Sharding::zero1}};
// Recipes of Megatron-Bridge also shard weights (FSDP) where all GPUs are one NVLink domain; beyond that no
// recipe was published.
constexpr SearchedSharding kStatesOrNode[] = {
    {Sharding::none}, {Sharding::zero1}, {Sharding::zero3, 0, true}};
constexpr SearchedSharding kWeights[] = {
    {Sharding::zero3}, {Sharding::zero3, 1}, {Sharding::zero3, 2}, {Sharding::zero3, 4}};
constexpr SearchedSharding kGradientsOrWeights[] = {
    {Sharding::zero2}, {Sharding::zero3}, {Sharding::zero3, 1}, {Sharding::zero3, 2}, {Sharding::zero3, 4}};

constexpr ShardingKinds kAllKinds{.zero1 = true, .zero2 = true, .zero3 = true, .hybrid = true, .instead = ""};
constexpr ShardingKinds kNoHybrid{
    .zero1 = true, .zero2 = true, .zero3 = true, .hybrid = false, .instead = ""};
constexpr ShardingKinds kFsdpKinds{
    .zero1 = false, .zero2 = true, .zero3 = true, .hybrid = true, .instead = ""};
constexpr ShardingKinds kWeightKinds{
    .zero1 = false, .zero2 = false, .zero3 = true, .hybrid = true, .instead = ""};
// DistributedDataParallel and ZeroRedundancyOptimizer.
constexpr ShardingKinds kDdpKinds{.zero1 = true,
                                  .zero2 = false,
                                  .zero3 = false,
                                  .hybrid = false,
                                  .instead = " (--framework fsdp shards weights)"};

// Weights are sharded only on request.
constexpr ShardingHabits asked_for(const ShardingKinds& kinds, std::span<const SearchedSharding> searched) {
  return {.weights = WeightSharding::asked_for,
          .published_with_experts = false,
          .kinds = kinds,
          .searched = searched};
}
constexpr ShardingHabits kMegatronSharding = asked_for(kAllKinds, kZeroStages);
constexpr ShardingHabits kNemoSharding = asked_for(kAllKinds, kStatesOrNode);
constexpr ShardingHabits kNeoxSharding = asked_for(kNoHybrid, kZeroStages);
constexpr ShardingHabits kLibaiSharding = asked_for(kNoHybrid, kStatesAlone);
constexpr ShardingHabits kDdpSharding{.weights = WeightSharding::asked_for,
                                      .published_with_experts = true,
                                      .kinds = kDdpKinds,
                                      .searched = kStatesAlone};
constexpr ShardingHabits kZeroSharding{.weights = WeightSharding::first,
                                       .published_with_experts = false,
                                       .kinds = kAllKinds,
                                       .searched = kZeroStages};
constexpr ShardingHabits kFsdpSharding{.weights = WeightSharding::always,
                                       .published_with_experts = true,
                                       .kinds = kFsdpKinds,
                                       .searched = kGradientsOrWeights};
constexpr ShardingHabits kTorchTitanSharding{.weights = WeightSharding::always,
                                             .published_with_experts = true,
                                             .kinds = kFsdpKinds,
                                             .searched = kWeights};
constexpr ShardingHabits kAutomodelSharding{.weights = WeightSharding::always,
                                            .published_with_experts = true,
                                            .kinds = kWeightKinds,
                                            .searched = kWeights};
constexpr ShardingHabits kMaxTextSharding{.weights = WeightSharding::always,
                                          .published_with_experts = false,
                                          .kinds = kAllKinds,
                                          .searched = kWeights};

constexpr SearchHabits kMegatronSearch{
    .has_megatron_flags = true, .plans_post_training = true, .told_in = "Megatron"};
constexpr SearchHabits kNemoSearch{
    .has_megatron_flags = true, .plans_post_training = false, .told_in = "Megatron"};
constexpr SearchHabits kOtherSearch{
    .has_megatron_flags = false, .plans_post_training = false, .told_in = "Megatron"};
constexpr SearchHabits kTorchTitanSearch{
    .has_megatron_flags = false, .plans_post_training = false, .told_in = "TorchTitan"};
constexpr SearchHabits kDeepSpeedSearch{
    .has_megatron_flags = false, .plans_post_training = false, .told_in = "DeepSpeed"};

// In the order of Framework.
constexpr FrameworkRule kRules[] = {
    {Framework::unknown, "unknown", "", 99,  //
     kMegatronKernels, kOwnFp8, kFlash2, kAskedFor, kUsualTypes, kPlainLayers, kUsualMemory, kMegatronSizes,
     kMegatronSharding, kOtherSearch},
    {Framework::megatron, "megatron", "megatron", 5,  //
     kMegatronKernels, kTransformerEngine, kCudnn, kAskedFor, kUsualTypes, kMegatronCore, kMegatronMemory,
     kMegatronSizes, kMegatronSharding, kMegatronSearch},
    {Framework::nemo, "nemo", "nemo", 2,  //
     kMegatronKernelsAndLoss, kNemoFp8, kCudnn, kEverything, kBf16Gradients, kTunedMegatronCore, kUsualMemory,
     kMegatronSizes, kNemoSharding, kNemoSearch},
    {Framework::automodel, "automodel", "automodel", 1,  //
     kMegatronKernelsAndLoss, kNemoFp8, kCudnn, kAllButTensorParallel, kAllBf16, kDeepEp, kUsualMemory,
     kUnpadded, kAutomodelSharding, kOtherSearch},
    {Framework::torchtitan, "torchtitan", "torchtitan", 4,  //
     kCompiledByTorch, kTorchAo, kFlash2, kReduction, kUsualTypes, kTorchTitanLayers, kFsdp2,
     kTorchTitanSizes, kTorchTitanSharding, kTorchTitanSearch},
    {Framework::fsdp, "fsdp", "fsdp foundry composer", 9,  //
     kEager, kOwnFp8, kFlash1Until2024, kReductionAndSequence, kUsualTypes, kEagerLayers, kFsdp1, kUnpadded,
     kFsdpSharding, kOtherSearch},
    {Framework::deepspeed, "deepspeed", "deepspeed", 8,  //
     kMegatronKernels, kOwnFp8, kFlash2, kReduction, kUsualTypes, kHuggingFaceLayers, kZero, kMegatronSizes,
     kZeroSharding, kDeepSpeedSearch},
    {Framework::neox, "neox", "neox", 7,  //
     kUnfusedNorms, kOwnFp8, kFlash1, kReduction, kUsualTypes, kPlainLayers, kUsualMemory, kMegatronSizes,
     kNeoxSharding, kOtherSearch},
    {Framework::pytorch, "pytorch", "=pytorch hugging eager ddp", 10,  //
     kEager, kOwnFp8, kEagerAttention, kReduction, kUsualTypes, kAutocastLayers, kFsdp1, kDdpBuckets,
     kDdpSharding, kOtherSearch},
    {Framework::libai, "libai", "libai", 6,  //
     kMegatronKernels, kOwnFp8, kFlash2, kAskedFor, kUsualTypes, kPlainLayers, kUsualMemory, kMegatronSizes,
     kLibaiSharding, kOtherSearch},
    {Framework::maxtext, "maxtext", "maxtext", 3,  //
     kCompiledByXla, kOwnFp8, kFlash2, kReduction, kUsualTypes, kXlaProgram, kUsualMemory, kUnpadded,
     kMaxTextSharding, kOtherSearch},
};

// Lets rule_of() index by value.
consteval bool rows_have_the_order_of_frameworks() {
  for (std::size_t i = 0; i < std::size(kRules); ++i)
    if (static_cast<std::size_t>(*kRules[i].framework) != i) return false;
  return true;
}
static_assert(std::size(kRules) == static_cast<std::size_t>(Framework::count));
static_assert(rows_have_the_order_of_frameworks());

// "a, b or c", with `before_last` between the last two.
std::string listed(const std::vector<std::string_view>& words, std::string_view before_last) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? before_last : ", ";
    text += words[i];
  }
  return text;
}

}  // namespace

const FrameworkRule& rule_of(Framework framework) { return kRules[static_cast<std::size_t>(framework)]; }

std::string_view to_string(Framework framework) { return rule_of(framework).name; }

std::string ShardingKinds::words() const {
  std::vector<std::string_view> all{"none"};
  if (zero1) all.emplace_back("zero1");
  if (zero2) all.emplace_back("zero2");
  if (zero3) all.emplace_back("zero3");
  if (hybrid) all.emplace_back("hybrid:N");
  return listed(all, " or ") + std::string{*instead};
}

Framework parse_framework(std::string_view text) {
  const std::string name = lower(text);
  const FrameworkRule* found = &kRules[0];
  for (const FrameworkRule& rule : kRules) {
    const bool is_named = any_word(rule.spellings, [&](std::string_view part) {
      return part.starts_with('=') ? name == part.substr(1) : name.find(part) != std::string::npos;
    });
    if (is_named && rule.precedence < found->precedence) found = &rule;
  }
  return found->framework;
}

std::string framework_names(std::string_view before_last) {
  std::vector<std::string_view> names;
  for (const FrameworkRule& rule : kRules)
    if (*rule.framework != Framework::unknown) names.push_back(*rule.name);
  return listed(names, before_last);
}

}  // namespace stepcast
