#include "lab/suite.h"

#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

#include "stepcast/analyze/forecast.h"
#include "stepcast/base/csv_rows.h"
#include "stepcast/base/file.h"

#include "lab/megatron_lines_suite.h"
#include "lab/power_suites.h"
#include "lab/shipped_data.h"
#include "lab/sibling_pairs.h"
#include "lab/suites.h"

namespace stepcast {

namespace {

// Combines the extras of several sets. Means are over the sets that have the number.
class ExtraSum {
 public:
  void add(const std::vector<ExtraMetric>& extras) {
    for (const ExtraMetric& extra : extras) {
      const auto same = std::ranges::find(sum_, extra.name, &ExtraMetric::name);
      if (same == sum_.end()) {
        sum_.push_back(extra);
        counts_.push_back(1);
        continue;
      }
      counts_[static_cast<std::size_t>(same - sum_.begin())] += 1;
      if (extra.over == ExtraMetric::Over::max)
        same->value = std::max(same->value, extra.value);
      else
        same->value += extra.value;
    }
  }
  [[nodiscard]] std::vector<ExtraMetric> result() && {
    for (std::size_t i = 0; i < sum_.size(); ++i)
      if (sum_[i].over == ExtraMetric::Over::mean) sum_[i].value /= counts_[i];
    return std::move(sum_);
  }

