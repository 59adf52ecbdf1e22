// Sections of a TorchTitan job config. Values without dependencies go directly into the job; the others are
// collected in TorchTitanSettings.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/describe/job.h"
#include "stepcast/formats/detail/foreign_object.h"
#include "stepcast/formats/torchtitan.h"

namespace stepcast::detail {

// Parallelism degrees; -1 means that torchtitan chooses, and 0 for expert_tensor that it is not given.
struct TorchTitanDegrees {
  std::int64_t replicate = 1, shard = -1, tensor = 1, pipeline = 1, context = 1, expert = 1,
               expert_tensor = 0;
};

// Values that depend on others; the initial values are the defaults of torchtitan.
struct TorchTitanSettings {
  TorchTitanDegrees degrees;
  std::int64_t local_batch = 8, global_batch = -1, pipeline_micro_batch = 1, pipeline_micro_batches = 0;
  // 0: not given.
  std::int64_t layers_per_stage = 0;
  std::string schedule = "1F1B", reshard = "default", rotate = "allgather";
  // Mode and option of selective activation checkpointing: "2" means every second layer.
  std::string ac_mode = "selective", ac_option = "2";
  std::string param_dtype = "bfloat16", reduce_dtype = "float32", dtype = "float32";
  // First layers of the stages after the first.
  std::vector<std::int64_t> split_points;
  bool compile = false, float8 = false;
};

// Reads all sections of the document. Errors: unknown keys (the first one is named), invalid values.
[[nodiscard]] Status read_torchtitan_sections(ObjectReader& root, const TorchTitanOptions& options,
                                              TorchTitanSettings& settings, ResolvedJob& job);

}  // namespace stepcast::detail
