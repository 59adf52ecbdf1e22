// Corrects an expected curve with a few measured sizes.
//
// Between measured sizes, ln(measured / expected) is linear in the square root of the share of the best bandwidth that the
// expected curve reaches. So a small size moves the start-up and a large one the bandwidth. Before the first and after the
// last size the ratio is constant.
#pragma once

#include <span>

#include "stepcast/base/result.h"
#include "stepcast/cost/collective_curve.h"
#include "stepcast/cost/related_systems.h"
#include "stepcast/platform/platform.h"

#include "calibrate/collective_measurements.h"

namespace stepcast {

// Returns `expected` moved through the medians of the sizes of `samples` (at least one). The band is that of `band` at the
// time on the links: log2 of nanoseconds = log2 of bytes + `log2_ns_of_byte`.
[[nodiscard]] TimeCurve moved_curve(const TimeCurve& expected, std::span<const CollectiveSample> samples,
                                    const RelatedBand& band, double log2_ns_of_byte);

// The same as a record for a platform file, at half octaves. One size is enough. An error without samples, on several nodes,
// or if no related machine measured this collective.
[[nodiscard]] Result<CollectiveCurve> record_of_few_sizes(const CollectiveMeasurements& measurements,
                                                          const RelatedSystems& related, const Device& device,
                                                          const Node& node, const Provenance& provenance);

}  // namespace stepcast
