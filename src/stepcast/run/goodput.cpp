#include "stepcast/run/goodput.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace stepcast {

// See goodput.h for the formula. Without interruptions only the writes cost time.
double effective_share(const CheckpointedJob& job, double interval_s) {
  if (std::isinf(job.mean_time_s))
    return std::isinf(interval_s) ? 1 : interval_s / (interval_s + job.write_s);
  const double m = job.mean_time_s;
  if (std::isinf(interval_s)) return 0;
  return interval_s * job.restart_chance * std::exp(-job.lag_s / m) /
         (m * std::expm1((interval_s + job.write_s) / m));
}

double best_interval_s(const CheckpointedJob& job, double least_s) {
  if (std::isinf(job.mean_time_s)) return std::numeric_limits<double>::infinity();
  // The derivative of ln(share) is zero at t = M (1 - exp(-(t + d) / M)). The function is concave, so one step is nearly always
  // enough.
  double t = std::sqrt(2 * job.write_s * job.mean_time_s);
  for (int i = 0; i < 4 && t > 0; ++i) {
    const double kept = -std::expm1(-(t + job.write_s) / job.mean_time_s);
    t += (job.mean_time_s * kept - t) / kept;
  }
  return std::max(t, least_s);
}

}  // namespace stepcast
