// Shardings of embedding tables as a page (report/document.h): how long each makes the step, and what every rank carries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "stepcast/operation/estimate.h"
#include "stepcast/report/document.h"

namespace stepcast {

struct ShardedRank {
  double lookup_ms = 0, lookup_backward_ms = 0;
  double memory_GiB = 0, sent_MB = 0;
  std::size_t tables = 0;
};

struct ShardingCandidate {
  std::string name;
  Estimate step;
  bool fits = true;
  double lookup_imbalance = 1, exchange_ms = 0;
  std::vector<ShardedRank> ranks;
};

struct ShardingAnswer {
  std::string model, platform;
  std::int64_t n_gpus = 0, global_batch_samples = 0;
  std::string verdict;
  double least_step_ms = 0;                  // no placement of whole tables is faster
  double memory_GiB = 0;                     // of one GPU
  std::vector<ShardingCandidate> shardings;  // the best first
  std::string json;
};

// At least one sharding.
[[nodiscard]] ReportDocument sharding_document(const ShardingAnswer& answer);

}  // namespace stepcast
