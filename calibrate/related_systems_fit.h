// Fits cost/related_systems.h to the measured nodes of several machines.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/cost/related_systems.h"
#include "stepcast/platform/platform.h"

#include "calibrate/collective_measurements.h"

namespace stepcast {

// A machine with the figures of its data sheet and the measurements on one of its nodes.
struct MeasuredSystem {
  std::string name;
  Device device;
  Node node;
  std::vector<const CollectiveMeasurements*> curves;
};

// True for curves of one node with sizes from at most 4 KiB to at least 256 MiB. Other curves do not determine a shape.
[[nodiscard]] bool spans_start_up_to_bandwidth(const CollectiveMeasurements& measurements);

// The samples of the two sizes with which moved curves are tested: the measured sizes nearest to 16 KiB and to 64 MiB (or to
// 16 times the first size if that is larger).
[[nodiscard]] std::vector<CollectiveSample> two_sizes(const CollectiveMeasurements& measurements);

// Fits shapes by family, with bands from machines and whole families left out in turn. Curves that do not span start-up to
// full bandwidth are skipped; an error if none does.
[[nodiscard]] Result<RelatedSystems> fit_related_systems(std::span<const MeasuredSystem> systems);

}  // namespace stepcast
