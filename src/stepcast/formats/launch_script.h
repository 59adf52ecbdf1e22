// Extracts the training command of a launch script as words, for readers of other software's command lines.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/describe/job.h"

namespace stepcast {

// The words of the training command, as far as a part of the Bash language determines them (detail/shell/script.h).
// For a line without a script, all words. Errors: an unclosed quote, a script above the size limit.
[[nodiscard]] Result<std::vector<std::string>> words_of_launch_script(std::string_view script);

// The text of a script, with existing sourced files inserted in place of `source "$DIR/env.sh"`. Other lines
// are unchanged. Errors: a file that cannot be read, sources that contain each other.
[[nodiscard]] Result<std::string> read_launch_script(const std::filesystem::path& file);

// Converts a command line with config keys as arguments into a job with a config and the launcher's GPUs:
// Hugging Face's Trainer (`run_clm.py --model_name_or_path ...`), ms-swift (`swift sft --model ...`), verl's
// supervised training (`-m verl.trainer.fsdp_sft_trainer model.partial_pretrain=...`) and MaxText (`python -m
// MaxText.train base.yml model_name=...`). Nothing for other command lines.
[[nodiscard]] std::optional<Job> config_of_command_line(const Job& said);

}  // namespace stepcast
