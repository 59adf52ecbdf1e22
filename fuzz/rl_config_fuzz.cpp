// Any bytes as a config of post-training, and as a command line: an error, or a question with its GPUs left open or not.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "stepcast/rollout/rl_config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text{reinterpret_cast<const char*>(data), size};
  const auto use = [](stepcast::Job job) {
    std::vector<std::string> notes;
    stepcast::RlQuestion said;
    said.job = std::move(job);
    said.settings.lengths = "mean=900";
    const bool known = stepcast::is_rl_config(said.job);
    const auto question = stepcast::with_rl_config(said, notes);
    if (question.ok() && !known) std::abort();
    if (!question.ok() && question.error().message().empty()) std::abort();
  };
  use({.config = stepcast::ConfigText{text, "fuzz.yaml"}});
  use({.command_line = text});
  return 0;
}
