#include <charconv>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/api/stepcast.h"
#include "stepcast/base/csv_rows.h"

#include "lab/suites.h"

namespace stepcast {
namespace {

namespace fs = std::filesystem;
using Over = ExtraMetric::Over;

// A ratio this close to 1 counts as no change: two runs of one setting differ by as much.
constexpr double kNoChange = 0.01;
// Defaults for tables of schedules without batch and length: values of the recipes of Primus.
constexpr std::string_view kUnstatedBatch =
    " --bf16 --use-distributed-optimizer --moe-grouped-gemm --moe-permute-fusion --micro-batch-size 1 "
    "--seq-length 4096";
constexpr std::int64_t kMostMicroBatchesPerStage = 16;
// 94 layers on 4 stages: the remainder of the division goes to stages without embedding and loss.
constexpr std::string_view kUnevenStages =
    " --account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split";

// Settings of the recipes of Megatron-Bridge that the flags of its pairs do not state.
constexpr std::string_view kBridge = " --use-distributed-optimizer --grad-reduce-in-bf16";

// Settings that tables print in words, and their flags.
constexpr std::pair<std::string_view, std::string_view> kWords[] = {
    {"tensor parallel", "--no-tp-comm-overlap"},
    {"asynchronous tensor parallel", "--tp-comm-overlap"},
    {"PYTORCH_CUDA_ALLOC_CONF", ""},  // changes the order of allocations, not the computation
    {"1f1b", "--pipeline-schedule 1f1b"},
    {"interleaved 1f1b, 2", "--num-virtual-stages-per-pipeline-rank 2"},
    {"interleaved 1f1b, 3", "--num-virtual-stages-per-pipeline-rank 3"},
    {"interleaved 1f1b, 4", "--num-virtual-stages-per-pipeline-rank 4"},
    {"zero bubble", "--pipeline-schedule zero-bubble"},
    {"ZB-V", "--pipeline-schedule zb-v"},
    {"V-half", "--pipeline-schedule v-half"},
    {"V-min", "--pipeline-schedule v-min"}};

struct Pair {
  std::string name, kind, table;
  PredictRequest of[2];  // A and B
  double ratio = 0;
  std::optional<double> memory_ratio;
  std::int64_t unstated_batch_of =
      0;  // number of pipeline stages if the number of micro-batches is not stated
};

// The flags of a setting; nullopt if it is in unknown words.
std::optional<std::string> flags_of(std::string_view setting) {
  if (setting.empty() || setting.starts_with("--")) return std::string{setting};
  for (const auto& [words, flags] : kWords)
    if (setting == words || (setting.starts_with(words) && words != "tensor parallel"))
      return std::string{flags};
  return std::nullopt;
}

std::string platform_of(std::string_view gpu, std::string_view notes) {
  if (notes.find("96 GB HBM2e") != std::string_view::npos) return "8xh100-96gb-500w";
  if (gpu.starts_with("MI")) {
    std::string name = "8x";
    for (const char c : gpu) name += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    return name;
  }
  return "dgx-h100";
}

// The pair of a row; an error if it cannot be described.
Result<Pair> pair_of(const CsvRows& rows) {
  Pair pair{.name = fmt::format("line {} {} {}", rows.line(), rows.cell("model"), rows.cell("setting_B")),
            .kind = std::string{rows.cell("kind")},
            .table = fmt::format("{} {}", rows.cell("path"), rows.cell("model"))};
  const auto ratio = rows.number("time_ratio_B_over_A", 0);
  if (!ratio.ok()) return Error{"no ratio is printed"};
  pair.ratio = *ratio;
  if (rows.cell("n_gpus").empty()) return Error{"the number of GPUs is not stated"};
  STEPCAST_ASSIGN(const std::int64_t n_gpus, rows.extent("n_gpus"));
  std::string common{rows.cell("common_flags")};
  const std::string aside = " (per-operator selective recomputation)";
  if (const std::size_t at = common.find(aside); at != std::string::npos)
    common.replace(at, aside.size(), " --recompute-granularity op");
  if (rows.cell("source").find("Megatron-Bridge") != std::string_view::npos) common += kBridge;
  const bool stated = common.find("--seq-length") != std::string::npos;
  if (!stated) {
    constexpr std::string_view kFlag = "--pipeline-model-parallel-size ";
    const std::size_t at = common.find(kFlag);
    if (pair.kind != "pipeline schedule" || at == std::string::npos)
      return Error{"batch and length are not stated"};
    const char* const number = common.data() + at + kFlag.size();
    std::from_chars(number, common.data() + common.size(), pair.unstated_batch_of);
    common += kUnstatedBatch;
  }
  const std::string_view settings[] = {rows.cell("setting_A"), rows.cell("setting_B")};
  for (int i = 0; i < 2; ++i) {
    const std::optional<std::string> flags = flags_of(settings[i]);
    if (!flags) return Error{fmt::format("`{}` is not known", settings[i])};
    pair.of[i].platform = platform_of(rows.cell("gpu"), rows.cell("notes"));
    pair.of[i].job.model = std::string{rows.cell("model")};
    pair.of[i].job.n_gpus = n_gpus;
    if (rows.cell("source").find("torchtitan") != std::string_view::npos)
      pair.of[i].job.framework = Framework::torchtitan;
    pair.of[i].job.command_line = common + " " + *flags;
  }
  const auto memory_a = rows.number("memory_A", 0), memory_b = rows.number("memory_B", 0);
  if (memory_a.ok() && memory_b.ok()) pair.memory_ratio = *memory_b / *memory_a;
  return pair;
}

struct Ratios {
  double time = 0, p10 = 0, p90 = 0, memory = 0;
};

Result<Ratios> forecast_ratio(const Session& session, const Pair& pair, std::int64_t micro_batches) {
  Forecast of[2];
  for (int i = 0; i < 2; ++i) {
    PredictRequest request = pair.of[i];
    if (micro_batches > 0) {
      // One sequence each. Such a table has no parallelism but pipeline stages and data parallelism.
      const std::int64_t pipelines = *request.job.n_gpus / pair.unstated_batch_of;
      *request.job.command_line += fmt::format(" --global-batch-size {}", micro_batches * pipelines);
    }
    Result<Forecast> forecast = session.predict(request);
    if (!forecast.ok() && pair.unstated_batch_of > 0) {
      *request.job.command_line += kUnevenStages;
      forecast = session.predict(request);
    }
    STEPCAST_ASSIGN(of[i], std::move(forecast));
  }
  const auto peak = [](const Forecast& forecast) {
    return forecast.memory ? forecast.memory->peak_memory_GiB : 0.0;
  };
  return Ratios{.time = of[1].step_time_ms / of[0].step_time_ms, .memory = peak(of[1]) / peak(of[0])};
}

// Number of micro-batches of a table without a stated batch: the one that fits its interleaved pair with the fewest chunks
// best.
std::int64_t micro_batches_of(const Session& session, const Pair& interleaved) {
  std::int64_t best = 0;
  double best_error = 0;
  for (std::int64_t i = 1; i <= kMostMicroBatchesPerStage; ++i) {
    const std::int64_t n = i * interleaved.unstated_batch_of;
    const Result<Ratios> ratios = forecast_ratio(session, interleaved, n);
    if (!ratios.ok()) continue;
    const double error = std::abs(ratios->time - interleaved.ratio);
    if (best != 0 && error >= best_error) continue;
    best = n;
    best_error = error;
  }
  return best;
}

bool is_right(double measured, double forecast) {
  const auto side = [](double ratio) { return std::abs(ratio - 1) <= kNoChange ? 0 : ratio < 1 ? -1 : 1; };
  return side(measured) == side(forecast) || (measured - 1) * (forecast - 1) > 0;
}

// Sets the percentage of right pairs over all sets.
void count_right(TestScore& test) {
  double right = 0, all = 0;
  for (SetScore& set : test.sets) {
    double of_set = 0;
    for (const ScoredRow& row : set.rows) of_set += is_right(row.measured, row.predicted) ? 1 : 0;
    set.extras = {{"right_n", of_set, Over::sum},
                  {"pairs_n", static_cast<double>(set.rows.size()), Over::sum}};
    right += of_set;
    all += static_cast<double>(set.rows.size());
  }
  if (!test.sets.empty()) test.sets.front().extras.push_back({"right_percent", 100 * right / all, Over::max});
}

}  // namespace

Result<SuiteResult> validate_ab_pairs(const fs::path& data, const SuiteOptions& /*options*/) {
  SuiteResult result{.suite = "ab_pairs"};
  std::vector<Pair> pairs;
  STEPCAST_TRY(each_row(data / "ab_pairs.csv", [&](const CsvRows& rows) -> Status {
    Result<Pair> pair = pair_of(rows);
    if (pair.ok()) {
      pairs.push_back(std::move(*pair));
    } else {
      result.skipped.push_back(
          {fmt::format("line {} {} {}", rows.line(), rows.cell("model"), rows.cell("setting_B")),
           pair.error().message()});
    }
    return Ok{};
  }));
  const Session session;
  std::map<std::string, std::pair<std::int64_t, const Pair*>> batch_of_table;
  for (const Pair& pair : pairs) {
    const bool interleaved = pair.name.find("interleaved") != std::string::npos;
    if (pair.unstated_batch_of == 0 || !interleaved || batch_of_table.contains(pair.table)) continue;
    batch_of_table[pair.table] = {micro_batches_of(session, pair), &pair};
  }
  TestScore ratio{.test = "ratio", .protocol = "shipped", .unit = "ratio"};
  TestScore no_change{.test = "no_change", .protocol = "shipped", .unit = "ratio"};
  TestScore memory{.test = "memory", .protocol = "shipped", .unit = "ratio"};
  for (const Pair& pair : pairs) {
    const auto known = batch_of_table.find(pair.table);
    const bool has_batch = known != batch_of_table.end() && pair.unstated_batch_of > 0;
    if (has_batch && known->second.second == &pair) {
      result.skipped.push_back(
          {pair.name, fmt::format("gave the {} micro-batches of its table", known->second.first)});
      continue;
    }
    const Result<Ratios> forecast = forecast_ratio(session, pair, has_batch ? known->second.first : 0);
    if (!forecast.ok()) {
      result.skipped.push_back({pair.name, forecast.error().message()});
      continue;
    }
    ratio.set_of(pair.kind).rows.push_back(
        {.row = pair.name, .measured = pair.ratio, .predicted = forecast->time});
    no_change.set_of(pair.kind).rows.push_back({.row = pair.name, .measured = pair.ratio, .predicted = 1});
    if (pair.memory_ratio) {
      memory.set_of(pair.kind).rows.push_back(
          {.row = pair.name, .measured = *pair.memory_ratio, .predicted = forecast->memory});
    }
  }
  count_right(ratio);
  result.add(finished({&ratio, &no_change, &memory}));
  return result;
}

}  // namespace stepcast
