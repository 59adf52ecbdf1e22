// Command lines in the words of a training framework other than Megatron-LM, read as that framework's config.
#pragma once

#include <optional>

#include "stepcast/describe/job.h"

namespace stepcast {

// One of Hugging Face's Trainer (`run_clm.py --model_name_or_path ...`) or MaxText (`python -m MaxText.train base.yml
// model_name=...`) as a config of theirs, with the GPUs of its launcher; nothing of others.
[[nodiscard]] std::optional<Job> config_of_command_line(const Job& said);

}  // namespace stepcast
