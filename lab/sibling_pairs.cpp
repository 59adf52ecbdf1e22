#include "lab/sibling_pairs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/parallel.h"
#include "stepcast/cost/expert_kernels.h"
#include "stepcast/cost/kernel_model.h"
#include "stepcast/platform/device_siblings.h"
#include "stepcast/platform/platform_file.h"

#include "calibrate/expert_fit.h"
#include "calibrate/kernel_fit.h"

namespace stepcast {
namespace {

// Two platform names. `later`: GPUs of later tables, which have separate tests.
struct SiblingPair {
  std::string_view sibling, device;
  bool later = false;
};
constexpr std::array<SiblingPair, 8> kSiblingPairs{{{"h100-sxm5-80gb", "h200-sxm-141gb"},
                                                    {"h200-sxm-141gb", "h100-sxm5-80gb"},
                                                    {"b200-sxm-180gb", "gb200-186gb"},
                                                    {"gb200-186gb", "b200-sxm-180gb"},
                                                    {"b200-sxm-180gb", "b300-sxm-270gb", true},
                                                    {"gb300-278gb", "b300-sxm-270gb", true},
                                                    {"gb200-186gb", "gb300-278gb", true},
                                                    {"b300-sxm-270gb", "gb300-278gb", true}}};

// GEMMs of at least this time dominate a training step. Rows are spread evenly over sizes, so that small ones would hide
// them.
constexpr double kLargeProductUs = 300;

struct SiblingOperationHash {
  std::size_t operator()(const Operation& o) const { return hash_of(o); }
};
using TimeOf = std::unordered_map<Operation, double, SiblingOperationHash>;

struct SiblingTask {
  const Device *sibling, *device;
  std::string key;  // "gemm/bf16/forward"
  std::string dtype;
  std::vector<KernelMeasurement> theirs;
  std::vector<const KernelMeasurement*> tested;
  SetScore set;
  std::vector<double> as_is;  // times of the same rows on the sibling
  bool later = false;
};

// Sum of the errors of `us` over the rows of a set.
double errors_of_times(const SetScore& set, const std::vector<double>& us) {
  double sum = 0;
  for (std::size_t i = 0; i < set.rows.size(); ++i) sum += std::abs(us[i] / set.rows[i].measured - 1);
  return sum;
}

// Adds our error over that of the unchanged times of the sibling, in percent.
void add_as_is(SetScore& set, const std::vector<double>& as_is) {
  if (set.rows.empty()) return;
  double ours = 0;
  for (const ScoredRow& row : set.rows) ours += std::abs(row.predicted / row.measured - 1);
  const double sum = errors_of_times(set, as_is);
  set.extras.push_back({"as_is_mape_pct", 100 * sum / static_cast<double>(set.rows.size())});
  set.extras.push_back({"of_as_is_pct", 100 * ours / sum});
}

// The rows of one record on both devices, in the regime with more equal shapes.
std::optional<SiblingTask> task_of(const std::vector<const KernelMeasurement*>& theirs,
                                   const std::vector<const KernelMeasurement*>& own, const Device& sibling,
                                   const Device& device, const std::string& key) {
  std::optional<SiblingTask> best;
  for (const Regime regime : {Regime::burst, Regime::sustained, Regime::unstated}) {
    SiblingTask task{&sibling, &device, key, std::string{to_string(theirs.front()->operation.dtype)},
                     {},       {},      {},  {}};
    std::set<std::size_t> shapes;
    for (const KernelMeasurement* m : theirs) {
      if (m->regime != regime) continue;
      task.theirs.push_back(*m);
      shapes.insert(hash_of(m->operation));
    }
    for (const KernelMeasurement* m : own)
      if (m->regime == regime && shapes.contains(hash_of(m->operation))) task.tested.push_back(m);
    if (!task.tested.empty() && (!best || task.tested.size() > best->tested.size())) best = std::move(task);
  }
  return best;
}

Status run_sibling_task(SiblingTask& task) {
  STEPCAST_ASSIGN(KernelFit fit, fit_kernel_models(task.theirs, *task.sibling, {.threads = 1}));
  for (ModelRecord& record : fit.records) record.device = task.sibling->name;
  fit.records.push_back(sibling_of(*task.sibling, *task.device).record());
  const KernelModel model{*task.device, fit.records};
  TimeOf theirs;
  for (const KernelMeasurement& m : task.theirs) theirs.emplace(m.operation, m.time.value());
  std::vector<double>& as_is = task.as_is;
  std::vector<double> by_bandwidth, analytic;
  const double bandwidths = task.sibling->memory_bandwidth / task.device->memory_bandwidth;
  task.set.n_fit = task.theirs.size();
  for (const KernelMeasurement* m : task.tested) {
    const Estimate e = model.estimate(m->operation);
    task.set.rows.push_back({fmt::format("line {} {}", m->line, describe(m->operation)),
                             m->time.value(),
                             e.time.value(),
                             e.p10.value(),
                             e.p90.value(),
                             {}});
    as_is.push_back(theirs.at(m->operation));
    by_bandwidth.push_back(as_is.back() * bandwidths);
    analytic.push_back(model.analytic().time(m->operation).value());
  }
  task.set.set = fmt::format("{} from {}/{}", task.device->name, task.sibling->name, task.key);
  task.set.group = fmt::format("{} {}", task.key.substr(0, task.key.find('/')), task.dtype);
  add_as_is(task.set, as_is);
  const double n_rows = static_cast<double>(task.set.rows.size());
  task.set.extras.push_back(
      {"bandwidth_ratio_mape_pct", 100 * errors_of_times(task.set, by_bandwidth) / n_rows});
  task.set.extras.push_back({"analytic_mape_pct", 100 * errors_of_times(task.set, analytic) / n_rows});
  return Ok{};
}

// The large GEMMs of a pair; no rows if it has none.
SetScore large_products(const SiblingTask& task) {
  SetScore set{.set = task.set.set, .group = task.set.group, .n_fit = task.set.n_fit};
  if (!task.key.starts_with("gemm/")) return set;
  std::vector<double> as_is;
  for (std::size_t i = 0; i < task.as_is.size(); ++i) {
    if (task.set.rows[i].measured < kLargeProductUs) continue;
    set.rows.push_back(task.set.rows[i]);
    as_is.push_back(task.as_is[i]);
  }
  add_as_is(set, as_is);
  return set;
}

using SiblingLayerKey = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                                   std::int64_t, std::int64_t, bool, std::string>;
SiblingLayerKey sibling_key_of(const MeasuredExpertLayer& m) {
  return {m.tokens,          m.hidden_size, m.expert_ffn_size,
          m.top_k,           m.n_experts,   m.expert_tensor_parallel,
          m.expert_parallel, m.gated,       fmt::format("{:.4f}", m.busiest)};
}

SetScore score_layers(const std::vector<const MeasuredExpertLayer*>& theirs,
                      const std::vector<const MeasuredExpertLayer*>& own, const Device& sibling,
                      const Device& device, DType dtype) {
  SetScore set;
  set.set = fmt::format("{} from {}/experts/{}", device.name, sibling.name, to_string(dtype));
  set.group = fmt::format("experts {}", to_string(dtype));
  set.n_fit = theirs.size();
  ExpertKernels kernels{{fit_expert_rates(theirs, sibling, dtype)}};
  const auto rates = kernels.rates(device, dtype, sibling_of(sibling, device));
  std::map<SiblingLayerKey, double> time;
  for (const MeasuredExpertLayer* m : theirs) time.emplace(sibling_key_of(*m), m->time_us);
  std::vector<double> as_is;
  const DeviceFigures figures = figures_of(device);
  for (const MeasuredExpertLayer* m : own) {
    const auto found = time.find(sibling_key_of(*m));
    if (found == time.end() || !rates) continue;
    const double us = predicted_layer_us(*rates, figures, *m);
    const ExpertBand band = layer_band(*rates, *m);
    set.rows.push_back({fmt::format("line {}", m->line),
                        m->time_us,
                        us,
                        us * std::exp(band.log_p10),
                        us * std::exp(band.log_p90),
                        {}});
    as_is.push_back(found->second);
  }
  add_as_is(set, as_is);
  return set;
}

}  // namespace

Result<std::vector<TestScore>> score_sibling_pairs(const std::vector<KernelMeasurement>& rows,
                                                   const std::vector<MeasuredExpertLayer>& layers,
                                                   const SuiteOptions& options) {
  std::map<std::string_view, Platform> platforms;
  for (const SiblingPair& pair : kSiblingPairs) {
    STEPCAST_ASSIGN(platforms[pair.device], load_platform(pair.device));
  }
  std::map<std::pair<std::string_view, std::string>, std::vector<const KernelMeasurement*>> by_device;
  std::map<std::pair<std::string_view, DType>, std::vector<const MeasuredExpertLayer*>> layers_of;
  for (const auto& [name, platform] : platforms) {
    for (const KernelMeasurement& m : rows)
      if (platform.device.matches_name(m.gpu))
        by_device[{name, kernel_record_key(m.operation)}].push_back(&m);
    for (const MeasuredExpertLayer& m : layers)
      if (platform.device.matches_name(m.gpu)) layers_of[{name, m.dtype}].push_back(&m);
  }
  std::vector<SiblingTask> tasks;
  TestScore kernels = refit_test("sibling_pairs"), experts = refit_test("sibling_pairs_experts"),
            later = refit_test("sibling_pairs_later"),
            later_experts = refit_test("sibling_pairs_later_experts"),
            large = refit_test("sibling_pairs_large");
  for (const auto& [sibling, device, is_later] : kSiblingPairs) {
    const Device &there = platforms[sibling].device, &here = platforms[device].device;
    for (const auto& [of, theirs] : by_device) {
      const auto own = by_device.find({device, of.second});
      if (of.first != sibling || own == by_device.end()) continue;
      if (auto task = task_of(theirs, own->second, there, here, of.second)) {
        task->later = is_later;
        tasks.push_back(*std::move(task));
      }
    }
    for (const auto& [of, theirs] : layers_of) {
      const auto own = layers_of.find({device, of.second});
      if (of.first == sibling && own != layers_of.end())
        (is_later ? later_experts : experts)
            .sets.push_back(score_layers(theirs, own->second, there, here, of.second));
    }
  }
  STEPCAST_TRY(
      parallel_for(tasks.size(), options.threads, [&](std::size_t i) { return run_sibling_task(tasks[i]); }));
  for (SiblingTask& task : tasks) {
    if (SetScore set = large_products(task); !set.rows.empty()) large.sets.push_back(std::move(set));
    (task.later ? later : kernels).sets.push_back(std::move(task.set));
  }
  return finished({&kernels, &experts, &later, &later_experts, &large});
}

Result<SuiteResult> validate_siblings(const std::filesystem::path& data, const SuiteOptions& options) {
  SuiteResult result{.suite = "siblings"};
  // Later tables are in DATA/../../newer/kernels of DATA/modern/kernels.
  std::vector<std::filesystem::path> places{data};
  const std::filesystem::path newer = data.parent_path().parent_path() / "newer" / data.filename();
  std::error_code unreadable;
  if (data.filename() == "kernels" && std::filesystem::is_directory(newer, unreadable))
    places.push_back(newer);
  STEPCAST_ASSIGN(KernelMeasurements all, read_kernel_measurements(places));
  // Rows of further kinds in these tables do not state a regime.
  std::erase_if(all.rows, [](const KernelMeasurement& m) { return m.regime == Regime::unstated; });
  STEPCAST_ASSIGN(ExpertMeasurements experts, read_expert_measurements_in(data));
  if (places.size() > 1) {
    STEPCAST_ASSIGN(ExpertMeasurements more, read_expert_measurements_in(newer));
    std::ranges::move(more.layers, std::back_inserter(experts.layers));
  }
  STEPCAST_ASSIGN(std::vector<TestScore> tests, score_sibling_pairs(all.rows, experts.layers, options));
  result.add(std::move(tests));
  return result;
}

}  // namespace stepcast
