// What a forecast rests on: how much of the predicted time is measured, fitted, analytic or assumed.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "stepcast/operation/estimate.h"
#include "stepcast/operation/kernel_class.h"

namespace stepcast {

inline constexpr int kEstimateSourceCount = 4;
using SourceTimes = std::array<double, kEstimateSourceCount>;  // [EstimateSource], microseconds

// Busy time of all tasks of all ranks, over the number of ranks: tasks that run beside each other count each.
// Waiting is not in it.
struct Coverage {
  // GPU kernels and copies by class; collectives are KernelClass::communication.
  std::array<SourceTimes, kKernelClassCount> gpu_us{};
  SourceTimes host_us{};

  // GPU work that no model could price and that keeps its recorded time, by name, longest first.
  struct Unmodelled {
    std::string name;
    KernelClass kernel_class = KernelClass::other;
    std::string why;
    std::uint64_t tasks = 0;  // of all ranks
    double time_us = 0;       // per rank
  };
  std::vector<Unmodelled> unmodelled;

  // Adds another one, so many times.
  void add(const Coverage& other, double times);
  [[nodiscard]] double gpu_total_us() const;
  // Share of the GPU's time that rests on `source`; 0 without GPU work. Sums to 1 over the sources.
  [[nodiscard]] double gpu_share(EstimateSource source) const;
  [[nodiscard]] double gpu_share(KernelClass kernel_class) const;
};

}  // namespace stepcast
