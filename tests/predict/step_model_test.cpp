#include "stepcast/predict/step_model.h"

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/describe/software_defaults.h"
#include "stepcast/formats/presets.h"
#include "stepcast/formats/resolve_job.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/predict/step_assumptions.h"

#include "tests/predict/random_training.h"
#include "tests/support/paths.h"

namespace stepcast::step_model_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Platform load(const char* name) {
  Result<Platform> loaded = load_platform(name);
  if (!loaded.ok()) throw std::runtime_error(loaded.error().message());
  return std::move(*loaded);
}

const Platform& platform() {
  static const Platform kPlatform = load("dgx-h100");
  return kPlatform;
}

StepPrediction predicted(const StepModel& steps, const Transformer& model, const Layout& layout) {
  Result<StepPrediction> p = steps.predict(model, layout);
  EXPECT_TRUE(p.ok()) << p.error().message();
  return p.ok() ? std::move(*p) : StepPrediction{};
}

Transformer gpt() {
  return {.name = "gpt",
          .n_layers = 16,
          .hidden_size = 4096,
          .ffn_hidden_size = 16384,
          .n_heads = 32,
          .vocab_size = 51200,
          .max_position = 2048};
}

Layout layout_of(std::int64_t tp, std::int64_t pp, std::int64_t dp) {
  return {.degrees = {.tensor = tp, .pipeline = pp, .data = dp},
          .batch = {.micro_batch_sequences = 1, .global_batch_sequences = 16 * dp, .seq_len_tokens = 2048}};
}

// Three passes become four, whatever is recomputed; at the end of the step nothing changes.
TEST(StepModel, AReferenceModelIsOneMoreForwardPass) {
  StepModel steps{platform()};
  for (const Recompute recompute : {Recompute::none, Recompute::full}) {
    Layout layout = layout_of(2, 1, 4);
    layout.layer.recompute.kind = recompute;
    const StepPrediction alone = predicted(steps, gpt(), layout);
    const Result<PricedStep> priced = steps.price(gpt(), layout);
    ASSERT_TRUE(priced.ok());
    double forward_us = priced->embedding.forward.time_us + priced->head.forward.time_us;
    for (const ChunkWork::Run& run : priced->work.chunks[0].runs)
      forward_us += priced->layers[run.kind].forward.time_us * run.count;
    layout.layer.reference_model = true;
    const StepPrediction with = predicted(steps, gpt(), layout);
    const double more_us = with.step.time.value() - alone.step.time.value();
    EXPECT_NEAR(more_us / (16 * forward_us), 1, 0.03);
    EXPECT_DOUBLE_EQ(with.shares.optimizer_us, alone.shares.optimizer_us);
    EXPECT_NEAR(with.model_flops / alone.model_flops, 4.0 / 3, 1e-9);
  }
}

// Sharded over all ranks, its weights are gathered a third time: for its forward pass.
TEST(StepModel, WeightsOfAReferenceAreGatheredToo) {
  StepModel steps{platform()};
  Layout layout = layout_of(1, 1, 64);
  layout.sharding.kind = Sharding::zero3;
  const auto gathered_us = [&] {
    const Result<PricedStep> priced = steps.price(gpt(), layout);
    EXPECT_TRUE(priced.ok());
    return priced.ok() ? priced->layers[0].transfers.gather.time_us() : 0;
  };
  const double alone_us = gathered_us();
  ASSERT_GT(alone_us, 0);
  layout.layer.reference_model = true;
  EXPECT_NEAR(gathered_us() / alone_us, 1.5, 0.15);
}

