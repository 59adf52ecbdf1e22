// The sections of a TorchTitan job config: what goes straight into the job, and what needs the whole first.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/describe/job.h"
#include "stepcast/formats/detail/foreign_object.h"
#include "stepcast/formats/torchtitan.h"

namespace stepcast::detail {

// Whole numbers that may be -1 for "choose".
struct TorchTitanDegrees {
  std::int64_t replicate = 1, shard = -1, tensor = 1, pipeline = 1, context = 1, expert = 1,
               expert_tensor = 0;
};

struct TorchTitanSettings {
  TorchTitanDegrees degrees;
  std::int64_t local_batch = 8, global_batch = -1, pipeline_micro_batch = 1, pipeline_micro_batches = 0;
  std::int64_t layers_per_stage = 0;
  std::string schedule = "1F1B", reshard = "default", rotate = "allgather";
  std::string ac_mode = "selective", ac_option = "2";
  std::string param_dtype = "bfloat16", reduce_dtype = "float32", dtype = "float32";
  std::vector<std::int64_t> split_points;
  bool compile = false, float8 = false;
};

// Takes every section of the document; an error names the first key that is not known.
[[nodiscard]] Status read_torchtitan_sections(ObjectReader& root, const TorchTitanOptions& options,
                                              TorchTitanSettings& settings, ResolvedJob& job);

}  // namespace stepcast::detail
