// The tables of a TimeCurve on their way from one curve to another.
#pragma once

#include "stepcast/cost/collective_curve.h"

namespace stepcast::detail {

struct Tables {  // ln(us) by the points of a TimeCurve
  TimeCurve::Table time{}, low{}, high{};
};

[[nodiscard]] Tables tables_of(const TimeCurve& curve);

// A curve that never falls, with the supported sizes of `like` and the weaker of its source and `source`.
[[nodiscard]] TimeCurve finished(Tables tables, const TimeCurve& like, EstimateSource source);

// Share of the best bus bandwidth that is reached at each point, 0 to 1.
[[nodiscard]] TimeCurve::Table bandwidth_share(const TimeCurve& curve);

}  // namespace stepcast::detail