TEST(StepModelProperties, SharesAddUpAndTheBandHoldsTheTime) {
  std::mt19937_64 random{31};
  StepModel steps{platform()};
  for (int i = 0; i < 500; ++i) {
    const test::RandomTraining training = test::random_training(random);
    SCOPED_TRACE(fmt::format("{}: {}", i, describe(training)));
    const StepPrediction p = predicted(steps, training.model, training.layout);
    ASSERT_GT(p.step.time.value(), 0);
    EXPECT_NEAR(p.shares.total_us() / p.step.time.value(), 1, 1e-6);
    EXPECT_NEAR(p.shares.computation_us() + p.shares.exposed_communication_us() + p.shares.host_us +
                    p.shares.bubble_us + p.shares.optimizer_us + p.shares.fixed_us,
                p.shares.total_us(), 1e-6);
    for (const double us : p.shares.class_us) EXPECT_GE(us, 0);
    for (const double us : p.shares.exposed_us) EXPECT_GE(us, 0);
    EXPECT_GE(p.shares.host_us, 0);
    EXPECT_GE(p.shares.bubble_us, -1e-6 * p.step.time.value());
    EXPECT_LE(p.step.p10, p.step.time);
    EXPECT_LE(p.step.time, p.step.p90);
    EXPECT_GT(p.step.p10.value(), 0);
    double sources = 0;
    for (const double share : p.source_shares) sources += share;
    EXPECT_NEAR(sources, 1, 1e-9);
    EXPECT_GE(p.hardware_flops, p.model_flops * (1 - 1e-12));
    ASSERT_TRUE(p.model_flops_utilization());
    EXPECT_GT(*p.model_flops_utilization(), 0);
    EXPECT_LE(*p.model_flops_utilization() * p.hardware_flops / p.model_flops, 1);
  }
}

// Bit by bit.
void expect_same(const StepPrediction& a, const StepPrediction& b) {
  EXPECT_EQ(a.step.time, b.step.time);
  EXPECT_EQ(a.step.p10, b.step.p10);
  EXPECT_EQ(a.step.p90, b.step.p90);
  EXPECT_EQ(a.step.source, b.step.source);
  EXPECT_EQ(a.shares.class_us, b.shares.class_us);
  EXPECT_EQ(a.shares.exposed_us, b.shares.exposed_us);
  EXPECT_EQ(a.shares.host_us, b.shares.host_us);
  EXPECT_EQ(a.shares.bubble_us, b.shares.bubble_us);
  EXPECT_EQ(a.shares.optimizer_us, b.shares.optimizer_us);
  EXPECT_EQ(a.source_shares, b.source_shares);
  EXPECT_EQ(a.model_flops, b.model_flops);
  EXPECT_EQ(a.hardware_flops, b.hardware_flops);
}

// What a search tries around a layout. Of the last one the tensor-parallel groups lie on other nodes.
std::vector<Layout> neighbours(const Layout& layout) {
  std::vector<Layout> all(7, layout);
  all[1].pipeline.schedule = PipelineSchedule::gpipe;
  all[2].pipeline.schedule = PipelineSchedule::zero_bubble_h1;
  all[3].sharding.kind = layout.sharding.kind == Sharding::zero1 ? Sharding::none : Sharding::zero1;
  all[4].layer.recompute.kind = Recompute::full;
  all[5].batch.global_batch_sequences *= 2;
  all[6].rank_order = "dp-cp-ep-tp-pp";
  return all;
}

// One model for all layouts gives each the forecast of a model of its own.
TEST(StepModelProperties, WhatIsRememberedChangesNothing) {
  std::mt19937_64 random{33};
  StepModel shared{platform()};
  int layouts = 0;
  for (int i = 0; i < 60; ++i) {
    const test::RandomTraining training = test::random_training(random);
    for (const Layout& layout : neighbours(training.layout)) {
      if (!check(layout, training.model).ok()) continue;
      SCOPED_TRACE(fmt::format("{}: {}", i, describe(test::RandomTraining{training.model, layout})));
      StepModel own{platform()};
      const Result<StepPrediction> alone = own.predict(training.model, layout);
      const Result<StepPrediction> among_others = shared.predict(training.model, layout);
      ASSERT_EQ(alone.ok(), among_others.ok());
      if (!alone.ok()) continue;
      expect_same(*alone, *among_others);
      expect_same(*alone, predicted(shared, training.model, layout));
      ++layouts;
    }
  }
  EXPECT_GT(layouts, 250);
}

// A layer, the embedding and the head: once for each place of their tensor-parallel groups.
TEST(StepModel, RefusesTypesThatTheDeviceHasNoUnitsFor) {
  const Platform a100 = load("dgx-a100");
  StepModel steps{a100};
  Layout layout = layout_of(1, 1, 8);
  layout.layer.precision = precision_for(DType::fp8);
  const auto refused = steps.predict(gpt(), layout);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message(),
              AllOf(HasSubstr("A100-SXM4-80GB"), HasSubstr("found fp8"), HasSubstr("does not support"),
                    HasSubstr("choose bf16 or fp16")));
}

