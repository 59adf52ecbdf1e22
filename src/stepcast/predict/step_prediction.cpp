#include "stepcast/predict/step_prediction.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace stepcast {
namespace {

// Share of the bands of kernels and transfers that is a common error and does not cancel. Assumed.
constexpr double kCorrelatedShare = 0.3;
// The error of assumed times is larger to the slow side by this factor. Assumed.
constexpr double kSlowSideOfAssumed = 1.5;
// Half-width to the slow side if no GEMM was measured on the device or a relative. Published training of 22
// and 175 billion parameters on MI250X took 1.54 and 1.58 times the forecast from its figures (73.5 and 69.2
// TFLOP/s instead of 113 and 109).
constexpr double kUnmeasuredDeviceSlow = 0.5;
// Half-widths for effects outside of the model in layers with experts, as a share of the step. Their kernels,
// dispatchers and overlaps change between releases of the same software. Tuned on published steps.
constexpr double kExpertsFast = 0.06, kExpertsSlow = 0.22;
// The same for kinds of layouts without published runs (unmeasured_kind()). When published steps of sharded
// experts with expert parallelism were forecast for the first time, the steps took 28 % less than the
// forecast (median).
constexpr double kUnmeasuredKind = 0.28;
// Half-widths as a share of the host-bound time in eager frameworks, because hosts, containers and flags
// differ.
constexpr double kEagerHostFast = 0.3, kEagerHostSlow = 0.4;
// The same for plain PyTorch with a measured host. They contain four fifths of 57 host-bound steps of an H100
// and an H200, each forecast with the host times of the other machine.
constexpr double kMeasuredHostFast = 0.25, kMeasuredHostSlow = 0.3;

double sum(const std::array<double, kKernelClassCount>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

}  // namespace

double StepShares::computation_us() const { return sum(class_us); }
double StepShares::exposed_communication_us() const {
  return std::accumulate(exposed_us.begin(), exposed_us.end(), 0.0);
}
double StepShares::total_us() const {
  return computation_us() + exposed_communication_us() + host_us + bubble_us + optimizer_us + fixed_us;
}
double StepShares::waiting_share(bool several_nodes) const {
  const double outside = exposed_communication_us() - exposed_us[static_cast<std::size_t>(GroupKind::tensor)];
  return (host_us + bubble_us + fixed_us + (several_nodes ? outside : 0)) / total_us();
}

double StepPrediction::tokens_per_second() const { return tokens_per_step / step.time.value() * 1e6; }
double StepPrediction::flops_per_second_per_gpu() const {
  return model_flops / static_cast<double>(n_gpus) / step.time.value() * 1e6;
}
std::optional<double> StepPrediction::model_flops_utilization() const {
  if (!peak) return std::nullopt;
  return flops_per_second_per_gpu() / peak->value();
}

namespace {

// Computation of the critical stage, and FLOPs of the whole model.
struct Computed {
  PricedList passes;
  double model_flops = 0, all_flops = 0;  // sum over one rank of every stage
};

// Sums the prices of the critical stage over all its micro-batches, and the FLOPs over all stages.
Computed computed(const PricedStep& step, const Layout& layout, std::uint32_t critical) {
  Computed out;
  const double micro_batches = step.work.micro_batches;
  const double slowed_micro_batches = micro_batches * step.slowest_gpu_factor;
  for (std::size_t c = 0; c < step.work.chunks.size(); ++c) {
    const ChunkWork& chunk = step.work.chunks[c];
    const bool is_critical =
        stage_of_chunk(layout.pipeline.schedule, step.work.stages, static_cast<std::uint32_t>(c)) == critical;
    double forward_flops = 0, flops = 0;
    const auto add = [&](const PricedList& forward, const PricedList& backward, double count) {
      forward_flops += forward.flops * count;
      flops += (forward.flops + backward.flops) * count;
      if (!is_critical) return;
      out.passes += forward.times(count * slowed_micro_batches);
      out.passes += backward.times(count * slowed_micro_batches);
    };
    if (chunk.has_embedding) add(step.embedding.forward, step.embedding.backward, 1);
    for (const ChunkWork::Run& run : chunk.runs) {
      const PricedStep::Layer& layer = step.layers[run.kind];
      add(layer.forward, layer.backward, run.count);
      flops += layer.held_back.flops * run.count;
      if (is_critical) out.passes += layer.held_back.times(run.count * slowed_micro_batches);
    }
    if (chunk.has_head) add(step.head.forward, step.head.backward, 1);
    // Kernels of attention do 5/2 of the forward FLOPs in the backward pass, but the definition of model
    // FLOPs counts 2. Frozen weights have no weight gradients. With a reference model there are two forward
    // passes, one of them with a backward.
    const double passes = layout.layer.frozen_base ? 2 : 3;
    out.model_flops +=
        (layout.layer.reference_model ? (passes + 1) / 2 : passes) * forward_flops * micro_batches;
    out.all_flops += flops * micro_batches;
  }
  return out;
}

// Splits the step time: the passes by kind of work, the remainder by the time line of the critical stage.
StepShares shares_of(const PricedStep& step, const PricedList& passes, const StepTimes& times,
                     const StageTimes& stage) {
  StepShares shares;
  shares.class_us = passes.class_us;
  shares.exposed_us = passes.exposed_us;
  shares.host_us = passes.host_us;
  const auto group = [&](GroupKind kind) -> double& {
    return shares.exposed_us[static_cast<std::size_t>(kind)];
  };
  group(GroupKind::data) += stage.weights_us + stage.reduce_us + stage.gather_us;
  group(GroupKind::pipeline) += stage.boundary_us;
  shares.optimizer_us = stage.optimizer_us;
  shares.fixed_us = step.schedule.fixed_us;
  shares.bubble_us = times.step_us - shares.fixed_us - stage.end_us + stage.idle_us;
  if (step.work.stages == 1) {
    // With one stage there is no bubble: it waits only for the transfers counted above. Rounding must not
    // make it negative.
    shares.bubble_us = std::max(0.0, shares.bubble_us);
  }
  return shares;
}

// Adds the band of the step: the bands of its parts as a common error, combined with the band for effects
// that the model does not include.
Estimate with_band(const PricedStep& step, const PricedList& passes, const StepPrediction& result,
                   const Layout& layout, StepPricer& prices) {
  const double time = result.times.step_us;
  const double low = passes.time_us > 0 ? 1 - passes.low_us / passes.time_us : 0;
  const double high = passes.time_us > 0 ? passes.high_us / passes.time_us - 1 : 0;
  const StepAssumptions& assume = prices.assumptions();
  const auto share = [&](EstimateSource source) {
    return result.source_shares[static_cast<std::size_t>(source)];
  };
  const auto us_of = [&](KernelClass of) { return result.shares.class_us[static_cast<std::size_t>(of)]; };
  // Errors of many kernels cancel in part. Without measured kernels of the device all have the same error.
  // Assumed times, and the clock of all matrix work, may be off as a whole.
  const double unmeasured = share(EstimateSource::analytic) + share(EstimateSource::assumed);
  const double correlated = kCorrelatedShare + (1 - kCorrelatedShare) * unmeasured;
  const double matrix_us = us_of(KernelClass::gemm) + us_of(KernelClass::attention);
  const double clock = time > 0 ? prices.kernels().clock_band() * matrix_us / time : 0;
  const double guessed = assume.structure_assumed * share(EstimateSource::assumed) +
                         (prices.kernels().clock_is_assumed() ? assume.structure_assumed : 0);
  const bool experts = std::any_of(step.work.chunks.begin(), step.work.chunks.end(),
                                   [](const ChunkWork& chunk) { return chunk.expert_parameters > 0; });
  const bool is_new = !unmeasured_kind(experts, layout.software.framework, layout.sharding.kind,
                                       layout.degrees.expert, layout.pipeline.schedule)
                           .empty();
  const double structure_low =
      std::hypot(assume.structure_low, experts ? kExpertsFast : 0, is_new ? kUnmeasuredKind : 0);
  const double structure_high =
      std::hypot(assume.structure_high, experts ? kExpertsSlow : 0, is_new ? kUnmeasuredKind : 0);
  const double eager = step.operator_launches > 1 && passes.time_us > 0 ? passes.host_us / passes.time_us : 0;
  const bool is_measured = !layout.layer.operator_launches;
  const double down = std::min(
      0.9, std::hypot(std::hypot(correlated * low, clock), structure_low,
                      std::hypot(guessed, (is_measured ? kMeasuredHostFast : kEagerHostFast) * eager)));
  const double unknown_device = prices.kernels().clock_is_assumed() ? kUnmeasuredDeviceSlow : 0;
  const double up = std::hypot(std::hypot(correlated * high, clock), structure_high,
                               std::hypot(kSlowSideOfAssumed * guessed, unknown_device,
                                          (is_measured ? kMeasuredHostSlow : kEagerHostSlow) * eager));
  EstimateSource source = EstimateSource::fitted;
  if (share(EstimateSource::analytic) > 0.5) source = EstimateSource::analytic;
  if (share(EstimateSource::assumed) > 0.5) source = EstimateSource::assumed;
  if (assume.log_sd > 0) {
    // Measured steps say nothing about the additional uncertainty of this question, such as a power limit or
    // settings without a price. It is added.
    constexpr double kTenth = 1.2815515655446004;  // of a normal distribution, in standard deviations
    const auto added = [](double asked, double usual) {
      return std::max(0.0, asked * asked - usual * usual);
    };
    const double fast = std::sqrt(std::pow(kTenth * assume.log_sd, 2) +
                                  added(assume.structure_low, StepAssumptions{}.structure_low));
    const double slow = std::sqrt(std::pow(kTenth * assume.log_sd, 2) +
                                  added(assume.structure_high, StepAssumptions{}.structure_high));
    return {Microseconds{time}, Microseconds{time * std::exp(-fast)}, Microseconds{time * std::exp(slow)},
            source};
  }
  return {Microseconds{time}, Microseconds{time * (1 - down)}, Microseconds{time * (1 + up)}, source};
}

}  // namespace

StepPrediction step_prediction(const PricedStep& step, const StepTimes& times, const Layout& layout,
                               StepPricer& prices) {
  StepPrediction result;
  result.times = times;
  const std::uint32_t critical = result.times.critical_stage;
  const auto [passes, model_flops, all_flops] = computed(step, layout, critical);
  result.shares = shares_of(step, passes, result.times, result.times.stages[critical]);
  const double known = std::accumulate(passes.source_us.begin(), passes.source_us.end(), 0.0);
  for (std::size_t i = 0; i < result.source_shares.size(); ++i)
    result.source_shares[i] = known > 0 ? passes.source_us[i] / known : 0;
  result.step = with_band(step, passes, result, layout, prices);
  result.n_gpus = layout.world_size();
  result.tokens_per_step =
      static_cast<double>(layout.batch.global_batch_sequences * layout.batch.seq_len_tokens);
  const double ranks_per_stage =
      static_cast<double>(result.n_gpus) / static_cast<double>(layout.degrees.pipeline);
  result.model_flops = model_flops * ranks_per_stage;
  result.hardware_flops = all_flops * ranks_per_stage;
  result.peak = prices.platform().device.peak(layout.layer.precision.compute);
  return result;
}

double passes_us(const StepPrediction& prediction) {
  const StepShares& shares = prediction.shares;
  return prediction.step.time.value() - shares.optimizer_us - shares.fixed_us -
         shares.exposed_us[static_cast<std::size_t>(GroupKind::data)];
}

double forward_us(const PricedStep& step, const StepPrediction& prediction) {
  double forward = 0, all = 0;
  for (const ChunkWork& chunk : step.work.chunks) {
    for (const ChunkWork::Run& run : chunk.runs) {
      const PricedStep::Layer& layer = step.layers[run.kind];
      forward += layer.forward.time_us * run.count;
      all += (layer.forward.time_us + layer.backward.time_us + layer.held_back.time_us) * run.count;
    }
  }
  return all > 0 ? passes_us(prediction) * forward / all : 0;
}

}  // namespace stepcast
