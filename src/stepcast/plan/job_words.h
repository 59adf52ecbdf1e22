// Reads a job from the words of a command line. One reader serves `predict`, `plan`, sweeps and Python.
//
//   JobWords said{.framework = "nemo", .dtype = "fp8", .config = "pretrain.yaml"};
//   STEPCAST_ASSIGN(const Job job, job_in_words(said, {"--num-layers", "96"}, {.model = "gpt3-175b"}));
#pragma once

#include <span>
#include <string>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/describe/job.h"
#include "stepcast/plan/restriction_words.h"

namespace stepcast {

// Words of the user; empty: not given.
struct JobWords {
  std::string framework{};
  std::string dtype{};  // fp8 and fp4 apply only to GEMMs, in a 16-bit model
  // Types of a search; the job type is the first one that is not only for GEMMs.
  std::vector<std::string> dtypes{};
  LayoutWords words{};                    // for a single layout
  std::string command_line{};             // a command line, or the launch script that contains it
  std::string torchtitan{}, deepspeed{};  // paths of config files
  std::string config{};                   // path of a config file of any supported framework
};

// Adds `said` and the Megatron-LM `flags` to `job`. The flags override the command line and config files. `others`: flags of
// the calling command, suggested for unknown flags. Errors: unknown words, unreadable files, contradictions.
[[nodiscard]] Result<Job> job_in_words(const JobWords& said, std::span<const std::string> flags, Job job,
                                       std::span<const std::string> others = {});

}  // namespace stepcast
