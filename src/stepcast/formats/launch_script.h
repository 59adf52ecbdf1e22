// The command that a launch script runs, word by word, for readers of other software's command lines.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/describe/job.h"

namespace stepcast {

// The words of the command that trains, as far as a part of Bash's language tells them (detail/shell/script.h states it);
// of a line without a script all its words. Errors: a quote that is not closed, a script that grows without end.
[[nodiscard]] Result<std::vector<std::string>> words_of_launch_script(std::string_view script);

// The text of a script, with that of files beside it in place of the lines that read them: `source "$DIR/env.sh"`. What is
// not there stays as it is written. Errors: a file that cannot be read.
[[nodiscard]] Result<std::string> read_launch_script(const std::filesystem::path& file);

// One of Hugging Face's Trainer (`run_clm.py --model_name_or_path ...`), ms-swift (`swift sft --model ...`), verl's supervised training (`-m
// verl.trainer.fsdp_sft_trainer model.partial_pretrain=...`) or MaxText (`python -m MaxText.train base.yml
// model_name=...`) as a config of theirs, with the GPUs of its launcher; nothing of others.
[[nodiscard]] std::optional<Job> config_of_command_line(const Job& said);

}  // namespace stepcast
