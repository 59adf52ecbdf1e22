#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/statistics.h"
#include "stepcast/describe/job.h"
#include "stepcast/formats/resolve_job.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/predict/step_model.h"
#include "stepcast/trace/readers.h"

#include "lab/suites.h"

namespace stepcast {
namespace {

namespace fs = std::filesystem;

struct TracedNetwork {
  std::string_view trace, model, platform;
  std::int64_t batch;
  DType dtype;
  double iterations;
  bool forward_alone;
  OptimizerKind optimizer;
};
constexpr TracedNetwork kTraces[] = {
    {"traces/vgg13/kineto_vgg13.json.gz", "vgg-13", "h100-sxm5-80gb", 512, DType::fp32, 1, false,
     OptimizerKind::adam},
    {"traces/resnet_linear/resnet_kineto.json.gz", "resnet-18", "rtx-2080-ti", 128, DType::fp32, 30, false,
     OptimizerKind::momentum_sgd},
    {"modern/traces/mi300x_train_resnet18_batch512.json.gz", "resnet-18", "mi300x", 512, DType::bf16, 5,
     false, OptimizerKind::momentum_sgd},
    {"traces/h100_inference/Falconsai_nsfw_image_detection__1016002.json.gz", "vit-base-patch16",
     "h100-sxm5-80gb", 4, DType::bf16, 1, true, OptimizerKind::sgd},
    {"modern/traces/mi300x_Falconsai_nsfw_image_detection__1016002.json.gz", "vit-base-patch16", "mi300x", 4,
     DType::bf16, 1, true, OptimizerKind::sgd},
};

struct NetworkTimes {
  double measured_us = 0, predicted_us = 0, low_us = 0, high_us = 0, flops = 0, peak = 0;
  [[nodiscard]] double utilisation() const { return flops / measured_us / peak; }
};

Result<double> kernels_us(const fs::path& file, double iterations) {
  STEPCAST_ASSIGN(const RecordedRank rank, read_kineto(file));
  double ns = 0;
  for (const GpuOp& op : rank.gpu_ops)
    if (op.kind == GpuOp::Kind::kernel) ns += static_cast<double>(op.duration.count());
  return ns / 1e3 / iterations;
}

Result<NetworkTimes> times_of(const fs::path& data, const TracedNetwork& traced) {
  NetworkTimes times;
  STEPCAST_ASSIGN(times.measured_us, kernels_us(data / traced.trace, traced.iterations));
  Job job;
  job.model = traced.model;
  job.n_gpus = 1;
  job.framework = Framework::pytorch;
  job.settings.dtype = traced.dtype;
  job.settings.optimizer = traced.optimizer;
  job.settings.clip_gradients = 0;
  job.settings.micro_batch_sequences = job.settings.global_batch_sequences = traced.batch;
  STEPCAST_ASSIGN(const ResolvedJob resolved, resolve(job));
  STEPCAST_ASSIGN(const Platform platform, load_platform(std::string{traced.platform}));
  StepModel model{platform};
  STEPCAST_ASSIGN(const PricedStep step, model.price(resolved.model, resolved.layout));
  const auto add = [&times](const PricedList& list, double count) {
    times.predicted_us += count * (list.time_us - list.host_us);
    times.low_us += count * list.low_us;
    times.high_us += count * list.high_us;
    times.flops += count * list.flops;
  };
  for (const ChunkWork::Run& run : step.work.chunks.front().runs) {
    add(step.layers[run.kind].forward, run.count);
    if (!traced.forward_alone) add(step.layers[run.kind].backward, run.count);
  }
  if (!traced.forward_alone)
    for (const PricedStep::Update& update : step.updates) add(update.price, 1);
  // Convolutions of fp32 tensors use TF32 units if the device has them.
  const bool tf32 = traced.dtype == DType::fp32 && platform.device.peak(DType::tf32);
  const auto peak = platform.device.peak(tf32 ? DType::tf32 : traced.dtype);
  if (!peak) return Error{fmt::format("{} states no peak for {}", traced.platform, to_string(traced.dtype))};
  times.peak = peak->value() * 1e-6;
  return times;
}

void add_network_scores(const std::vector<const TracedNetwork*>& traces,
                        const std::vector<NetworkTimes>& times, SuiteResult& result) {
  TestScore ours{.test = "networks", .protocol = "shipped", .unit = "ms"};
  TestScore trivial{.test = "networks_utilisation", .protocol = "shipped", .unit = "ms"};
  constexpr double kUsPerMs = 1e3;
  for (std::size_t i = 0; i < traces.size(); ++i) {
    const std::string name = fmt::format("{} {}", traces[i]->model, traces[i]->platform);
    const NetworkTimes& t = times[i];
    ours.sets.push_back({.set = name,
                         .rows = {{.row = name,
                                   .measured = t.measured_us / kUsPerMs,
                                   .predicted = t.predicted_us / kUsPerMs,
                                   .p10 = t.low_us / kUsPerMs,
                                   .p90 = t.high_us / kUsPerMs}}});
    std::vector<double> of_others;
    for (std::size_t k = 0; k < times.size(); ++k)
      if (k != i) of_others.push_back(times[k].utilisation());
    if (of_others.empty()) continue;
    trivial.sets.push_back({.set = name,
                            .rows = {{.row = name,
                                      .measured = t.measured_us / kUsPerMs,
                                      .predicted = t.flops / t.peak / median(of_others) / kUsPerMs}}});
  }
  result.add(finished({&ours, &trivial}));
}

}  // namespace

Result<SuiteResult> validate_networks(const fs::path& data, const SuiteOptions& /*options*/) {
  SuiteResult result{.suite = "networks"};
  std::vector<const TracedNetwork*> traces;
  std::vector<NetworkTimes> times;
  std::error_code ignored;
  for (const TracedNetwork& traced : kTraces) {
    if (!fs::exists(data / traced.trace, ignored)) {
      result.skipped.push_back({std::string{traced.trace}, "no such trace"});
      continue;
    }
    STEPCAST_ASSIGN(const NetworkTimes one, times_of(data, traced));
    traces.push_back(&traced);
    times.push_back(one);
  }
  add_network_scores(traces, times, result);
  return result;
}

}  // namespace stepcast
