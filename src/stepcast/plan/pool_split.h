// Divides a step among pools of different GPUs: pipeline stages per pool with layers in proportion to its speed, or whole
// replicas with micro-batches in proportion to it.
//
//   const std::vector<SplitPool> pools{{64, on_h100}, {64, on_a100}};
//   STEPCAST_ASSIGN(const PoolSplit split, split_over_pools(model, layout, pools));
//   split.step, split.layouts[1].pipeline.layers_per_stage
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stepcast/base/quantity.h"
#include "stepcast/base/result.h"
#include "stepcast/operation/estimate.h"
#include "stepcast/predict/stage_pools.h"
#include "stepcast/workload/layout.h"
#include "stepcast/workload/transformer.h"

namespace stepcast {

// A pool of equal GPUs.
struct SplitPool {
  std::int64_t n_gpus = 0;
  StepModel steps;    // of its platform; its own links are replaced by `links`
  PoolLinks links{};  // to the other pools; its field `replicas` is ignored
};

// Pools contain whole pipeline stages or whole data-parallel replicas.
enum class SpreadOver : std::uint8_t { stages, replicas };

// A step divided among pools.
struct PoolSplit {
  SpreadOver over = SpreadOver::stages;
  // [pool] stages: equal layouts with layers_per_stage. replicas: each with the micro-batches of its own replicas, given as
  // batch.global_batch_sequences as if all replicas had the same number.
  std::vector<Layout> layouts;
  std::vector<StepModel> steps;   // [pool] with groups that span the pools accordingly
  std::vector<StagePool> stages;  // [pool] for a division by stages
  // [pool] for a division by replicas: the step if all replicas were in this pool.
  std::vector<double> own_us;
  Estimate step{};          // step time, set by the slowest pool
  Bytes spare{0};           // least headroom of all GPUs; below 0: does not fit
  std::size_t slowest = 0;  // pool that sets the step time
  [[nodiscard]] bool fits() const { return spare.value() >= 0; }
};

// Whether pools with these numbers of GPUs can contain whole stages and whole replicas.
struct WholeParts {
  bool stages = false, replicas = false;
  std::int64_t of_stage = 0, of_replica = 0;  // GPUs per part; with experts, of the replicas that share them
};
[[nodiscard]] WholeParts whole_parts(const Transformer& model, const Layout& layout,
                                     std::span<const std::int64_t> pool_gpus);

// The faster of both divisions; one that fits precedes one that does not. `only` allows a single division. Errors: neither
// division keeps stages or replicas within a pool; those of a step forecast.
[[nodiscard]] Result<PoolSplit> split_over_pools(const Transformer& model, const Layout& layout,
                                                 std::span<const SplitPool> pools,
                                                 std::optional<SpreadOver> only = {});

}  // namespace stepcast
