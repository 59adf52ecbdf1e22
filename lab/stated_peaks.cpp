#include "lab/stated_peaks.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "stepcast/api/stepcast.h"
#include "stepcast/base/csv_rows.h"
#include "stepcast/base/file.h"

#include "lab/megatron_lines_suite.h"

namespace stepcast {
namespace {

namespace fs = std::filesystem;

double allocated_GiB(const ForecastStageMemory& stage) { return stage.allocated_GiB.value_or(0); }

void add_peak(const Session& session, const PredictRequest& request, std::string row, double measured,
              bool of_last_stage, SetScore& set) {
  const Result<Forecast> forecast = session.predict(request);
  if (!forecast || !forecast->memory || forecast->memory->stages.empty()) return;
  const std::vector<ForecastStageMemory>& stages = forecast->memory->stages;
  const auto fullest = std::ranges::max_element(stages, {}, allocated_GiB);
  set.rows.push_back({.row = std::move(row),
                      .measured = measured,
                      .predicted = allocated_GiB(of_last_stage ? stages.back() : *fullest)});
}

void add_line(const Session& session, const CsvRows& rows, SetScore& set) {
  const auto measured = rows.number("peak_allocated_GiB", 0);
  if (!measured.ok()) return;
  add_peak(session, request_of_line(rows), fmt::format("line {} {}", rows.line(), rows.cell("case")),
           *measured, true, set);
}

// Bridge trains with the distributed optimizer; layout and batch are said where the sequence is.
void add_pair(const Session& session, const CsvRows& rows, SetScore& set, std::set<std::string>& known) {
  const std::string_view common = rows.cell("common_flags");
  const auto gpus = rows.extent("n_gpus");
  if (!gpus.ok() || common.find("--seq-length") == std::string_view::npos) return;
  constexpr std::pair<std::string_view, std::string_view> kModels[] = {{"llama3-70b", "llama-3-70b"},
                                                                       {"Qwen3-30B-A3B", "qwen3-30b-a3b"}};
  const auto* const model =
      std::ranges::find(kModels, rows.cell("model"), [](const auto& m) { return m.first; });
  if (model == std::end(kModels)) return;
  for (const std::string_view side : {"A", "B"}) {
    const std::string_view setting = rows.cell(fmt::format("setting_{}", side));
    const auto measured = rows.number(fmt::format("memory_{}", side), 0);
    if (!measured.ok() || !(setting.empty() || setting.starts_with("--"))) continue;
    PredictRequest request;
    request.job.model = std::string{model->second};
    request.job.command_line = fmt::format("{} --use-distributed-optimizer {}", common, setting);
    request.job.framework = Framework::nemo;
    request.job.n_gpus = *gpus;
    request.platform = "dgx-h100";
    if (!known.insert(*request.job.command_line).second) continue;
    add_peak(session, request, fmt::format("line {} {} {}", rows.line(), model->first, side), *measured,
             false, set);
  }
}

}  // namespace

Result<std::vector<SetScore>> stated_peaks(const fs::path& folder) {
  const Session session;
  std::set<std::string> known;
  std::vector<SetScore> sets;
  for (const std::string_view name : {"megatron_lines", "ab_pairs"}) {
    const fs::path file = folder / fmt::format("{}.csv", name);
    std::error_code ignored;
    if (!fs::exists(file, ignored)) continue;
    STEPCAST_ASSIGN(const std::string text, read_file(file));
    STEPCAST_ASSIGN(CsvRows rows, CsvRows::open(text, file.string()));
    SetScore set{.set = std::string{name}};
    for (;;) {
      STEPCAST_ASSIGN(const bool more, rows.next());
      if (!more) break;
      name == "ab_pairs" ? add_pair(session, rows, set, known) : add_line(session, rows, set);
    }
    if (!set.rows.empty()) sets.push_back(std::move(set));
  }
  return sets;
}

}  // namespace stepcast