// Nobody measured an H20: its kernels are those of the H100 by factors, and its clock may be off as a whole, so that its
// band is wider. An MI325X has not even a relative.
TEST(StepModel, BandsOfUnmeasuredDevicesAreWide) {
  const auto width = [](const char* name) {
    const Platform platform = load(name);
    StepModel steps{platform};
    const StepPrediction p = predicted(steps, gpt(), layout_of(1, 1, 8));
    return (p.step.p90 - p.step.p10) / p.step.time;
  };
  EXPECT_GT(width("8xh20"), 1.2 * width("dgx-h100"));
  EXPECT_LT(width("8xh20"), 0.45);
  EXPECT_GT(width("8xmi325x"), 1.5 * width("8xh20"));
}

double share_of_peak(const char* name) {
  const Platform platform = load(name);
  StepModel steps{platform};
  const StepPrediction p = predicted(steps, gpt(), layout_of(1, 1, 8));
  EXPECT_LT(p.step.p10, p.step.time) << name;
  EXPECT_LT(p.step.time, p.step.p90) << name;
  const double flops_per_us = p.model_flops / p.step.time.value() / static_cast<double>(p.n_gpus);
  return p.peak ? flops_per_us / (p.peak->value() * 1e-6) : 0;
}

// A device that nobody measured reaches no larger share of its peak than the relative with the same power; one that is all
// bandwidth, or without a relative, less than the best products of any device, three quarters.
TEST(StepModel, UnmeasuredDevicesReachNoMoreThanTheirRelatives) {
  EXPECT_LE(share_of_peak("8xh800"), share_of_peak("dgx-h100"));
  for (const char* name : {"dgx-b300", "gb300-nvl72", "8xh20", "8xmi325x", "8xmi350x", "8xmi355x", "8xl40s",
                           "rtx-pro-6000-server"}) {
    const double share = share_of_peak(name);
    EXPECT_GT(share, 0.1) << name;
    EXPECT_LT(share, 0.75) << name;
  }
}

// Sixteen micro-batches of eight layers with at least 30 operators of 15 launches of 4.5 us. Graphs of everything launch
// nothing, long layers hide the operators, and older hosts are slower.
TEST(StepModel, TheHostLimitsShortLayersOfAnEagerStack) {
  const auto step_ms = [](std::int64_t hidden, std::optional<double> launches, bool graphs = false,
                          const char* machine = "dgx-h100") {
    const Platform on = load(machine);
    StepModel steps{on};
    Transformer model = gpt();
    model.n_layers = 8;
    model.hidden_size = hidden;
    model.ffn_hidden_size = 4 * hidden;
    Layout layout = layout_of(1, 1, 8);
    layout.layer.operator_launches = launches;
    layout.layer.cuda_graphs.full_iteration = graphs;
    return predicted(steps, model, layout).step.time.value() / 1e3;
  };
  const double eager = step_ms(512, 15);
  EXPECT_GT(eager, 16 * 8 * 30 * 15 * 4.5e-3);
  EXPECT_LT(step_ms(512, {}), 0.5 * eager);
  EXPECT_LT(step_ms(512, 15, true), 0.2 * eager);
  EXPECT_LT(step_ms(8192, 15), 1.02 * step_ms(8192, {}));
  EXPECT_GT(step_ms(512, 15, false, "dgx-a100"), 1.2 * eager);
}

// Steps whose GPU work is short take the host's time, which goes with the platform's own overheads; compiled code, stacks that
// launch from C++ and GPUs with more to do than the host do not.
TEST(StepModel, EagerPyTorchTakesTheHostOfThePlatform) {
  Platform slow_host = load("h100-sxm5-80gb"), no_host = slow_host;
  std::vector<OverheadRecord> twice = *slow_host.overheads, none;
  for (OverheadRecord& record : twice) record.mean_us *= 2;
  const Platform usual = slow_host;
  slow_host.overheads = std::move(twice);
  no_host.overheads = std::move(none);
  const auto step_ms = [](const Platform& on, std::int64_t hidden, Framework framework,
                          DType dtype = DType::bf16, bool compiled = false) {
    Transformer model = gpt();
    model.n_layers = 8;
    model.hidden_size = hidden;
    model.ffn_hidden_size = 4 * hidden;
    Layout layout = layout_of(1, 1, 1);
    layout.batch.global_batch_sequences = layout.batch.micro_batch_sequences;
    set_software_defaults(layout, framework, dtype);
    layout.layer.fused.compiled = compiled;
    StepModel steps{on};
    return predicted(steps, model, layout).step.time.value() / 1e3;
  };
  const double fixed_ms = StepAssumptions{}.step_fixed_us / 1e3;
  const double eager = step_ms(usual, 256, Framework::pytorch);
  EXPECT_GT(eager, 2 * step_ms(no_host, 256, Framework::pytorch));
  EXPECT_NEAR(step_ms(slow_host, 256, Framework::pytorch) - fixed_ms, 2 * (eager - fixed_ms), 0.05 * eager);
  EXPECT_LT(step_ms(usual, 256, Framework::fsdp), 0.8 * eager);  // casts nothing
  EXPECT_LT(step_ms(usual, 256, Framework::pytorch, DType::bf16, true), 0.5 * eager);
  EXPECT_EQ(step_ms(usual, 256, Framework::nemo), step_ms(no_host, 256, Framework::nemo));
  EXPECT_LT(step_ms(usual, 8192, Framework::pytorch), 1.02 * step_ms(no_host, 8192, Framework::pytorch));
}

