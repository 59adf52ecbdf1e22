#include "described_step.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/file.h"
#include "stepcast/describe/job.h"
#include "stepcast/formats/launch_script.h"
#include "stepcast/formats/megatron.h"
#include "stepcast/operation/dtype.h"
#include "stepcast/platform/platform_choice.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/predict/anchor.h"

#include "calibrate/llm_runs.h"
#include "option_list.h"

namespace stepcast::cli {
namespace {

// By its name, or by the section it begins with: through a pipe there is no name.
bool is_toml(const ConfigText& config) {
  if (config.name.ends_with(".toml")) return true;
  std::istringstream lines{config.text};
  for (std::string line; std::getline(lines, line);) {
    if (line.find_first_not_of(" \t\r") == std::string::npos || line.starts_with('#')) continue;
    return line.starts_with('[') && line.find_first_of(",{\"") == std::string::npos;
  }
  return false;
}

// A launch script, or the command line itself.
Result<std::string> command_line_of(const std::string& given) {
  std::error_code ignored;
  const bool is_one_word = given.find_first_of(" \t\n") == std::string::npos;
  if (is_one_word && !given.starts_with('-') && !std::filesystem::exists(given, ignored)) {
    return Error::at("", "--command-line")
        .found(fmt::format("`{}`, which is not a file", given.substr(0, 200)))
        .expected("a launch script, or a whole command line in quotes");
  }
  if (!is_one_word || given.starts_with('-')) return given;  // what is left may be a pipe: `<(cat run.sh)`
  return read_launch_script(given);
}

Result<Job> job_of(const DescribedStep& step) {
  Job job = step.request.job;
  if (!step.framework.empty()) {
    STEPCAST_ASSIGN(job.framework, framework_named(step.framework));
  }
  if (step.dtype == "tf32")
    return Error::at("", "--dtype").found("`tf32`").expected("bf16, fp16, fp32 or fp8 for a described step");
  if (!step.dtype.empty()) {
    job.settings.fp8 = step.dtype == "fp8";
    job.settings.fp4 = step.dtype == "fp4";
    job.settings.dtype = step.dtype.starts_with("fp8") || step.dtype.starts_with("fp4")
                             ? DType::bf16
                             : parse_dtype(step.dtype);
  }
  const std::vector<std::string>& left = step.megatron_flags;
  if (!left.empty() && !left.front().starts_with("-")) {
    return Error{fmt::format("`{}` stands without a flag", left.front().substr(0, 80))}.advice(
        fmt::format("write --model {}", left.front().substr(0, 80)));
  }
  STEPCAST_ASSIGN(MegatronWords words, parse_megatron_flags(left, step.own_flags));
  if (!step.dtype.empty() && words.settings.dtype && words.settings.dtype != job.settings.dtype) {
    return Error::at("", "--dtype", fmt::format("given together with --{}", to_string(*words.settings.dtype)))
        .advice("choose one");
  }
  STEPCAST_TRY(apply(step.words, words.settings, job.settings));
  if (!step.words.sharding.empty() && job.framework)
    STEPCAST_TRY(check_sharding(*job.framework, step.words.sharding));
  if (job.framework) STEPCAST_TRY(check_sharding(*job.framework, words.settings));
  job.settings = over(words.settings, job.settings);
  job.not_modelled = std::move(words.not_modelled);
  if (!step.command_line.empty()) {
    STEPCAST_ASSIGN(job.command_line, command_line_of(step.command_line));
  }
  if (!step.torchtitan.empty()) {
    STEPCAST_ASSIGN(job.torchtitan, read_config_text(step.torchtitan));
  }
  if (!step.config.empty()) {
    STEPCAST_ASSIGN(ConfigText config, read_config_text(step.config));
    (is_toml(config) ? job.torchtitan : job.config) = std::move(config);
  }
  if (!step.deepspeed.empty()) {
    STEPCAST_ASSIGN(job.deepspeed, read_config_text(step.deepspeed));
  }
  return job;
}

// --nodes 4: so many GPUs as four nodes have.
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

// Rows of a table of runs, of the GPU that is asked for.
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

// Tables are read here, what else was measured where the step is forecast.
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
    if (is_file) {
      STEPCAST_ASSIGN(const std::string beginning, read_file(text));
      if (looks_like_llm_runs(beginning)) {
        STEPCAST_ASSIGN(std::vector<MeasuredTime> more, steps_of_table(text, request.platform));
        std::ranges::move(more, std::back_inserter(rows->steps));
        continue;
      }
    } else if (text.find('=') == std::string::npos && text.find_first_not_of("0123456789.ms") != text.npos) {
      return Error::at("", "--measured")
          .found(fmt::format("`{}`, which is not a file", text.substr(0, 200)))
          .expected(
              "words of a layout with milliseconds, as in 'gpus=64 tp=8 pp=2=4120', a CSV of steps, or a "
              "log");
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
  if (is_file(config) && !config.ends_with(".toml")) {
    if (Result<ConfigText> text = read_config_text(config)) job.config = std::move(*text);
  } else if (is_file(command_line)) {
    if (Result<ConfigText> text = read_config_text(command_line)) job.command_line = std::move(text->text);
  } else if (command_line.find(' ') != std::string::npos) {
    job.command_line = command_line;
  }
  return job;
}

Result<PredictRequest> request_of(const DescribedStep& step) {
  PredictRequest request = step.request;
  STEPCAST_ASSIGN(request.job, job_of(step));
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
