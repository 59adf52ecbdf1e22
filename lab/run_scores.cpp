#include "lab/run_scores.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "stepcast/api/stepcast.h"
#include "stepcast/base/csv_rows.h"
#include "stepcast/base/file.h"
#include "stepcast/base/statistics.h"
#include "stepcast/base/units.h"
#include "stepcast/workload/memory.h"

#include "lab/megatron_lines_suite.h"
#include "lab/published_forecast.h"
#include "lab/run_platforms.h"

namespace stepcast {
namespace {

std::string shares_text(const StageMemory& m) {
  const auto share = [&](Bytes bytes) { return bytes / m.in_allocator(); };
  return fmt::format(
      "weights {:.3f} gradients {:.3f} optimizer {:.3f} activations {:.3f} working {:.3f} reserve {:.3f}",
      share(m.weights), share(m.gradients), share(m.optimizer), share(m.activations), share(m.working),
      share(m.reserve));
}

// True for "recipe of another layout (differs:mbs+vp)" if it lists `what`.
bool recipe_contradicts(const LlmRun& run, std::string_view what) {
  return std::ranges::any_of(run.assumed, [&](const std::string& text) {
    return text.starts_with("recipe of another layout") && text.find(what) != std::string::npos;
  });
}

}  // namespace

TestScore score_runs_that_ran(const std::vector<PredictedRun>& runs, RunPlatforms& platforms,
                              std::vector<Skipped>& skipped) {
  TestScore result{.test = "runs_that_ran", .protocol = "shipped", .unit = "GiB", .relative = false};
  struct Counts {
    SetScore set;
    double too_big = 0, contradicted = 0, contradicted_and_too_big_with_one = 0;
  };
  std::map<std::string, Counts> sets;
  for (const PredictedRun& p : runs) {
    if (p.run->gpu.empty()) continue;
    const Result<StepModel*> model = platforms.model_for(*p.run);
    if (!model) continue;
    const auto memory = memory_forecast(p.run->model, p.run->layout, (*model)->platform().device.memory_size);
    if (!memory) continue;
    Counts& of = sets[p.run->set];
    ScoredRow row = scored(p);
    row.measured = memory->available.value() / kGiB;
    row.predicted = memory->peak().value() / kGiB;
    row.p10 = row.p90 = {};
    if (memory->verdict == MemoryVerdict::does_not_fit) {
      ++of.too_big;
      // A stated micro-batch that contradicts the configuration of the same release may be a mistake.
      const bool contradicted = recipe_contradicts(*p.run, "mbs");
      std::string why = "ran, and is said not to fit";
      if (contradicted) {
        ++of.contradicted;
        Layout one_sequence = p.run->layout;
        one_sequence.batch.micro_batch_sequences = 1;
        const auto with_one = memory_forecast(p.run->model, one_sequence, memory->available);
        const double with_one_GiB = with_one ? with_one->peak().value() / kGiB : row.predicted;
        if (with_one_GiB > row.measured) ++of.contradicted_and_too_big_with_one;
        why = fmt::format(
            "ran, and does not fit with a micro-batch that its release's recipe contradicts; with 1: {:.1f} "
            "GiB",
            with_one_GiB);
      }
      skipped.push_back(
          {fmt::format("{}: {:.1f} of {:.1f} GiB", row.row, row.predicted, row.measured), std::move(why), 1});
    }
    of.set.rows.push_back(std::move(row));
  }
  for (auto& [name, of] : sets) {
    of.set.set = name;
    const auto n = static_cast<double>(of.set.rows.size());
    of.set.extras = {
        {"fits_pct", 100 * (1 - of.too_big / n)},
        {"too_big_n", of.too_big, ExtraMetric::Over::sum},
        {"of_them_recipe_contradicts_n", of.contradicted, ExtraMetric::Over::sum},
        {"too_big_with_one_sequence_n", of.too_big - of.contradicted + of.contradicted_and_too_big_with_one,
         ExtraMetric::Over::sum}};
    result.sets.push_back(std::move(of.set));
  }
  result.finish();
  return result;
}

TestScore score_memory(const std::vector<PredictedRun>& runs) {
  TestScore result{.test = "memory", .protocol = "shipped", .unit = "GiB"};
  std::map<std::string, SetScore> sets;
  for (const PredictedRun& p : runs) {
    if (!p.run->memory_GiB) continue;
    // The required memory does not depend on the capacity of the device.
    const Result<MemoryForecast> memory = memory_forecast(p.run->model, p.run->layout, Bytes{1});
    if (!memory) continue;
    const auto most = std::ranges::max_element(memory->stages, {}, &StageMemory::in_allocator);
    ScoredRow row = scored(p);
    row.measured = *p.run->memory_GiB;
    row.predicted = most->in_allocator().value() / kGiB;
    row.p10 = row.p90 = {};
    row.shares = shares_text(*most);
    sets[p.run->set].rows.push_back(std::move(row));
  }
  for (auto& [name, set] : sets) {
    set.set = name;
    result.sets.push_back(std::move(set));
  }
  result.finish();
  return result;
}

TestScore score_published_composition(const std::vector<PredictedRun>& runs, RunPlatforms& platforms) {
  TestScore result{.test = "published_composition", .protocol = "shipped", .unit = "ms"};
  std::map<std::string, SetScore> sets;
  std::map<std::string, double> ours;  // [set] sum of |errors|, %
  for (const PredictedRun& p : runs) {
    // Times without a stated GPU are not scored.
    if (p.run->gpu.empty() || p.run->layout.layer.packed_mean_tokens > 0) continue;
    Result<StepModel*> model = platforms.model_for(*p.run);
    if (!model) continue;
    const Result<PricedStep> priced = (*model)->price(p.run->model, p.run->layout);
    if (!priced) continue;
    const Result<PublishedComponents> parts = published_components(*priced, p.run->layout);
    if (!parts) continue;
    ScoredRow row = scored(p);
    ours[p.run->set] += 100 * std::abs(row.predicted / row.measured - 1);
    row.predicted = compose_as_published(*parts).step_us() * 1e-3;
    row.p10 = row.p90 = {};
    row.shares.clear();
    sets[p.run->set].rows.push_back(std::move(row));
  }
  for (auto& [name, set] : sets) {
    set.set = name;
    set.extras.push_back({"ours_mape", ours[name] / static_cast<double>(set.rows.size())});
    result.sets.push_back(std::move(set));
  }
  result.finish();
  return result;
}

namespace {

namespace fs = std::filesystem;

double allocated_gib(const ForecastStageMemory& stage) { return stage.allocated_GiB.value_or(0); }

void add_peak(const Session& session, const PredictRequest& request, std::string row, double measured,
              bool of_last_stage, SetScore& set) {
  const Result<Forecast> forecast = session.predict(request);
  if (!forecast || !forecast->memory || forecast->memory->stages.empty()) return;
  const std::vector<ForecastStageMemory>& stages = forecast->memory->stages;
  const auto fullest = std::ranges::max_element(stages, {}, allocated_gib);
  set.rows.push_back({.row = std::move(row),
                      .measured = measured,
                      .predicted = allocated_gib(of_last_stage ? stages.back() : *fullest)});
}

void add_line(const Session& session, const CsvRows& rows, SetScore& set) {
  const auto measured = rows.number("peak_allocated_GiB", 0);
  if (!measured.ok()) return;
  add_peak(session, request_of_line(rows), fmt::format("line {} {}", rows.line(), rows.cell("case")),
           *measured, true, set);
}

// Bridge trains with the distributed optimizer. Rows that state the sequence also state layout and batch.
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
    SetScore set{.set = std::string{name}};
    STEPCAST_TRY(each_row(file, [&](const CsvRows& rows) -> Status {
      name == "ab_pairs" ? add_pair(session, rows, set, known) : add_line(session, rows, set);
      return Ok{};
    }));
    if (!set.rows.empty()) sets.push_back(std::move(set));
  }
  return sets;
}