// On a GPU without TF32 units the flag changes nothing.
TEST(StepModel, ConvolutionsInFp32StayOffTf32UnitsWhereSaid) {
  const auto step_ms = [](const char* gpu, bool off_units) {
    Job job;
    job.model = "resnet-50";
    job.n_gpus = 1;
    job.framework = Framework::pytorch;
    job.settings.dtype = DType::fp32;
    job.settings.micro_batch_sequences = job.settings.global_batch_sequences = 128;
    if (off_units) job.settings.fp32_convolutions = true;
    const Platform on = load(gpu);
    const ResolvedJob resolved = resolve(job).value();
    StepModel steps{on};
    return predicted(steps, resolved.model, resolved.layout).step.time.value() / 1e3;
  };
  EXPECT_GT(step_ms("h100-sxm5-80gb", true), 1.3 * step_ms("h100-sxm5-80gb", false));
  EXPECT_EQ(step_ms("v100-pcie-32gb", true), step_ms("v100-pcie-32gb", false));
}

TEST(StepModel, PricesALayerOnce) {
  StepModel steps{platform()};
  predicted(steps, gpt(), layout_of(4, 2, 4));
  EXPECT_EQ(steps.worker().pricer().layers_priced(), 3U);
  Layout sharded = layout_of(4, 8, 2);
  sharded.sharding.kind = Sharding::zero1;
  predicted(steps, gpt(), sharded);
  EXPECT_EQ(steps.worker().pricer().layers_priced(), 3U);
  Layout spread = layout_of(4, 2, 4);
  spread.rank_order = "dp-tp-pp";  // four ranks of a tensor-parallel group on two nodes
  const double on_two_nodes = predicted(steps, gpt(), spread).step.time.value();
  EXPECT_EQ(steps.worker().pricer().layers_priced(), 6U);
  EXPECT_GT(on_two_nodes, predicted(steps, gpt(), layout_of(4, 2, 4)).step.time.value());
  EXPECT_EQ(steps.worker().pricer().layers_priced(), 6U);
}

TEST(StepModel, KeepsThePricesOfOtherAssumptionsApart) {
  StepAssumptions slow;
  slow.gemm_factor = 2;
  slow.host_launch_us *= 3;
  const StepModel steps{platform()}, other{platform(), slow}, slower = steps.with(slow);
  const StepPrediction before = predicted(steps, gpt(), layout_of(4, 2, 4));
  EXPECT_EQ(slower.worker().pricer().layers_priced(), 0U);
  expect_same(predicted(slower, gpt(), layout_of(4, 2, 4)), predicted(other, gpt(), layout_of(4, 2, 4)));
  EXPECT_EQ(steps.worker().pricer().layers_priced(), 3U);
  expect_same(predicted(steps, gpt(), layout_of(4, 2, 4)), before);
}

// Links, adapters and everything else between GPUs twice as fast. Without measured curves, which a faster
// link does not change.
TEST(StepModelProperties, AFasterNetworkIsNeverSlower) {
  Platform slow = platform();
  slow.curves.clear();
  Platform fast = slow;
  ASSERT_TRUE(fast.node.network);
  fast.node.network->bandwidth_per_nic = fast.node.network->bandwidth_per_nic * 2;
  StepModel slow_steps{slow}, fast_steps{fast};
  std::mt19937_64 random{32};
  int faster = 0;
  for (int i = 0; i < 200; ++i) {
    const test::RandomTraining training = test::random_training(random);
    SCOPED_TRACE(describe(training));
    const double before = predicted(slow_steps, training.model, training.layout).step.time.value();
    const double now = predicted(fast_steps, training.model, training.layout).step.time.value();
    EXPECT_LE(now, before * (1 + 1e-12));
    if (now < before * 0.999) ++faster;
  }
  EXPECT_GT(faster, 40);
}

