#include "calibrate/kernel_fit.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/parallel.h"
#include "stepcast/cost/analytic_model.h"
#include "stepcast/cost/families/record_numbers.h"

#include "calibrate/boosting/booster.h"
#include "calibrate/detail/kernel_trainer.h"

namespace stepcast {
namespace {

// Different records need different seeds.
std::uint64_t seed_of(std::string_view name, std::uint64_t seed) {
  std::uint64_t hash = seed ^ 0x9e3779b97f4a7c15ULL;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

}  // namespace

Result<KernelFit> fit_kernel_models(std::span<const KernelMeasurement> rows, const Device& device,
                                    const KernelFitOptions& options) {
  const AnalyticModel analytic{device};
  std::map<std::string, detail::KernelRows> groups;
  const std::vector<std::string_view> families = record_families(rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const KernelMeasurement& row = rows[i];
    const double us = row.time.value();
    if (!(us > 0) || !std::isfinite(us)) continue;
    if (kernel_feature_set_of(row.operation) == KernelFeatureSet::none) continue;
    // Rows faster than the device allows are broken and would teach the model to be too fast.
    if (us < analytic.lower_bound(row.operation).value()) continue;
    detail::KernelRows& group =
        groups[kernel_record_name(families[i], row.operation.dtype, row.operation.direction)];
    group.family = families[i];
    group.sustained = row.regime == Regime::sustained;
    group.cold = group.cold && row.cold;
    group.operations.push_back(&row.operation);
    group.log_us.push_back(std::log(us));
    group.model_size.push_back(static_cast<double>(row.hidden_size));
  }
  std::vector<std::pair<std::string, const detail::KernelRows*>> jobs;
  for (const auto& [name, group] : groups) jobs.emplace_back(name, &group);
  std::vector<std::optional<detail::TrainedKernel>> trained(jobs.size());
  // Largest jobs first, so that no thread ends with a large one.
  std::vector<std::size_t> order(jobs.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    return jobs[a].second->log_us.size() > jobs[b].second->log_us.size();
  });
  STEPCAST_TRY(parallel_for(jobs.size(), options.threads, [&](std::size_t i) -> Status {
    const auto& [name, group] = jobs[order[i]];
    auto kernel = detail::train_kernel(*group, device, seed_of(name, options.seed));
    if (!kernel) return Error{fmt::format("{}: {}", name, kernel.error().message())};
    trained[order[i]] = std::move(kernel).value();
    return Ok{};
  }));

  KernelFit fit{.problem = detail::why_no_trees()};
  for (std::optional<detail::TrainedKernel>& t : trained) {
    ModelRecord record;
    record.name = t->note.record;
    record.kind = kKernelRecordKind;
    record.device = device.name;
    record.parameters = t->kernel.write();
    // Related devices may use the record: same units, other memory or clock.
    if (!device.architecture.empty()) record.parameters.add("architecture", JsonValue{device.architecture});
    record.provenance.source = FigureSource::fitted;
    record.provenance.n_rows = t->note.n_rows;
    for (const KernelFitNote::Candidate& candidate : t->note.candidates) {
      if (candidate.family != t->note.chosen) continue;
      record.provenance.error["cross_validated_mape_pct"] = rounded(candidate.mape_percent, 4);
      record.provenance.error["cross_validated_gmae_pct"] = rounded(candidate.gmae_percent, 4);
    }
    fit.records.push_back(std::move(record));
    fit.notes.push_back(std::move(t->note));
  }
  return fit;
}

}  // namespace stepcast
