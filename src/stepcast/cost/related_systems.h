// Collectives of an unmeasured node: NCCL's estimate for it (nccl_choice.h), times the ratio of measured to
// estimated times of related nodes.
//
//   STEPCAST_ASSIGN(const RelatedSystems related, RelatedSystems::read(record.parameters));
//   related.curve(device, node, CollectiveOp::all_reduce, 8)      // nothing if no relative measured it
//
// Ratios are compared at equal time on the links (message / bandwidth), where protocols change at the same
// point, and averaged by family: nodes of one architecture and kind of link. The family of the node has most
// weight. Without it, the other families and the bare estimate are averaged: start-ups of generations differ
// by a factor of 1.5 either way, and no data sheet figure predicts the direction. Where a family adds in its
// switch (NVLS) and the node in its GPUs, the ratios of the family's rings (all_gather, reduce_scatter) are
// used. A message from one GPU to another takes the start-up of an all_to_all on two ranks plus the time on
// the links, corrected by the ratio of an all_gather on two ranks at its largest messages.
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

// ln(measured / estimated) of one collective on `n_ranks` ranks, averaged over the machines of a family.
struct RelatedShape {
  static constexpr double kFirst = -2;  // log2 of nanoseconds on the links
  static constexpr double kStep = 0.5;  // of the table, in log2
  static constexpr std::size_t kPoints = 53;
  using Table = std::array<double, kPoints>;
  // Place of a table point, log2 of nanoseconds on the links.
  [[nodiscard]] static constexpr double at(std::size_t point) {
    return kFirst + kStep * static_cast<double>(point);
  }

  std::string architecture;  // of the device
  LinkKind links = LinkKind::none;
  CollectiveOp op = CollectiveOp::unknown;
  std::uint32_t n_ranks = 2;
  std::uint32_t n_machines = 1;     // machines in the mean
  std::optional<double> nvls_from;  // log2 of the time on the links from which NCCL chooses NVLS there
  Table ln_ratio{};
};

// Residuals ln(measured / predicted) of machines left out in turn, by time on the links.
struct RelatedBand {
  static constexpr std::array<double, 5> kMiddles = {2, 6, 10, 14, 18};  // log2 of nanoseconds
  std::array<double, 5> p10{}, p90{};
  // p10 and p90 at a time, linear between the middles.
  [[nodiscard]] std::array<double, 2> at(double log2_ns) const;
};

// The ratios of all measured nodes, as a platform record.
class RelatedSystems {
 public:
  static constexpr std::string_view kRecordName = "collectives/related_systems";
  static constexpr std::string_view kRecordKind = "related_systems";

  std::vector<RelatedShape> shapes;
  RelatedBand with_family, without_family;  // by whether the family of the node was measured elsewhere
  RelatedBand moved;                        // of a curve that was corrected with two measured sizes

  // Errors: a missing or invalid field, by name.
  [[nodiscard]] static Result<RelatedSystems> read(const JsonValue& parameters);
  [[nodiscard]] JsonValue write() const;
  // The record of a platform; none without one or if it is unreadable.
  [[nodiscard]] static std::optional<RelatedSystems> of(const Platform& platform);

  // Curve of a collective on one node; `n_ranks` at least 2. None if no ratio of the collective is known (for
  // send/receive: of all_to_all and all_gather).
  [[nodiscard]] std::optional<TimeCurve> curve(const Device& device, const Node& node, CollectiveOp op,
                                               std::uint32_t n_ranks) const;
  // Whether the architecture and kind of link of the node were measured.
  [[nodiscard]] bool has_family(const Device& device, const Node& node) const;

 private:
  // Weighted mean of the ratios of all families, by time on the links.
  [[nodiscard]] std::optional<RelatedShape::Table> ratio(const Device& device, const Node& node,
                                                         CollectiveOp op, std::uint32_t n_ranks) const;
  [[nodiscard]] TimeCurve with_band(TimeCurve::Table time, const Device& device, const Node& node,
                                    double log2_GBps) const;
};

// log2 of the nanoseconds that a message takes on the links of the node.
[[nodiscard]] double log2_link_ns(const Device& device, const Node& node, std::uint32_t n_ranks,
                                  double log2_bytes);

}  // namespace stepcast
