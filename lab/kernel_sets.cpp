#include "lab/kernel_sets.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "stepcast/base/csv_rows.h"
#include "stepcast/base/file.h"
#include "stepcast/base/words.h"
#include "stepcast/cost/kernel_model.h"
#include "stepcast/platform/platform_file.h"

namespace stepcast {

namespace {

constexpr double kLongKernel_us = 100;
// Most rows scored for each device, family, type and direction of tables by type.
constexpr std::size_t kMostRowsOfSet = 1'500;

// Names of operators in the measurements by parameters of a transformer (docs/kernels.md).
constexpr std::string_view kTransformerOperators =
    "RMSlayernorm RoPE ScaledUpperTriangMaskedSoftmax baddbmm bmm embedding fillmask "
    "firstStage_optimizer flash_atten gelu lastStage_optimizer layernorm linear1 linear2 linear3 "
    "linear4 linear_final middleStage_optimizer parallel_cross_entropy_128 res_add softmax";

Result<std::optional<Platform>> find_platform(const std::string& gpu, const SuiteOptions& options) {
  for (const auto& [name, file] : options.platforms) {
    if (!same_name(name, gpu)) continue;
    STEPCAST_ASSIGN(Platform platform, load_platform(file.string()));
    return std::optional{std::move(platform)};
  }
  auto shipped = load_device(gpu);
  if (!shipped) return std::optional<Platform>{};  // no platform has this name
  return std::optional{std::move(shipped).value()};
}

// Tables by type have ten thousand rows for a device and type, refitted in each fold. A sample by hash is enough and does
// not depend on size.
void thin_evenly(std::vector<KernelMeasurement>& rows, std::vector<Skipped>& skipped) {
  std::map<std::string, std::vector<std::uint32_t>> hashes;
  for (const KernelMeasurement& m : rows) hashes[kernel_set_name(m)].push_back(m.hash);
  std::map<std::string, std::uint32_t> highest;
  for (auto& [set, all] : hashes) {
    if (all.size() <= kMostRowsOfSet) continue;
    const auto last = all.begin() + static_cast<std::ptrdiff_t>(kMostRowsOfSet - 1);
    std::nth_element(all.begin(), last, all.end());
    highest[set] = *last;
    skipped.push_back(
        {set, fmt::format("evenly thinned to {} rows", kMostRowsOfSet), all.size() - kMostRowsOfSet});
  }
  std::erase_if(rows, [&](const KernelMeasurement& m) {
    const auto limit = highest.find(kernel_set_name(m));
    return limit != highest.end() && m.hash > limit->second;
  });
}

}  // namespace

Result<std::vector<DeviceRows>> rows_by_device(KernelMeasurements all, const SuiteOptions& options,
                                               std::vector<Skipped>& skipped) {
  std::map<std::string, std::optional<std::string>> device_of;   // [gpu]
  std::map<std::pair<std::string, bool>, DeviceRows> by_device;  // [device, by type]
  std::map<std::string, std::uint64_t> unknown;
  for (KernelMeasurement& m : all.rows) {
    const auto [at, is_new] = device_of.emplace(m.gpu, std::nullopt);
    if (is_new) {
      STEPCAST_ASSIGN(std::optional<Platform> platform, find_platform(m.gpu, options));
      if (platform) {
        at->second = platform->device.name;
        for (const bool by_type : {false, true})
          by_device.try_emplace({*at->second, by_type}, DeviceRows{*platform, {}, by_type});
      }
    }
    if (!at->second) {
      ++unknown[m.gpu];
      continue;
    }
    by_device.at({*at->second, m.regime != Regime::unstated}).rows.push_back(std::move(m));
  }
  for (const auto& [gpu, n] : unknown)
    skipped.push_back({gpu, "no shipped platform has a device of this name: give --platform GPU=FILE", n});
  std::vector<DeviceRows> devices;
  for (auto& [unused, device] : by_device) {
    const AnalyticModel analytic{device.platform.device};
    for (const SkippedRows& s : remove_impossible_rows(device.rows, analytic))
      skipped.push_back({s.what, s.why, s.n});
    for (const SkippedRows& s : join_regimes(device.rows)) skipped.push_back({s.what, s.why, s.n});
    if (device.by_type) thin_evenly(device.rows, skipped);
    if (!device.rows.empty()) devices.push_back(std::move(device));
  }
  return devices;
}

std::vector<Tested> tested_with(const DeviceRows& device, std::span<const ModelRecord> records,
                                const std::vector<std::size_t>& rows) {
  const KernelModel model{device.platform.device, records};
  std::vector<Operation> operations;
  for (const std::size_t i : rows) operations.push_back(device.rows[i].operation);
  std::vector<Estimate> estimates(operations.size());
  model.estimate(operations, estimates);
  std::vector<Tested> tested;
  // Times converted from another regime are used for fitting, but not for scoring: they are not measurements.
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (!device.rows[rows[i]].carried) tested.push_back({rows[i], estimates[i]});
  return tested;
}

std::string kernel_group(const KernelMeasurement& m) {
  const bool step = std::holds_alternative<OptimizerShape>(m.operation.shape);
  const bool of_a_transformer = is_among(m.label, kTransformerOperators);
  if (of_a_transformer && (m.operation.dtype == DType::fp16 || step)) return "transformer operators fp16";
  const std::string_view dtype = to_string(m.operation.dtype);
  if (m.regime != Regime::unstated) return fmt::format("{} by type {}", family_of(m.operation), dtype);
  if (std::holds_alternative<ElementwiseShape>(m.operation.shape))
    return fmt::format("element-wise {}", dtype);
  return fmt::format("{} {}", m.label, dtype);
}

KernelSets::KernelSets(const std::vector<std::filesystem::path>& files, const PublishedErrors& published,
                       GroupOf group_of)
    : published_(&published), group_of_(group_of) {
  for (const auto& file : files) names_.push_back(file.filename().string());
}

void KernelSets::add(const DeviceRows& device, const std::vector<Tested>& tested,
                     const std::map<std::string, double>& n_fit) {
  const AnalyticModel analytic{device.platform.device};
  for (const Tested& t : tested) {
    const KernelMeasurement& m = device.rows[t.row];
    Entry& entry = sets_[kernel_set_name(m)];
    if (entry.set.rows.empty()) {
      entry.set.set = kernel_set_name(m);
      entry.set.group = group_of_(m);
      entry.published = published_->mape_percent(m.gpu, m.label, m.operation.direction);
      if (const auto n = n_fit.find(entry.set.set); n != n_fit.end())
        entry.set.n_fit = static_cast<std::uint64_t>(std::llround(n->second));
    }
    // Rounding may put a prediction at the bound slightly below it.
    if (t.estimate.time < analytic.lower_bound(m.operation) * (1 - 1e-9)) ++entry.below_bound;
    entry.set.rows.push_back({fmt::format("{}:{} {}", names_[m.file], m.line, describe(m.operation)),
                              m.time.value(), t.estimate.time.value(), t.estimate.p10.value(),
                              t.estimate.p90.value()});
  }
}

TestScore KernelSets::test(std::string name, std::string protocol) && {
  TestScore test{.test = std::move(name), .protocol = std::move(protocol), .unit = "us"};
  for (auto& [unused, entry] : sets_) {
    SetScore& set = entry.set;
    set.extras.push_back({"below_bound_n", static_cast<double>(entry.below_bound), ExtraMetric::Over::sum});
    const Metrics metrics = score(set.rows);
    std::vector<ScoredRow> longer;
    for (const ScoredRow& row : set.rows)
      if (row.measured > kLongKernel_us) longer.push_back(row);
    if (!longer.empty()) {
      const Metrics of_longer = score(longer);
      set.extras.push_back({"mape_above_100us", of_longer.mape});
      set.extras.push_back({"bias_above_100us", of_longer.bias});
    }
    if (entry.published) {
      set.extras.push_back({"published_mape", *entry.published});
      set.extras.push_back({"better_than_published_pct", metrics.mape < *entry.published ? 100.0 : 0.0});
    }
    test.sets.push_back(std::move(set));
  }
  test.finish();
  return test;
}

Result<PublishedErrors> PublishedErrors::parse(std::string_view text, const std::string& name) {
  STEPCAST_ASSIGN(CsvRows rows, CsvRows::open(text, name));
  STEPCAST_TRY(rows.check_names());
  PublishedErrors errors;
  for (const std::string_view column : {"gpu", "operator", "direction", "mape_percent", "source"}) {
    if (!rows.has(column)) {
      return Error::at(name, "line 1", fmt::format("no column '{}'", column))
          .expected("gpu,operator,direction,mape_percent,source");
    }
  }
  for (;;) {
    STEPCAST_ASSIGN(const bool more, rows.next());
    if (!more) return errors;
    for (const std::string_view column : {"gpu", "operator"})
      if (rows.cell(column).empty()) return rows.error(column).expected("a name");
    if (rows.cell("source").empty()) return rows.error("source").expected("where the error is published");
    const std::string_view direction = rows.cell("direction");
    if (direction != to_string(Direction::forward) && direction != to_string(Direction::backward))
      return rows.error("direction").expected("forward or backward");
    STEPCAST_ASSIGN(const double mape, rows.number("mape_percent", 0));
    if (mape <= 0) return rows.error("mape_percent").expected("a number above 0");
    errors.rows_.push_back(
        {std::string{rows.cell("gpu")}, std::string{rows.cell("operator")},
         direction == to_string(Direction::forward) ? Direction::forward : Direction::backward, mape});
  }
}

Result<PublishedErrors> PublishedErrors::read(const std::filesystem::path& file) {
  STEPCAST_ASSIGN(const std::string text, read_file(file));
  return parse(text, file.string());
}

std::optional<double> PublishedErrors::mape_percent(std::string_view gpu, std::string_view operator_label,
                                                    Direction direction) const {
  for (const Row& row : rows_)
    if (row.operator_label == operator_label && row.direction == direction && same_name(row.gpu, gpu))
      return row.mape_percent;
  return std::nullopt;
}

}  // namespace stepcast
