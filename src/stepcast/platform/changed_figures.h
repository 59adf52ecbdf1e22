// Figures that a user's file changes in the platform that it extends. The inherited records were measured
// with the figures before the change; they remember these (`measured_with`), and cost/ scales them to the
// current figures.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "stepcast/platform/platform.h"

namespace stepcast {

// Adds to `now.changed` the figures that both platforms state with different values, and to the records of
// `now` the figures that they were measured with. Call it for user files only, after reading their `device`
// and `node` over those of `before`.
void note_changed_figures(const Device& device_before, const Node& node_before, Platform& now);

// `device` with the figures of `measured_with` ("device.memory_bandwidth_GBps", ...) instead of its current
// ones.
[[nodiscard]] Device with_figures(const Device& device, const NamedNumbers& measured_with);
// The same for a node: "node.intra.bandwidth_per_gpu_GBps", "node.network.nic_bandwidth_Gbps", ...
[[nodiscard]] Node with_figures(const Node& node, const NamedNumbers& measured_with);

// `platform` with one changed figure reset to its previous value.
[[nodiscard]] Platform without_change(const Platform& platform, const ChangedFigure& figure);

// One sentence on the effect of a changed figure, or why it has none. `step_ms`: a step with the change and
// without it; none: unknown.
//   "changed in the platform file: node.intra.bandwidth_per_gpu_GBps 225 (was 450): the step is
//    12 % longer; measured ..."
[[nodiscard]] std::string changed_figure_note(const Platform& platform, const ChangedFigure& figure,
                                              const std::optional<std::pair<double, double>>& step_ms = {});

}  // namespace stepcast