TEST(StepModelProperties, MoreLayersTakeLonger) {
  StepModel steps{platform()};
  for (const auto& [tp, pp, dp] : {std::tuple{1, 1, 1}, std::tuple{2, 4, 4}, std::tuple{8, 2, 1}}) {
    double before = 0;
    for (const std::int64_t layers : {8, 16, 24, 32}) {
      Transformer model = gpt();
      model.n_layers = layers;
      const double now = predicted(steps, model, layout_of(tp, pp, dp)).step.time.value();
      EXPECT_GT(now, before);
      before = now;
    }
  }
}

TEST(StepModelProperties, RecomputationAndLongerSequencesTakeLonger) {
  StepModel steps{platform()};
  Layout layout = layout_of(2, 2, 2);
  const double plain = predicted(steps, gpt(), layout).step.time.value();
  layout.layer.recompute.kind = Recompute::full;
  const double again = predicted(steps, gpt(), layout).step.time.value();
  // A third forward beside forward and backward, which is twice as much.
  EXPECT_GT(again, 1.2 * plain);
  EXPECT_LT(again, 1.4 * plain);
  layout.batch.seq_len_tokens = 1024;
  EXPECT_LT(predicted(steps, gpt(), layout).step.time.value(), again);
}

// Transfers that take no time: replicas do not see each other.
TEST(StepModelProperties, WeakScalingWithoutCommunicationIsPerfect) {
  StepAssumptions assumptions;
  assumptions.communication_factor = 0;
  assumptions.gpu_speed_spread = 0;
  StepModel steps{platform(), assumptions};
  const StepPrediction one = predicted(steps, gpt(), layout_of(4, 2, 1));
  for (const std::int64_t dp : {2, 8, 32}) {
    const StepPrediction many = predicted(steps, gpt(), layout_of(4, 2, dp));
    EXPECT_DOUBLE_EQ(many.step.time.value(), one.step.time.value());
    EXPECT_NEAR(many.tokens_per_second() / one.tokens_per_second(), static_cast<double>(dp), 1e-9);
  }
}

TEST(StepModelProperties, WeakScalingWithCommunicationCostsTime) {
  StepModel steps{platform()};
  const double one = predicted(steps, gpt(), layout_of(4, 2, 1)).step.time.value();
  const double many = predicted(steps, gpt(), layout_of(4, 2, 32)).step.time.value();
  EXPECT_GT(many, one);
  EXPECT_LT(many, 1.5 * one);
}

// On every machine whose nodes are racks, some of them used in part: as much work for each GPU, alone and with experts
// over 8 and 32 GPUs, is never done faster by more GPUs.
TEST(StepModelProperties, WeakScalingOnRacksIsMonotonic) {
  const Result<Transformer> dense = find_preset("llama-3-8b"), experts = find_preset("qwen3-30b-a3b");
  ASSERT_TRUE(dense.ok() && experts.ok());
  int racks = 0;
  const std::vector<std::filesystem::path> folders{test::source_dir() / "platforms"};
  const PlatformListings listing = list_platforms(folders);
  for (const auto& entry : listing.platforms) {
    const Result<Platform> loaded = load_platform(entry.file.string(), folders);
    if (!loaded.ok() || !loaded->node.segment) continue;
    const Platform& rack = *loaded;
    ++racks;
    StepModel steps{rack};
    for (const std::int64_t ep : {1, 8, 32}) {
      double before = 0;
      for (const std::int64_t gpus : {32, 64, 96, 128, 160, 256, 288, 512, 576, 1024}) {
        Layout layout = layout_of(1, 1, gpus);
        layout.degrees.expert = ep;
        layout.sharding.kind = Sharding::zero1;
        const double ms = predicted(steps, ep > 1 ? *experts : *dense, layout).step.time.value();
        EXPECT_GT(ms, 0.99 * before) << rack.name << " ep " << ep << ", " << gpus << " GPUs";
        EXPECT_LT(ms, gpus > 32 ? 1.25 * before : ms + 1)
            << rack.name << " ep " << ep << ", " << gpus << " GPUs";
        before = ms;
      }
    }
  }
  EXPECT_GE(racks, 2);
}

