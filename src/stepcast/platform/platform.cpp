#include "stepcast/platform/platform.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/names.h"
#include "stepcast/base/text.h"
#include "stepcast/platform/detail/figures.h"

namespace stepcast {
namespace {

// An error at a path of the file.
Error wrong(std::string place, std::string problem) {
  return Error::at("", std::move(place), std::move(problem));
}

// Error for corrections of kernel times in formats of 0.1.0, which are no longer supported.
Status check_corrections(const ModelRecord& model, const std::string& place) {
  const JsonValue* corrections = model.kind == "kernel_time" ? model.parameters.find("corrections") : nullptr;
  if (corrections == nullptr || !corrections->is_array()) return Ok{};
  for (const JsonValue& correction : corrections->items()) {
    const JsonValue* kind = correction.is_object() ? correction.find("kind") : nullptr;
    if (kind == nullptr || !kind->is_text() || (kind->text() != "perceptron" && kind->text() != "table"))
      continue;
    return wrong(fmt::format("{} ({})", place, model.name), "")
        .found(fmt::format("a correction of kind `{}`, as 0.1.0 wrote them", kind->text()))
        .advice("run `stepcast calibrate kernels` again on its measurements");
  }
  return Ok{};
}

// Checks that required figures exist and that all stated figures are within their limits.
template <class Group>
Status check_figures(const Group& group, std::span<const detail::Figure<Group>> figures,
                     std::string_view path) {
  for (const auto& figure : figures) {
    const std::string place = fmt::format("{}.{}", path, figure.key);
    const auto value = figure.in_file(group);
    if (!value) {
      if (figure.required) {
        return wrong(place, "missing")
            .expected("a number above 0")
            .advice("set it, or extend a platform that has it");
      }
      continue;
    }
    if (std::string expectation = figure.expectation_broken_by(*value); !expectation.empty())
      return wrong(place, "").found(detail::json_number(*value)).expected(std::move(expectation));
  }
  return Ok{};
}

// A device needs a name, valid figures and at least one matrix peak.
Status check_device(const Device& device) {
  if (device.name.empty())
    return wrong("device.name", "missing").advice("describe the device, or extend a platform that has one");
  STEPCAST_TRY(check_figures(device, detail::device_figures(), "device"));
  if (std::ranges::none_of(device.matrix_peak, [](const auto& p) { return p.has_value(); })) {
    return wrong("device", "no peak rate")
        .expected("at least one of peak_fp32_TFLOPs, peak_fp16_TFLOPs, ...");
  }
  return Ok{};
}

// Links must join two different GPUs of the node, once per pair, with a positive bandwidth.
Status check_links(const Node& node) {
  std::set<std::pair<std::uint32_t, std::uint32_t>> seen;
  for (std::size_t i = 0; i < node.intra.links.size(); ++i) {
    const Link& link = node.intra.links[i];
    const std::string place = fmt::format("node.intra.links[{}]", i);
    if (link.gpu_a == link.gpu_b || std::max(link.gpu_a, link.gpu_b) >= node.gpus_per_node) {
      return wrong(place, "")
          .found(fmt::format("GPUs {} and {}", link.gpu_a, link.gpu_b))
          .expected(fmt::format("two different GPUs from 0 to {}", node.gpus_per_node - 1));
    }
    if (!(link.bandwidth.value() > 0) || !std::isfinite(link.bandwidth.value()))
      return wrong(place + ".bandwidth_GBps", "").expected("a number above 0");
    if (!seen.insert(std::minmax(link.gpu_a, link.gpu_b)).second) {
      return wrong(place, fmt::format("a second link between the GPUs {} and {}", link.gpu_a, link.gpu_b))
          .advice("give the bandwidth of all lanes of a pair in one entry");
    }
  }
  return Ok{};
}

// Limit for nodes without a torus: more GPUs are probably a figure of the whole machine.
constexpr std::uint32_t kMostGpusWithoutTorus = 1024;

// Axes are required for a torus and forbidden elsewhere, and must give gpus_per_node.
Status check_torus(const Node& node) {
  const IntraNode& intra = node.intra;
  if (intra.kind != LinkKind::torus) {
    if (!intra.axes.empty())
      return wrong("node.intra.axes", "not of a torus")
          .advice("set node.intra.kind to torus, or remove axes");
    if (node.gpus_per_node <= kMostGpusWithoutTorus) return Ok{};
    return wrong("node.gpus_per_node", "")
        .found(fmt::format("{}", node.gpus_per_node))
        .expected(fmt::format("a whole number from 1 to {}", kMostGpusWithoutTorus));
  }
  if (intra.axes.empty())
    return wrong("node.intra.axes", "missing").advice("a torus needs its chips along each axis: [4, 4, 8]");
  std::uint64_t chips = 1;
  for (const std::uint32_t side : intra.axes)
    // Capped so that the multiplication cannot overflow.
    chips = std::min<std::uint64_t>(chips * side, kMostGpusPerNode + 1);
  const std::uint32_t per_chip = intra.devices_per_chip.value_or(1);
  if (chips * per_chip == node.gpus_per_node) return Ok{};
  return wrong("node.intra.axes", "")
      .found(fmt::format("{} = {} chips of {}", fmt::join(intra.axes, " x "), chips, per_chip))
      .expected(fmt::format("the {} of node.gpus_per_node", node.gpus_per_node))
      .advice("change axes, devices_per_chip or gpus_per_node so that they agree");
}

// The nodes of each tier must be a multiple of the tier below, with an oversubscription of 1 to 1000.
Status check_tiers(const Network& network) {
  constexpr double kMostOversubscription = 1000;
  for (std::size_t i = 0; i < network.tiers.size(); ++i) {
    const NetworkTier& tier = network.tiers[i];
    const std::string place = fmt::format("node.network.tiers[{}]", i);
    if (!(tier.oversubscription >= 1) || tier.oversubscription > kMostOversubscription) {
      return wrong(place + ".oversubscription", "")
          .found(fmt::format("{}", tier.oversubscription))
          .expected("a number from 1 to 1000: bandwidth of the nodes below over the uplink bandwidth");
    }
    const std::uint32_t below = i == 0 ? 1 : network.tiers[i - 1].nodes;
    if (tier.nodes < 1 || (i > 0 && tier.nodes <= below) || tier.nodes % below != 0) {
      return wrong(place + ".nodes", "")
          .found(fmt::format("{}", tier.nodes))
          .expected(i == 0 ? std::string{"at least 1 node below a switch"}
                           : fmt::format("a multiple of the {} nodes of the tier below", below));
    }
  }
  return Ok{};
}

// Checks of the node, its links, and its network.
Status check_node(const Node& node) {
  STEPCAST_TRY(check_figures(node, detail::node_figures(), "node"));
  const IntraNode& intra = node.intra;
  if (node.segment && *node.segment > node.gpus_per_node) {
    return wrong("node.segment", "more than the node has")
        .found(fmt::format("{}", *node.segment))
        .expected(fmt::format("at most {} GPUs", node.gpus_per_node));
  }
  if (node.gpus_per_node > 1 && intra.kind == LinkKind::none) {
    return wrong("node.intra.kind", "missing")
        .expected("nvswitch, nvlink_mesh, xgmi_mesh, pcie, mixed or torus")
        .advice(fmt::format("{} GPUs of a node need a link", node.gpus_per_node));
  }
  STEPCAST_TRY(check_torus(node));
  if (intra.kind != LinkKind::none) {
    STEPCAST_TRY(check_figures(intra, detail::intra_figures(), "node.intra"));
    if (intra.gpus_per_pcie_domain && *intra.gpus_per_pcie_domain > node.gpus_per_node) {
      return wrong("node.intra.gpus_per_pcie_domain", "")
          .found(fmt::format("{}", *intra.gpus_per_pcie_domain))
          .expected(fmt::format("at most the {} GPUs of the node", node.gpus_per_node));
    }
    STEPCAST_TRY(check_links(node));
    if (intra.kind == LinkKind::mixed && intra.links.empty()) {
      return wrong("node.intra.links", "missing")
          .advice("a mixed topology must list the pairs with a direct link");
    }
    if (intra.kind == LinkKind::mixed && !intra.pcie_bandwidth_per_gpu) {
      return wrong("node.intra.pcie_bandwidth_per_gpu_GBps", "missing")
          .advice("a mixed topology needs the bandwidth of pairs without a direct link");
    }
  }
  if (!node.network) return Ok{};
  STEPCAST_TRY(check_figures(*node.network, detail::network_figures(), "node.network"));
  return check_tiers(*node.network);
}

// Error for the first number that is not finite.
Status check_finite(const NamedNumbers& numbers, const std::string& place) {
  for (const auto& [name, value] : numbers)
    if (!std::isfinite(value)) return wrong(fmt::format("{}.{}", place, name), "not finite");
  return Ok{};
}

// A curve needs a collective, a valid group, and at least one finite form or increasing knots.
Status check_curve(const CollectiveCurve& curve, const std::string& place) {
  if (curve.collective == CollectiveOp::unknown) return wrong(place + ".collective", "missing");
  if (curve.n_nodes == 0 || curve.gpus_per_node == 0) return wrong(place, "no nodes or no GPUs");
  const std::uint64_t most = std::uint64_t{curve.n_nodes} * curve.gpus_per_node;
  if (curve.n_ranks == 0 || curve.n_ranks > most) {
    return wrong(place + ".n_ranks", "")
        .found(fmt::format("{}", curve.n_ranks))
        .expected(fmt::format("1 to n_nodes * gpus_per_node = {}", most));
  }
  if (curve.fit.is_later()) return Ok{};  // a shipped curve, tested with the build
  const CurveFit& fit = *curve.fit;
  if (fit.published.empty() && fit.improved.empty() && fit.knots.empty())
    return wrong(place, "no curve").expected("at least one of published, improved, knots");
  STEPCAST_TRY(check_finite(fit.published.parameters, place + ".published.parameters"));
  STEPCAST_TRY(check_finite(fit.improved.parameters, place + ".improved.parameters"));
  for (std::size_t i = 0; i < fit.knots.size(); ++i) {
    const CurveKnot& knot = fit.knots[i];
    if (!(knot.time_us > 0) || !std::isfinite(knot.time_us)) {
      return wrong(fmt::format("{}.knots.time_us[{}]", place, i), "")
          .found(detail::json_number(knot.time_us))
          .expected("a number above 0");
    }
    const bool increases = i == 0 || knot.message_bytes > fit.knots[i - 1].message_bytes;
    if (!(knot.message_bytes >= 0) || !std::isfinite(knot.message_bytes) || !increases) {
      return wrong(fmt::format("{}.knots.message_bytes[{}]", place, i), "")
          .found(detail::json_number(knot.message_bytes))
          .expected(i == 0 ? std::string{"0 or more"}
                           : fmt::format("a size above the previous one, {}",
                                         detail::json_number(fit.knots[i - 1].message_bytes)));
    }
  }
  for (std::size_t i = 0; i < fit.residuals.size(); ++i) {
    const ResidualQuantiles& r = fit.residuals[i];
    const bool finite = std::isfinite(r.log_p10) && std::isfinite(r.log_p50) && std::isfinite(r.log_p90);
    if (!finite || r.log_p10 > r.log_p50 || r.log_p50 > r.log_p90)
      return wrong(fmt::format("{}.residuals[{}]", place, i), "").expected("log_p10 <= log_p50 <= log_p90");
    if (!(r.message_bytes_min >= 0 && r.message_bytes_min <= r.message_bytes_max) ||
        !std::isfinite(r.message_bytes_max)) {
      return wrong(fmt::format("{}.residuals[{}]", place, i), "")
          .expected("0 <= message_bytes_min <= message_bytes_max");
    }
  }
  return Ok{};
}

// Times must be finite and not negative.
Status check_overhead(const OverheadRecord& overhead, const std::string& place) {
  const auto good = [](double x) { return std::isfinite(x) && x >= 0; };
  if (!good(overhead.mean_us))
    return wrong(place + ".mean_us", "").found(detail::json_number(overhead.mean_us)).expected("0 or more");
  for (const auto& x : {overhead.std_us, overhead.p10_us, overhead.p50_us, overhead.p90_us})
    if (x && !good(*x)) return wrong(place, "").found(detail::json_number(*x)).expected("times of 0 or more");
  if (overhead.outlier_us && !std::isfinite(*overhead.outlier_us)) {
    return wrong(place + ".outlier_us", "")
        .found(detail::json_number(*overhead.outlier_us))
        .expected("a finite time");
  }
  if (const auto& x = overhead.profiler_events; x && !good(*x))
    return wrong(place + ".profiler_events", "").found(detail::json_number(*x)).expected("0 or more");
  return Ok{};
}

// Checks all records, and that keys do not repeat.
template <class Record, class Check>
Status check_records(const std::vector<Record>& records, std::string_view list, Check check) {
  std::set<std::string> keys;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const std::string place = fmt::format("{}[{}]", list, i);
    STEPCAST_TRY(check(records[i], place));
    if (std::string k = records[i].key(); !keys.insert(k).second)
      return wrong(place, fmt::format("a second `{}`", k));
  }
  return Ok{};
}

// Keeps `records` ordered by key.
template <class Record>
void replace_or_add(std::vector<Record>& records, Record record) {
  const std::string wanted = record.key();
  const auto place = std::lower_bound(records.begin(), records.end(), wanted,
                                      [&](const Record& r, const std::string& k) { return r.key() < k; });
  if (place != records.end() && place->key() == wanted)
    *place = std::move(record);
  else
    records.insert(place, std::move(record));
}

// Whether `text` is the name or an alias.
bool any_called(const std::string& name, const std::vector<std::string>& aliases, std::string_view text) {
  return same_name(name, text) ||
         std::ranges::any_of(aliases, [&](const std::string& a) { return same_name(a, text); });
}

constexpr auto kLinkKindNames = names<LinkKind>({{LinkKind::none, "none"},
                                                 {LinkKind::nvswitch, "nvswitch"},
                                                 {LinkKind::nvlink_mesh, "nvlink_mesh"},
                                                 {LinkKind::xgmi_mesh, "xgmi_mesh"},
                                                 {LinkKind::pcie, "pcie"},
                                                 {LinkKind::mixed, "mixed"},
                                                 {LinkKind::torus, "torus"}});

}  // namespace