namespace {

constexpr std::array<std::string_view, 6> kColumns{
    "round", "gpu", "n_gpus", "global_batch_samples", "grad_accum", "iter_time_ms"};
constexpr std::string_view kHeader =
    "set,model,hidden_size,ffn_hidden_size,n_layers,n_heads,vocab_size,architecture,seq_len_tokens,gpu,"
    "gpus_per_node,n_gpus,dtype,framework,tensor_parallel,pipeline_parallel,data_parallel,"
    "micro_batch_sequences,global_batch_sequences,attention,packed_mean_tokens,optimizer,iter_time_ms,note\n";

// Mean length of sequences from Wikipedia in MLPerf. Its software packs two into a row of 512.
constexpr int kMeanTokens = 256;

bool has_word(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

// NVIDIA's code uses fp8 of Transformer Engine from Hopper on; Ada and Ampere cards run it in fp16.
std::string_view type_on(std::string_view gpu) {
  const bool narrow = has_word(gpu, "H100") || has_word(gpu, "H200") || has_word(gpu, "B200");
  return narrow ? "fp8" : "fp16";
}

}  // namespace

bool looks_like_bert_runs(std::string_view text) {
  const std::string_view header = text.substr(0, text.find('\n'));
  for (const std::string_view column : kColumns)
    if (!has_word(header, column)) return false;
  return !has_word(header, "model,") && !has_word(header, "tensor_parallel");
}

Result<std::vector<LlmRun>> parse_bert_runs(std::string_view text, const std::string& name,
                                            std::vector<std::string>* left_out) {
  STEPCAST_ASSIGN(CsvRows rows, CsvRows::open(text, name));
  STEPCAST_TRY(rows.check_names());
  std::vector<LlmRun> runs;
  for (;;) {
    STEPCAST_ASSIGN(const bool more, rows.next());
    if (!more) break;
    STEPCAST_ASSIGN(const std::int64_t n_gpus, rows.extent("n_gpus"));
    STEPCAST_ASSIGN(const std::int64_t samples, rows.extent("global_batch_samples"));
    STEPCAST_ASSIGN(const std::int64_t accumulated, rows.extent("grad_accum"));
    STEPCAST_ASSIGN(const double ms, rows.number("iter_time_ms", 0));
    const std::string_view gpu = rows.cell("gpu");
    // The benchmark is trained with LAMB.
    const std::string row = fmt::format(
        "{}{},bert-large,1024,4096,24,16,30522,bert,{},\"{}\",{},{},{},PyTorch,1,1,{},{},{},flash,{},lamb,{},"
        "\"{} one node; cuda graph CUDA_GRAPH\"\n",
        kHeader, kBertNodeSet, kMeanTokens, gpu, n_gpus, n_gpus, type_on(gpu), n_gpus,
        samples / std::max<std::int64_t>(1, n_gpus) / std::max<std::int64_t>(1, accumulated), samples,
        kMeanTokens, ms, rows.cell("round"));
    Result<std::vector<LlmRun>> run = parse_llm_runs(row, name);
    if (!run) {
      const Error problem = rows.error("gpu", run.error().message());
      if (left_out == nullptr) return problem;
      left_out->push_back(problem.message());
      continue;
    }
    run->front().line = rows.line();
    runs.push_back(std::move(run->front()));
  }
  return runs;
}

TestScore score_bert_scaling(const std::vector<PredictedRun>& runs) {
  TestScore result{.test = "node_scaling_with_one_factor", .protocol = "refit", .unit = "ms"};
  std::map<std::int64_t, std::vector<const PredictedRun*>> by_gpus;
  for (const PredictedRun& p : runs)
    if (p.run->set == kBertNodeSet) by_gpus[p.run->n_gpus].push_back(&p);
  if (by_gpus.size() < 2) return result;
  for (const auto& [n_gpus, members] : by_gpus) {
    std::vector<double> factors;
    for (const auto& [others, rows] : by_gpus) {
      if (others == n_gpus) continue;
      for (const PredictedRun* p : rows) factors.push_back(measured_over_predicted(*p));
    }
    const double factor = upper_median(factors);
    SetScore set{.set = fmt::format("{} {} GPUs", kBertNodeSet, n_gpus), .n_fit = factors.size()};
    for (const PredictedRun* p : members) set.rows.push_back(scaled(scored(*p), factor));
    result.sets.push_back(std::move(set));
  }
  result.finish();
  return result;
}

}  // namespace stepcast
