// What the options of `predict` set: one struct per question. option_table.def names the member of each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stepcast/api/stepcast.h"
#include "stepcast/base/result.h"

#include "described_step.h"
#include "option_list.h"
#include "outputs.h"

namespace stepcast::cli {

// What several questions ask with the same flags.
struct SharedOptions {
  std::string model, platform = "dgx-h100";
  std::vector<std::int64_t> n_gpus, batches, global_batches;
  std::optional<std::int64_t> gpus_per_node;
  std::string dtype, recompute, links_of;
  std::vector<std::string> what_if;
  TrainingBudget budget;
  std::string timeline, chakra;
  bool chakra_per_rank = false, json = false, sensitivity = false;
  std::uint64_t seed = 1;
  ReportOptions report;
};

// The step itself is a DescribedStep.
struct DescribedOptions {
  DescribedStep step;
  std::vector<std::int64_t> micro_batches;
  bool require_fit = false, replans = false;
  std::string open_layout, power_limit, pools;
  std::vector<std::string> zones;
};

struct TraceOptions {
  PredictTraceRequest request;
  std::string ranks;
  std::vector<std::int64_t> recorded_batches;
};

struct LogOptions {
  std::string log;
};

struct RecommendationOptions {
  std::string tables, indices, plan, stack, release, exchange_dtype;
};

struct PredictOptions {
  explicit PredictOptions(CLI::App& app) : flags(app) {}
  SharedOptions shared;
  DescribedOptions described;
  TraceOptions traces;
  LogOptions log;
  RecommendationOptions recommendation;
  RlSettings rl;
  FlagList flags;
};

// Declares all of them on `app`; `options` takes their values and has to outlive it.
void declare_predict_options(CLI::App& app, PredictOptions& options);

// What is asked, once the flags are parsed. Errors: a flag that means nothing for it.
[[nodiscard]] Result<Question> question_of(const PredictOptions& options);

}  // namespace stepcast::cli