std::string_view to_string(LinkKind kind) { return kLinkKindNames[kind]; }

std::optional<LinkKind> parse_link_kind(std::string_view text) { return kLinkKindNames.find(text); }

bool same_name(std::string_view a, std::string_view b) {
  // Blanks, hyphens, underscores and case do not count.
  const auto counts = [](char c) { return c != ' ' && c != '-' && c != '_'; };
  std::size_t i = 0;
  std::size_t j = 0;
  for (;;) {
    while (i < a.size() && !counts(a[i])) ++i;
    while (j < b.size() && !counts(b[j])) ++j;
    if (i == a.size() || j == b.size()) return i == a.size() && j == b.size();
    if (lower(a[i++]) != lower(b[j++])) return false;
  }
}

bool Device::matches_name(std::string_view text) const { return any_called(name, aliases, text); }

std::string CollectiveCurve::key() const {
  return fmt::format("{}/{}/{}x{}/{}{}{}", to_string(collective),
                     dtype == DType::unknown ? "any" : to_string(dtype), n_nodes, gpus_per_node, n_ranks,
                     variant.empty() ? "" : "/", variant);
}

std::string OverheadRecord::key() const { return fmt::format("{}/{}", to_string(type), op); }

bool Platform::matches_name(std::string_view text) const { return any_called(name, aliases, text); }

