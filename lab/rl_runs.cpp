#include "lab/rl_runs.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/csv_rows.h"
#include "stepcast/base/number.h"

namespace stepcast {
namespace {

struct PublishedName {
  std::string_view published, preset;
};
constexpr std::array kPublishedNames{
    PublishedName{"LLAMA3.1_8B", "llama-3.1-8b"}, PublishedName{"DeepSeek V3", "deepseek-v3"},
    PublishedName{"Qwen3-235B", "qwen3-235b-a22b"}, PublishedName{"Qwen3-30B3A", "qwen3-30b-a3b"},
    PublishedName{"Qwen3-32B", "qwen3-32b"}};

// As the recipes of NeMo-RL train: Megatron Core, sharded optimizer states, packed sequences.
Result<JobSettings> training_of(const CsvRows& rows) {
  JobSettings s;
  if (rows.cell("train_tp").empty()) return s;  // the layout is not told: searched
  STEPCAST_ASSIGN(s.tensor, rows.extent("train_tp"));
  STEPCAST_ASSIGN(s.context, rows.extent("train_cp"));
  STEPCAST_ASSIGN(s.expert, rows.extent("train_ep"));
  STEPCAST_ASSIGN(s.pipeline, rows.extent("train_pp"));
  if (*s.expert > 1) s.expert_tensor = 1;
  if (*s.tensor > 1) s.sequence_parallel = true;
  s.distributed_optimizer = true;
  return s;
}

Result<RlRun> run_of(const CsvRows& rows, std::string_view preset) {
  RlRun run;
  run.model = std::string{rows.cell("model")};
  STEPCAST_ASSIGN(run.step_s, rows.number("step_s", 0.1));
  STEPCAST_ASSIGN(const std::int64_t n_gpus, rows.extent("n_gpus"));
  STEPCAST_ASSIGN(const std::int64_t generated, rows.extent("generated_batch_sequences"));
  STEPCAST_ASSIGN(const std::int64_t update, rows.extent("train_batch_sequences"));
  STEPCAST_ASSIGN(const std::int64_t generations, rows.extent("generations_per_prompt"));
  STEPCAST_ASSIGN(const std::int64_t mean, rows.extent("mean_sequence_tokens"));
  STEPCAST_ASSIGN(const std::int64_t most, rows.extent("max_sequence_tokens"));
  STEPCAST_ASSIGN(const std::int64_t lag, rows.extent("off_policy_steps", 0));
  run.on_policy = lag == 0;
  Job& job = run.question.job;
  job.model = std::string{preset};
  job.n_gpus = n_gpus;
  job.framework = Framework::nemo;
  STEPCAST_ASSIGN(job.settings, training_of(rows));
  if (rows.cell("train_dtype") == "fp8") job.settings.fp8 = true;
  job.settings.global_batch_sequences = update;
  RlSettings& s = run.question.settings;
  const bool dapo = rows.cell("algorithm") == "DAPO";
  // All that is generated is trained on, in updates of the training batch; of dynamic sampling, too: what a recipe of
  // NeMo-RL calls prompts per step is what passes the filter.
  s.algorithm = dapo ? "dapo" : "grpo";
  s.generations = generations;
  s.prompts = generated / generations;
  s.oversampling = 1;
  s.lengths = fmt::format("mean={},max={}", mean, most);
  s.policy = run.on_policy ? "on" : fmt::format("off:{}", lag);
  s.generation_dtype = std::string{rows.cell("generation_dtype")};
  if (!run.on_policy) {
    STEPCAST_ASSIGN(s.generation_gpus, rows.extent("generation_gpus"));
  }
  STEPCAST_ASSIGN(s.generation_tensor, rows.extent("generation_tp"));
  STEPCAST_ASSIGN(s.generation_pipeline, rows.extent("generation_pp"));
  run.tokens_per_gpu = as_double(generated * mean) / as_double(n_gpus);
  run.configuration = fmt::format("{} {} {} {} {}", rows.cell("algorithm"), run.model, n_gpus, s.policy,
                                  rows.cell("generation_dtype"));
  run.name = fmt::format("{}, {}", run.configuration, rows.cell("release"));
  run.pair = fmt::format("{} {} {} {} {}", rows.cell("algorithm"), run.model, n_gpus, rows.cell("release"),
                         generated);
  return run;
}

}  // namespace

bool looks_like_rl_runs(std::string_view text) {
  return text.substr(0, text.find('\n')).find("generated_batch_sequences") != std::string_view::npos;
}

Result<RlRuns> parse_rl_runs(std::string_view text, const std::string& name) {
  STEPCAST_ASSIGN(CsvRows rows, CsvRows::open(text, name));
  RlRuns out;
  while (true) {
    STEPCAST_ASSIGN(const bool more, rows.next());
    if (!more) return out;
    const auto* known = std::find_if(kPublishedNames.begin(), kPublishedNames.end(),
                                     [&](const auto& n) { return n.published == rows.cell("model"); });
    if (known == kPublishedNames.end() || rows.cell("generations_per_prompt").empty()) {
      out.skipped.push_back(fmt::format("{} {}: several turns with tools, and a split that is not told",
                                        rows.cell("algorithm"), rows.cell("model")));
      continue;
    }
    STEPCAST_ASSIGN(RlRun run, run_of(rows, known->preset));
    out.runs.push_back(std::move(run));
  }
}

}  // namespace stepcast