 private:
  std::vector<ExtraMetric> sum_;
  std::vector<double> counts_;
};

}  // namespace

void TestScore::finish() {
  struct Group {
    std::vector<Metrics> of_sets;
    ExtraSum extras;
  };
  Group whole;
  std::map<std::string, Group> by_group;
  std::vector<ScoredRow> all;
  for (SetScore& set : sets) {
    if (relative)
      set.metrics = score(set.rows);
    else
      set.metrics.n = set.rows.size();
    all.insert(all.end(), set.rows.begin(), set.rows.end());
    for (Group* group : {&whole, set.group.empty() ? nullptr : &by_group[set.group]}) {
      if (group == nullptr) continue;
      group->of_sets.push_back(set.metrics);
      if (!set.rows.empty()) group->extras.add(set.extras);
    }
  }
  extras = std::move(whole.extras).result();
  groups.clear();
  for (auto& [name, group] : by_group) {
    groups.push_back(
        {name, group.of_sets.size(), mean_over_sets(group.of_sets), std::move(group.extras).result()});
  }
  if (relative) {
    overall = mean_over_sets(whole.of_sets);
    pooled = score(all);
  } else {
    overall.n = pooled.n = all.size();
  }
}

TestScore refit_test(std::string_view name) {
  return {.test = std::string{name}, .protocol = "refit", .unit = "us"};
}

SetScore& TestScore::set_of(std::string_view name) {
  const auto found = std::ranges::find(sets, name, &SetScore::set);
  return found != sets.end() ? *found : sets.emplace_back(SetScore{.set = std::string{name}});
}

std::vector<TestScore> finished(std::initializer_list<TestScore*> tests) {
  std::vector<TestScore> out;
  for (TestScore* test : tests) {
    if (test->sets.empty()) continue;
    test->finish();
    out.push_back(std::move(*test));
  }
  return out;
}

void SuiteResult::add(TestScore test) {
  if (!test.sets.empty()) tests.push_back(std::move(test));
}

void SuiteResult::add(std::vector<TestScore> more) {
  for (TestScore& test : more) add(std::move(test));
}

ScoredRow scored_step(std::string row, double measured_ms, const Forecast& forecast) {
  return {.row = std::move(row),
          .measured = measured_ms,
          .predicted = forecast.step_time_ms,
          .p10 = forecast.step_time_p10_ms,
          .p90 = forecast.step_time_p90_ms};
}

Status each_row(const std::filesystem::path& file, const std::function<Status(const CsvRows&)>& row) {
  STEPCAST_ASSIGN(const std::string text, read_file(file));
  STEPCAST_ASSIGN(CsvRows rows, CsvRows::open(text, file.string()));
  for (;;) {
    STEPCAST_ASSIGN(const bool more, rows.next());
    if (!more) return Ok{};
    STEPCAST_TRY(row(rows));
  }
}

Status read_sizes(const CsvRows& rows,
                  std::initializer_list<std::pair<std::string_view, std::optional<std::int64_t>*>> sizes) {
  for (const auto& [column, to] : sizes) {
    STEPCAST_ASSIGN(*to, rows.extent(column, 1, 1));
  }
  return Ok{};
}

std::vector<std::filesystem::path> later_folders(const std::filesystem::path& data) {
  constexpr std::array<std::string_view, 2> kLater{"modern", "newer"};
  std::vector<std::filesystem::path> found;
  const std::filesystem::path kinds = data.parent_path();
  if (std::ranges::find(kLater, kinds.filename().string()) != kLater.end()) return found;
  std::error_code ignored;
  for (const std::string_view name : kLater)
    if (auto folder = kinds / name / data.filename(); std::filesystem::is_directory(folder, ignored))
      found.push_back(std::move(folder));
  return found;
}

void leave_out_unfitted(SuiteResult& result) {
  for (TestScore& test : result.tests) {
    if (test.protocol != "refit") continue;
    const auto kept = std::stable_partition(test.sets.begin(), test.sets.end(),
                                            [](const SetScore& set) { return set.n_fit > 0; });
    if (kept == test.sets.end()) continue;
    for (auto set = kept; set != test.sets.end(); ++set) {
      result.skipped.push_back({fmt::format("{}: {}", test.test, set->set),
                                "nothing was left to fit: too few rows", set->rows.size()});
    }
    test.sets.erase(kept, test.sets.end());
    test.finish();
  }
  std::erase_if(result.tests,
                [](const TestScore& test) { return test.protocol == "refit" && test.sets.empty(); });
}

Result<SuiteResult> run_suite(const Suite& suite, const std::filesystem::path& place,
                              const SuiteOptions& options) {
  std::error_code ignored;
  std::filesystem::path data = place / suite.data_folder;
  if (!std::filesystem::is_directory(data, ignored)) data = place;
  STEPCAST_ASSIGN(SuiteResult result, suite.run(data, options));
  leave_out_unfitted(result);
  if (options.protocol == "shipped" &&
      std::ranges::all_of(result.tests, [](const TestScore& test) { return test.sets.empty(); })) {
    return Error::at(data.generic_string(), fmt::format("the suite {}, protocol shipped", suite.name))
        .found(result.skipped.empty() ? "no rows"
                                      : result.skipped.front().what + ": " + result.skipped.front().why)
        .expected("rows of a shipped platform that it was not fitted on")
        .advice("name GPUs and machines as platforms do, or score with --protocol refit");
  }
  std::filesystem::path file = options.targets;
  if (file.empty()) file = shipped_data_file("targets.csv").value_or(file);
  if (file.empty()) {
    result.skipped.push_back({"targets", "data/targets.csv is neither installed nor in the source tree", 1});
    return result;
  }
  STEPCAST_ASSIGN(const std::vector<TargetRow> rows, read_targets(file));
  result.targets = targets_of(result, rows);
  return result;
}

std::span<const Suite> builtin_suites() {
  static const std::array<Suite, 20> kSuites{{
      {"replay", "replayed steps of recorded traces against the recorded times", "traces", validate_replay},
      {"predict", "steps of recorded traces with host times and kernel times that come from elsewhere", ".",
       validate_predict},
      {"collectives", "times of collectives from curves that never saw their sizes, ranks or nodes",
       "collectives", validate_collectives},
      {"kernels", "times of kernels from models that never saw their shapes, sizes or GPUs", "kernels",
       validate_kernels},
      {"iterations", "step times of language models from a description", "iterations", validate_iterations},
      {"dlrm", "lookups and steps of recommendation models, from a description", ".", validate_dlrm},
      {"megatron_lines", "command lines of Megatron-LM's own test cases: which are read, and their steps",
       "field", validate_megatron_lines},
      {"rl", "steps of post-training by reinforcement learning, from a description", "field", validate_rl},
      {"ab_pairs", "published pairs of runs that differ in one setting: which is faster, and by how much",
       "field", validate_ab_pairs},
      {"siblings",
       "kernels of a device from those of its nearest relative, next to the relative's times unchanged",
       "modern/kernels", validate_siblings},
      {"tpu", "steps of MaxText on TPU slices, from data sheets and the recipe's layout", "field",
       validate_tpu},
      {"node_power", "watts of nodes in the steady phase of published trainings, one benchmark left out",
       "field", validate_node_power},
      {"power_limits", "trainings under power limits of the GPU: time and draw, one GPU left out", "field",
       validate_power_limits},
      {"goodput", "how much of its time a run trains: exact form, published shares, slow steps", "field",
       validate_goodput},
      {"hybrid", "published steps of models with Mamba-2 layers and experts, from their config.json", "field",
       validate_hybrid},
      {"fsdp_experts", "published steps of models with experts under FSDP and expert parallelism", "field",
       validate_fsdp_experts},
      {"measured", "kernels and steps of our own GPUs: each from the other's, steps from a description",
       "measured", validate_measured},
      {"dry_run", "steps of our own GPUs from dry runs of the programs that were measured", "measured",
       validate_dry_run},
      {"overheads", "host times learned from other jobs of a machine, on profiled steps", "measured",
       validate_overheads},
      {"networks", "GPU time of ResNet, VGG and ViT by description, against traces", "", validate_networks},
  }};
  return kSuites;
}

const Suite* find_suite(std::string_view name) {
  for (const Suite& suite : builtin_suites())
    if (suite.name == name) return &suite;
  return nullptr;
}

}  // namespace stepcast
