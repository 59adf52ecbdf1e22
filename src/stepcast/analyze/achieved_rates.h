// The rates that the hardware achieves in a step: bus bandwidth of the collectives by process group, compared
// with the bandwidth of the link they use, and FLOP/s and memory bandwidth of the GPU work, compared with the
// device's peaks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stepcast/analyze/flat_program.h"
#include "stepcast/analyze/forecast.h"
#include "stepcast/analyze/task_times.h"
#include "stepcast/base/interval.h"
#include "stepcast/platform/platform.h"
#include "stepcast/program/program.h"

namespace stepcast {

// The collectives of one operation on one process group.
struct GroupTraffic {
  std::string group{}, operation{};
  std::uint32_t n_ranks = 0;
  std::uint32_t n = 0;       // number of collectives
  double message_bytes = 0;  // sum over the collectives with a known size
  double transfer_us = 0;    // their transfer time, without waiting
  double wait_us = 0;        // mean over ranks, sum over all collectives
  double largest_message_bytes = 0;
  // Bus bandwidth as nccl-tests defines it, in GB/s, from the messages and transfers above.
  std::optional<double> bus_GBps{};
  std::optional<double> largest_bus_GBps{};  // bus bandwidth of the largest message
  std::optional<double> link_GBps{};         // bandwidth of one direction per GPU; nothing without a platform
  std::string link{};                        // "NVLink mesh", "InfiniBand HDR"
  // True if only some ranks of the group were recorded. The times then include waiting for the other ranks,
  // so the bus bandwidths are lower bounds.
  bool holds_waiting = false;
};

// Traffic of the collectives of `forecast` with at least two ranks, longest time first. `platform` is the
// machine that ran them; null if unknown, and then no link is given. The ranks of the classes decide whether
// a group fits into one node.
[[nodiscard]] std::vector<GroupTraffic> traffic_by_group(const Forecast& forecast, const Platform* platform);

// The same for collectives inside `windows` that kept their recorded time because ranks of their group were
// not recorded. `windows`: one interval per rank class.
[[nodiscard]] std::vector<GroupTraffic> traffic_of_absent_ranks(const FlatProgram& flat,
                                                                const TaskTimes& times,
                                                                std::span<const Interval> windows,
                                                                const Platform* platform);

// The GPU work of one kernel class, summed over all ranks.
struct ClassRate {
  KernelClass kernel_class = KernelClass::none;
  double time_us = 0;
  // The part of time_us with known work (operation and shapes). Rates are work divided by this time.
  double known_us = 0;
  double flops = 0, bytes = 0;  // sum of the known work
};

// The utilization of one rank during its step.
struct RankUtilization {
  double step_us = 0;       // length of the step
  double busy_us = 0;       // time in which some stream computes, transfers or copies
  double computing_us = 0;  // time in which some stream runs a kernel other than communication
  double kernel_us = 0;     // sum of the durations of these kernels
  double known_us = 0;      // the part of kernel_us with known work
  // FLOPs and bytes of the known work.
  double flops = 0, bytes = 0;
};

struct AchievedRates {
  std::vector<RankUtilization> ranks;   // [rank class]
  std::vector<ClassRate> classes;       // longest first
  std::optional<double> peak_tflops{};  // the device's peak in the type with most FLOPs, in TFLOP/s
  // The name of that type: "bf16".
  std::string peak_type{};
  std::optional<double> peak_GBps{};  // peak memory bandwidth of the device
};

// Utilization of every rank and rates of every kernel class. `times` and `windows` (one per rank class) must
// be those that `forecast` was made from. Without `platform` the peaks are missing.
[[nodiscard]] AchievedRates achieved_rates(const FlatProgram& flat, const TaskTimes& times,
                                           std::span<const Interval> windows, const Forecast& forecast,
                                           const Platform* platform);

}  // namespace stepcast