// 16 layers of 12 h^2 and 51200 h: 6 FLOPs per parameter and token, and causal attention.
TEST(StepPrediction, QuantitiesAreWhatTheySay) {
  StepModel steps{platform()};
  Layout layout = layout_of(2, 2, 2);
  layout.layer.recompute.kind = Recompute::full;
  const StepPrediction p = predicted(steps, gpt(), layout);
  const double seconds = p.step.time.value() * 1e-6;
  EXPECT_EQ(p.n_gpus, 8);
  EXPECT_EQ(p.tokens_per_step, 32 * 2048.0);
  EXPECT_NEAR(p.tokens_per_second(), 65536 / seconds, 1e-6 * p.tokens_per_second());
  const double h = 4096, parameters = 16 * 12 * h * h + 51200 * h;
  const double pairs = 2048.0 * 2049 / 2;
  const double attention = 3 * 4 * pairs * h * 16 * 32;  // of 32 sequences and 16 layers
  EXPECT_NEAR(p.model_flops / (6 * parameters * 65536 + attention), 1, 1e-9);
  EXPECT_NEAR(p.flops_per_second_per_gpu(), p.model_flops / 8 / seconds, 1e-6 * p.flops_per_second_per_gpu());
  ASSERT_TRUE(p.peak);
  EXPECT_DOUBLE_EQ(*p.model_flops_utilization(), p.flops_per_second_per_gpu() / p.peak->value());
  // The layers' forward once more; attention's backward has 5 products for 2 x 2.
  const double again = 2 * 16 * 12 * h * h * 65536 + attention / 3 * 1.5;
  EXPECT_NEAR(p.hardware_flops / (p.model_flops + again), 1, 1e-9);
}

TEST(StepPrediction, OneGpuHasNoCommunicationAndNoBubble) {
  StepModel steps{platform()};
  const StepPrediction p = predicted(steps, gpt(), layout_of(1, 1, 1));
  EXPECT_EQ(p.shares.exposed_communication_us(), 0);
  EXPECT_EQ(p.shares.bubble_us, 0);
  EXPECT_GT(p.shares.optimizer_us, 0);
}

// 64 GPUs instead of 8, each with the same work and messages of the same size beside it: all that computes takes longer
// by slowest_gpu_excess(64).
TEST(StepPrediction, AllWaitForTheSlowestGpu) {
  StepAssumptions alike;
  alike.gpu_speed_spread = 0;
  StepModel steps{platform()}, steps_of_alike{platform(), alike};
  const Layout layout = layout_of(1, 1, 64);
  const StepPrediction p = predicted(steps, gpt(), layout),
                       without = predicted(steps_of_alike, gpt(), layout);
  const double factor = 1 + slowest_gpu_excess(64, 0.015);
  EXPECT_NEAR(p.times.stages[0].compute_us / without.times.stages[0].compute_us, factor, 1e-12);
  EXPECT_NEAR(p.shares.computation_us() / without.shares.computation_us(), factor, 1e-12);
  EXPECT_EQ(p.shares.optimizer_us, without.shares.optimizer_us);
  EXPECT_EQ(p.model_flops, without.model_flops);
  EXPECT_EQ(predicted(steps, gpt(), layout_of(1, 1, 8)).step.time,
            predicted(steps_of_alike, gpt(), layout_of(1, 1, 8)).step.time);
}

// (P - 1) / (M - 1 + P) of the passes, as long as stages are nearly alike.
TEST(StepPrediction, BubbleOfAPipeline) {
  StepAssumptions assumptions;
  assumptions.communication_factor = 0;
  assumptions.step_fixed_us = 0;
  assumptions.gpu_speed_spread = 0;
  StepModel steps{platform(), assumptions};
  Transformer model = gpt();
  model.n_layers = 64;
  model.vocab_size = 1024;  // a head that weighs nothing
  Layout layout = layout_of(4, 4, 1);
  const StepPrediction p = predicted(steps, model, layout);
  const double passes = p.step.time.value() - p.shares.optimizer_us;
  EXPECT_NEAR(p.shares.bubble_us / passes, 3.0 / (16 - 1 + 4), 0.01);
  layout.batch.global_batch_sequences = 64;
  EXPECT_LT(predicted(steps, model, layout).shares.bubble_us / p.step.time.value(), 3.0 / 19 + 0.01);
}

