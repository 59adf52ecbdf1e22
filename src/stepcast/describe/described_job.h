// What a configuration file or a command line of a training framework says: model, layout, and what it asks
// for that is not modelled.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stepcast/workload/layout.h"
#include "stepcast/workload/transformer.h"

namespace stepcast {

struct DescribedJob {
  Transformer model;
  Layout layout;
  // As the launcher says, or the caller; nothing: not said, and layout.degrees.data is what the description
  // says, or 1.
  std::optional<std::int64_t> n_gpus;
  std::optional<std::int64_t> gpus_per_node;
  // Settings that change time or memory and that no model covers, as they are spelled: "--rampup-batch-size",
  // "parallelism.enable_async_tensor_parallel". For the user to see.
  std::vector<std::string> not_modelled;
};

}  // namespace stepcast
