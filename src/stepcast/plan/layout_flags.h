// A layout in the words of training software, to paste: flags of Megatron-LM, TorchTitan's TOML, DeepSpeed's JSON.
#pragma once

#include <optional>
#include <string>

#include "stepcast/describe/job.h"
#include "stepcast/plan/layout_point.h"
#include "stepcast/workload/layout.h"
#include "stepcast/workload/transformer.h"

namespace stepcast {

// The settings of a layout together with what Megatron-LM needs to be told besides: uneven stages as a
// --pipeline-model-parallel-layout string. Tensor parallelism and stages are said, too, where there is one: without them the
// rest of a layout would be searched.
[[nodiscard]] JobSettings complete_settings(const LayoutPoint& point, const Layout& layout,
                                            const LayoutPrototypes& prototypes);
// What of them the job does not say, nor has without saying it.
[[nodiscard]] JobSettings settings_beyond(const Job& asked, JobSettings complete);
// Nothing for layouts that Megatron-LM has no flags for (a zero-bubble schedule, hybrid sharding).
[[nodiscard]] std::optional<std::string> megatron_text(const LayoutPoint& point, const Layout& layout,
                                                       const LayoutPrototypes& prototypes);
// Sections [training], [parallelism] and [activation_checkpoint]. Nothing for what TorchTitan does not do: whole
// weights on every rank, ZeRO-1, tensor parallelism without sequence parallelism, a zero-bubble schedule.
[[nodiscard]] std::optional<std::string> torchtitan_text(const Layout& layout, const Transformer& model);
// Nothing for what a DeepSpeed config does not say: degrees other than data and expert parallel.
[[nodiscard]] std::optional<std::string> deepspeed_text(const Layout& layout);

}  // namespace stepcast