// Linear search: records are in order after set(), but a caller may have filled the vectors without it.
const ModelRecord* Platform::find_model(std::string_view model_name) const {
  for (const ModelRecord& model : models)
    if (model.name == model_name) return &model;
  return nullptr;
}

void Platform::set(CollectiveCurve curve) { replace_or_add(curves, std::move(curve)); }
void Platform::set(ModelRecord model) { replace_or_add(models, std::move(model)); }
void Platform::set(OverheadRecord overhead) { replace_or_add(overheads.edit(), std::move(overhead)); }

Status Platform::check() const {
  if (name.empty()) return wrong("name", "missing");
  STEPCAST_TRY(check_device(device));
  STEPCAST_TRY(check_node(node));
  STEPCAST_TRY(check_records(curves, "collective_curves", check_curve));
  STEPCAST_TRY(check_records(models, "models", [](const ModelRecord& m, const std::string& place) -> Status {
    if (m.name.empty()) return wrong(place + ".name", "missing");
    if (m.kind.empty()) return wrong(place + ".kind", "missing");
    if (!m.parameters.is_object()) {
      return wrong(place + ".parameters", "")
          .found(std::string{m.parameters.kind_name()})
          .expected("an object");
    }
    return check_corrections(m, place);
  }));
  if (overheads.is_later()) return Ok{};  // shipped overheads, tested with the build
  return check_records(*overheads, "overheads", check_overhead);
}

bool operator==(const Platform& a, const Platform& b) {
  return a.name == b.name && a.description == b.description && a.aliases == b.aliases &&
         a.device == b.device && a.node == b.node && a.curves == b.curves && a.models == b.models &&
         a.overheads == b.overheads;
}

}  // namespace stepcast
