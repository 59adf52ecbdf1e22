// What a step consists of, item by item, as it was priced: for `predict --explain` as text and as JSON.
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

// An operation or transfer with all its repetitions, on one rank. Times in microseconds, from the start of its
// list.
struct ExplainedItem {
  std::string name;        // "qkv"
  std::string what;        // "gemm bf16 forward m=...", "all_gather over tensor"
  std::string collective;  // of a transfer: "all_gather"; else empty
  std::string group;       // of a transfer: "tensor"; else empty
  std::int64_t count = 1;
  bool beside = false;  // runs beside the next operation
  KernelClass kernel_class = KernelClass::other;
  Estimate alone;                        // without overlapping work
  double start_us = 0, duration_us = 0;  // with the work that overlaps it
  double slowdown = 1;                   // duration over time alone
  double hidden_us = 0, exposed_us = 0;  // of a transfer: behind computation, and waited for
  double flops = 0;                      // of one repetition
  double bytes = 0;                      // of one repetition: read and written, or the transfer's message
  // Name of the model record behind the time, "gemm/bf16/forward (short runs)" where nothing else was measured and the
  // clock under load is carried over; empty: none.
  std::string record;
};

struct ExplainedList {
  std::string title;  // "layer, forward", "update of stages 1 to 14"
  std::vector<ExplainedItem> items;
  double gpu_us = 0;   // sum of what nothing hides
  double host_us = 0;  // and what launching takes beyond that
  [[nodiscard]] double time_us() const { return gpu_us + host_us; }
};

// The lists of every kind of layer, of embedding, head, and the updates of all stages. The times are those
// that `step` was priced with: `prices` as it was then.
[[nodiscard]] Result<std::vector<ExplainedList>> explain(const PricedStep& step, StepPricer& prices);

}  // namespace stepcast
