// The space of layouts for a search: one list per choice, and their Cartesian product.
//
//   STEPCAST_ASSIGN(const LayoutSpace space, layout_space(model, {...}, restrictions));
//   space.size()      // number of combinations: 268,800
//   space.lines()     // "tensor parallel: 1, 2, 4, 8 (within a node)", ...
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/plan/layout_point.h"
#include "stepcast/platform/platform.h"
#include "stepcast/workload/layout.h"
#include "stepcast/workload/transformer.h"

namespace stepcast {

// A pipeline schedule with its number of chunks per stage.
struct PipelineForm {
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  std::int32_t virtual_stages = 1;
  friend bool operator==(const PipelineForm&, const PipelineForm&) = default;
};

// All values of every choice. Combinations that cannot run are part of the space and rejected by the search.
struct LayoutSpace {
  std::vector<std::int32_t> tensor, pipeline, context, expert;
  std::vector<std::int32_t> expert_tensor;  // 0: equal to `tensor`
  std::vector<std::int32_t> micro_batch;    // sequences
  std::vector<PipelineForm> forms;
  std::vector<DataSharding> shardings;
  std::vector<Recompute> recomputations;
  std::vector<bool> sequence_parallel;
  std::vector<DType> dtypes;
  std::int64_t n_gpus = 1;

  // Numbers of combinations: of everything, of types and degrees, and of the other choices per choice of types and degrees.
  [[nodiscard]] std::uint64_t size() const { return n_degrees() * below_degrees(); }
  [[nodiscard]] std::uint64_t n_degrees() const;
  [[nodiscard]] std::uint64_t below_degrees() const;
  // Name and list of every choice, for the user.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> lines() const;
};

// Restrictions by the user; an empty field means the usual values.
struct LayoutRestrictions {
  std::optional<std::vector<std::int64_t>> tensor, pipeline, context, expert, expert_tensor, micro_batch,
      virtual_stages;
  std::optional<std::vector<DataSharding>> shardings;
  std::optional<std::vector<Recompute>> recomputations;
  std::optional<std::vector<bool>> sequence_parallel;
  std::optional<std::vector<DType>> dtypes;
  std::optional<std::vector<PipelineSchedule>> schedules;
};

// The training for which a space is built.
struct SpaceOf {
  std::int64_t n_gpus = 1, gpus_per_node = 1;
  std::int64_t global_batch = 1, seq_len = 1;  // sequences, tokens
  Framework framework = Framework::megatron;
  DType dtype = DType::bf16;  // type of GEMMs if no list is given
  // Gradient accumulation; without it, a rank without a pipeline processes its whole share of the batch at once.
  bool adds_up_gradients = true;
  bool tries_fp8 = false;  // also searches fp8 if the device has units for it
};

// True if the layers can be divided among the chunks of a pipeline: evenly, alone or with embedding and output as one layer
// each. If no number of chunks divides evenly for that many stages, the longest chunk may exceed the mean by 5 %.
[[nodiscard]] bool divides_into_chunks(std::int64_t n_layers, std::int64_t stages,
                                       std::int64_t virtual_stages);

// Usual values: degrees that divide the number of GPUs, tensor parallelism within a node, context parallelism with at least
// 1,024 tokens per rank, up to 16 sequences per micro-batch, the sharding of the framework. Errors: a restriction with an
// invalid degree or one that excludes everything (for example no listed degree divides the number of GPUs).
[[nodiscard]] Result<LayoutSpace> layout_space(const Transformer& model, const Device& device,
                                               const SpaceOf& of, const LayoutRestrictions& restrictions);

}  // namespace stepcast
