// Options of `predict`: one struct per question. option_table.def maps each option to its member.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stepcast/api/stepcast.h"
#include "stepcast/api/subject.h"
#include "stepcast/base/result.h"

#include "described_step.h"
#include "option_list.h"
#include "outputs.h"

namespace stepcast::cli {

// Options that several questions share, other than the step.
struct SharedOptions {
  std::vector<std::int64_t> n_gpus, batches, global_batches;
  std::string links_of, timeline, chakra;
  bool json = false, sensitivity = false;
  std::uint64_t seed = 1;
  ReportOptions report;
};

struct DescribedOptions {
  std::vector<std::int64_t> micro_batches;
  bool require_fit = false, same_layout = false;
  std::string advice{};  // "on", "off"; empty: on for the command line only
  std::string power_limit, pools;
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
  PredictDlrmRequest request;
  std::string stack, release, exchange_dtype;
};

struct PredictOptions {
  explicit PredictOptions(CLI::App& app) : flags(app) {}
  DescribedStep step;  // also for other questions with the same options
  SharedOptions shared;
  DescribedOptions described;
  TraceOptions traces;
  LogOptions log;
  RecommendationOptions recommendation;
  RlSettings rl;
  FlagList flags;
};

// Declares all options on `app`. `options` receives their values and must outlive `app`.
void declare_predict_options(CLI::App& app, PredictOptions& options);

// The subject and the question of the parsed flags. Errors: a flag that does not belong to the question.
[[nodiscard]] const Subject& subject_of(const PredictOptions& options);
[[nodiscard]] Result<Question> question_of(const PredictOptions& options, const Subject& subject);

// The request for a described step, and for recorded ones, in words after `predict`.
[[nodiscard]] Result<PredictRequest> request_in_words(std::vector<std::string> words);
[[nodiscard]] Result<PredictTraceRequest> trace_request_in_words(std::vector<std::string> words);

}  // namespace stepcast::cli