// The same question twice has the same answer, and what was asked before does not matter.
TEST(StepModel, AnswersDoNotDependOnWhatWasAskedBefore) {
  std::mt19937_64 random{33};
  StepModel warm{platform()};
  for (int i = 0; i < 40; ++i) {
    const test::RandomTraining training = test::random_training(random);
    StepModel cold{platform()};
    const StepPrediction a = predicted(warm, training.model, training.layout);
    const StepPrediction b = predicted(cold, training.model, training.layout);
    EXPECT_EQ(a.step.time.value(), b.step.time.value()) << describe(training);
    EXPECT_EQ(predicted(warm, training.model, training.layout).step.time.value(), a.step.time.value());
  }
}

TEST(StepModel, NamesWhatDoesNotFit) {
  StepModel steps{platform()};
  const Result<StepPrediction> odd = steps.predict(gpt(), layout_of(3, 1, 1));
  ASSERT_FALSE(odd.ok());
  EXPECT_THAT(odd.error().message(), AllOf(HasSubstr("n_heads 32 is not divisible by tensor_parallel 3"),
                                           HasSubstr("tensor_parallel 2 or 4")));
  // A device without a node: no second node to reach.
  const Platform device = load("h100-sxm5-80gb");
  StepModel alone{device};
  const Result<StepPrediction> far = alone.predict(gpt(), layout_of(1, 1, 16));
  ASSERT_FALSE(far.ok());
  EXPECT_THAT(far.error().message(), AllOf(HasSubstr("16 nodes"), HasSubstr("add node.network")));
}

// 16 GPUs on two nodes, weights sharded within a node: gathers stay on it, gradients are scattered on it and
// an eighth of them is summed over both nodes.
TEST(StepModel, HybridShardingGathersWithinACopy) {
  StepModel steps{platform()};
  Layout layout = layout_of(1, 1, 16);
  layout.sharding.kind = Sharding::zero3;
  const Result<PricedStep> full = steps.price(gpt(), layout);
  layout.sharding.shard_group_size = 8;
  const Result<PricedStep> hybrid = steps.price(gpt(), layout);
  ASSERT_TRUE(full.ok() && hybrid.ok());
  ASSERT_EQ(hybrid->placement.shard.n_nodes, 1);
  ASSERT_EQ(hybrid->placement.replicate.n_ranks, 2);
  const ScheduleUnit& unit = hybrid->schedule.chunks[0].units[1];
  EXPECT_LT(unit.gather_us, full->schedule.chunks[0].units[1].gather_us);
  const double parameters = hybrid->work.layer_kinds[0]->dense_parameters;
  const auto time = [&](CollectiveOp op, const GroupPlacement& group, double bytes) {
    Placement placement = hybrid->placement;
    placement.data_context = group;
    return steps.worker()
        .pricer()
        .price(Transfer{op, GroupKind::data, Bytes{bytes}}, placement)
        ->time.value();
  };
  EXPECT_DOUBLE_EQ(unit.gather_us, time(CollectiveOp::all_gather, hybrid->placement.shard, 2 * parameters));
  EXPECT_DOUBLE_EQ(unit.reduce_us,
                   time(CollectiveOp::reduce_scatter, hybrid->placement.shard, 4 * parameters) +
                       time(CollectiveOp::all_reduce, hybrid->placement.replicate, 4 * parameters / 8));
}

// Four tensor-parallel ranks, no data parallelism, whole experts on every rank: the ranks hold the same experts
// for a fourth of the tokens each and sum their gradients, while nothing else is held twice.
TEST(StepModel, ExpertsThatTensorParallelRanksShareAreReduced) {
  StepModel steps{platform()};
  Transformer model = gpt();
  model.moe = MixtureOfExperts{.n_experts = 4, .experts_per_token = 2, .expert_ffn_hidden_size = 16384};
  Layout layout = layout_of(4, 1, 1);
  layout.layer.sequence_parallel = true;
  const Result<PricedStep> cut = steps.price(model, layout);
  ASSERT_TRUE(cut.ok()) << cut.error().message();
  EXPECT_TRUE(cut->layers[0].transfers.reduce.time_us() == 0);
  layout.degrees.expert_tensor = 1;
  const Result<PricedStep> whole = steps.price(model, layout);
  ASSERT_TRUE(whole.ok()) << whole.error().message();
  ASSERT_EQ(whole->placement.expert_data.n_ranks, 4);
  // Gradients in fp32: four bytes of each parameter of an expert, in one message that a bucket does not exceed.
  const Result<Estimate> all =
      steps.worker().pricer().price(Transfer{CollectiveOp::all_reduce, GroupKind::expert_data,
                                             Bytes{4 * whole->work.layer_kinds[0]->expert_parameters}},
                                    whole->placement);
  ASSERT_TRUE(all.ok());
  EXPECT_DOUBLE_EQ(whole->layers[0].transfers.reduce.time_us(), all->time.value());
  EXPECT_GT(whole->schedule.chunks[0].units[1].reduce_us, 0);
}

