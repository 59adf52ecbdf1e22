// Lists the items of a priced step one by one, for `predict --explain` as text and JSON.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/operation/estimate.h"
#include "stepcast/operation/kernel_class.h"
#include "stepcast/predict/priced_step.h"
#include "stepcast/predict/step_prices.h"

namespace stepcast {

// An operation or transfer with all its repetitions on one rank. Times are in microseconds since the start of
// its list.
struct ExplainedItem {
  std::string name;        // "qkv"
  std::string what;        // "gemm bf16 forward m=...", "all_gather over tensor"
  std::string collective;  // of a transfer: "all_gather"; else empty
  std::string group;       // of a transfer: "tensor"; else empty
  std::int64_t count = 1;
  bool beside = false;  // overlaps the next operation
  KernelClass kernel_class = KernelClass::other;
  Estimate alone;                        // without overlapping work
  double start_us = 0, duration_us = 0;  // including the slowdown by overlapping work
  double slowdown = 1;                   // duration / duration alone
  double hidden_us = 0, exposed_us = 0;  // of a transfer: hidden by computation, and not hidden
  double flops = 0;                      // of one repetition
  double bytes = 0;  // of one repetition: bytes read and written, or message size of a transfer
  // Name of the model record that the time comes from; empty: none. " (short runs)" is appended if only short
  // runs were measured, so that the clock under load is carried over from other devices.
  std::string record;
};

// A work list with its items, such as the forward pass of a layer.
struct ExplainedList {
  std::string title;  // "layer, forward", "update of stages 1 to 14"
  std::vector<ExplainedItem> items;
  double gpu_us = 0;   // sum of everything that is not hidden
  double host_us = 0;  // additional time due to launches
  [[nodiscard]] double time_us() const { return gpu_us + host_us; }
};

// The lists of every kind of layer, of embedding and head, and of all distinct updates. `prices` must be in
// the state in which `step` was priced (StepModel::worker(step)).
[[nodiscard]] Result<std::vector<ExplainedList>> explain(const PricedStep& step, StepPricer& prices);

}  // namespace stepcast
