#include "rl_flags.h"

#include <filesystem>
#include <system_error>

#include "stepcast/describe/job.h"
#include "stepcast/rollout/rl_config.h"

namespace stepcast::cli {

bool names_rl_config(const std::string& config, const std::string& command_line) {
  std::error_code ignored;
  const auto file = [&](const std::string& name) { return std::filesystem::is_regular_file(name, ignored); };
  Job job;
  if (file(config) && !config.ends_with(".toml")) {
    if (Result<ConfigText> text = read_config_text(config)) job.config = std::move(*text);
  } else if (file(command_line)) {
    if (Result<ConfigText> text = read_config_text(command_line)) job.command_line = std::move(text->text);
  } else if (command_line.find(' ') != std::string::npos) {
    job.command_line = command_line;
  }
  return is_rl_config(job);
}

}  // namespace stepcast::cli
