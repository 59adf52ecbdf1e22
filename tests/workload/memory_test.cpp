#include "stepcast/workload/memory.h"

#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/formats/presets.h"
#include "stepcast/workload/framework_behavior.h"
#include "stepcast/workload/network.h"

namespace stepcast::memory_test {
namespace {

using ::testing::HasSubstr;

constexpr double kGiB = 1073741824.0;

// The GPT of the published count: dropout behind attention, in attention and behind the FFN, 16-bit
// activations, unfused attention, GELU over 4h.
Transformer gpt() {
  Transformer model{.name = "gpt",
                    .n_layers = 8,
                    .hidden_size = 2048,
                    .ffn_hidden_size = 8192,
                    .n_heads = 16,
                    .vocab_size = 51200,
                    .max_position = 1024};
  model.hidden_dropout = model.attention_dropout = 0.1;
  return model;
}

Layout layout_of(std::int64_t tensor_parallel, bool sequence_parallel) {
  Layout layout{.degrees = {.tensor = tensor_parallel},
                .batch = {.micro_batch_sequences = 4, .global_batch_sequences = 64, .seq_len_tokens = 1024},
                .layer = {.sequence_parallel = sequence_parallel}};
  layout.layer.attention = AttentionMethod::unfused;
  return layout;
}

MemoryForecast forecast(const Transformer& model, const Layout& layout, double available_GiB = 80) {
  Result<MemoryForecast> memory = memory_forecast(model, layout, Bytes{available_GiB * kGiB});
  EXPECT_TRUE(memory.ok()) << memory.error().message();
  return memory.ok() ? std::move(*memory) : MemoryForecast{};
}

// Korthikanti et al. 2022: s b h (34 + 5 a s / h) bytes a layer, s tokens, b sequences, h wide, a heads.
//   attention: its input 2, Q K V 6, output projection's input 2, dropout mask 1        = 11 s b h
//              softmax 2, its dropout mask 1 and output 2 on a s s b scores            = 5 a s s b
//   FFN:       input 2, up's output 8, GELU's output 8, dropout mask 1                  = 19 s b h
//   norms:     inputs of both                                                          = 4 s b h
constexpr double kS = 1024, kB = 4, kH = 2048, kA = 16;

// A copy in 16 bits; adapters are switched off instead.
TEST(ReferenceModel, IsACopyOfTheWeightsUnlessAdaptersAreTrained) {
  Layout layout = layout_of(2, true);
  const auto weights = [&] { return forecast(gpt(), layout).stages[0].weights.value(); };
  const double alone = weights();
  const double parameters = step_work(gpt(), layout)->chunks[0].dense_parameters;
  layout.layer.reference_model = true;
  EXPECT_DOUBLE_EQ(weights() - alone, 2 * parameters);
  layout.layer.frozen_base = true;
  layout.layer.adapters.rank = 16;
  const double adapted = weights();
  layout.layer.reference_model = false;
  EXPECT_DOUBLE_EQ(adapted, weights());
}

TEST(LayerActivations, ClosedFormOnOneRank) {
  const double expected = kS * kB * kH * (34 + 5 * kA * kS / kH);
  EXPECT_DOUBLE_EQ(layer_activations(gpt(), layout_of(1, false), 0).value(), expected);
}

// Without sequence parallelism the norms' inputs (4), the inputs of both parts (4) and their dropout masks
// (2) are on every rank: 10 + 24 / t.
TEST(LayerActivations, ClosedFormWithTensorParallelism) {
  for (const double t : {2.0, 4.0, 8.0}) {
    const double expected = kS * kB * kH * (10 + 24 / t + 5 * kA * kS / (kH * t));
    EXPECT_DOUBLE_EQ(layer_activations(gpt(), layout_of(std::llround(t), false), 0).value(), expected);
  }
}

TEST(LayerActivations, SequenceParallelismDividesAll) {
  for (const double t : {2.0, 4.0, 8.0}) {
    const double expected = kS * kB * kH / t * (34 + 5 * kA * kS / kH);
    EXPECT_DOUBLE_EQ(layer_activations(gpt(), layout_of(std::llround(t), true), 0).value(), expected);
  }
}

// Framework operations keep the fp32 softmax (4 B for 2), and beside it what it is cast to unless dropout takes its place.
TEST(LayerActivations, AnUnfusedSoftmaxIsKeptInFp32) {
  Transformer model = gpt();
  Layout layout = layout_of(1, false);
  const auto scores_bytes = [&] {
    layout.layer.fused.softmax = true;
    const double fused = layer_activations(model, layout, 0).value();
    layout.layer.fused.softmax = false;
    return (layer_activations(model, layout, 0).value() - fused) / (kA * kS * kS * kB);
  };
  EXPECT_DOUBLE_EQ(scores_bytes(), 2);
  model.attention_dropout = 0;
  EXPECT_DOUBLE_EQ(scores_bytes(), 4);
  layout.layer.precision.compute = DType::fp32;
  EXPECT_DOUBLE_EQ(scores_bytes(), 0);
}

// Flash attention keeps 4 B per token and head instead of the scores.
TEST(LayerActivations, FlashAttentionKeepsNoScores) {
  Layout layout = layout_of(1, false);
  layout.layer.attention = AttentionMethod::flash;
  EXPECT_DOUBLE_EQ(layer_activations(gpt(), layout, 0).value(), kS * kB * (kH * 34 + kA * 4));
}

// Grouped queries keep fewer keys and values; a gated FFN keeps three wide tensors: without dropout
// norms 4 h + attention (2 h + 2 (a + 2 k) d + 2 h) + FFN (2 h + 3 x 2 f), flash 4 a.
TEST(LayerActivations, LlamaLayer) {
  const Result<Transformer> model = find_preset("llama-3-8b");
  ASSERT_TRUE(model.ok());
  Layout layout{.batch = {.seq_len_tokens = 8192}};
  const double h = 4096, f = 14336, a = 32, k = 8, d = 128;
  const double per_token = 4 * h + (2 * h + 2 * (a + 2 * k) * d + 2 * h + 4 * a) + (2 * h + 6 * f);
  EXPECT_DOUBLE_EQ(layer_activations(*model, layout, 0).value(), 8192 * per_token);
}

// ------------------------------------------------------------------------------------------ recomputation

double activations(const Transformer& model, const Layout& layout) {
  return forecast(model, layout).stages[0].activations.value();
}

TEST(Recomputation, FullKeepsTheInputOfEveryLayer) {
  Layout layout = layout_of(1, false);
  const double none = activations(gpt(), layout);
  layout.layer.recompute.kind = Recompute::full;
  // 2 s b h a layer; the mask of the embedding's dropout stays.
  const double embedding_mask = kS * kB * kH;
  EXPECT_DOUBLE_EQ(activations(gpt(), layout), 8 * 2 * kS * kB * kH + embedding_mask);
  EXPECT_DOUBLE_EQ(none, 8 * kS * kB * kH * (34 + 5 * kA * kS / kH) + embedding_mask);
}

TEST(Recomputation, FullKeepsResultsThatAreNamed) {
  Layout layout = layout_of(1, false);
  layout.layer.recompute.kind = Recompute::full;
  const double input = activations(gpt(), layout);
  layout.layer.recompute.kept = {.input = true, .qkv = true, .ffn_up = true};
  // Of 8 layers: queries, keys and values 3 x 2 s b h, and the wide tensor before the activation 2 x 4 s b h.
  EXPECT_DOUBLE_EQ(activations(gpt(), layout) - input, 8 * (6 + 8) * kS * kB * kH);
  layout.layer.recompute.kept_by_host = {.input = true, .qkv = true};
  EXPECT_DOUBLE_EQ(activations(gpt(), layout) - input, 8 * (8 - 2) * kS * kB * kH);
}

TEST(Recomputation, SelectiveKeepsAllButTheCoreOfAttention) {
  Layout layout = layout_of(2, true);
  layout.layer.recompute.kind = Recompute::selective;
  EXPECT_DOUBLE_EQ(activations(gpt(), layout), 8 * kS * kB * kH / 2 * 34 + kS * kB * kH / 2);
  // Flash attention has no core to drop.
  layout.layer.attention = AttentionMethod::flash;
  const double selective = activations(gpt(), layout);
  layout.layer.recompute.kind = Recompute::none;
  EXPECT_DOUBLE_EQ(activations(gpt(), layout), selective);
}

TEST(Recomputation, OfEverySecondLayerIsHalfWay) {
  Layout layout = layout_of(1, false);
  const double none = activations(gpt(), layout);
  layout.layer.recompute.kind = Recompute::full;
  const double full = activations(gpt(), layout);
  layout.layer.recompute.every_n_layers = 2;
  EXPECT_DOUBLE_EQ(activations(gpt(), layout), (none + full) / 2);
  layout.layer.recompute.every_n_layers = 1;
  layout.layer.recompute.layers_per_stage = 6;
  EXPECT_DOUBLE_EQ(activations(gpt(), layout), full + (none - full) * 2 / 8);
}

TEST(Recomputation, KeepsLessTheMoreIsRepeated) {
  Layout layout = layout_of(1, false);
  std::vector<double> kept;
  for (const Recompute recompute :
       {Recompute::none, Recompute::selective, Recompute::selective_ops, Recompute::full}) {
    layout.layer.recompute.kind = recompute;
    kept.push_back(activations(gpt(), layout));
  }
  EXPECT_GT(kept[0], kept[1]);
  EXPECT_GT(kept[1], kept[3]);
  EXPECT_GT(kept[0], kept[2]);
  EXPECT_GT(kept[2], kept[3]);
}

// Llama 3 8B, a token: of q, k, v, o, gate, up, down every second product recomputes; kept are the input, q, v, attention
// with 4 bytes a head, gate, and in eager PyTorch the result of down: (4096 + 4096 + 1024 + 4096 + 14336 + 4096) x 2 +
// 32 x 4. What PyTorch 2.15 keeps of such a block, compiled, was looked up in its partitioner: all but the last one.
TEST(Recomputation, PerOperatorKeepsEverySecondProduct) {
  const Result<Transformer> model = find_preset("llama-3-8b");
  ASSERT_TRUE(model.ok());
  Layout layout{.batch = {.seq_len_tokens = 8192}};
  layout.software.framework = Framework::torchtitan;
  layout.layer.recompute.kind = Recompute::selective_ops;
  EXPECT_DOUBLE_EQ(activations(*model, layout), 32.0 * 8192 * (2 * 31744 + 32 * 4));
  layout.layer.fused.compiled = true;
  EXPECT_DOUBLE_EQ(activations(*model, layout), 32.0 * 8192 * (2 * 27648 + 32 * 4));
}

// Adapters on attention alone: the FFN's inputs serve no gradient, 2 and 8 of 34 s b h.
TEST(LayerActivations, FrozenProductsKeepNoInputs) {
  Layout layout = layout_of(1, false);
  const double trained = layer_activations(gpt(), layout, 0).value();
  layout.layer.frozen_base = true;
  layout.layer.adapters = {.rank = 16};
  EXPECT_DOUBLE_EQ(trained - layer_activations(gpt(), layout, 0).value(), kS * kB * kH * (2 + 8));
}

// Adapters on all products: their inputs take 2 s b h, 2 s b h, which attention needs itself, 2 s b h and 8 s b h. With dropout
// each of the three of queries, keys and values, of the output, up and down has a copy and a mask of a byte.
TEST(LayerActivations, DropoutOfAdaptersCopiesTheirInputs) {
  Layout layout = layout_of(1, false);
  layout.software.framework = Framework::pytorch;
  layout.layer.frozen_base = true;
  layout.layer.adapters = {.rank = 16, .ffn_up = true, .ffn_down = true};
  const double shared = layer_activations(gpt(), layout, 0).value();
  layout.layer.adapters.dropout = true;
  EXPECT_DOUBLE_EQ(layer_activations(gpt(), layout, 0).value() - shared,
                   kS * kB * kH * (3 * (3 + 1 + 1 + 4) - (2 + 2 + 8)));
}

// PyTorch's pipelining, two stages, four micro-batches, h = 2 s b h bytes: the first keeps its results until their backward
// (two under way) and a buffer for the gradient of each; the last receives each (one is under way and counted as kept) and
// keeps the logits of all in 16 bits.
TEST(MemoryForecast, PipelinesOfPyTorchKeepBuffersOfAllMicroBatches) {
  Layout layout = layout_of(1, false);
  layout.degrees.pipeline = 2;
  layout.batch.global_batch_sequences = 4 * layout.batch.micro_batch_sequences;
  const MemoryForecast before = forecast(gpt(), layout);
  layout.software.framework = Framework::torchtitan;
  layout.layer.overlap.tensor_parallel = false;
  const MemoryForecast after = forecast(gpt(), layout);
  ASSERT_EQ(before.stages[0].micro_batches_held, 2);
  const double h = 2 * kS * kB * kH, logits = kS * kB * 51200;
  EXPECT_DOUBLE_EQ((after.stages[0].working - before.stages[0].working).value(), (4 + 2) * h);
  // The loss: 6 bytes per logit before, 2 + 12 now.
  EXPECT_DOUBLE_EQ((after.stages[1].working - before.stages[1].working).value(),
                   3 * h + 3 * 2 * logits + (14 - 6) * logits);
}

TEST(Recomputation, OffloadedActivationsLeaveTheDevice) {
  Layout layout = layout_of(1, false);
  layout.layer.activation_offload = true;
  EXPECT_LT(activations(gpt(), layout), 0.01 * activations(gpt(), layout_of(1, false)));
  layout.layer.recompute.kind = Recompute::full;
  EXPECT_LT(activations(gpt(), layout), 0.01 * activations(gpt(), layout_of(1, false)));
}

// Of eight layers one runs, one is on its way out and one on its way back; what is computed again is on neither side.
TEST(Recomputation, OffloadedModulesLeaveTheDevice) {
  const auto kept = [](const OffloadedModules& modules, bool norms_again) {
    Layout layout = layout_of(1, false);
    layout.layer.offloaded = modules;
    layout.layer.recompute.kind = Recompute::selective;
    layout.layer.recompute.modules = {.core_attention = false, .norms = norms_again};
    return activations(gpt(), layout);
  };
  const double hidden = 5 * 2 * kS * kB * kH;
  EXPECT_DOUBLE_EQ(kept({}, false) - kept({.attention_norm = true}, false), hidden);
  const double scores = 5 * 5 * kA * kS * kS * kB;  // softmax, its mask and output
  EXPECT_DOUBLE_EQ(kept({}, false) - kept({.core_attention = true}, false), 3 * hidden + scores);
  EXPECT_DOUBLE_EQ(kept({}, false) - kept({.qkv = true, .attention_projection = true}, false), 2 * hidden);
  EXPECT_DOUBLE_EQ(kept({}, true) - kept({.qkv = true}, true), 0);
  EXPECT_DOUBLE_EQ(kept({}, false) - kept({.expert_inputs = true, .expert_activation = true}, false), 0);
}

// ------------------------------------------------------------------------------------------------ states

// bf16 with fp32 gradients, master weights and Adam: 2 + 4 + 4 + 8 = 18 B a parameter; the 12 of master
// weights and moments are spread under ZeRO-1, gradients under ZeRO-2, all under ZeRO-3.
TEST(States, EighteenBytesPerParameterUntilTheyAreSharded) {
  const auto parameters = static_cast<double>(parameter_count(gpt()).total());
  Layout layout = layout_of(1, false);
  layout.degrees.data = 8;
  const auto states = [&](Sharding sharding) {
    layout.sharding.kind = sharding;
    const MemoryForecast memory = forecast(gpt(), layout);
    const StageMemory& m = memory.stages[0];
    return (m.weights + m.gradients + m.optimizer).value() / parameters;
  };
  EXPECT_DOUBLE_EQ(states(Sharding::none), 18);
  EXPECT_DOUBLE_EQ(states(Sharding::zero1), 6 + 12.0 / 8);
  EXPECT_DOUBLE_EQ(states(Sharding::zero2), 2 + 16.0 / 8);
  EXPECT_DOUBLE_EQ(states(Sharding::zero3), 16.0 / 8);  // one fp32 copy, fp32 gradients, two moments
  // Kept in bf16 alone, gradients and moments alike: 2 + 2 + 4.
  Precision& precision = layout.layer.precision;
  precision.master = precision.moments = DType::bf16;
  EXPECT_DOUBLE_EQ(states(Sharding::zero3), 8.0 / 8);
  precision.master = precision.moments = DType::fp32;
  layout.sharding.shard_group_size = 4;
  EXPECT_DOUBLE_EQ(states(Sharding::zero3), 16.0 / 4);
  EXPECT_DOUBLE_EQ(states(Sharding::zero1), 6 + 12.0 / 4);
}

// Two instances of the optimizer on eight ranks with two expert-parallel ranks: its states of experts are shared by two
// ranks instead of four, those of everything else by four instead of eight.
TEST(States, InstancesOfAnOptimizerHoldExpertsTwice) {
  Transformer model = gpt();
  model.moe = MixtureOfExperts{.n_experts = 8, .experts_per_token = 2, .expert_ffn_hidden_size = 8192};
  Layout layout = layout_of(1, false);
  layout.degrees.data = 8;
  layout.degrees.expert = 2;
  layout.sharding.kind = Sharding::zero1;
  const auto moments = [&] { return forecast(model, layout).stages[0].optimizer.value(); };
  const double one = moments();
  layout.sharding.shard_group_size = 4;
  EXPECT_DOUBLE_EQ(moments(), 2 * one);
}

// 3 % of what is allocated. Activations of several micro-batches of TorchTitan leave holes: 9 % of them and of the working
// memory more; weights, gradients and states leave none.
TEST(Reserve, IsLargerWithAPipelineOfTorchTitan) {
  Layout layout = layout_of(1, false);
  const StageMemory alone = forecast(gpt(), layout).stages[0];
  EXPECT_DOUBLE_EQ(alone.reserve / alone.allocated(), 0.03);
  layout.degrees.pipeline = 2;
  const StageMemory others = forecast(gpt(), layout).stages[0];
  EXPECT_DOUBLE_EQ(others.reserve / others.allocated(), 0.03);
  layout.software.framework = Framework::torchtitan;
  const StageMemory first = forecast(gpt(), layout).stages[0];
  const double moving = (first.activations + first.working).value();
  EXPECT_DOUBLE_EQ(first.reserve.value(), 0.03 * first.allocated().value() + 0.09 * moving);
}

// The input of GELU, of the width of the feed-forward network: one byte an element instead of two.
TEST(LayerActivations, InputsOfActivationsMayBeKeptInEightBits) {
  Layout layout = layout_of(1, false);
  const double before = layer_activations(gpt(), layout, 0).value();
  layout.layer.narrow_activation_inputs = true;
  const auto tokens = static_cast<double>(layout.batch.micro_batch_sequences * layout.batch.seq_len_tokens);
  EXPECT_DOUBLE_EQ(before - layer_activations(gpt(), layout, 0).value(),
                   tokens * static_cast<double>(gpt().ffn_hidden_size));
}

// Two stages of FSDP: gradients wait for the last micro-batch, whole and in the type that they are reduced in, and their
// shards have a place of their own.
TEST(States, GradientsOfAPipelineAreWholeUnderFsdp) {
  Layout layout = layout_of(1, false);
  layout.degrees.data = 8;
  layout.degrees.pipeline = 2;
  layout.sharding.kind = Sharding::zero3;
  const Result<StepWork> work = step_work(gpt(), layout);
  ASSERT_TRUE(work.ok());
  const double parameters = work->chunks[1].dense_parameters;
  ASSERT_EQ(layout.layer.precision.reduction, DType::fp32);
  EXPECT_DOUBLE_EQ(forecast(gpt(), layout).stages[1].gradients.value(), 4 * parameters * (1 + 1.0 / 8));
}

// Two chunks a rank and as many micro-batches as ranks: one chunk's gradients are reduced before the other's come.
TEST(States, GradientsOfOneChunkAtATimeWaitInOneRound) {
  Layout layout = layout_of(1, false);
  layout.degrees.data = 8;
  layout.degrees.pipeline = layout.degrees.virtual_stages = 2;
  layout.pipeline.schedule = PipelineSchedule::interleaved;
  layout.sharding.kind = Sharding::zero3;
  const auto whole = [&](std::int64_t micro_batches) {
    layout.batch.global_batch_sequences = layout.batch.micro_batch_sequences * 8 * micro_batches;
    const Result<StepWork> work = step_work(gpt(), layout);
    EXPECT_TRUE(work.ok());
    const double first = work->chunks[0].dense_parameters, second = work->chunks[2].dense_parameters;
    const double gradients = forecast(gpt(), layout).stages[0].gradients.value();
    const double shards = 4 * (first + second) / 8;
    EXPECT_DOUBLE_EQ(gradients - shards, 4 * (micro_batches == 2 ? std::max(first, second) : first + second));
    return gradients;
  };
  EXPECT_LT(whole(2), whole(4));
}

// FSDP 2 as TorchTitan uses it, one layer backward (its activations without recomputation are small beside): the root
// (embeddings and last norm) in 16 bits through the whole step; one layer where it is used; the buffer of the largest
// gather, here the root's or two layers'; the gradient of a layer in 16 bits and two copies in fp32.
TEST(States, FullyShardedDataParallelismKeepsItsRootAndItsBuffers) {
  Layout layout = layout_of(1, false);
  layout.software.framework = Framework::torchtitan;
  layout.degrees.data = 8;
  layout.sharding.kind = Sharding::zero3;
  layout.batch.seq_len_tokens = layout.batch.micro_batch_sequences = 1;
  layout.batch.global_batch_sequences = 8;
  const double layer = static_cast<double>(layer_parameter_count(gpt(), 0).total());
  const double root = static_cast<double>(parameter_count(gpt()).total()) - 8 * layer;
  const double activations = 0.25 * layer_activations(gpt(), layout, 0).value();
  const double workspaces = workspace_bytes(Framework::torchtitan);
  EXPECT_DOUBLE_EQ(
      forecast(gpt(), layout).stages[0].working.value(),
      2 * root + 2 * layer + std::max(2 * root, 4 * layer) + (2 + 2 * 4) * layer + activations + workspaces);
  // Buffers and copies are FSDP 2's; DeepSpeed frees the root, too.
  layout.software.framework = Framework::deepspeed;
  EXPECT_DOUBLE_EQ(forecast(gpt(), layout).stages[0].working.value(),
                   2 * 2 * layer + 2 * layer + activations + workspaces);
}

TEST(States, OffloadedOptimizerStatesLeaveTheDevice) {
  Layout layout = layout_of(1, false);
  layout.optimizer.cpu_offload = true;
  const MemoryForecast memory = forecast(gpt(), layout);
  EXPECT_EQ(memory.stages[0].optimizer.value(), 0);
  EXPECT_DOUBLE_EQ(memory.stages[0].weights.value(), 2 * static_cast<double>(parameter_count(gpt()).total()));
}

// Queries, keys and values have a first matrix each, of rank 16 and the width of the model, instead of one.
TEST(States, EachProjectionHasAnAdapterOfItsOwnInPlainModels) {
  Layout layout = layout_of(1, false);
  layout.layer.frozen_base = true;
  layout.layer.adapters = {.rank = 16, .attention_output = false};
  const auto trained = [&](Framework framework) {
    layout.software.framework = framework;
    return step_work(gpt(), layout)->chunks[0].trained_dense_parameters;
  };
  const double joined = 8 * 16 * (kH + 3 * kH), apart = 8 * 16 * (3 * kH + 3 * kH);
  EXPECT_DOUBLE_EQ(trained(Framework::megatron), joined);
  EXPECT_DOUBLE_EQ(trained(Framework::pytorch), apart);
}

// -------------------------------------------------------------------------------------------- monotonicity

double peak(const Transformer& model, const Layout& layout) { return forecast(model, layout).peak().value(); }

TEST(MemoryForecast, GrowsWithTheMicroBatch) {
  for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
    double before = 0;
    for (const std::int64_t micro_batch : {1, 2, 4, 8, 16}) {
      Layout layout = layout_of(2, true);
      layout.layer.recompute.kind = recompute;
      layout.batch.micro_batch_sequences = micro_batch;
      const double now = peak(gpt(), layout);
      EXPECT_GT(now, before);
      before = now;
    }
  }
}

TEST(MemoryForecast, GrowsWithTheSequence) {
  Transformer model = gpt();
  model.max_position = 8192;
  double before = 0;
  for (const std::int64_t tokens : {512, 1024, 2048, 4096}) {
    Layout layout = layout_of(1, false);
    layout.batch.seq_len_tokens = tokens;
    const double now = peak(model, layout);
    EXPECT_GT(now, before);
    before = now;
  }
}

TEST(MemoryForecast, FallsWithEveryWayOfSplitting) {
  const auto falls = [](const std::string& what, const std::vector<Layout>& layouts) {
    for (std::size_t i = 1; i < layouts.size(); ++i) {
      EXPECT_LT(peak(gpt(), layouts[i]), peak(gpt(), layouts[i - 1])) << what << " step " << i;
    }
  };
  std::vector<Layout> tensor, pipeline, sharded, context;
  for (const std::int64_t n : {1, 2, 4, 8}) {
    tensor.push_back(layout_of(n, n > 1));
    pipeline.push_back(layout_of(1, false));
    pipeline.back().degrees.pipeline = n;
    context.push_back(layout_of(1, false));
    context.back().degrees.context = n;
    context.back().layer.attention = AttentionMethod::flash;
  }
  for (const Sharding sharding : {Sharding::none, Sharding::zero1, Sharding::zero2, Sharding::zero3}) {
    sharded.push_back(layout_of(1, false));
    sharded.back().degrees.data = 16;
    sharded.back().sharding.kind = sharding;
  }
  falls("tensor parallelism", tensor);
  falls("pipeline parallelism", pipeline);
  falls("context parallelism", context);
  falls("sharding", sharded);
}

// Stage s of 1F1B holds min(P - s, M) micro-batches.
TEST(MemoryForecast, EarlierStagesHoldMoreMicroBatches) {
  Layout layout = layout_of(1, false);
  layout.degrees.pipeline = 4;
  const MemoryForecast memory = forecast(gpt(), layout);
  ASSERT_EQ(memory.stages.size(), 4U);
  for (std::size_t s = 0; s < 4; ++s) {
    EXPECT_EQ(memory.stages[s].micro_batches_held, static_cast<double>(4 - s));
  }
  EXPECT_DOUBLE_EQ(memory.stages[1].activations.value(), 1.5 * memory.stages[2].activations.value());
  layout.pipeline.schedule = PipelineSchedule::gpipe;
  EXPECT_EQ(forecast(gpt(), layout).stages[2].micro_batches_held, 16);
}

// The same layers in half as large chunks, more of them held: 1F1B's first stage holds 4 of 2 layers each,
// interleaved holds (4 - 1) x 2 + 4 + 1 = 11 of one layer.
TEST(MemoryForecast, InterleavingHoldsMoreActivations) {
  Layout layout = layout_of(1, false);
  layout.degrees.pipeline = 4;
  Transformer model = gpt();
  model.hidden_dropout = 0;  // no mask of the embedding
  const double plain = activations(model, layout);
  layout.pipeline.schedule = PipelineSchedule::interleaved;
  layout.degrees.virtual_stages = 2;
  EXPECT_NEAR(activations(model, layout) / plain, 11.0 / 8, 1e-9);
}

// Two stages of two chunks each with 3, 2, 2 and 1 layers, four micro-batches: the first stage holds two of its first chunk,
// two of its second and one more of the first, the second stage two and one.
TEST(MemoryForecast, ChunksOfAStageHoldWhatTheyRan) {
  Layout layout = layout_of(1, false);
  layout.degrees.pipeline = layout.degrees.virtual_stages = 2;
  layout.pipeline.schedule = PipelineSchedule::interleaved;
  layout.pipeline.layers_per_stage = {3, 2, 2, 1};
  layout.batch.global_batch_sequences = 4 * layout.batch.micro_batch_sequences;
  Transformer model = gpt();
  model.hidden_dropout = 0;
  const double layer = layer_activations(model, layout, 0).value();
  const MemoryForecast memory = forecast(model, layout);
  EXPECT_NEAR(memory.stages[0].activations.value() / layer, 2 * 3 + 2 * 2 + 1 * 3, 1e-9);
  EXPECT_NEAR(memory.stages[1].activations.value() / layer, 2 * 2 + 1 * 1, 1e-9);
}

// Stages of 1, 3, 3 and 1 of 8 layers; stage s of 1F1B holds 4 - s micro-batches: without dropout on the embedding
// 4 x 1, 3 x 3, 2 x 3 and 1 x 1 layers' activations.
TEST(MemoryForecast, UnevenStagesHoldWhatTheirLayersKeep) {
  Layout layout = layout_of(1, false);
  layout.degrees.pipeline = 4;
  layout.pipeline.layers_per_stage = {1, 3, 3, 1};
  Transformer model = gpt();
  model.hidden_dropout = 0;
  const double layer = layer_activations(model, layout, 0).value();
  const MemoryForecast memory = forecast(model, layout);
  ASSERT_EQ(memory.stages.size(), 4U);
  const double layers[] = {4, 9, 6, 1};
  for (std::size_t s = 0; s < 4; ++s) {
    EXPECT_NEAR(memory.stages[s].activations.value() / layer, layers[s], 1e-9) << s;
  }
  EXPECT_EQ(memory.stages[1].weights, memory.stages[2].weights);
}

TEST(MemoryForecast, ComesOutTheSameFromTheWorkOfAStep) {
  const Layout layout = layout_of(2, true);
  const Result<StepWork> work = step_work(gpt(), layout);
  ASSERT_TRUE(work.ok()) << work.error().message();
  const Result<MemoryForecast> memory = memory_forecast(*work, gpt(), layout, Bytes{80 * kGiB});
  ASSERT_TRUE(memory.ok()) << memory.error().message();
  EXPECT_EQ(memory->peak(), forecast(gpt(), layout).peak());
}

TEST(MemoryForecast, PartsAddUp) {
  Layout layout = layout_of(2, true);
  layout.degrees.pipeline = 2;
  const MemoryForecast memory = forecast(gpt(), layout);
  for (const StageMemory& m : memory.stages) {
    const double sum = m.weights.value() + m.gradients.value() + m.optimizer.value() + m.activations.value() +
                       m.working.value() + m.communication.value() + m.context.value() + m.reserve.value();
    EXPECT_DOUBLE_EQ(m.total().value(), sum);
    EXPECT_DOUBLE_EQ(m.in_allocator().value(), sum - m.communication.value() - m.context.value());
    EXPECT_LE(m.total(), memory.peak());
  }
  EXPECT_DOUBLE_EQ((memory.margin() + memory.peak()).value(), 80 * kGiB);
}

TEST(MemoryForecast, SaysWhetherItFits) {
  const Layout layout = layout_of(1, false);
  const double need_GiB = peak(gpt(), layout) / kGiB;
  EXPECT_EQ(forecast(gpt(), layout, need_GiB * 1.2).verdict, MemoryVerdict::fits);
  EXPECT_EQ(forecast(gpt(), layout, need_GiB * 1.01).verdict, MemoryVerdict::tight);
  EXPECT_EQ(forecast(gpt(), layout, need_GiB * 0.99).verdict, MemoryVerdict::does_not_fit);
  EXPECT_LT(forecast(gpt(), layout, need_GiB * 0.99).margin().value(), 0);
  EXPECT_EQ(to_string(MemoryVerdict::does_not_fit), "does not fit");
}

TEST(MemoryForecast, RefusesWhatTheLayoutCheckRefuses) {
  const Result<MemoryForecast> memory = memory_forecast(gpt(), layout_of(3, false), Bytes{80 * kGiB});
  ASSERT_FALSE(memory.ok());
  EXPECT_THAT(memory.error().message(), HasSubstr("not divisible by tensor_parallel 3"));
}

Transformer mixture() {
  Transformer model = gpt();
  model.moe = MixtureOfExperts{
      .n_experts = 8, .experts_per_token = 2, .expert_ffn_hidden_size = model.ffn_hidden_size};
  return model;
}

// What per-operator recomputation keeps of a layer with experts: its input, queries, values and the result of attention,
// 2 s b h each, and 4 bytes of a query and head; of routed experts nothing, of a shared one the first product.
TEST(Recomputation, PerOperatorKeepsNothingOfRoutedExperts) {
  Transformer model = mixture();
  model.hidden_dropout = model.attention_dropout = 0;
  Layout layout = layout_of(1, false);
  layout.software.framework = Framework::torchtitan;
  layout.layer.attention = AttentionMethod::flash;
  layout.layer.recompute.kind = Recompute::selective_ops;
  const double routed = 8 * kS * kB * (8 * kH + 4 * kA);
  EXPECT_DOUBLE_EQ(activations(model, layout), routed);
  model.moe->n_shared_experts = 1;
  model.moe->shared_ffn_hidden_size = 1024;
  EXPECT_DOUBLE_EQ(activations(model, layout) - routed, 8 * kS * kB * 2 * 1024);
}

// Two stages, every expert on one rank: in bf16 alone nobody gathers them; of fp32 copies the rank casts its own.
TEST(States, ExpertsThatNobodyElseHoldsStayUnderFsdp) {
  Layout layout = layout_of(1, false);
  layout.degrees.data = layout.degrees.expert = 8;
  layout.degrees.pipeline = 2;
  layout.sharding.kind = Sharding::zero3;
  const Result<StepWork> work = step_work(mixture(), layout);
  ASSERT_TRUE(work.ok());
  const auto working = [&](DType held) {
    layout.layer.precision.master = held;
    return forecast(mixture(), layout).stages[1].working.value();
  };
  const double cast = working(DType::fp32) - working(DType::bf16),
               experts = work->chunks[1].expert_parameters;
  EXPECT_GE(cast, 2 * experts);  // and what one layer takes while it runs
  EXPECT_LE(cast, 3 * experts);
}

// Four bytes for two 16-bit tensors and four for one in fp32, of 1024 x 4 tokens that visit two experts; another
// micro-batch beside fills what the first one frees.
TEST(LayerActivations, TokensInOrderByFrameworkOperatorsAreKept) {
  Layout layout = layout_of(1, false);
  const double fused = layer_activations(mixture(), layout, 0).value();
  layout.layer.fused.permutation = false;
  const auto visits = static_cast<double>(mixture().moe->experts_per_token) * kS * kB;
  EXPECT_DOUBLE_EQ(layer_activations(mixture(), layout, 0).value() - fused, 8 * visits * kH);
  layout.degrees.data = layout.degrees.expert = 4;
  const double alone = activations(mixture(), layout);
  layout.layer.overlap.expert = true;
  EXPECT_DOUBLE_EQ(activations(mixture(), layout), alone);
}

// Two experts of eight on each of four ranks: all tokens of the four could visit both of one, 2 x 4 / 2 = 4 times the mean.
TEST(DroplessMemory, GrowsEvenlyWithTheTokensOfTheBusiestRank) {
  Layout layout = layout_of(1, false);
  layout.degrees.data = layout.degrees.expert = 4;
  layout.batch.global_batch_sequences = 4 * layout.batch.micro_batch_sequences;
  const MemoryForecast even = forecast(mixture(), layout);
  ASSERT_TRUE(even.dropless.has_value());
  EXPECT_DOUBLE_EQ(even.dropless->worst_imbalance, 4);
  EXPECT_GT(even.stages[0].dispatched.value(), 0);
  layout.layer.expert_imbalance = 4;
  EXPECT_DOUBLE_EQ(forecast(mixture(), layout).peak().value(), even.dropless->totals[0].value());
  // Memory for 2.5 times the mean.
  layout.layer.expert_imbalance = 2.5;
  const double need_GiB = forecast(mixture(), layout).peak().value() / kGiB;
  layout.layer.expert_imbalance = 1;
  EXPECT_NEAR(forecast(mixture(), layout, need_GiB).dropless->fits_to_imbalance, 2.5, 1e-6);
  EXPECT_EQ(forecast(mixture(), layout, 0.01).dropless->fits_to_imbalance, 0);
  layout.layer.expert_capacity_factor = 1;
  EXPECT_FALSE(forecast(mixture(), layout).dropless.has_value());
  EXPECT_FALSE(forecast(gpt(), layout_of(1, false)).dropless.has_value());
}

TEST(States, NarrowWeightsLieThereInBothOrientations) {
  Layout layout = layout_of(1, false);
  const double plain = forecast(gpt(), layout).stages[0].weights.value();
  layout.layer.precision.compute = DType::fp8;
  const double with_copies = forecast(gpt(), layout).stages[0].weights.value();
  layout.layer.precision.fp8.gather_weights = true;
  const double narrow_alone = forecast(gpt(), layout).stages[0].weights.value();
  double in_layers = 0;
  for (std::int64_t i = 0; i < gpt().n_layers; ++i) {
    in_layers += static_cast<double>(layer_parameter_count(gpt(), i).total());
  }
  EXPECT_DOUBLE_EQ(with_copies - plain, 2 * in_layers);
  EXPECT_DOUBLE_EQ(narrow_alone, plain);  // two bytes in place of the 16-bit weight
}

// Nobody updates them in 16 bits: one orientation in 8 bits, both where scales of blocks lie along one axis.
TEST(States, FrozenWeightsAreInTheNarrowTypeAlone) {
  Layout layout = layout_of(1, false);
  layout.layer.frozen_base = true;
  layout.layer.adapters.rank = 16;
  const auto weights = [&](DType compute, Fp8Scaling scaling, bool gathers) {
    layout.layer.precision.compute = compute;
    layout.layer.precision.fp8.scaling = scaling;
    layout.layer.precision.fp8.gather_weights = gathers;
    return forecast(gpt(), layout).stages[0].weights.value();
  };
  const double sixteen_bit = weights(DType::bf16, Fp8Scaling::delayed, false);
  const Result<StepWork> work = step_work(gpt(), layout);
  ASSERT_TRUE(work.ok());
  double in_layers = 0;
  for (const ChunkWork::Run& run : work->chunks[0].runs)
    in_layers += run.count * work->layer_kinds[run.kind]->dense_parameters;
  for (const bool gathers : {false, true}) {
    EXPECT_DOUBLE_EQ(sixteen_bit - weights(DType::fp8, Fp8Scaling::delayed, gathers), in_layers);
    EXPECT_DOUBLE_EQ(sixteen_bit - weights(DType::fp8, Fp8Scaling::mxfp8, gathers), 0);
    EXPECT_DOUBLE_EQ(sixteen_bit - weights(DType::fp4, Fp8Scaling::delayed, gathers), in_layers);
  }
}

// Llama 3 8B: 6.979e9 weights in linear layers, 32 x (4096 x (4096 + 1024 + 1024 + 4096) + 3 x 4096 x 14336), at 0.5625 or
// 0.516 bytes, 1.051e9 of embedding and output matrix at 2.
TEST(States, FrozenWeightsInFourBits) {
  constexpr double kLinears = 32.0 * (4096.0 * (4096 + 1024 + 1024 + 4096) + 3.0 * 4096 * 14336);
  const Result<Transformer> model = find_preset("llama-3-8b");
  ASSERT_TRUE(model.ok());
  Layout layout{.batch = {.global_batch_sequences = 8, .seq_len_tokens = 512}};
  layout.layer.frozen_base = true;
  layout.layer.adapters.rank = 16;
  const auto weights = [&](FrozenWeights kind) {
    layout.layer.frozen_weights = kind;
    return forecast(*model, layout).stages[0].weights.value();
  };
  const double whole = weights(FrozenWeights::as_computed);
  EXPECT_DOUBLE_EQ(whole - weights(FrozenWeights::nf4), kLinears * (2 - 0.5625));
  EXPECT_DOUBLE_EQ(whole - weights(FrozenWeights::int8), kLinears);
  EXPECT_NEAR(weights(FrozenWeights::nf4_double) / (kLinears * 0.516 + 1.051e9 * 2), 1, 0.02);
  // Eight ranks keep an eighth each, and gather the bytes of two layers. The loss takes more than the dequantised matrix.
  layout.degrees.data = 8;
  layout.sharding.kind = Sharding::zero3;
  layout.software.framework = Framework::fsdp;
  EXPECT_DOUBLE_EQ(weights(FrozenWeights::as_computed) - weights(FrozenWeights::nf4),
                   kLinears * (2 - 0.5625) / 8);
  const double in_four = forecast(*model, layout).stages[0].working.value();
  layout.layer.frozen_weights = FrozenWeights::as_computed;
  EXPECT_DOUBLE_EQ(forecast(*model, layout).stages[0].working.value() - in_four,
                   2 * kLinears / 32 * (2 - 0.5625));
}

// Dettmers et al. 2023: 65 billion parameters train on one GPU of 48 GB, a sequence of 512 at a time. Here it is 69 billion
// and adapters of rank 16: 68.5e9 x 0.516 + 0.52e9 x 2 = 36.4 GB of weights, 138 GB in 16 bits.
TEST(States, AModelOf70BillionInFourBitsTrainsOnOneGpu) {
  const Result<Transformer> model = find_preset("llama-2-70b");
  ASSERT_TRUE(model.ok());
  Layout layout{.batch = {.global_batch_sequences = 16, .seq_len_tokens = 512}};
  layout.software.framework = Framework::pytorch;
  layout.layer.frozen_base = true;
  layout.layer.adapters = {.rank = 16, .ffn_up = true, .ffn_down = true};
  layout.layer.recompute.kind = Recompute::full;
  EXPECT_EQ(forecast(*model, layout, 80).verdict, MemoryVerdict::does_not_fit);
  layout.layer.frozen_weights = FrozenWeights::nf4_double;
  EXPECT_EQ(forecast(*model, layout, 80).verdict, MemoryVerdict::fits);
  const double peak_GB = forecast(*model, layout).peak().value() / 1e9;
  EXPECT_GT(peak_GB, 36.4);
  EXPECT_LT(peak_GB, 48);
}

// Eight ranks shard a layer whose weights are frozen: no gradient of it, none to reduce.
TEST(States, FrozenLayersHaveNoGradientsUnderFsdp) {
  Layout layout = layout_of(1, false);
  layout.software.framework = Framework::torchtitan;
  layout.degrees.data = 8;
  layout.sharding.kind = Sharding::zero3;
  layout.batch.seq_len_tokens = layout.batch.micro_batch_sequences = 1;
  layout.batch.global_batch_sequences = 8;
  const double trained = forecast(gpt(), layout).stages[0].working.value();
  const double layer = static_cast<double>(layer_parameter_count(gpt(), 0).total());
  layout.layer.frozen_base = true;
  layout.layer.adapters.rank = 1;
  const double saved = trained - forecast(gpt(), layout).stages[0].working.value();
  EXPECT_NEAR(saved / ((2 + 2 * 4) * layer), 1, 0.01);
}

// Elements of two ranks: 10 into a column, whole; 20 of scores, 40 into a row and 8 of logits, halved; 6 of a norm, whole.
TEST(LayerActivations, OfANetworkAreCutAsItsProductsAre) {
  using Split = NetworkPart::Split;
  NetworkBlock block;
  block.parts = {{.name = "norm", .shape = NormShape{}, .kept = 6},
                 {.name = "up", .shape = GemmShape{}, .parameters = 4, .kept = 10, .split = Split::column},
                 {.name = "scores", .shape = SoftmaxShape{}, .kept = 20, .split = Split::column},
                 {.name = "down", .shape = GemmShape{}, .parameters = 4, .kept = 40, .split = Split::row},
                 {.name = "loss", .shape = CrossEntropyShape{}, .kept = 8}};
  Transformer model = gpt();
  model.n_layers = 1;
  model.kind_of_layer = {0};
  model.network = std::make_shared<BlockNetwork>(BlockNetwork{.kinds = {block}, .splits = true});
  constexpr double kSequences = 4, kElement = 2;
  EXPECT_DOUBLE_EQ(layer_activations(model, layout_of(1, false), 0).value(), kSequences * kElement * 84);
  EXPECT_DOUBLE_EQ(layer_activations(model, layout_of(2, false), 0).value(), kSequences * kElement * 50);
}

// Of two stages each rank holds both, and activations of three micro-batches.
TEST(MemoryForecast, DualPipeHoldsTheMirrorsStageToo) {
  Layout layout = layout_of(1, false);
  layout.degrees.pipeline = 2;
  layout.batch.global_batch_sequences = 8 * layout.batch.micro_batch_sequences;
  const MemoryForecast plain = forecast(gpt(), layout);
  layout.pipeline.schedule = PipelineSchedule::dual_pipe;
  const MemoryForecast dual = forecast(gpt(), layout);
  EXPECT_DOUBLE_EQ(dual.stages[0].weights.value(),
                   plain.stages[0].weights.value() + plain.stages[1].weights.value());
  EXPECT_EQ(dual.stages[0].weights, dual.stages[1].weights);
  EXPECT_EQ(dual.stages[1].micro_batches_held, 3);
}

}  // namespace
}  // namespace stepcast::memory_test
