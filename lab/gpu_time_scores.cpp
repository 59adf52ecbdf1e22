#include "lab/gpu_time_scores.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "stepcast/platform/platform_choice.h"
#include "stepcast/rebuild/recorded_program.h"

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

// Times of kernels with a known operation, without communication and copies, by class. Table lookups are in `none`.
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

// Sort of a convolution, by which libraries choose kernels; empty: not a convolution.
std::string_view convolution_sort(const Operation& operation) {
  const auto* shape = std::get_if<ConvolutionShape>(&operation.shape);
  if (shape == nullptr) return {};
  if (shape->stride > 1) return "strided";
  if (shape->groups > 1) return "grouped";
  return shape->kernel_height == 1 && shape->kernel_width == 1 ? "1x1" : "larger than 1x1";
}
// Times of all kernels of convolutions, including copies between layouts.
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

// Sum of all classes, with the band of the sum.
KernelTimes together(const std::map<KernelClass, KernelTimes>& times, KernelClass without,
                     KernelTimeSource ground = KernelTimeSource::models) {
  KernelTimes all;
  std::vector<ClassBand> bands;
  for (const auto& [kernel_class, of] : times) {
    if (kernel_class == without) continue;
    all.add(of.recorded_us, of.predicted_us, of.low_us, of.high_us);
    bands.push_back({of.predicted_us, of.low_us, of.high_us});
  }
  const BandShares shares = shares_together(bands, ground);
  all.low_us = all.predicted_us + shares.low * (all.low_us - all.predicted_us);
  all.high_us = all.predicted_us + shares.high * (all.high_us - all.predicted_us);
  return all;
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
    const KernelTimes all = together(times, KernelClass::none);
    for (const auto& [kernel_class, of_class] : times) {
      const bool lookups = kernel_class == KernelClass::none;
      const std::string name{lookups ? "table lookups" : to_string(kernel_class)};
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

namespace {

// Ratio of the time on one device to that on another by a single figure of their data sheets.
double peak_ratio(const Device& from, const Device& to) {
  for (const DType type : {DType::bf16, DType::fp16, DType::fp32}) {
    const auto a = from.peak(type), b = to.peak(type);
    if (a && b && b->value() > 0) return a->value() / b->value();
  }
  return 1;
}
double bandwidth_ratio(const Device& from, const Device& to) {
  return to.memory_bandwidth.value() > 0 ? from.memory_bandwidth.value() / to.memory_bandwidth.value() : 1;
}

// Kernels of the last step of the only rank of a job, by class; with these prices, or as recorded if null.
std::map<KernelClass, KernelTimes> all_kernels(const RecordedJob& job, const RecordedPrices* prices) {
  const RecordedProgram& recorded = job.steps.back();
  const BlockId id = recorded.program.rank_class(RankClassId{std::size_t{0}}).instances.front().block;
  const Block& block = recorded.program.block(id);
  std::map<KernelClass, KernelTimes> times;
  for (std::uint32_t t = 0; t < block.task_count(); ++t) {
    if (block.tasks()[t].kind != TaskKind::kernel) continue;
    const double was = block.duration_us()[t];
    KernelTimes& of = times[block.tasks()[t].kernel_class];
    if (prices == nullptr)
      of.add(was, was, was, was);
    else
      of.add(was, prices->costs.duration_us(id)[t], prices->low.duration_us(id)[t],
             prices->high.duration_us(id)[t]);
  }
  return times;
}

// Classes with a smaller share of the time are not scored separately.
constexpr double kScoredClass = 0.1;

// `recorded_us`: time measured on the other GPU. The kernels of every class, and the classes that are scored.
struct PairTimes {
  std::map<KernelClass, KernelTimes> of_class;
  KernelTimes all;
};

std::optional<PairTimes> pair_times(const DevicePair& pair, const RecordedPricing& how) {
  const Result<RecordedPrices> priced = price_recorded(pair.from->steps.back(), how);
  if (!priced.ok()) return std::nullopt;
  std::map<KernelClass, KernelTimes> predicted = all_kernels(*pair.from, &*priced);
  const std::map<KernelClass, KernelTimes> measured = all_kernels(*pair.to, nullptr);
  PairTimes out{.of_class = {}, .all = together(predicted, KernelClass::none, how.kernels)};
  out.all.recorded_us = together(measured, KernelClass::none).recorded_us;
  for (const auto& [kernel_class, of] : measured) {
    if (of.recorded_us < kScoredClass * out.all.recorded_us) continue;
    KernelTimes& times = out.of_class[kernel_class] = predicted[kernel_class];
    times.recorded_us = of.recorded_us;
  }
  return out;
}

}  // namespace

std::vector<double> ratio_errors(const DevicePair& pair, PricedDevices& devices) {
  StepPricer* origin = devices.find(pair.from->device);
  StepPricer* target = devices.find(pair.to->device);
  std::vector<double> errors;
  if (origin == nullptr || target == nullptr) return errors;
  const auto times =
      pair_times(pair, {.kernels = KernelTimeSource::ratio, .target = target, .origin = origin});
  if (!times) return errors;
  for (const auto& [kernel_class, of] : times->of_class)
    errors.push_back(std::abs(std::log(of.predicted_us / of.recorded_us)));
  return errors;
}

void score_cross_device(StepScores& scores, const DevicePair& pair, double spread, PricedDevices& devices) {
  const RecordedJob &from = *pair.from, &to = *pair.to;
  StepPricer* origin = devices.find(from.device);
  StepPricer* target = devices.find(to.device);
  if (origin == nullptr || target == nullptr) return;
  const double all = together(all_kernels(to, nullptr), KernelClass::none).recorded_us / kUsPerMs;
  const double unchanged = together(all_kernels(from, nullptr), KernelClass::none).recorded_us / kUsPerMs;
  const Device &was = origin->platform().device, &is = target->platform().device;
  const std::string row = fmt::format("{} to {}", from.device, to.device);
  scores.add("cross_device_unchanged", to.name, {row, all, unchanged});
  scores.add("cross_device_peak_ratio", to.name, {row, all, unchanged * peak_ratio(was, is)});
  scores.add("cross_device_bandwidth_ratio", to.name, {row, all, unchanged * bandwidth_ratio(was, is)});
  for (const auto& [test, ground] : {std::pair{"cross_device", KernelTimeSource::ratio},
                                     std::pair{"cross_device_models", KernelTimeSource::models}}) {
    const auto times =
        pair_times(pair, {.kernels = ground, .target = target, .origin = origin, .ratio_spread = spread});
    if (!times) continue;
    scores.add(test, to.name, kernel_row(row, times->all));
    for (const auto& [kernel_class, of] : times->of_class) {
      const std::string name{to_string(kernel_class)};
      scores.add(fmt::format("{}_by_class", test), fmt::format("{} {}", to.name, name), kernel_row(row, of),
                 0, name);
    }
  }
}

}  // namespace stepcast
