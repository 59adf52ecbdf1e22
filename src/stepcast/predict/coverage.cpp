#include "stepcast/predict/coverage.h"

#include <numeric>

namespace stepcast {
namespace {

double sum(const SourceTimes& times) { return std::accumulate(times.begin(), times.end(), 0.0); }

}  // namespace

double Coverage::gpu_total_us() const {
  double total = 0;
  for (const SourceTimes& of_class : gpu_us) total += sum(of_class);
  return total;
}

double Coverage::unmodelled_us() const {
  double total = 0;
  for (const Unmodelled& work : unmodelled) total += work.time_us;
  return total;
}

double Coverage::gpu_share(EstimateSource source) const {
  const double total = gpu_total_us();
  if (total <= 0) return 0;
  double part = 0;
  for (const SourceTimes& of_class : gpu_us) part += of_class[static_cast<std::size_t>(source)];
  return part / total;
}

double Coverage::gpu_share(KernelClass kernel_class) const {
  const double total = gpu_total_us();
  return total > 0 ? sum(gpu_us[static_cast<std::size_t>(kernel_class)]) / total : 0;
}

}  // namespace stepcast
