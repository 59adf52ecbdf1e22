// Profiles of XLA programs (*.xplane.pb), which JAX, TensorFlow and torch_xla write for one host. A file has
// planes: one per GPU or TPU, with the operations it ran, and one of the host, with its threads.
//
//   STEPCAST_ASSIGN(const std::vector<RecordedRank> ranks, read_xla_profile("host.xplane.pb"));
//
// Each device with work becomes a rank. Its steps, as CpuOp of kind `step`, are the first of these:
//   step annotations of the host (`step_num`) in which calls launch work of the device;
//   the line "Steps" of the device;
//   the executions of the XLA module with most time, each up to the start of the next one;
//   step annotations of the host, with the work that runs during them.
// Calls that launch work are kept if the steps are those of the host. Operators, shapes and sizes of
// transfers are not in such files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/trace/recorded_rank.h"

namespace stepcast {

// True if a file with this start of its decompressed content is an XLA profile.
[[nodiscard]] bool is_xla_profile(std::string_view beginning);

// Reads a file, plain or gzip: one rank per device, by the number of the device. With several devices `rank`
// is the position; a single one has none. Errors: a file that cannot be read or has more than 2 GiB, damaged
// messages, no work on any device.
[[nodiscard]] Result<std::vector<RecordedRank>> read_xla_profile(const std::filesystem::path& file);
// The same from memory, for tests and fuzzing. `name` is used in errors.
[[nodiscard]] Result<std::vector<RecordedRank>> parse_xla_profile(std::string_view content,
                                                                  const std::string& name);

}  // namespace stepcast
