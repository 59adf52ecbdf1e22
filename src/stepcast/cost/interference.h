// How much longer work takes when other work of the same GPU or link runs beside it.
//
// Factors, not simulations: the caller knows from a sweep what overlaps, multiplies durations, sweeps again
// (a bounded fixed point). Every factor says what it rests on.
//
//   const Interference interference{platform};
//   // A GEMM of 100 us that shares 60 us with an all_reduce:
//   Estimate t = gemm.scaled(interference.beside_communication(KernelClass::gemm).over(0.6).median);
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/operation/estimate.h"
#include "stepcast/operation/kernel_class.h"
#include "stepcast/platform/platform.h"

namespace stepcast {

// time with company = factor x time alone, where all of the work has company.
struct SlowdownFactor {
  double median = 1, p10 = 1, p90 = 1;
  EstimateSource source = EstimateSource::assumed;

  // Where only `share` (0 to 1) of the time alone has company: slowdowns act on that part.
  [[nodiscard]] constexpr SlowdownFactor over(double share) const {
    const double s = share < 0 ? 0 : share > 1 ? 1 : share;
    return {1 + s * (median - 1), 1 + s * (p10 - 1), 1 + s * (p90 - 1), source};
  }
};

class Interference {
 public:
  // Reads the models of kind "overlap_slowdown" of the platform: parameters slowdown_p10, slowdown_p50,
  // slowdown_p90 (0.02: 2 % longer) and either `class` (a kernel class) or `kernel` (a part of kernel names,
  // which wins).
  explicit Interference(const Platform& platform);

  // A kernel while a collective runs on the same GPU. NCCL holds some SMs and takes memory bandwidth; kernels
  // of few blocks that wait for an SM suffer most. A class without a record gets what measured classes have
  // in the middle, as an assumption with a wide band.
  [[nodiscard]] SlowdownFactor beside_communication(KernelClass kernel_class,
                                                    std::string_view kernel_name = {}) const;

  // A collective while kernels run on its GPUs. No measurement here: 1, up to 1.2 (assumed).
  [[nodiscard]] SlowdownFactor beside_computation() const { return {1.0, 1.0, 1.2, EstimateSource::assumed}; }

  // A collective that uses `bandwidth_share` (0 to 1) of a link which others load with `others` times that
  // link's bandwidth: fair sharing of what both want. 1 where the link has room for all.
  [[nodiscard]] static SlowdownFactor sharing_a_link(double bandwidth_share, double others);

 private:
  struct Entry {
    KernelClass kernel_class = KernelClass::none;
    std::string kernel;
    SlowdownFactor factor;
  };
  std::vector<Entry> entries_;
};

}  // namespace stepcast
