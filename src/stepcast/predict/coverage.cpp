#include "stepcast/predict/coverage.h"

#include <algorithm>
#include <numeric>

namespace stepcast {
namespace {

double sum(const SourceTimes& times) { return std::accumulate(times.begin(), times.end(), 0.0); }

}  // namespace

void Coverage::add(const Coverage& other, double times) {
  const auto add_times = [&](SourceTimes& to, const SourceTimes& from) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += times * from[i];
  };
  for (std::size_t k = 0; k < gpu_us.size(); ++k) add_times(gpu_us[k], other.gpu_us[k]);
  add_times(host_us, other.host_us);
  for (const Unmodelled& more : other.unmodelled) {
    // The lists are short, so a linear search is enough.
    auto same = std::find_if(unmodelled.begin(), unmodelled.end(), [&](const Unmodelled& one) {
      return one.name == more.name && one.kernel_class == more.kernel_class && one.why == more.why;
    });
    if (same == unmodelled.end())
      same = unmodelled.insert(unmodelled.end(), {more.name, more.kernel_class, more.why});
    same->tasks += static_cast<std::uint64_t>(times * static_cast<double>(more.tasks));
    same->time_us += times * more.time_us;
  }
  std::stable_sort(unmodelled.begin(), unmodelled.end(),
                   [](const auto& a, const auto& b) { return a.time_us > b.time_us; });
}

double Coverage::gpu_total_us() const {
  double total = 0;
  for (const SourceTimes& of_class : gpu_us) total += sum(of_class);
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
