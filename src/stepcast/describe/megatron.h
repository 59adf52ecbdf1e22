// Megatron-LM command lines -> model and layout.
//
//   STEPCAST_ASSIGN(const DescribedJob job, parse_megatron_command_line(
//       "torchrun --nproc_per_node 8 --nnodes 64 pretrain_gpt.py --num-layers 96 --hidden-size 12288 ...",
//       {}));
//
// Flags have Megatron's spellings and defaults. Known flags that change neither time nor memory (learning
// rates, data, checkpoints, logs) are passed over; those that do and are not modelled are listed; others are
// errors that name the nearest known flag. All are listed in docs/models.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/describe/described_job.h"

namespace stepcast {

struct MegatronOptions {
  // The model, of which flags change parts; nothing: flags describe all of it, from Megatron's defaults.
  std::optional<Transformer> model;
  // GPUs in all; nothing: from the launcher's flags or --data-parallel-size.
  std::optional<std::int64_t> n_gpus;
};

// Flags alone, as words: {"--num-layers", "96", "--hidden-size=12288", ...}.
[[nodiscard]] Result<DescribedJob> parse_megatron_arguments(std::span<const std::string> words,
                                                            const MegatronOptions& options);

// A line of a shell script: a launcher (torchrun, python -m torch.distributed...), a script and its flags; or
// the flags alone. Quotes and continued lines are understood, variables are not.
[[nodiscard]] Result<DescribedJob> parse_megatron_command_line(std::string_view line,
                                                               const MegatronOptions& options);

enum class MegatronFlagUse : std::uint8_t {
  understood,
  passed_over,   // changes neither time nor memory
  not_modelled,  // listed to the caller
};
struct MegatronFlag {
  std::string_view name;  // "--num-layers"
  MegatronFlagUse use = MegatronFlagUse::understood;
};
// All flags that are known.
[[nodiscard]] std::vector<MegatronFlag> megatron_flags();

}  // namespace stepcast
