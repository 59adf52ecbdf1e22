// Writes a layout for training software, ready to paste: Megatron-LM flags, TorchTitan TOML, DeepSpeed JSON.
#pragma once

#include <optional>
#include <string>

#include "stepcast/describe/job.h"
#include "stepcast/plan/layout_point.h"
#include "stepcast/workload/layout.h"
#include "stepcast/workload/transformer.h"

namespace stepcast {

// The settings of a layout plus those Megatron-LM needs in addition: uneven stages as a --pipeline-model-parallel-layout
// string. Tensor parallelism and stages are set even at degree 1, because a search would otherwise choose them.
[[nodiscard]] JobSettings complete_settings(const LayoutPoint& point, const Layout& layout,
                                            const LayoutPrototypes& prototypes);
// The part of `complete` that the job neither sets nor has by default.
[[nodiscard]] JobSettings settings_beyond(const Job& asked, JobSettings complete);
// Empty for layouts without Megatron-LM flags: zero-bubble schedules, hybrid sharding.
[[nodiscard]] std::optional<std::string> megatron_text(const LayoutPoint& point, const Layout& layout,
                                                       const LayoutPrototypes& prototypes);
// Sections [training], [parallelism] and [activation_checkpoint]. Empty for layouts TorchTitan does not support: replicated
// weights, ZeRO-1, tensor parallelism without sequence parallelism, zero-bubble schedules.
[[nodiscard]] std::optional<std::string> torchtitan_text(const Layout& layout, const Transformer& model);
// Empty for layouts a DeepSpeed config cannot describe: degrees other than data and expert parallel.
[[nodiscard]] std::optional<std::string> deepspeed_text(const Layout& layout);

}  // namespace stepcast
