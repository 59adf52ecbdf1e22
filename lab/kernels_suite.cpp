#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "stepcast/base/parallel.h"
#include "stepcast/cost/kernel_model.h"

#include "calibrate/kernel_fit.h"
#include "calibrate/kernel_measurements.h"
#include "lab/expert_tests.h"
#include "lab/kernel_folds.h"
#include "lab/kernel_sets.h"
#include "lab/shipped_data.h"
#include "lab/suites.h"

namespace stepcast {
namespace {

constexpr int kFolds = 5;
constexpr std::uint64_t kKernelsSeed = 42;

// Input of one fit and its tested rows.
struct FoldOfDevice {
  std::size_t device = 0;
  int fold = 0;
  std::vector<std::size_t> fit_rows, test_rows;
};

std::vector<FoldOfDevice> folds_of(const std::vector<DeviceRows>& devices,
                                   const std::vector<KernelSplit>& splits) {
  std::vector<FoldOfDevice> folds;
  for (std::size_t d = 0; d < devices.size(); ++d) {
    const std::vector<KernelMeasurement>& rows = devices[d].rows;
    std::vector<std::string> keys;
    for (const KernelMeasurement& m : rows) keys.push_back(kernel_record_key(m.operation));
    for (int k = 0; k < splits[d].n_folds; ++k) {
      FoldOfDevice fold{d, k, {}, {}};
      std::set<std::string_view> tested;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        if (splits[d].fold[i] != k) continue;
        fold.test_rows.push_back(i);
        tested.insert(keys[i]);
      }
      if (fold.test_rows.empty()) continue;
      // Models of families that are not tested need no fit.
      for (std::size_t i = 0; i < rows.size(); ++i)
        if (splits[d].fold[i] != k && tested.contains(keys[i])) fold.fit_rows.push_back(i);
      folds.push_back(std::move(fold));
    }
  }
  // Longest first, so that the last thread to finish has little left.
  std::ranges::stable_sort(folds, [](const FoldOfDevice& a, const FoldOfDevice& b) {
    return a.fit_rows.size() > b.fit_rows.size();
  });
  return folds;
}

Result<std::vector<Tested>> fit_and_test(const DeviceRows& device, const FoldOfDevice& fold) {
  std::vector<KernelMeasurement> rows;
  rows.reserve(fold.fit_rows.size());
  for (const std::size_t i : fold.fit_rows) rows.push_back(device.rows[i]);
  KernelFit fit;
  if (!rows.empty()) {
    STEPCAST_ASSIGN(fit,
                    fit_kernel_models(rows, device.platform.device, {.seed = kKernelsSeed, .threads = 1}));
  }
  return tested_with(device, fit.records, fold.test_rows);
}

Result<std::optional<TestScore>> run_refit(std::string name, const std::vector<DeviceRows>& devices,
                                           const std::vector<KernelSplit>& splits,
                                           const std::vector<std::filesystem::path>& files,
                                           const PublishedErrors& published, unsigned threads,
                                           KernelSets::GroupOf group_of) {
  const std::vector<FoldOfDevice> folds = folds_of(devices, splits);
  if (folds.empty()) return std::optional<TestScore>{};
  std::vector<std::vector<Tested>> results(folds.size());
  STEPCAST_TRY(parallel_for(folds.size(), threads, [&](std::size_t i) -> Status {
    STEPCAST_ASSIGN(results[i], fit_and_test(devices[folds[i].device], folds[i]));
    return Ok{};
  }));
  KernelSets sets{files, published, group_of};
  for (std::size_t d = 0; d < devices.size(); ++d) {
    std::vector<Tested> tested;
    std::map<std::string, double> n_fit;
    double n_folds = 0;
    for (std::size_t i = 0; i < folds.size(); ++i) {
      if (folds[i].device != d) continue;
      tested.insert(tested.end(), results[i].begin(), results[i].end());
      for (const std::size_t row : folds[i].fit_rows) n_fit[kernel_set_name(devices[d].rows[row])] += 1;
      n_folds += 1;
    }
    for (auto& [unused, n] : n_fit) n /= n_folds;
    std::ranges::sort(tested, {}, &Tested::row);
    sets.add(devices[d], tested, n_fit);
  }
  return std::optional{std::move(sets).test(std::move(name), "refit")};
}

// Splitting by row differs from splitting by shape only if shapes come from parameters of a model. Rows of other kinds are
// not tested again.
KernelSplit split_parameters_by_row(const DeviceRows& device) {
  std::set<std::string> with_parameters;
  for (const KernelMeasurement& m : device.rows)
    if (m.hidden_size > 0 || m.sequence_length > 0) with_parameters.insert(kernel_record_key(m.operation));
  KernelSplit split = split_by_row(device.rows, kFolds, kKernelsSeed);
  for (std::size_t i = 0; i < device.rows.size(); ++i)
    if (!with_parameters.contains(kernel_record_key(device.rows[i].operation))) split.fold[i] = kNotTested;
  return split;
}

// Operators without hidden size use another criterion: the largest tenth of their rows.
std::string group_beyond_range(const KernelMeasurement& m) {
  const std::string group = kernel_group(m);
  const bool of_a_model = m.hidden_size > 0 || m.sequence_length > 0;
  return of_a_model && m.hidden_size == 0 ? group + ", no hidden size" : group;
}

// Of the newest tables, keeps rows by type of GPUs that no older table has. Other rows are of further kinds of known GPUs,
// and would change their sets. Returns the new GPUs.
std::set<std::string> keep_known_gpus_as_they_were(KernelMeasurements& all) {
  const auto is_newest = [&](const KernelMeasurement& m) {
    return all.files[m.file].parent_path().parent_path().filename() == "newer";
  };
  std::set<std::string> known, newest;
  for (const KernelMeasurement& m : all.rows)
    if (!is_newest(m)) known.insert(m.gpu);
  std::erase_if(all.rows, [&](const KernelMeasurement& m) {
    if (!is_newest(m)) return false;
    if (known.contains(m.gpu) || m.regime == Regime::unstated) return true;
    newest.insert(m.gpu);
    return false;
  });
  return newest;
}

// Scores the shipped platforms on rows that they were not fitted on.
Result<TestScore> run_shipped(const std::vector<DeviceRows>& devices,
                              const std::vector<std::filesystem::path>& files,
                              const PublishedErrors& published, std::vector<Skipped>& skipped) {
  KernelSets sets{files, published};
  for (const DeviceRows& device : devices) {
    const KernelModel model{device.platform};
    for (const std::string& record : model.skipped())
      skipped.push_back({record, "a record that cannot be read", 1});
    std::map<std::string, std::uint64_t> used;
    std::vector<std::size_t> rows;
    std::vector<Operation> operations;
    for (std::size_t i = 0; i < device.rows.size(); ++i) {
      const KernelMeasurement& m = device.rows[i];
      const auto& models = device.platform.models;
      if (std::ranges::any_of(models, [&](const ModelRecord& r) { return r.provenance.used_row(m.hash); })) {
        ++used[kernel_set_name(m)];
        continue;
      }
      rows.push_back(i);
      operations.push_back(m.operation);
    }
    for (const auto& [set, n] : used)
      skipped.push_back({set, "rows that the shipped platform was fitted on", n});
    std::vector<Estimate> estimates(operations.size());
    model.estimate(operations, estimates);
    std::vector<Tested> tested;
    for (std::size_t i = 0; i < rows.size(); ++i) tested.push_back({rows[i], estimates[i]});
    sets.add(device, tested, {});
  }
  return std::move(sets).test("shipped", "shipped");
}

Result<PublishedErrors> published_errors(const SuiteOptions& options, std::vector<Skipped>& skipped) {
  if (!options.published.empty()) return PublishedErrors::read(options.published);
  if (const auto file = shipped_data_file("published.csv")) return PublishedErrors::read(*file);
  skipped.push_back(
      {"published errors", "data/published.csv is neither installed nor in the source tree", 1});
  return PublishedErrors{};
}

}  // namespace

