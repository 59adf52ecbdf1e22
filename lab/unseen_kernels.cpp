#include "lab/unseen_kernels.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/parallel.h"
#include "stepcast/cost/generic_kernel.h"
#include "stepcast/cost/kernel_model.h"

#include "calibrate/generic_fit.h"
#include "calibrate/kernel_rows.h"

namespace stepcast {
namespace {

constexpr std::size_t kFewPoints = 20;

// Operations that one generic record is for.
std::string generic_group(const Operation& op) {
  return fmt::format("{}/{}/{}", generic_family(op), dtype_class(op.dtype), to_string(op.direction));
}

struct UnseenTests {
  std::vector<Tested> figures_alone, few_points, half, half_siblings;
  // [set] rows of other devices that its generic record was fitted to.
  std::map<std::string, double> n_others;
};

// Every row of `devices[d]` whose family enough others measured, from those.
Result<UnseenTests> test_unseen(const std::vector<DeviceRows>& devices, std::size_t d) {
  const Device& device = devices[d].platform.device;
  const std::vector<KernelMeasurement>& rows = devices[d].rows;
  std::map<std::string, std::set<std::size_t>> measured_by;  // [group] other devices
  for (const KernelMeasurement& m : rows) measured_by[generic_group(m.operation)];
  std::map<std::string, double> n_rows_of;  // [group] of other devices
  std::vector<MeasuredDevice> others;
  for (std::size_t o = 0; o < devices.size(); ++o) {
    if (devices[o].platform.device.name == device.name) continue;
    MeasuredDevice other{devices[o].platform.device, {}};
    for (const KernelMeasurement& m : devices[o].rows) {
      const auto group = measured_by.find(generic_group(m.operation));
      // What streams in 16 bits says something about fp32, too.
      if (group == measured_by.end() && generic_family(m.operation) != kStreamingFamily) continue;
      if (group != measured_by.end()) group->second.insert(o);
      other.rows.push_back(&m);
      n_rows_of[generic_group(m.operation)] += 1;
    }
    if (!other.rows.empty()) others.push_back(std::move(other));
  }
  UnseenTests out;
  if (others.empty()) return out;
  STEPCAST_ASSIGN(const GenericFit fit, fit_generic_models(others));
  const KernelModel model{device, fit.records};
  std::map<std::string, std::vector<std::size_t>> sets;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Operation& op = rows[i].operation;
    const bool half = dtype_class(op.dtype) == "half";
    if (measured_by[generic_group(op)].size() < (half ? 1U : 2U) || !has_generic_model(fit.records, op))
      continue;
    (half ? out.half_siblings : out.figures_alone).push_back({i, model.estimate(op)});
    out.n_others[kernel_set_name(rows[i])] = n_rows_of[generic_group(op)];
    if (!half) sets[kernel_set_name(rows[i])].push_back(i);
  }
  for (auto& [unused, of_set] : sets) {
    if (of_set.size() < 2 * kFewPoints) continue;
    // Any points do: hashes know nothing of sizes.
    std::ranges::sort(of_set, [&](std::size_t a, std::size_t b) { return rows[a].hash < rows[b].hash; });
    std::vector<const KernelMeasurement*> few;
    for (std::size_t i = 0; i < kFewPoints; ++i) few.push_back(&rows[of_set[i]]);
    STEPCAST_ASSIGN(const std::vector<ModelRecord> records, adapt_generic_models(fit.records, few, device));
    const KernelModel adapted{device, records};
    for (std::size_t i = kFewPoints; i < of_set.size(); ++i)
      out.few_points.push_back({of_set[i], adapted.estimate(rows[of_set[i]].operation)});
  }
  return out;
}

// Products and attention of the tables by type, from the tables of other generations.
Result<std::vector<Tested>> test_unseen_generation(const std::vector<DeviceRows>& devices, std::size_t d) {
  const Device& device = devices[d].platform.device;
  std::vector<Tested> out;
  if (!devices[d].by_type) return out;
  std::set<std::string> asked;
  for (const KernelMeasurement& m : devices[d].rows) asked.insert(generic_group(m.operation));
  std::vector<MeasuredDevice> others;
  for (const DeviceRows& other : devices) {
    if (!other.by_type || same_name(other.platform.device.architecture, device.architecture)) continue;
    MeasuredDevice& measured = others.emplace_back(MeasuredDevice{other.platform.device, {}});
    for (const KernelMeasurement& m : other.rows)
      if (asked.contains(generic_group(m.operation))) measured.rows.push_back(&m);
  }
  if (others.empty()) return out;
  STEPCAST_ASSIGN(const GenericFit fit, fit_generic_models(others));
  const KernelModel model{device, fit.records};
  for (std::size_t i = 0; i < devices[d].rows.size(); ++i) {
    const Operation& op = devices[d].rows[i].operation;
    if (has_generic_model(fit.records, op)) out.push_back({i, model.estimate(op)});
  }
  return out;
}

}  // namespace

Result<std::vector<TestScore>> score_unseen_gpus(const std::vector<DeviceRows>& devices,
                                                 const std::vector<std::filesystem::path>& files,
                                                 const PublishedErrors& published, unsigned threads) {
  std::vector<TestScore> tests;
  std::vector<UnseenTests> results(devices.size());
  STEPCAST_TRY(parallel_for(devices.size(), threads, [&](std::size_t d) -> Status {
    STEPCAST_ASSIGN(results[d], test_unseen(devices, d));
    STEPCAST_ASSIGN(results[d].half, test_unseen_generation(devices, d));
    // All of them were fitted to rows of others; how many does not matter here.
    for (const Tested& t : results[d].half)
      results[d].n_others.try_emplace(kernel_set_name(devices[d].rows[t.row]), 1);
    return Ok{};
  }));
  // n_fit counts rows of the GPU itself where there are some, else those of the others.
  const auto add = [&](const char* name, std::vector<Tested> UnseenTests::*part,
                       std::optional<double> n_own) {
    KernelSets collector{files, published};
    bool any = false;
    for (std::size_t d = 0; d < devices.size(); ++d) {
      std::vector<Tested>& tested = results[d].*part;
      any = any || !tested.empty();
      std::ranges::sort(tested, {}, &Tested::row);
      std::map<std::string, double> fitted;
      for (const Tested& t : tested) {
        const std::string set = kernel_set_name(devices[d].rows[t.row]);
        fitted[set] = n_own ? *n_own : results[d].n_others[set];
      }
      collector.add(devices[d], tested, fitted);
    }
    if (any) tests.push_back(std::move(collector).test(name, "refit"));
  };
  add("unseen_gpu", &UnseenTests::figures_alone, std::nullopt);
  add("unseen_gpu_20_points", &UnseenTests::few_points, static_cast<double>(kFewPoints));
  add("unseen_gpu_half", &UnseenTests::half, std::nullopt);
  add("unseen_gpu_half_siblings", &UnseenTests::half_siblings, std::nullopt);
  return tests;
}

}  // namespace stepcast
