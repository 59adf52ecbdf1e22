#include "lab/gpu_time_scores.h"

#include <optional>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "stepcast/platform/platform_choice.h"
#include "stepcast/trace/recorded_program.h"

namespace stepcast {
namespace {

struct KernelTimes {
  double recorded_us = 0, predicted_us = 0, low_us = 0, high_us = 0;
  void add(double recorded, double predicted, double low, double high) {
    recorded_us += recorded;
    predicted_us += predicted;
    low_us += low;
    high_us += high;
  }
};

bool is_lookup(const RecordedProgram& recorded, const TaskInfo& task) {
  return std::holds_alternative<LookupShape>(recorded.program.works.operation(task.work)->shape) ||
         recorded.program.names.text(task.name).find("fbgemm") != std::string_view::npos;
}

// Kernels with a known operation, without communication and copies; by class, table lookups under `none`.
std::map<KernelClass, KernelTimes> kernel_times(const RecordedProgram& recorded, const RecordedPrices& prices,
                                                std::size_t c) {
  std::map<KernelClass, KernelTimes> times;
  const BlockId id = recorded.program.rank_class(RankClassId{c}).instances.front().block;
  const Block& block = recorded.program.block(id);
  for (std::uint32_t t = 0; t < block.task_count(); ++t) {
    const TaskInfo& task = block.tasks()[t];
    if (task.kind != TaskKind::kernel || recorded.program.works.operation(task.work) == nullptr) continue;
    const KernelClass kernel_class = is_lookup(recorded, task) ? KernelClass::none : task.kernel_class;
    times[kernel_class].add(block.duration_us()[t], prices.costs.duration_us(id)[t],
                            prices.low.duration_us(id)[t], prices.high.duration_us(id)[t]);
  }
  return times;
}

// Convolutions by what decides how libraries run them; empty: none.
std::string_view convolution_sort(const Operation& operation) {
  const auto* shape = std::get_if<ConvolutionShape>(&operation.shape);
  if (shape == nullptr) return {};
  if (shape->stride > 1) return "strided";
  if (shape->groups > 1) return "grouped";
  return shape->kernel_height == 1 && shape->kernel_width == 1 ? "1x1" : "larger than 1x1";
}
// All kernels of convolutions, copies between layouts too.
std::map<std::string_view, KernelTimes> convolution_times(const RecordedProgram& recorded,
                                                          const RecordedPrices& prices, std::size_t c) {
  std::map<std::string_view, KernelTimes> times;
  const BlockId id = recorded.program.rank_class(RankClassId{c}).instances.front().block;
  const Block& block = recorded.program.block(id);
  for (std::uint32_t t = 0; t < block.task_count(); ++t) {
    const TaskInfo& task = block.tasks()[t];
    const Operation* operation = recorded.program.works.operation(task.work);
    if (task.kind != TaskKind::kernel || operation == nullptr) continue;
    const std::string_view sort = convolution_sort(*operation);
    if (sort.empty()) continue;
    times[sort].add(block.duration_us()[t], prices.costs.duration_us(id)[t], prices.low.duration_us(id)[t],
                    prices.high.duration_us(id)[t]);
  }
  return times;
}

ScoredRow kernel_row(std::string name, const KernelTimes& times) {
  return {std::move(name),         times.recorded_us / kUsPerMs, times.predicted_us / kUsPerMs,
          times.low_us / kUsPerMs, times.high_us / kUsPerMs,     {}};
}

}  // namespace

StepPricer* PricedDevices::find(const std::string& device) {
  auto [it, fresh] = of_device_.try_emplace(device);
  if (fresh) {
    Result<PlatformChoice> choice = platform_for(
        {.name = {}, .gpu = device, .gpus_per_node = 0, .network_kind = {}, .node_bandwidth_Gbps = {}});
    if (choice.ok()) {
      it->second.platform = std::make_unique<Platform>(std::move(choice->platform));
      it->second.prices = std::make_unique<StepPricer>(*it->second.platform, StepAssumptions{});
    }
  }
  return it->second.prices.get();
}

void score_gpu_active(StepScores& scores, const RecordedJob& job, PricedDevices& devices,
                      std::vector<Skipped>& skipped) {
  StepPricer* prices = devices.find(job.device);
  if (prices == nullptr) {
    skipped.push_back({job.name, fmt::format("no platform has the GPU \"{}\"", job.device)});
    return;
  }
  const RecordedProgram& recorded = job.steps.back();
  const Result<RecordedPrices> priced =
      price_recorded(recorded, {.kernels = KernelTimeSource::models, .target = prices, .origin = prices});
  if (!priced.ok()) return;
  for (std::size_t c = 0; c < recorded.facts.size(); ++c) {
    const std::map<KernelClass, KernelTimes> times = kernel_times(recorded, *priced, c);
    KernelTimes all;
    for (const auto& [kernel_class, of_class] : times) {
      const bool lookups = kernel_class == KernelClass::none;
      const std::string name{lookups ? "table lookups" : to_string(kernel_class)};
      if (!lookups) all.add(of_class.recorded_us, of_class.predicted_us, of_class.low_us, of_class.high_us);
      scores.add("gpu_active_by_class", fmt::format("{} {}", job.name, name),
                 kernel_row(row_name(recorded.facts[c]), of_class), 0, name);
    }
    for (const auto& [sort, of_sort] : convolution_times(recorded, *priced, c)) {
      scores.add("gpu_active_of_convolutions", fmt::format("{} {}", job.name, sort),
                 kernel_row(row_name(recorded.facts[c]), of_sort), 0, std::string{sort});
    }
    if (all.recorded_us > 0) scores.add("gpu_active", job.name, kernel_row(row_name(recorded.facts[c]), all));
  }
}

void score_cross_device(StepScores& scores, const RecordedJob& from, const RecordedJob& to,
                        PricedDevices& devices) {
  StepPricer* origin = devices.find(from.device);
  StepPricer* target = devices.find(to.device);
  if (origin == nullptr || target == nullptr) return;
  const std::size_t last = 0;  // one rank each
  const auto sum = [&](const RecordedJob& job, const Costs& costs) {
    const BlockId id = job.steps.back().program.rank_class(RankClassId{last}).instances.front().block;
    const Block& block = job.steps.back().program.block(id);
    double us = 0;
    for (std::uint32_t t = 0; t < block.task_count(); ++t)
      if (block.tasks()[t].kind == TaskKind::kernel) us += costs.duration_us(id)[t];
    return us / kUsPerMs;
  };
  const RecordedProgram& recorded = from.steps.back();
  const double measured = sum(to, Costs{to.steps.back().program});
  const std::string row = fmt::format("{} to {}", from.device, to.device);
  scores.add("cross_device_unchanged", to.name, {row, measured, sum(from, Costs{recorded.program})});
  for (const auto& [test, ground] : {std::pair{"cross_device", KernelTimeSource::ratio},
                                     std::pair{"cross_device_models", KernelTimeSource::models}}) {
    const Result<RecordedPrices> priced =
        price_recorded(recorded, {.kernels = ground, .target = target, .origin = origin});
    if (!priced.ok()) continue;
    scores.add(
        test, to.name,
        {row, measured, sum(from, priced->costs), sum(from, priced->low), sum(from, priced->high), {}});
  }
}

}  // namespace stepcast