TEST(SoftwareChoices, AttentionKernelFollowsFrameworkDateAndDevice) {
  const Device& h100 = platform().device;
  const Platform a100 = load("dgx-a100");
  const auto kernel = [](Framework framework, const Device& device, std::string date) {
    Layout layout;
    layout.software.framework = framework;
    layout.software.date = std::move(date);
    return with_software_choices(layout, device).layer.attention_kernel;
  };
  EXPECT_EQ(kernel(Framework::nemo, h100, ""), AttentionKernel::flash3);
  EXPECT_EQ(kernel(Framework::nemo, a100.device, ""), AttentionKernel::flash2);
  EXPECT_EQ(kernel(Framework::fsdp, a100.device, "2023-06"), AttentionKernel::flash1);
  EXPECT_EQ(kernel(Framework::fsdp, a100.device, "2024-06"), AttentionKernel::flash2);
  EXPECT_EQ(kernel(Framework::torchtitan, h100, ""), AttentionKernel::flash2);
  Layout chosen;
  chosen.layer.attention_kernel = AttentionKernel::efficient;
  EXPECT_EQ(with_software_choices(chosen, h100).layer.attention_kernel, AttentionKernel::efficient);
}

// Groups of odd data-parallel sizes leave one rank on their last node: it has one adapter where others have two.
TEST(StepModelProperties, OddDataParallelSizesCostAtMostTwiceTheTrafficOfEvenOnes) {
  StepModel steps{platform()};
  const auto data_us = [&](std::int64_t dp) {
    const StepPrediction p = predicted(steps, gpt(), layout_of(4, 4, dp));
    return p.shares.exposed_us[static_cast<std::size_t>(GroupKind::data)];
  };
  for (const std::int64_t dp : {5, 7, 9, 11}) {
    const double even_us = data_us(dp + 1);
    EXPECT_GT(data_us(dp), even_us) << dp;
    EXPECT_LT(data_us(dp), 2.05 * even_us) << dp;
  }
}

// More GPUs at the same work for each do not make a step shorter, whichever share of a rack they fill.
TEST(StepModelProperties, RacksDoNotGetFasterWithTheirNumber) {
  Transformer experts = gpt();
  experts.moe = MixtureOfExperts{.n_experts = 64, .experts_per_token = 8, .expert_ffn_hidden_size = 2048};
  std::size_t n_racks = 0;
  for (const PlatformListing& listing : list_platforms(platform_search_dirs()).platforms) {
    const std::string& name = listing.name;
    if (listing.gpus_per_node <= 16) continue;
    const Platform rack = load(name.c_str());
    if (rack.node.intra.kind != LinkKind::nvswitch) continue;  // a torus of TPUs
    ++n_racks;
    ASSERT_TRUE(rack.node.segment) << name;
    StepModel steps{rack};
    for (const auto& [tp, ep] : {std::pair{4, 1}, std::pair{1, 64}, std::pair{1, 32}}) {
      double before_us = 0;
      for (const std::int64_t gpus : {64, 128, 192, 256, 512, 576, 640, 1024}) {
        Layout layout = layout_of(tp, 1, gpus / tp);
        layout.degrees.expert = ep;
        layout.batch.global_batch_sequences = gpus;
        const double us = predicted(steps, ep > 1 ? experts : gpt(), layout).step.time.value();
        EXPECT_GT(us, 0.99 * before_us) << name << " tp " << tp << " ep " << ep << ", GPUs: " << gpus;
        before_us = us;
      }
    }
  }
  EXPECT_GE(n_racks, 2U);
}

}  // namespace
}  // namespace stepcast::step_model_test
