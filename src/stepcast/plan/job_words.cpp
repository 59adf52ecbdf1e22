#include "stepcast/plan/job_words.h"

#include <filesystem>
#include <optional>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/words.h"
#include "stepcast/formats/launch_script.h"
#include "stepcast/formats/megatron.h"
#include "stepcast/operation/dtype.h"
#include "stepcast/workload/framework_rule.h"

namespace stepcast {
namespace {

// The framework with this name. Error: unknown.
Result<Framework> framework_named(const std::string& text) {
  const Framework framework = parse_framework(text);
  if (framework != Framework::unknown) return framework;
  return Error::at("", "--framework")
      .found(fmt::format("`{}`", text.substr(0, 40)))
      .expected(framework_names(" or "));
}

constexpr std::string_view kModelTypes = "bf16 fp16 fp32", kGemmTypes = "fp8 fp4";

// Sets element types from --dtype or the list of a search. `flags`: settings from Megatron-LM flags; a contradiction is an
// error.
Status set_type(const JobWords& said, const JobSettings& flags, JobSettings& to) {
  if (!said.dtype.empty()) {
    const bool is_gemm_type = is_among(said.dtype, kGemmTypes);
    if (!is_gemm_type && !is_among(said.dtype, kModelTypes))
      return Error::at("", "--dtype")
          .found(fmt::format("`{}`", said.dtype.substr(0, 40)))
          .expected("bf16, fp16, fp32, fp8 or fp4 for a described step");
    to.fp8 = said.dtype == "fp8";
    to.fp4 = said.dtype == "fp4";
    to.dtype = is_gemm_type ? DType::bf16 : parse_dtype(said.dtype);
    if (flags.dtype && flags.dtype != to.dtype)
      return Error::at("", "--dtype", fmt::format("given together with --{}", to_string(*flags.dtype)))
          .advice("choose one");
  }
  std::optional<DType> listed;
  for (const std::string& word : said.dtypes) {
    if (!is_among(word, kModelTypes)) continue;
    if (flags.dtype && parse_dtype(word) != *flags.dtype)
      return Error{fmt::format("--dtype {} and --{} contradict each other", word, to_string(*flags.dtype))}
          .advice("leave one of the two out");
    if (!listed) listed = parse_dtype(word);
  }
  if (listed) to.dtype = listed;
  return Ok{};
}

// By file extension, or by the first line: input from a pipe has no file name.
bool is_toml(const ConfigText& config) {
  if (config.name.ends_with(".toml")) return true;
  std::istringstream lines{config.text};
  for (std::string line; std::getline(lines, line);) {
    if (line.find_first_not_of(" \t\r") == std::string::npos || line.starts_with('#')) continue;
    return line.starts_with('[') && line.find_first_of(",{\"") == std::string::npos;
  }
  return false;
}

// The text of a launch script, or `given` itself if it is a command line.
Result<std::string> command_line_of(const std::string& given) {
  std::error_code ignored;
  const bool is_one_word = given.find_first_of(" \t\n") == std::string::npos;
  if (is_one_word && !given.starts_with('-') && !std::filesystem::exists(given, ignored)) {
    return Error::at("", "--command-line")
        .found(fmt::format("`{}`, which is not a file", given.substr(0, 200)))
        .expected("a launch script, or a whole command line in quotes");
  }
  // Not a single word: a command line; `-...`: a flag.
  if (!is_one_word || given.starts_with('-')) return given;
  return read_launch_script(given);
}

// Reads all config files into the job. --config is assigned to a framework by its extension or content.
Status read_configs(const JobWords& said, Job& job) {
  if (!said.command_line.empty()) {
    STEPCAST_ASSIGN(job.command_line, command_line_of(said.command_line));
  }
  if (!said.torchtitan.empty()) {
    STEPCAST_ASSIGN(job.torchtitan, read_config_text(said.torchtitan));
  }
  if (!said.config.empty()) {
    if (said.config.ends_with(".sh")) {
      STEPCAST_ASSIGN(job.command_line, command_line_of(said.config));
    } else {
      STEPCAST_ASSIGN(ConfigText config, read_config_text(said.config));
      (is_toml(config) ? job.torchtitan : job.config) = std::move(config);
    }
  }
  if (!said.deepspeed.empty()) {
    STEPCAST_ASSIGN(job.deepspeed, read_config_text(said.deepspeed));
  }
  return Ok{};
}

}  // namespace

Result<Job> job_in_words(const JobWords& said, std::span<const std::string> flags, Job job,
                         std::span<const std::string> others) {
  if (!said.framework.empty()) {
    STEPCAST_ASSIGN(job.framework, framework_named(said.framework));
  }
  if (!flags.empty() && !flags.front().starts_with("-")) {
    const std::string word = flags.front().substr(0, 80);
    return Error{fmt::format("unexpected argument `{}`", word)}.advice(fmt::format("write --model {}", word));
  }
  STEPCAST_ASSIGN(MegatronWords words, parse_megatron_flags(flags, others));
  STEPCAST_TRY(set_type(said, words.settings, job.settings));
  STEPCAST_TRY(apply(said.words, words.settings, job.settings));
  if (job.framework) {
    if (!said.words.sharding.empty()) STEPCAST_TRY(check_sharding(*job.framework, said.words.sharding));
    STEPCAST_TRY(check_sharding(*job.framework, words.settings));
  }
  job.settings = over(words.settings, job.settings);
  job.not_modelled = std::move(words.not_modelled);
  STEPCAST_TRY(read_configs(said, job));
  return job;
}

}  // namespace stepcast
