// Parses flags and command lines of Megatron-LM into the settings of a Job.
//
//   Job job{.command_line = "torchrun --nproc_per_node 8 --nnodes 64 pretrain_gpt.py --num-layers 96 ..."};
//   STEPCAST_ASSIGN(const ResolvedJob resolved, resolve(job));
//
// Flags have the spelling of Megatron-LM. Known flags without effect on time and memory (learning rates,
// data, checkpoints, logs) are ignored. Flags with an effect that is not modelled are listed. Flags for other
// work, such as inference, are errors. docs/reference/megatron-flags.md lists all of them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/describe/job.h"

namespace stepcast {

// What a command line contains.
struct MegatronWords {
  JobSettings settings;
  std::vector<std::string> not_modelled;
  std::optional<std::int64_t> n_gpus, gpus_per_node;  // from the launcher
  // Set if the launcher uses a variable that is never set. It is an error unless the caller knows the number of GPUs.
  std::optional<Error> unknown_gpus;
  bool is_bert = false;  // the script is pretrain_bert.py, or the flags imply it
  // Messages about unknown flags, each with the nearest known flag. The flags are ignored.
  std::vector<std::string> unknown;
  std::vector<std::string> notes;  // assumptions about missing information
};

// Parses flags without a launcher, as typed: {"--num-layers", "96", "--hidden-size=12288", ...}. Errors: unknown flags,
// flags given twice with different values. `others`: flags of the caller, as candidates for suggestions ("--gpuss").
[[nodiscard]] Result<MegatronWords> parse_megatron_flags(std::span<const std::string> words,
                                                         std::span<const std::string> others = {});

// Parses a command line or script: a launcher (torchrun, python -m torch.distributed...), a script and its flags;
// the flags alone; or a whole shell script, as read by launch_words(). Unknown flags are listed, not errors.
[[nodiscard]] Result<MegatronWords> parse_megatron_command_line(std::string_view line);

// How stepcast uses a flag.
enum class MegatronFlagUse : std::uint8_t {
  understood,
  passed_over,   // without effect on time and memory
  not_modelled,  // with an effect that is not modelled; shown to the user
  out_of_scope,  // for another kind of work; an error
};
// A flag in the list of all flags.
struct MegatronFlag {
  std::string name;  // "--num-layers"; "--log-*" means all names with this beginning
  MegatronFlagUse use = MegatronFlagUse::understood;
  std::string_view why;  // what it changes, or the reason for its use
};
// All known flags.
[[nodiscard]] std::vector<MegatronFlag> megatron_flags();
// The use of a flag such as "--num-layers"; nothing for unknown flags.
[[nodiscard]] std::optional<MegatronFlagUse> use_of_megatron_flag(std::string_view flag);

// GPUs of the launcher before a script: torchrun, accelerate, deepspeed, srun, mpirun. Nothing if it does not give them.
[[nodiscard]] std::optional<std::int64_t> launched_gpus(std::span<const std::string> words);

}  // namespace stepcast
