// Places the items of a work list on lanes: when each item starts, how long it takes, and which transfers are
// hidden by computation.
//
// Items run in order. A transfer with `overlaps_next` starts together with the next operation. Several of
// them share one link and run one after the other. The operation is slowed down by the share of its time that
// they cover:
//
//   computation  |==norm==|====gemm====|   |==gelu==|
//   overlapping           |~gather~|~reduce~|
//                                      ^exposed: the list waits for it
//
// A transfer with `overlaps_remainder` starts at the same point and overlaps everything that follows in the
// list, such as the all-to-all of another micro-batch. The next item with `joins` waits for it, or the end of
// the list:
//
//   computation  |==experts' gradients==|.......|==attention's gradients==|
//   rest         |~~~~~tokens to experts~~~~~~~~|~results back~|
//                                        ^exposed: what joins waits
//
// All other code uses this placement: prices are sums over the items, step_program makes tasks of them, and
// reports print them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/operation/estimate.h"
#include "stepcast/operation/kernel_class.h"
#include "stepcast/workload/placement.h"
#include "stepcast/workload/step_work.h"

namespace stepcast {

class StepPricer;

enum class WorkLane : std::uint8_t {
  computation,  // operations, and transfers that all later items wait for
  beside,       // transfers that overlap one operation
  rest,         // transfers that overlap the remainder of the list
};

// One item of a list with all its repetitions. Times are in microseconds.
struct PlacedItem {
  const WorkItem* item = nullptr;  // in the list, which must outlive this object
  Estimate alone;                  // duration without overlapping work, with band
  WorkLane lane = WorkLane::computation;
  double start_us = 0, duration_us = 0;  // start: since the start of the list
  // Operations: duration / duration alone, at least 1.
  double slowdown = 1;
  // Transfers: time that the computation waits for them; at the median, and if all items are at p10 or at
  // p90.
  double exposed_us = 0, exposed_low_us = 0, exposed_high_us = 0;
  bool joins = false;  // starts after all open transfers of WorkLane::rest
  KernelClass kernel_class = KernelClass::communication;
  double kernels = 0;  // number of launches by the host: 1 for a whole CUDA graph
  double flops = 0;    // of GEMMs and attention
  // Part of a transfer that computation hides; 0 for operations.
  [[nodiscard]] double hidden_us() const {
    return item->transfer() != nullptr ? duration_us - exposed_us : 0;
  }
};

// The time of a list and its parts, in microseconds.
struct PricedList {
  double time_us = 0;                                 // total, including host_us
  double low_us = 0, high_us = 0;                     // p10 and p90 if all items err together
  double host_us = 0;                                 // part of time_us in which the GPU waits for launches
  double kernels = 0;                                 // number of launches
  double flops = 0;                                   // of GEMMs and attention
  std::array<double, kKernelClassCount> class_us{};   // [KernelClass] computation
  std::array<double, kGroupKindCount> exposed_us{};   // [GroupKind] transfers not hidden by computation
  std::array<double, kGroupKindCount> transfer_us{};  // [GroupKind] all transfers
  // [EstimateSource] computation by the origin of its estimate.
  std::array<double, 4> source_us{};

  // Adds all fields: the two lists run one after the other.
  PricedList& operator+=(const PricedList& other);
  [[nodiscard]] PricedList times(double count) const;
  friend bool operator==(const PricedList&, const PricedList&) = default;
};

// Prices of the lists of one LayerWork: a layer, the embedding or the head.
struct PricedLayer {
  PricedList forward, backward, held_back;
  friend bool operator==(const PricedLayer&, const PricedLayer&) = default;
};

// Fills `items` (cleared first) in the order of the list, without transfers that take no time, such as those
// in groups of one rank. Error: the platform cannot place a group.
[[nodiscard]] Status lay_out(const WorkList& list, StepPricer& prices, const Placement& placement,
                             std::vector<PlacedItem>& items);

// Sums the items without the time of launches (see wait_for_launches()).
[[nodiscard]] PricedList sum_of(std::span<const PlacedItem> items);

// Returns how long a list with `sum.kernels` launches takes, in microseconds. The host launches kernels while
// the GPU runs earlier ones. Usually it is far enough ahead, so that the list takes the larger of its GPU
// time and its launches. If the host waits for the device in the list (`host_waits`), it has no lead after
// the wait, and the GPU idles until each following kernel is launched. Such lists follow each other, so the
// part before the wait runs with the lead gained after the wait of the previous list:
//
//   host  |wait|=all-to-all=|==GEMMs==|==attention==|==router==|wait|
//   GPU        |            |all-to-all|   |GEMMs.....|attention|router|
//                ^idle                  ^idle
[[nodiscard]] double time_with_launches(std::span<const PlacedItem> items, const PricedList& sum,
                                        double launch_us);

// Raises the time of `list`, which did not include launches, to `with_launches_us`. The difference is
// host_us.
void wait_for_launches(PricedList& list, double with_launches_us);

}  // namespace stepcast
