// A work list on its lanes: when each item starts, how long it takes, what hides behind what.
//
// Items run in order. A transfer `overlaps_next` starts with the next operation; several of them share one link
// and run one after the other. The operation is slowed by the share of its time that they cover:
//
//   computation  |==norm==|====gemm====|   |==gelu==|
//   beside                |~gather~|~reduce~|
//                                      ^exposed: the list waits for it
//
// A transfer `overlaps_remainder` starts there, too, and runs beside all that follows in the list: the exchange of tokens of
// another micro-batch. The next item that `joins` waits for it, else the end of the list:
//
//   computation  |==experts' gradients==|.......|==attention's gradients==|
//   rest         |~~~~~tokens to experts~~~~~~~~|~results back~|
//                                        ^exposed: what joins waits
//
// This is the only place that says so: prices are the sum of the items, step_program makes tasks of them, and
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
  computation,  // operations, and transfers that everything waits for
  beside,       // transfers beside an operation
  rest,         // transfers beside the rest of the list
};

// One item of a list, all its repetitions. Times in microseconds.
struct PlacedItem {
  const WorkItem* item = nullptr;  // of the list, which must outlive it
  Estimate alone;                  // without overlapping work
  WorkLane lane = WorkLane::computation;
  double start_us = 0, duration_us = 0;  // start from that of the list
  // Operations: how many times as long as alone.
  double slowdown = 1;
  // Transfers: what the computation waits for, in the middle and if everything is fast or slow.
  double exposed_us = 0, exposed_low_us = 0, exposed_high_us = 0;
  bool joins = false;  // starts behind the transfers beside the rest in front of it
  KernelClass kernel_class = KernelClass::communication;
  double kernels = 0;  // launched by the host: 1 for all of a CUDA graph
  double flops = 0;    // of matrix products and attention
  [[nodiscard]] double hidden_us() const {
    return item->transfer() != nullptr ? duration_us - exposed_us : 0;
  }
};

// The time of a list, and where it goes.
struct PricedList {
  double time_us = 0;                                 // including what the host holds up
  double low_us = 0, high_us = 0;                     // p10 and p90 if all items err together
  double host_us = 0;                                 // of time_us: the GPU waits for launches
  double kernels = 0;                                 // launched
  double flops = 0;                                   // of matrix products and attention
  std::array<double, kKernelClassCount> class_us{};   // computation by class
  std::array<double, kGroupKindCount> exposed_us{};   // transfers that nothing hides
  std::array<double, kGroupKindCount> transfer_us{};  // all transfers
  // Of the computation, by the ground it stands on: index EstimateSource.
  std::array<double, 4> source_us{};

  PricedList& operator+=(const PricedList& other);
  [[nodiscard]] PricedList times(double count) const;
  friend bool operator==(const PricedList&, const PricedList&) = default;
};

// One layer, the embedding or the head: the prices of the lists of its LayerWork.
struct PricedLayer {
  PricedList forward, backward, held_back;
  friend bool operator==(const PricedLayer&, const PricedLayer&) = default;
};

// In the order of the list, without transfers that take no time: those of groups of one rank. `items` is
// cleared first. An error if the platform cannot hold a group.
[[nodiscard]] Status lay_out(const WorkList& list, StepPricer& prices, const Placement& placement,
                             std::vector<PlacedItem>& items);

[[nodiscard]] PricedList sum_of(std::span<const PlacedItem> items);

// How long a list of `sum.kernels` launches takes. The host launches the kernels while the GPU runs them, far enough ahead
// that a list takes at least its launches and no longer. Where it waits for the device in the middle (host_waits), it has no
// lead behind that: the GPU idles until each kernel there is launched. Such lists follow each other, so that the lead of
// what stands in front is what was gained behind the wait of the list before:
//
//   host  |wait|=exchange=|==products==|==attention==|==router==|wait|
//   GPU        |          |exchange|   |products.....|attention|router|
//                          ^idle        ^idle
[[nodiscard]] double time_with_launches(std::span<const PlacedItem> items, const PricedList& sum,
                                        double launch_us);

// Makes `list`, which took no launches into account, that long.
void wait_for_launches(PricedList& list, double with_launches_us);

}  // namespace stepcast
