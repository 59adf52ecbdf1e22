// The table kCauses lists what could be different from the description. Each cause is a function that changes
// the layout or the machine and returns false if it does not apply. causes_of() forecasts each changed job
// and ranks the causes.
#include "stepcast/analyze/measured_check.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "stepcast/analyze/published_runs.h"
#include "stepcast/base/text.h"
#include "stepcast/base/units.h"
#include "stepcast/predict/step_model.h"

namespace stepcast {
namespace {

// The distance of p10 and p90 from the median of a normal distribution, in standard deviations.
constexpr double kTenth = 1.2815515655446004;

// The job and the machine under one cause. `steps`: the number of steps that the measured time covers;
// usually 1.
struct Supposed {
  Layout layout;
  StepAssumptions machine;
  double steps = 1;
};

// One cause. `prior`: its relative frequency among the others, with kByChance for chance. The priors are
// judgements, none is fitted (docs/constants.md). `suppose` applies the cause and returns false if the job
// already is like that. `look_at`: how a user can check it.
struct Cause {
  std::string_view what, look_at;
  double prior;
  bool (*suppose)(Supposed&, const Transformer&);
};
constexpr double kByChance = 4;

constexpr std::string_view kSettings = "arguments that the program prints at its start";
constexpr std::string_view kBatch = "batch, micro-batch, accumulation in its arguments";
constexpr std::string_view kClock = "nvidia-smi -q -d PERFORMANCE under load: power, heat";
constexpr std::string_view kNetwork = "NCCL_DEBUG=INFO: transport; nccl-tests over 2 nodes";
constexpr std::string_view kLinks = "nvidia-smi topo -m; nccl-tests inside a node";
constexpr std::string_view kHost = "a profile: the GPU waits for launches; CPU clock";

// Recomputation of activations of this kind.
template <Recompute Kind>
bool recomputed(Supposed& s, const Transformer&) {
  if (s.layout.layer.recompute.kind == Kind) return false;
  s.layout.layer.recompute = {.kind = Kind};
  return true;
}

// The global batch is multiplied by Times / Over; not if the result is not an integer. The next two do the
// same for the micro-batch and the sequence length.
template <std::int64_t Times, std::int64_t Over>
bool batch_of(Supposed& s, const Transformer&) {
  std::int64_t& batch = s.layout.batch.global_batch_sequences;
  if (batch * Times % Over != 0) return false;
  batch = batch * Times / Over;
  return true;
}

template <std::int64_t Times, std::int64_t Over>
bool micro_batch_of(Supposed& s, const Transformer&) {
  std::int64_t& batch = s.layout.batch.micro_batch_sequences;
  if (batch * Times % Over != 0) return false;
  batch = batch * Times / Over;
  return true;
}

template <std::int64_t Times, std::int64_t Over>
bool sequence_of(Supposed& s, const Transformer&) {
  std::int64_t& tokens = s.layout.batch.seq_len_tokens;
  if (tokens * Times % Over != 0) return false;
  tokens = tokens * Times / Over;
  return true;
}

// Sharding of this kind; only if there are several data-parallel ranks.
template <Sharding Kind>
bool sharded(Supposed& s, const Transformer&) {
  if (s.layout.sharding.kind == Kind || s.layout.degrees.data * s.layout.degrees.context == 1) return false;
  s.layout.sharding.kind = Kind;
  return true;
}

// GEMMs in another type. The recipe for fp8 is kept, in case the type is fp8.
template <DType Type>
bool products_in(Supposed& s, const Transformer&) {
  Precision& precision = s.layout.layer.precision;
  if (precision.compute == Type) return false;
  const Fp8Recipe recipe = precision.fp8;
  precision = precision_for(Type);
  precision.fp8 = recipe;
  return true;
}

// The machine runs some of its parts at Percent of their speed: their times are multiplied by 100 / Percent.
template <double StepAssumptions::*... Factors>
struct At {
  template <int Percent>
  static bool speed(Supposed& s, const Transformer&) {
    ((s.machine.*Factors *= 100.0 / Percent), ...);
    return true;
  }
};
using Gpu = At<&StepAssumptions::gemm_factor, &StepAssumptions::attention_factor,
               &StepAssumptions::memory_bound_factor>;
using Products = At<&StepAssumptions::gemm_factor, &StepAssumptions::attention_factor>;
using Network = At<&StepAssumptions::inter_node_factor>;
using Links = At<&StepAssumptions::intra_node_factor>;
using Host = At<&StepAssumptions::host_factor, &StepAssumptions::host_launch_us,
                &StepAssumptions::compiled_host_launch_us, &StepAssumptions::step_fixed_us>;

// Columns: what is different, how to check it, prior, function.
constexpr Cause kCauses[] = {
    {"all activations are recomputed", kSettings, 1.5, recomputed<Recompute::full>},
    {"activations are recomputed selectively", kSettings, 0.5, recomputed<Recompute::selective>},
    {"no activation is recomputed", kSettings, 1.5, recomputed<Recompute::none>},
    {"the global batch is twice as large", kBatch, 1, batch_of<2, 1>},
    {"the global batch is four times as large", kBatch, 0.4, batch_of<4, 1>},
    {"the global batch is half as large", kBatch, 1, batch_of<1, 2>},
    {"the global batch is a quarter as large", kBatch, 0.4, batch_of<1, 4>},
    {"micro-batches are twice as large", kBatch, 0.5, micro_batch_of<2, 1>},
    {"micro-batches are half as large", kBatch, 0.5, micro_batch_of<1, 2>},
    {"micro-batches are a quarter as large", kBatch, 0.3, micro_batch_of<1, 4>},
    {"sequences are twice as long", "sequence length in its arguments", 0.5, sequence_of<2, 1>},
    {"sequences are half as long", "sequence length in its arguments", 0.5, sequence_of<1, 2>},
    {"the time is that of one micro-batch", "definition of a step or an iteration in the log", 0.7,
     [](Supposed& s, const Transformer&) {
       s.steps = 1.0 / static_cast<double>(s.layout.micro_batches());
       return s.layout.micro_batches() > 1;
     }},
    {"the time is that of ten steps", "logging interval of the program", 0.4,
     [](Supposed& s, const Transformer&) {
       s.steps = 10;
       return true;
     }},
    {"GEMMs run in bf16", kSettings, 1, products_in<DType::bf16>},
    {"GEMMs run in fp8", kSettings, 0.7, products_in<DType::fp8>},
    {"GEMMs run in fp32 on TF32 units", kSettings, 0.3, products_in<DType::tf32>},
    {"attention is not fused (no flash attention)", "kernel names in a profile: softmax, bmm", 0.7,
     [](Supposed& s, const Transformer&) {
       return std::exchange(s.layout.layer.attention, AttentionMethod::unfused) != AttentionMethod::unfused;
     }},
    {"layers run as separate kernels without compilation or fusion", "kernel names in a profile", 0.5,
     [](Supposed& s, const Transformer&) {
       FusedKernels& fused = s.layout.layer.fused;
       const FusedKernels before = fused;
       fused = {.softmax = false,
                .bias_activation = false,
                .bias_dropout_add = false,
                .norm = false,
                .rotary = false,
                .weight_gradient_accumulation = false,
                .permutation = false};
       return fused != before;
     }},
    {"the gradient reduction does not overlap the backward pass", kSettings, 0.7,
     [](Supposed& s, const Transformer&) {
       ShardingChoices& sharding = s.layout.sharding;
       const bool overlapped = sharding.overlap_gradient_reduce || sharding.overlap_parameter_gather;
       sharding.overlap_gradient_reduce = sharding.overlap_parameter_gather = false;
       return overlapped;
     }},
    {"tensor-parallel communication overlaps GEMMs", kSettings, 0.5,
     [](Supposed& s, const Transformer&) {
       if (s.layout.degrees.tensor == 1) return false;
       return !std::exchange(s.layout.layer.overlap.tensor_parallel, true);
     }},
    {"weights are sharded (FSDP, ZeRO-3)", kSettings, 0.4, sharded<Sharding::zero3>},
    {"weights and optimizer are not sharded", kSettings, 0.4, sharded<Sharding::none>},
    {"the pipeline is not interleaved", kSettings, 0.4,
     [](Supposed& s, const Transformer&) {
       const bool was = s.layout.degrees.virtual_stages > 1;
       s.layout.degrees.virtual_stages = 1;
       s.layout.pipeline = {};
       return was;
     }},
    {"CUDA graphs contain whole layers", kSettings, 0.3,
     [](Supposed& s, const Transformer&) {
       return std::exchange(s.layout.layer.cuda_graphs, graphs_of_layers()) == CudaGraphs{};
     }},
    {"no CUDA graph is used", kSettings, 0.4,
     [](Supposed& s, const Transformer&) {
       return std::exchange(s.layout.layer.cuda_graphs, CudaGraphs{}) != CudaGraphs{};
     }},
    {"GPUs run 15 % slower", kClock, 1, Gpu::speed<85>},
    {"GPUs run 30 % slower", kClock, 0.5, Gpu::speed<70>},
    {"GPUs run at half their speed", kClock, 0.3, Gpu::speed<50>},
    {"GEMMs and attention run 20 % faster", "a newer release of libraries; another GPU", 0.3,
     Products::speed<120>},
    {"links between nodes have 1/2 of their bandwidth", kNetwork, 1, Network::speed<50>},
    {"links between nodes have 1/4 of their bandwidth", kNetwork, 0.6, Network::speed<25>},
    {"links between nodes have 1/8 of their bandwidth (one NIC of eight, or TCP)", kNetwork, 0.6,
     Network::speed<12>},
    {"links inside nodes have 1/2 of their bandwidth", kLinks, 0.5, Links::speed<50>},
    {"links inside nodes have 1/8 of their bandwidth (PCIe instead of NVLink)", kLinks, 0.4,
     Links::speed<12>},
    {"the host takes twice as long", kHost, 0.7, Host::speed<50>},
    {"the host takes four times as long", kHost, 0.4, Host::speed<25>},
};

// The likelihood of a measured time under a forecast, up to a constant: a normal density of ln(time) with
// different widths below and above the forecast. 0 beyond three standard deviations, where the forecast
// explains nothing.
double density(double measured_ms, double forecast_ms, double p10_ms, double p90_ms) {
  const double off = std::log(measured_ms / forecast_ms);
  constexpr double kLeastSd = 0.01;  // lower bound, so that an interval of no width does not exclude all else
  const double fast_sd = std::max(kLeastSd, std::log(forecast_ms / p10_ms) / kTenth);
  const double slow_sd = std::max(kLeastSd, std::log(p90_ms / forecast_ms) / kTenth);
  const double z = off / (off < 0 ? fast_sd : slow_sd);
  constexpr double kFarthest = 3;
  return std::abs(z) > kFarthest ? 0 : std::exp(-z * z / 2) / (fast_sd + slow_sd);
}

// The likely causes, most likely first: at most kMost, each with at least kWorthSaying of the total weight.
std::vector<MeasuredCause> causes_of(const StepModel& steps, const Transformer& model, const Layout& layout,
                                     const MeasuredCheck& check) {
  struct Tried {
    MeasuredCause cause;
    double weight;
  };
  std::vector<Tried> tried;
  double sum =
      kByChance * density(check.measured_ms, check.forecast_ms, check.forecast_p10_ms, check.forecast_p90_ms);
  for (const Cause& one : kCauses) {
    Supposed supposed{layout, steps.assumptions()};
    if (!one.suppose(supposed, model)) continue;
    const Result<StepPrediction> then = steps.with(supposed.machine).predict(model, supposed.layout);
    if (!then) continue;
    const double to_ms = kMsPerUs * supposed.steps;
    const double ms = then->step.time.value() * to_ms;
    // A cause that does not bring the forecast nearer to the measured time explains nothing.
    if (std::abs(std::log(check.measured_ms / ms)) >= std::abs(std::log(check.measured_over_forecast)))
      continue;
    const double weight = one.prior * density(check.measured_ms, ms, then->step.p10.value() * to_ms,
                                              then->step.p90.value() * to_ms);
    sum += weight;
    tried.push_back(
        {{std::string{one.what}, ms, weight, std::string{one.look_at}, supposed.steps != 1}, weight});
  }
  std::ranges::stable_sort(tried, std::greater{}, &Tried::weight);
  constexpr double kWorthSaying = 0.03;
  constexpr std::size_t kMost = 5;
  std::vector<MeasuredCause> causes;
  for (Tried& one : tried) {
    if (causes.size() == kMost || one.weight <= 0 || one.weight < kWorthSaying * sum) break;
    one.cause.likelihood = one.weight / sum;
    causes.push_back(std::move(one.cause));
  }
  return causes;
}

// A time as "5,150.2 ms".
std::string text_of_ms(double ms) { return with_separators(fmt::format("{:.1f}", ms)) + " ms"; }

// The verdict as one or two sentences.
std::string sentence_of(const MeasuredCheck& c) {
  const double percent = 100 * (c.measured_over_forecast - 1);
  std::string text =
      fmt::format("{} is {}: {:.1f} % {} than the forecast of {}, {} its band from {} to {}",
                  text_of_ms(c.measured_ms), c.verdict, std::abs(percent), percent < 0 ? "less" : "more",
                  text_of_ms(c.forecast_ms), c.verdict == "normal" ? "within" : "outside of",
                  text_of_ms(c.forecast_p10_ms), text_of_ms(c.forecast_p90_ms));
  if (c.verdict == "normal") return text + ".";
  if (c.causes.empty()) return text + ". No tried cause alone explains it: check model, GPUs and batch.";
  const MeasuredCause& first = c.causes.front();
  return text +
         fmt::format(". The likeliest single cause: {} ({}).", first.what, text_of_ms(first.step_time_ms));
}

}  // namespace

Result<MeasuredCheck> check_measured(const StepModel& steps, const Transformer& model, const Layout& layout,
                                     double measured_ms) {
  STEPCAST_ASSIGN(const StepPrediction forecast, steps.predict(model, layout));
  const Estimate& step = forecast.step;
  MeasuredCheck check{.verdict = "normal",
                      .measured_ms = measured_ms,
                      .forecast_ms = step.time.value() * kMsPerUs,
                      .forecast_p10_ms = step.p10.value() * kMsPerUs,
                      .forecast_p90_ms = step.p90.value() * kMsPerUs};
  check.measured_over_forecast = measured_ms / check.forecast_ms;
  if (measured_ms < check.forecast_p10_ms) check.verdict = "fast";
  if (measured_ms > check.forecast_p90_ms) check.verdict = "slow";
  if (check.verdict != "normal") check.causes = causes_of(steps, model, layout, check);
  // Published runs are of transformers; other networks have no counterpart in the table.
  if (model.network == nullptr)
    check.nearest_published = nearest_published({.model = model,
                                                 .gpu = steps.platform().device.name,
                                                 .precision = layout.layer.precision.compute,
                                                 .framework = layout.software.framework,
                                                 .n_gpus = layout.world_size()});
  check.sentence = sentence_of(check);
  return check;
}

}  // namespace stepcast
