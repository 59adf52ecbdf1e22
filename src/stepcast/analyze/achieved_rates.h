// What the hardware achieves in a step: bus bandwidth of the collectives by process group beside that of the link
// they go over, and FLOP/s and memory bandwidth of the GPU work beside the peaks of the device.
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

// Collectives of one operation on one process group.
struct GroupTraffic {
  std::string group{}, operation{};
  std::uint32_t n_ranks = 0;
  std::uint32_t n = 0;       // collectives
  double message_bytes = 0;  // of all whose size is known
  double transfer_us = 0;    // of the same, without waiting
  double wait_us = 0;        // mean over ranks, of all
  double largest_message_bytes = 0;
  std::optional<double> bus_GBps{};          // as nccl-tests counts it, of the messages and transfers above
  std::optional<double> largest_bus_GBps{};  // of the largest message
  std::optional<double> link_GBps{};         // one direction, per GPU; nothing without platform
  std::string link{};                        // "NVLink mesh", "InfiniBand HDR"
  // Of ranks whose partners left no trace here: times hold waiting for them, so that bus bandwidths are the least that
  // the transfers had.
  bool holds_waiting = false;
};

// Of the collectives of `forecast` with two ranks and more, by time, longest first. `platform` is the machine that
// ran them; null: not known. `ranks` of classes tell whether a group stays inside a node.
[[nodiscard]] std::vector<GroupTraffic> traffic_by_group(const Forecast& forecast, const Platform* platform);

// The same of collectives in `windows` that kept their recorded time because ranks of their group are not here.
[[nodiscard]] std::vector<GroupTraffic> traffic_of_absent_ranks(const FlatProgram& flat,
                                                                const TaskTimes& times,
                                                                std::span<const Interval> windows,
                                                                const Platform* platform);

// GPU work of one class on all ranks.
struct ClassRate {
  KernelClass kernel_class = KernelClass::none;
  double time_us = 0;
  double known_us = 0;          // of it with known work: what the rates are of
  double flops = 0, bytes = 0;  // of the known work
};

struct RankUtilization {
  double step_us = 0;
  double busy_us = 0;       // some stream computes, transfers or copies
  double computing_us = 0;  // some stream runs a kernel that is not communication
  double kernel_us = 0;     // sum of these kernels
  double known_us = 0;      // of it with known work
  double flops = 0, bytes = 0;
};

struct AchievedRates {
  std::vector<RankUtilization> ranks;   // [rank class]
  std::vector<ClassRate> classes;       // longest first
  std::optional<double> peak_tflops{};  // of the device in the type with most FLOPs
  std::string peak_type{};
  std::optional<double> peak_GBps{};  // memory
};

// `forecast` is of the same times.
[[nodiscard]] AchievedRates achieved_rates(const FlatProgram& flat, const TaskTimes& times,
                                           std::span<const Interval> windows, const Forecast& forecast,
                                           const Platform* platform);

}  // namespace stepcast
