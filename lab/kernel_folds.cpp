#include "lab/kernel_folds.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "stepcast/base/parallel.h"
#include "stepcast/cost/generic_kernel.h"
#include "stepcast/cost/kernel_model.h"

#include "calibrate/generic_fit.h"
#include "calibrate/kernel_fit.h"

namespace stepcast {

namespace {

constexpr double kLargestHiddenShare = 0.8;
constexpr double kLargestTenth = 0.9;

// Fisher-Yates shuffle with bits that do not depend on the standard library.
std::vector<int> shuffled_folds(std::size_t n, int n_folds, std::uint64_t seed) {
  std::vector<int> folds(n);
  for (std::size_t i = 0; i < n; ++i) folds[i] = static_cast<int>(i % static_cast<std::size_t>(n_folds));
  std::mt19937_64 random{seed};
  for (std::size_t i = n; i > 1; --i) std::swap(folds[i - 1], folds[random() % i]);
  return folds;
}

struct OperationHash {
  std::size_t operator()(const Operation& o) const { return hash_of(o); }
};

struct RowKey {
  Operation operation;
  std::string_view label;
  std::int64_t hidden_size = 0, sequence_length = 0;
  friend bool operator==(const RowKey&, const RowKey&) = default;
};
struct RowKeyHash {
  std::size_t operator()(const RowKey& k) const {
    std::size_t hash = hash_of(k.operation);
    for (const std::size_t part :
         {std::hash<std::string_view>{}(k.label), static_cast<std::size_t>(k.hidden_size),
          static_cast<std::size_t>(k.sequence_length)}) {
      hash = hash * 0x9e3779b97f4a7c15ULL + part;
    }
    return hash;
  }
};

// Rows with equal keys form a group. Groups are numbered in order of appearance and distributed to the folds.
template <class Key, class Hash, class KeyOf>
KernelSplit split_groups(std::span<const KernelMeasurement> rows, int n_folds, std::uint64_t seed,
                         KeyOf key_of) {
  std::unordered_map<Key, std::size_t, Hash> groups;
  std::vector<std::size_t> group(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i)
    group[i] = groups.emplace(key_of(rows[i]), groups.size()).first->second;
  const std::vector<int> folds = shuffled_folds(groups.size(), n_folds, seed);
  KernelSplit split{.n_folds = n_folds};
  for (const std::size_t g : group) split.fold.push_back(folds[g]);
  return split;
}

Operation without_direction(const KernelMeasurement& m) {
  Operation operation = m.operation;
  operation.direction = Direction::forward;
  return operation;
}

std::int64_t value_of(const KernelMeasurement& m, HeldOutValue value) {
  return value == HeldOutValue::hidden_size ? m.hidden_size : m.sequence_length;
}

constexpr std::size_t kFewPoints = 20;

// Name of the group of operations that share a generic record.
std::string generic_group(const Operation& op) {
  return fmt::format("{}/{}/{}", generic_family(op), dtype_class(op.dtype), to_string(op.direction));
}

struct UnseenTests {
  std::vector<Tested> figures_alone, few_points, half, half_siblings;
  // [set] rows of other devices that its generic record was fitted to.
  std::map<std::string, double> n_others;
};

// Predicts every row of `devices[d]` from other devices, if enough of them measured its family.
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
      // Streaming operations in 16 bits also inform the model of fp32.
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
    // Any points will do: hashes do not depend on sizes.
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

// GEMMs and attention of the tables by type, predicted from the tables of other generations.
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

constexpr std::uint64_t kSeed = 42;
// Batches of at most this number of large GEMMs fill a GPU like one GEMM with all their rows.
constexpr std::int64_t kMostProducts = 64;
constexpr std::int64_t kLeastExtent = 192;

// The single GEMM that a batch of a row is equivalent to.
std::optional<Operation> as_gradient(const KernelMeasurement& row) {
  const auto* s = std::get_if<GemmShape>(&row.operation.shape);
  if (s == nullptr || s->layout != GemmLayout::nn || s->batch < 2 || s->batch > kMostProducts)
    return std::nullopt;
  if (row.operation.direction != Direction::forward || std::min({s->m, s->n, s->k}) < kLeastExtent)
    return std::nullopt;
  Operation gradient = row.operation;
  auto& shape = std::get<GemmShape>(gradient.shape);
  shape.m *= shape.batch;
  shape.batch = 1;
  return gradient;
}

struct Holdout {
  std::vector<Tested> tested;
  std::map<std::string, double> n_fit;
  double most_of_peak = 0;
};

Result<Holdout> score_device(const DeviceRows& device) {
  Holdout out;
  std::vector<std::size_t> rows;
  std::vector<Operation> gradients;
  std::vector<KernelMeasurement> fit_rows;
  for (std::size_t i = 0; i < device.rows.size(); ++i) {
    const KernelMeasurement& row = device.rows[i];
    const auto* product = std::get_if<GemmShape>(&row.operation.shape);
    if (product == nullptr) continue;
    if (auto gradient = as_gradient(row)) {
      rows.push_back(i);
      gradients.push_back(*std::move(gradient));
    } else {
      fit_rows.push_back(row);
    }
  }
  if (rows.empty()) return out;
  STEPCAST_ASSIGN(const KernelFit fit,
                  fit_kernel_models(fit_rows, device.platform.device, {.seed = kSeed, .threads = 1}));
  const KernelModel model{device.platform.device, fit.records};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Estimate estimate = model.estimate(gradients[i]);
    out.tested.push_back({rows[i], estimate});
    out.n_fit[kernel_set_name(device.rows[rows[i]])] = static_cast<double>(fit_rows.size());
    const auto peak = device.platform.device.peak(gradients[i].dtype);
    if (peak && estimate.time.value() > 0) {
      const double flops_per_second = work_of(gradients[i]).flops.value() / estimate.time.value() * 1e6;
      out.most_of_peak = std::max(out.most_of_peak, 100 * flops_per_second / peak->value());
    }
  }
  return out;
}

}  // namespace

