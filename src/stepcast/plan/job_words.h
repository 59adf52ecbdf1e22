// What is trained, in the words of a command line: one reader for `predict`, `plan`, sweeps and Python.
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

// Empty: not said.
struct JobWords {
  std::string framework{};
  std::string dtype{};                    // fp8 and fp4: GEMMs alone, in a model of 16 bits
  std::vector<std::string> dtypes{};      // of a search: the first of those that are no GEMM type
  LayoutWords words{};                    // of one layout
  std::string command_line{};             // a whole command line, or the launch script that holds it
  std::string torchtitan{}, deepspeed{};  // config files
  std::string config{};                   // of any framework that is known
};

// `job` with what `said` and `flags` of Megatron-LM say; the flags override the command line and configs. `others` are flags of
// whoever asks, which an unknown flag may have meant. Errors: words that are not known, files that cannot be read, what
// contradicts itself.
[[nodiscard]] Result<Job> job_in_words(const JobWords& said, std::span<const std::string> flags, Job job,
                                       std::span<const std::string> others = {});

}  // namespace stepcast
