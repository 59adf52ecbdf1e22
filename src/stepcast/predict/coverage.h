// What a forecast is based on: how much of the predicted time is measured, fitted, analytic or assumed.
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

// Busy time of all tasks of all ranks, divided by the number of ranks. Tasks that overlap are counted in
// full. Waiting is excluded.
struct Coverage {
  // [KernelClass] GPU kernels and copies. Collectives are KernelClass::communication.
  std::array<SourceTimes, kKernelClassCount> gpu_us{};
  SourceTimes host_us{};

  // GPU work that no model could price and that keeps its recorded time, grouped by name, longest first.
  struct Unmodelled {
    std::string name;
    KernelClass kernel_class = KernelClass::other;
    std::string why;
    std::uint64_t tasks = 0;  // of all ranks
    double time_us = 0;       // per rank
  };
  std::vector<Unmodelled> unmodelled;

  // Adds `times` times the entries of `other`.
  void add(const Coverage& other, double times);
  // Sum of gpu_us over all classes and sources.
  [[nodiscard]] double gpu_total_us() const;
  // Share of the GPU time that is based on `source`; 0 without GPU work. The shares of all sources sum to 1.
  [[nodiscard]] double gpu_share(EstimateSource source) const;
  // Share of the GPU time in `kernel_class`; 0 without GPU work.
  [[nodiscard]] double gpu_share(KernelClass kernel_class) const;
};

}  // namespace stepcast