Result<SuiteResult> validate_kernels(const std::filesystem::path& data, const SuiteOptions& options) {
  if (!options.protocol.empty() && options.protocol != "refit" && options.protocol != "shipped")
    return Error{"the protocol of the suite kernels"}.found(options.protocol).expected("refit or shipped");
  SuiteResult result{.suite = "kernels"};
  std::vector<std::filesystem::path> places{data};
  if (data.filename() == "kernels") {
    std::vector<std::filesystem::path> later = later_folders(data);
    std::ranges::move(later, std::back_inserter(places));
  }
  STEPCAST_ASSIGN(KernelMeasurements all, read_kernel_measurements(places));
  const std::set<std::string> newest = keep_known_gpus_as_they_were(all);
  for (const SkippedRows& s : all.skipped) result.skipped.push_back({s.what, s.why, s.n});
  const std::vector<std::filesystem::path> files = all.files;
  STEPCAST_ASSIGN(const std::vector<DeviceRows> devices,
                  rows_by_device(std::move(all), options, result.skipped));
  STEPCAST_ASSIGN(const PublishedErrors published, published_errors(options, result.skipped));
  if (options.protocol == "shipped") {
    STEPCAST_ASSIGN(TestScore test, run_shipped(devices, files, published, result.skipped));
    result.tests.push_back(std::move(test));
    return result;
  }

  const auto run = [&](std::string name, auto split_of,
                       KernelSets::GroupOf group_of = kernel_group) -> Status {
    std::vector<KernelSplit> splits;
    for (const DeviceRows& device : devices) splits.push_back(split_of(device));
    STEPCAST_ASSIGN(std::optional<TestScore> test,
                    run_refit(std::move(name), devices, splits, files, published, options.threads, group_of));
    if (test) result.tests.push_back(std::move(*test));
    return Ok{};
  };
  STEPCAST_TRY(
      run("held_out_rows", [](const DeviceRows& d) { return split_by_shape(d.rows, kFolds, kKernelsSeed); }));
  STEPCAST_TRY(run("random_rows", split_parameters_by_row));
  STEPCAST_TRY(run("held_out_hidden_size", [](const DeviceRows& d) {
    return split_by_value(d.rows, HeldOutValue::hidden_size, kFolds, kKernelsSeed);
  }));
  STEPCAST_TRY(run("held_out_sequence_length", [](const DeviceRows& d) {
    return split_by_value(d.rows, HeldOutValue::sequence_length, kFolds, kKernelsSeed);
  }));
  STEPCAST_TRY(run(
      "beyond_range", [](const DeviceRows& d) { return split_largest(d.rows); }, group_beyond_range));
  STEPCAST_ASSIGN(std::optional<TestScore> gradients,
                  score_held_out_gradients(devices, files, published, options.threads));
  if (gradients) result.tests.push_back(*std::move(gradients));
  // Scores of unseen GPUs stay comparable: no later relative is added.
  std::vector<DeviceRows> older;
  std::ranges::copy_if(devices, std::back_inserter(older), [&](const DeviceRows& device) {
    return std::ranges::none_of(
        newest, [&](const std::string& gpu) { return device.platform.device.matches_name(gpu); });
  });
  STEPCAST_ASSIGN(std::vector<TestScore> unseen, score_unseen_gpus(older, files, published, options.threads));
  result.add(std::move(unseen));
  ExpertMeasurements experts;
  for (const std::filesystem::path& place : places) {
    STEPCAST_ASSIGN(ExpertMeasurements more, read_expert_measurements_in(place));
    std::move(more.layers.begin(), more.layers.end(), std::back_inserter(experts.layers));
  }
  STEPCAST_ASSIGN(std::vector<TestScore> layers,
                  score_expert_layers(experts.layers, options, result.skipped));
  result.add(std::move(layers));
  return result;
}

}  // namespace stepcast
