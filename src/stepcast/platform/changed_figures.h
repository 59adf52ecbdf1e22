// Figures that a file of a user changes in the platform that it extends: what was measured there was measured with the figures
// before. Records remember these (`measured_with`), and cost/ scales them to the figures of now.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "stepcast/platform/platform.h"

namespace stepcast {

// Adds to `now.changed` the figures that both state and that differ, and to the records of `now` what they were measured with.
// For a file that does not ship, after its `device` and `node` were read over those of `before`.
void note_changed_figures(const Device& device_before, const Node& node_before, Platform& now);

// `device` with the figures of `measured_with` ("device.memory_bandwidth_GBps", ...) in place of its own.
[[nodiscard]] Device with_figures(const Device& device, const NamedNumbers& measured_with);
// The same of a node: "node.intra.bandwidth_per_gpu_GBps", "node.network.nic_bandwidth_Gbps", ...
[[nodiscard]] Node with_figures(const Node& node, const NamedNumbers& measured_with);

// `platform` with one of its changed figures as it was before.
[[nodiscard]] Platform without_change(const Platform& platform, const ChangedFigure& figure);

// What a changed figure does, or why it does nothing. `step_ms`: a step with it and without it; nothing: not known.
//   "changed in the platform file: node.intra.bandwidth_per_gpu_GBps 225 (was 450): the step is 12 % longer; measured ..."
[[nodiscard]] std::string changed_figure_note(const Platform& platform, const ChangedFigure& figure,
                                              const std::optional<std::pair<double, double>>& step_ms = {});

}  // namespace stepcast
