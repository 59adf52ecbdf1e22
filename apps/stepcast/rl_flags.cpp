#include "rl_flags.h"

#include <filesystem>
#include <system_error>

#include "stepcast/describe/job.h"
#include "stepcast/rollout/rl_config.h"

namespace stepcast::cli {

void add_rl_flags(FlagList& flags, RlSettings& r, QuestionSet of) {
  const FlagValues above{.above_zero = true};
  flags.begin("Post-training by reinforcement learning (--rl)", of);
  flags.add("--rl", &r.algorithm,
            "a step of grpo, ppo or dapo: generate, score, train, hand over the weights; not needed with a "
            "config or "
            "command line of NeMo-RL, verl or OpenRLHF",
            {.one_of = {"grpo", "ppo", "dapo"}});
  flags.add("--prompts", &r.prompts, "prompts of a step");
  flags.add("--generations", &r.generations, "answers to each (default: 1)");
  flags.add("--lengths", &r.lengths,
            "tokens of prompt and answer: mean=5698,max=8192, or a CSV file with a column tokens");
  flags.add("--prompt-tokens", &r.prompt_tokens, "of these, tokens of a prompt (default: 256)");
  flags.add("--oversampling", &r.oversampling,
            "sequences generated for each that is trained on (default: 1; dapo: 3)", above);
  flags.add("--policy", &r.policy,
            "on (default): the same GPUs generate and train; off:N: two pools, weights up to N steps old");
  flags.add("--generation-gpus", &r.generation_gpus, "GPUs that generate, off-policy (default: searched)");
  flags.add("--generation-tp", &r.generation_tensor,
            "tensor parallel degree of an engine (default: searched)", above);
  flags.add("--generation-pp", &r.generation_pipeline, "pipeline stages of an engine (default: searched)",
            above);
  flags.add("--generation-dtype", &r.generation_dtype, "of the weights that generate: bf16 (default), fp8",
            {.one_of = {"bf16", "fp8"}});
  flags.add("--generation-memory", &r.generation_memory_share,
            "share of a GPU's memory that an engine takes (default: 0.6; off-policy 0.9)", above);
  flags.add("--reward-model", &r.reward_model, "preset or config.json of a model that scores the answers");
}

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
