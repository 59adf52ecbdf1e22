// Collectives of a node that nobody measured: what NCCL estimates there (nccl_choice.h), times how far measured
// nodes lie from what it estimates for them.
//
//   STEPCAST_ASSIGN(const RelatedSystems related, RelatedSystems::read(record.parameters));
//   related.curve(device, node, CollectiveOp::all_reduce, 8)      // nothing if no relative measured it
//
// Ratios are compared at equal time on the links (message / bandwidth), where protocols change alike, and averaged by
// family: nodes of one architecture and kind of link. A family of the node's own counts most; without one the others
// and the bare estimate share: start-ups of generations differ by a factor of 1.5 either way, and nothing that a data
// sheet says tells which way. Where a family adds up in its switch (NVLS) and the node in its GPUs, the family's rings
// (all_gather, reduce_scatter) speak for it. A message from one GPU to another takes the start-up of an all_to_all of
// two and the time on the links, as far off as an all_gather of two with its largest messages.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/json_value.h"
#include "stepcast/base/result.h"
#include "stepcast/cost/collective_curve.h"
#include "stepcast/platform/platform.h"

namespace stepcast {

// ln(measured / estimated) of one collective on so many ranks, the mean over the machines of a family.
struct RelatedShape {
  static constexpr double kFirst = -2;  // log2 of nanoseconds on the links
  static constexpr double kStep = 0.5;
  static constexpr std::size_t kPoints = 53;
  using Table = std::array<double, kPoints>;
  [[nodiscard]] static constexpr double at(std::size_t point) {
    return kFirst + kStep * static_cast<double>(point);
  }

  std::string architecture;  // of the device
  LinkKind links = LinkKind::none;
  CollectiveOp op = CollectiveOp::unknown;
  std::uint32_t n_ranks = 2;
  std::uint32_t n_machines = 1;
  std::optional<double> nvls_from;  // from this time on the links on NCCL's choice for it is NVLS
  Table ln_ratio{};
};

// ln(measured / predicted) of machines left out in turn, by time on the links.
struct RelatedBand {
  static constexpr std::array<double, 5> kMiddles = {2, 6, 10, 14, 18};  // log2 of nanoseconds
  std::array<double, 5> p10{}, p90{};
  // Quantiles at a time, linear between the middles.
  [[nodiscard]] std::array<double, 2> at(double log2_ns) const;
};

class RelatedSystems {
 public:
  static constexpr std::string_view kRecordName = "collectives/related_systems";
  static constexpr std::string_view kRecordKind = "related_systems";

  std::vector<RelatedShape> shapes;
  RelatedBand with_family, without_family;  // whether the family of the node was measured elsewhere
  RelatedBand moved;                        // of a curve that was moved through two measured sizes

  [[nodiscard]] static Result<RelatedSystems> read(const JsonValue& parameters);
  [[nodiscard]] JsonValue write() const;
  // Of a platform that carries such a record; nothing if it has none or one that cannot be read.
  [[nodiscard]] static std::optional<RelatedSystems> of(const Platform& platform);

  // On one node, `n_ranks` at least 2. Nothing if no shape is of this collective (of a send: of all_to_all and
  // all_gather).
  [[nodiscard]] std::optional<TimeCurve> curve(const Device& device, const Node& node, CollectiveOp op,
                                               std::uint32_t n_ranks) const;
  [[nodiscard]] bool has_family(const Device& device, const Node& node) const;

 private:
  [[nodiscard]] std::optional<RelatedShape::Table> ratio(const Device& device, const Node& node,
                                                         CollectiveOp op, std::uint32_t n_ranks) const;
  [[nodiscard]] TimeCurve with_band(TimeCurve::Table time, const Device& device, const Node& node,
                                    double log2_GBps) const;
};

// log2 of the nanoseconds that a message takes on the links of the node.
[[nodiscard]] double log2_link_ns(const Device& device, const Node& node, std::uint32_t n_ranks,
                                  double log2_bytes);

}  // namespace stepcast
