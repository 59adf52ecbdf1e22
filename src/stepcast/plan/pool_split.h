// How the work of a step is spread over pools of different GPUs: stages of the pipeline on each pool, with as many layers
// as it is fast, or whole replicas, with as many micro-batches.
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

struct SplitPool {
  std::int64_t n_gpus = 0;
  StepModel steps;    // of its platform; its links do not count
  PoolLinks links{};  // to the others; `replicas` does not count
};

enum class SpreadOver : std::uint8_t { stages, replicas };

struct PoolSplit {
  SpreadOver over = SpreadOver::stages;
  // [pool] stages: all alike, with layers_per_stage. replicas: with the micro-batches of its replicas, in
  // batch.global_batch_sequences, as if all replicas had as many.
  std::vector<Layout> layouts;
  std::vector<StepModel> steps;   // [pool] with groups that span the pools so
  std::vector<StagePool> stages;  // of `stages`
  std::vector<double> own_us;     // [pool] of replicas: the step if all were like its
  Estimate step{};                // of the pool that decides
  Bytes spare{0};                 // that the tightest GPU of all leaves; below 0: does not fit
  std::size_t slowest = 0;        // pool that decides
  [[nodiscard]] bool fits() const { return spare.value() >= 0; }
};

// Whether pools of so many GPUs hold whole stages, and whole replicas.
struct WholeParts {
  bool stages = false, replicas = false;
  std::int64_t of_stage = 0, of_replica = 0;  // GPUs of one; of experts, of the replicas that stay together
};
[[nodiscard]] WholeParts whole_parts(const Transformer& model, const Layout& layout,
                                     std::span<const std::int64_t> pool_gpus);

// The faster of both ways; one that fits goes before one that does not. Errors: no way keeps stages and replicas whole; those
// of a step.
[[nodiscard]] Result<PoolSplit> split_over_pools(const Transformer& model, const Layout& layout,
                                                 std::span<const SplitPool> pools,
                                                 std::optional<SpreadOver> only = {});

}  // namespace stepcast
