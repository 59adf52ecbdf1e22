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

// A machine, what its data sheet says, and what was measured on one of its nodes.
struct MeasuredSystem {
  std::string name;
  Device device;
  Node node;
  std::vector<const CollectiveMeasurements*> curves;
};

// One node, from start-up to full bandwidth: at most 4 KiB to at least 256 MiB. Others say too little of a shape.
[[nodiscard]] bool spans_start_up_to_bandwidth(const CollectiveMeasurements& measurements);

// The samples of the two sizes of a sweep that moved curves are tested with: those nearest to 16 KiB and 64 MiB, or 16
// times the former where that is more.
[[nodiscard]] std::vector<CollectiveSample> two_sizes(const CollectiveMeasurements& measurements);

// Shapes by family, with bands from machines and whole families left out in turn. Curves that do not span start-up to
// bandwidth are passed over; an error if none does.
[[nodiscard]] Result<RelatedSystems> fit_related_systems(std::span<const MeasuredSystem> systems);

}  // namespace stepcast
