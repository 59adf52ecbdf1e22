// Tables of a TimeCurve as an intermediate form of curve transformations.
#pragma once

#include "stepcast/cost/collective_curve.h"

namespace stepcast::detail {

struct Tables {  // ln(us) at the points of a TimeCurve
  TimeCurve::Table time{}, low{}, high{};
};

// Copies of the tables of a curve.
[[nodiscard]] Tables tables_of(const TimeCurve& curve);

// A curve from tables: made non-decreasing (the band moves along), with the supported sizes of `like` and the
// weaker of its source and `source`.
[[nodiscard]] TimeCurve finished(Tables tables, const TimeCurve& like, EstimateSource source);

// Share of the best bus bandwidth within the supported sizes that is reached at each point, 0 to 1.
[[nodiscard]] TimeCurve::Table bandwidth_share(const TimeCurve& curve);

}  // namespace stepcast::detail
