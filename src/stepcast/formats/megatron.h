// Megatron-LM's flags and command lines -> settings of a Job.
//
//   Job job{.command_line = "torchrun --nproc_per_node 8 --nnodes 64 pretrain_gpt.py --num-layers 96 ..."};
//   STEPCAST_ASSIGN(const ResolvedJob resolved, resolve(job));
//
// Flags have Megatron's spellings. Known flags that change neither time nor memory (learning rates, data,
// checkpoints, logs) are passed over; those that do and are not modelled are listed; those of other work (an
// encoder-decoder, inference) are errors that say so. All are listed in docs/reference/megatron-flags.md.
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

struct MegatronWords {
  JobSettings settings;
  std::vector<std::string> not_modelled;
  std::optional<std::int64_t> n_gpus, gpus_per_node;  // as the launcher says
  // The launcher names a variable that nothing sets; an error unless the caller knows the number of GPUs.
  std::optional<Error> unknown_gpus;
  bool is_bert = false;  // the script is pretrain_bert.py, or the flags are such as only it has
  // Flags of the command line that nobody knows, each with the nearest known one; they are left out.
  std::vector<std::string> unknown;
  std::vector<std::string> notes;  // what was taken for something that the command line does not say
};

// Flags alone, as somebody types them: {"--num-layers", "96", "--hidden-size=12288", ...}. `others` are flags of whoever
// asks, which an unknown flag, an error here, may have meant ("--gpuss").
[[nodiscard]] Result<MegatronWords> parse_megatron_flags(std::span<const std::string> words,
                                                         std::span<const std::string> others = {});

// A line of a shell script: a launcher (torchrun, python -m torch.distributed...), a script and its flags; or
// the flags alone; or a script with all that, as launch_words() reads it.
[[nodiscard]] Result<MegatronWords> parse_megatron_command_line(std::string_view line);

enum class MegatronFlagUse : std::uint8_t {
  understood,
  passed_over,   // changes neither time nor memory
  not_modelled,  // changes one of them and is listed to the caller
  out_of_scope,  // of another kind of work: refused
};
struct MegatronFlag {
  std::string name;  // "--num-layers"; "--log-*" stands for all names that begin so
  MegatronFlagUse use = MegatronFlagUse::understood;
  std::string_view why;  // what it changes, or why it is in its class
};
// All flags that are known.
[[nodiscard]] std::vector<MegatronFlag> megatron_flags();
// The class of "--num-layers"; nothing for a flag that is not known.
[[nodiscard]] std::optional<MegatronFlagUse> use_of_megatron_flag(std::string_view flag);

// GPUs of the launcher in front of a script: torchrun, accelerate, deepspeed, srun, mpirun; nothing where it does not say.
[[nodiscard]] std::optional<std::int64_t> launched_gpus(std::span<const std::string> words);

}  // namespace stepcast
