#include "described_step.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/archive.h"
#include "stepcast/base/file.h"
#include "stepcast/describe/job.h"
#include "stepcast/platform/platform_choice.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/predict/anchor.h"

#include "calibrate/llm_runs.h"

namespace stepcast::cli {
namespace {

// --nodes 4: the number of GPUs of four nodes.
Status count_nodes(std::optional<std::int64_t> nodes, PredictRequest& request) {
  if (!nodes) return Ok{};
  if (request.job.n_gpus)
    return Error{"--nodes and --gpus say the same thing"}.advice("leave one of the two out");
  constexpr std::int64_t kMost = 1'000'000;
  if (*nodes < 1 || *nodes > kMost)
    return Error::at("", "--nodes").found(fmt::format("{}", *nodes)).expected("1 to 1e6");
  std::int64_t in_node = request.job.gpus_per_node.value_or(0);
  if (in_node < 1) {
    STEPCAST_ASSIGN(const Platform platform, load_platform(request.platform));
    in_node = platform.node.gpus_per_node;
  }
  request.job.n_gpus = *nodes * in_node;
  return Ok{};
}

// Rows of a table of runs with the requested GPU.
Result<std::vector<MeasuredTime>> steps_of_table(const std::string& file, const std::string& platform) {
  STEPCAST_ASSIGN(const Platform on, load_platform(platform));
  STEPCAST_ASSIGN(std::vector<LlmRun> runs, read_llm_runs(file));
  std::vector<MeasuredTime> steps;
  for (LlmRun& run : runs) {
    if (!run.gpu.empty() && !could_be_named(run.gpu, on.device)) {
      return Error::at(file, fmt::format("line {}, column gpu", run.line))
          .found(fmt::format("`{}`", run.gpu))
          .expected(fmt::format("the GPU of {}, {}", on.name, on.device.name))
          .advice("name the platform that the steps ran on with --platform");
    }
    steps.push_back({std::move(run.model), std::move(run.layout), run.iter_time_ms});
  }
  return steps;
}

// Tables are read here; other measurements are read when the step is forecast.
Status take_measured(const DescribedStep& step, PredictRequest& request) {
  if (step.measured == std::vector<std::string>{"none"}) return Ok{};
  auto rows = std::make_shared<MeasuredTimes>();
  for (const std::string& text : step.measured) {
    if (text == "none")
      return Error::at("", "--measured")
          .found("`none` together with others")
          .advice("leave one of the two out");
    std::error_code ignored;
    const bool is_file = std::filesystem::is_regular_file(text, ignored);
    if (is_file && !is_archive(text)) {
      STEPCAST_ASSIGN(const std::string beginning, read_file(text));
      if (looks_like_llm_runs(beginning)) {
        STEPCAST_ASSIGN(std::vector<MeasuredTime> more, steps_of_table(text, request.platform));
        std::ranges::move(more, std::back_inserter(rows->steps));
        continue;
      }
    } else if (!is_file && !std::filesystem::is_directory(text, ignored) &&
               text.find('=') == std::string::npos && text.find_first_not_of("0123456789.ms") != text.npos) {
      return Error::at("", "--measured")
          .found(fmt::format("`{}`, which is not a file", text.substr(0, 200)))
          .expected(
              "a time, `5.2s` or milliseconds, optionally after a layout ('gpus=64 tp=8 pp=2=4120'), a CSV "
              "of steps, a log, or traces");
    }
    request.measured.push_back(text);
  }
  if (!rows->steps.empty()) request.measured_steps = std::move(rows);
  return Ok{};
}

}  // namespace

Job job_as_named(const std::string& model, const std::string& config, const std::string& command_line) {
  std::error_code ignored;
  const auto is_file = [&](const std::string& name) {
    return std::filesystem::is_regular_file(name, ignored);
  };
  Job job{.model = model};
  const std::string& script = config.ends_with(".sh") ? config : command_line;
  if (is_file(script)) {
    if (Result<ConfigText> text = read_config_text(script)) job.command_line = std::move(text->text);
  } else if (is_file(config) && !config.ends_with(".toml")) {
    if (Result<ConfigText> text = read_config_text(config)) job.config = std::move(*text);
  } else if (command_line.find(' ') != std::string::npos) {
    job.command_line = command_line;
  }
  return job;
}

Result<PredictRequest> request_of(const DescribedStep& step) {
  PredictRequest request = step.request;
  STEPCAST_ASSIGN(request.job, job_in_words(step, step.megatron_flags, step.request.job, step.own_flags));
  if (!step.open_layout.empty()) STEPCAST_TRY(request.set_open_layout(step.open_layout));
  STEPCAST_TRY(count_nodes(step.nodes, request));
  STEPCAST_TRY(take_measured(step, request));
  return request;
}

void add_notes(const DescribedStep& step, Forecast& forecast) {
  std::vector<std::string> notes;
  if (!step.platform_is_named) notes.push_back(fmt::format("platform not given: {}", step.request.platform));
  const TrainingBudget& budget = step.request.budget;
  if ((budget.price_per_gpu_hour || budget.power_per_gpu_W) && !budget.asked())
    notes.emplace_back("--gpu-hour-price and --gpu-power-watts price a training: add --train-tokens");
  constexpr double kFewTokens = 1e6;
  if (budget.tokens && *budget.tokens < kFewTokens) {
    notes.push_back(
        fmt::format("--train-tokens {:.0f} is less than a training; 15T are 15e12", *budget.tokens));
  }
  constexpr double kLittlePower = 50;
  if (budget.power_per_gpu_W && *budget.power_per_gpu_W < kLittlePower) {
    notes.push_back(fmt::format("--gpu-power-watts {:g} is less than any GPU takes; kilowatts?",
                                *budget.power_per_gpu_W));
  }
  notes.insert(notes.end(), forecast.notes.begin(), forecast.notes.end());
  forecast.notes = std::move(notes);
}

}  // namespace stepcast::cli
