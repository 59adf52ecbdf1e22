#include "stepcast/platform/changed_figures.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "stepcast/platform/detail/figures.h"

namespace stepcast {
namespace {

constexpr std::string_view kDevice = "device.", kNode = "node.", kIntra = "node.intra.",
                           kNetwork = "node.network.";

// Appends the figures of a group with different values, by their path in the file.
template <class Group>
void add_changes(std::string_view prefix, std::span<const detail::Figure<Group>> figures, const Group& before,
                 const Group& now, std::vector<ChangedFigure>& changed) {
  for (const auto& figure : figures) {
    const auto was = figure.in_file(before), is = figure.in_file(now);
    if (was && is && *was != *is) changed.push_back({fmt::format("{}{}", prefix, figure.key), *was, *is});
  }
}

// Sets the figures of a group that `measured_with` has values for.
template <class Group>
void restore(std::string_view prefix, std::span<const detail::Figure<Group>> figures,
             const NamedNumbers& measured_with, Group& group) {
  for (const auto& figure : figures) {
    const auto found = measured_with.find(fmt::format("{}{}", prefix, figure.key));
    if (found != measured_with.end()) figure.set(group, found->second * figure.unit);
  }
}

// Keeps the first value: a record was measured once, however many later files change the figure.
template <class Record>
void remember(const ChangedFigure& figure, Record& record) {
  record.measured_with.try_emplace(figure.path, figure.before);
}

// Whether measured collectives inside a node, or across nodes, scale with this bandwidth.
bool binds_curves(std::string_view path, bool across_nodes) {
  if (across_nodes) return path == "node.network.nic_bandwidth_Gbps" || path == "node.network.nics_per_node";
  return path.starts_with(kIntra) && path.ends_with("GBps");
}

// Whether the platform has measured curves inside a node, or across nodes.
bool has_curves(const Platform& platform, bool across_nodes) {
  return std::ranges::any_of(
      platform.curves, [&](const CollectiveCurve& curve) { return (curve.n_nodes > 1) == across_nodes; });
}

// How a figure acts on the forecast, for reports; empty: directly.
std::string_view way(std::string_view path, const Platform& platform) {
  if (path == "device.memory_GiB") return "decides what fits";
  if (path.starts_with(kDevice)) {
    const bool measured = std::ranges::any_of(platform.models, [](const ModelRecord& model) {
      return !model.device.empty() && !model.measured_with.empty();
    });
    return measured ? "measured kernels are scaled to it (`\"inherit_models\": false` drops them)" : "";
  }
  const bool across = path.starts_with(kNetwork);
  if (!binds_curves(path, across) || !has_curves(platform, across)) return "";
  return "measured collectives are scaled to it (`\"inherit_curves\": false` drops them)";
}

// Why a change of this figure has no effect on a step, for reports.
std::string_view why_not(std::string_view path, const Platform& platform) {
  if (path == "device.power_limit_W")
    return "kernel times stay those of the old power limit; use --power-limit for a lower one";
  if (path == "device.clock_MHz")
    return "the rates of kernels are peak_*_TFLOPs and vector_*_TFLOPs; change these too";
  if (path == "device.launch_overhead_us") return "launch times come from `overheads` and the host";
  if (path == "device.memory_GiB") return "it decides what fits";
  if (path.ends_with("latency_us") && has_curves(platform, path.starts_with(kNetwork)))
    return "measured collectives keep their latency (`\"inherit_curves\": false` drops them)";
  return "no part of the step is bound by this figure";
}

}  // namespace

void note_changed_figures(const Device& device_before, const Node& node_before, Platform& now) {
  std::vector<ChangedFigure> changed;
  add_changes(kDevice, detail::device_figures(), device_before, now.device, changed);
  // A base without links or network has no such figures that could change.
  if (node_before.intra.kind != LinkKind::none) {
    add_changes(kNode, detail::node_figures(), node_before, now.node, changed);
    add_changes(kIntra, detail::intra_figures(), node_before.intra, now.node.intra, changed);
  }
  if (node_before.network && now.node.network)
    add_changes(kNetwork, detail::network_figures(), *node_before.network, *now.node.network, changed);
  for (const ChangedFigure& figure : changed) {
    for (ModelRecord& model : now.models)
      if (figure.path.starts_with(kDevice)) remember(figure, model);
    for (CollectiveCurve& curve : now.curves)
      if (binds_curves(figure.path, curve.n_nodes > 1)) remember(figure, curve);
  }
  now.changed.insert(now.changed.end(), changed.begin(), changed.end());
}

Device with_figures(const Device& device, const NamedNumbers& measured_with) {
  Device out = device;
  restore(kDevice, detail::device_figures(), measured_with, out);
  return out;
}

Node with_figures(const Node& node, const NamedNumbers& measured_with) {
  Node out = node;
  restore(kNode, detail::node_figures(), measured_with, out);
  restore(kIntra, detail::intra_figures(), measured_with, out.intra);
  if (out.network) restore(kNetwork, detail::network_figures(), measured_with, *out.network);
  return out;
}

Platform without_change(const Platform& platform, const ChangedFigure& figure) {
  Platform out = platform;
  const NamedNumbers before{{figure.path, figure.before}};
  out.device = with_figures(platform.device, before);
  out.node = with_figures(platform.node, before);
  return out;
}

std::string changed_figure_note(const Platform& platform, const ChangedFigure& figure,
                                const std::optional<std::pair<double, double>>& step_ms) {
  // Relative difference of two steps that count as equal.
  constexpr double kSame = 1e-9;
  const std::string change = fmt::format("changed in the platform file: {} {} (was {})", figure.path,
                                         detail::json_number(figure.now), detail::json_number(figure.before));
  const double ratio = step_ms ? step_ms->first / step_ms->second - 1 : 0;
  if (step_ms && std::abs(ratio) < kSame)
    return fmt::format("{}: no effect on this step: {}", change, why_not(figure.path, platform));
  const std::string_view how = way(figure.path, platform);
  const std::string effect = step_ms ? fmt::format(": the step is {:.3g} % {}", 100 * std::abs(ratio),
                                                   ratio > 0 ? "longer" : "shorter")
                                     : "";
  return fmt::format("{}{}{}{}", change, effect, how.empty() ? "" : effect.empty() ? ": " : "; ", how);
}

}  // namespace stepcast