KernelSplit split_by_shape(std::span<const KernelMeasurement> rows, int n_folds, std::uint64_t seed) {
  return split_groups<Operation, OperationHash>(rows, n_folds, seed, without_direction);
}

KernelSplit split_by_row(std::span<const KernelMeasurement> rows, int n_folds, std::uint64_t seed) {
  return split_groups<RowKey, RowKeyHash>(rows, n_folds, seed, [](const KernelMeasurement& m) {
    return RowKey{without_direction(m), m.label, m.hidden_size, m.sequence_length};
  });
}

KernelSplit split_by_value(std::span<const KernelMeasurement> rows, HeldOutValue value, int n_folds,
                           std::uint64_t seed) {
  std::map<std::int64_t, int> fold_of;
  for (const KernelMeasurement& m : rows)
    if (value_of(m, value) > 0) fold_of.emplace(value_of(m, value), 0);
  const std::vector<int> folds = shuffled_folds(fold_of.size(), n_folds, seed);
  std::size_t i = 0;
  for (auto& [unused, fold] : fold_of) fold = folds[i++];
  KernelSplit split{.n_folds = n_folds};
  for (const KernelMeasurement& m : rows) {
    const auto found = fold_of.find(value_of(m, value));
    // With only one value there is nothing to fit to.
    split.fold.push_back(found == fold_of.end() || fold_of.size() < 2 ? kNotTested : found->second);
  }
  return split;
}

KernelSplit split_largest(std::span<const KernelMeasurement> rows) {
  using Set = std::tuple<std::string_view, std::string_view, Direction>;
  std::map<Set, std::int64_t> largest_hidden;
  const auto set_of = [](const KernelMeasurement& m) { return Set{m.gpu, m.label, m.operation.direction}; };
  for (const KernelMeasurement& m : rows) {
    std::int64_t& largest = largest_hidden[set_of(m)];
    largest = std::max(largest, m.hidden_size);
  }
  std::map<std::string, std::vector<double>> amounts;
  std::vector<std::string> key(rows.size());
  std::vector<double> amount(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (largest_hidden.at(set_of(rows[i])) > 0) continue;
    const Work work = work_of(rows[i].operation);
    amount[i] = work.matrix ? work.flops.value() : work.bytes().value();
    key[i] = kernel_record_key(rows[i].operation);
    amounts[key[i]].push_back(amount[i]);
  }
  std::map<std::string, double> limit;
  for (auto& [name, values] : amounts) {
    const auto at = static_cast<std::size_t>(kLargestTenth * static_cast<double>(values.size() - 1));
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
    limit[name] = values[at];
  }
  KernelSplit split{.n_folds = 1};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::int64_t hidden = largest_hidden.at(set_of(rows[i]));
    const bool tested = hidden > 0 ? static_cast<double>(rows[i].hidden_size) >
                                         kLargestHiddenShare * static_cast<double>(hidden)
                                   : amount[i] > limit.at(key[i]);
    split.fold.push_back(tested ? 0 : kNotTested);
  }
  return split;
}

Result<std::vector<TestScore>> score_unseen_gpus(const std::vector<DeviceRows>& devices,
                                                 const std::vector<std::filesystem::path>& files,
                                                 const PublishedErrors& published, unsigned threads) {
  std::vector<TestScore> tests;
  std::vector<UnseenTests> results(devices.size());
  STEPCAST_TRY(parallel_for(devices.size(), threads, [&](std::size_t d) -> Status {
    STEPCAST_ASSIGN(results[d], test_unseen(devices, d));
    STEPCAST_ASSIGN(results[d].half, test_unseen_generation(devices, d));
    // All were fitted to rows of others; the number is not used here.
    for (const Tested& t : results[d].half)
      results[d].n_others.try_emplace(kernel_set_name(devices[d].rows[t.row]), 1);
    return Ok{};
  }));
  // n_fit counts rows of the tested GPU if there are any, else those of the others.
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

Result<std::optional<TestScore>> score_held_out_gradients(const std::vector<DeviceRows>& devices,
                                                          const std::vector<std::filesystem::path>& files,
                                                          const PublishedErrors& published,
                                                          unsigned threads) {
  std::vector<Holdout> results(devices.size());
  STEPCAST_TRY(parallel_for(devices.size(), threads, [&](std::size_t d) -> Status {
    STEPCAST_ASSIGN(results[d], score_device(devices[d]));
    return Ok{};
  }));
  KernelSets sets{files, published};
  double most_of_peak = 0;
  bool any = false;
  for (std::size_t d = 0; d < devices.size(); ++d) {
    any = any || !results[d].tested.empty();
    most_of_peak = std::max(most_of_peak, results[d].most_of_peak);
    sets.add(devices[d], results[d].tested, results[d].n_fit);
  }
  if (!any) return std::optional<TestScore>{};
  TestScore test = std::move(sets).test("held_out_gradients", "refit");
  test.extras.push_back({kMostOfPeak, most_of_peak, ExtraMetric::Over::max});
  return std::optional{std::move(test)};
}

}  // namespace stepcast
