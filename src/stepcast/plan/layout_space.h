// The space of layouts that a search goes through: a list per choice, their product, and nothing left out silently.
//
//   STEPCAST_ASSIGN(const LayoutSpace space, layout_space(model, {...}, restrictions));
//   space.size()      // the product of all lists: 268,800
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

struct PipelineForm {
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  std::int32_t virtual_stages = 1;
  friend bool operator==(const PipelineForm&, const PipelineForm&) = default;
};

struct LayoutSpace {
  std::vector<std::int32_t> tensor, pipeline, context, expert;
  std::vector<std::int32_t> expert_tensor;  // 0: as tensor
  std::vector<std::int32_t> micro_batch;    // sequences
  std::vector<PipelineForm> forms;
  std::vector<DataSharding> shardings;
  std::vector<Recompute> recomputations;
  std::vector<bool> sequence_parallel;
  std::vector<DType> dtypes;
  std::int64_t n_gpus = 1;

  // Products of the lists: all of them, those of the degrees, and what stands under one choice of degrees.
  [[nodiscard]] std::uint64_t size() const { return n_degrees() * below_degrees(); }
  [[nodiscard]] std::uint64_t n_degrees() const;
  [[nodiscard]] std::uint64_t below_degrees() const;
  // What is enumerated: name and list, for people.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> lines() const;
};

// What somebody allows; nothing: all that is usual.
struct LayoutRestrictions {
  std::optional<std::vector<std::int64_t>> tensor, pipeline, context, expert, expert_tensor, micro_batch,
      virtual_stages;
  std::optional<std::vector<DataSharding>> shardings;
  std::optional<std::vector<Recompute>> recomputations;
  std::optional<std::vector<bool>> sequence_parallel;
  std::optional<std::vector<DType>> dtypes;
  std::optional<std::vector<PipelineSchedule>> schedules;
};

struct SpaceOf {
  std::int64_t n_gpus = 1, gpus_per_node = 1;
  std::int64_t global_batch = 1, seq_len = 1;  // sequences, tokens
  Framework framework = Framework::megatron;
  DType dtype = DType::bf16;      // unless a list says otherwise
  bool adds_up_gradients = true;  // otherwise a rank without a pipeline takes its share of the batch at once
  bool tries_fp8 = false;         // also where the device has units for it
};

// Whether layers are dealt out to the chunks of a pipeline: they divide, alone or with embedding and output as one each;
// or no number of chunks of that many stages divides, and the longest chunk is at most 5 % above the mean.
[[nodiscard]] bool divides_into_chunks(std::int64_t n_layers, std::int64_t stages,
                                       std::int64_t virtual_stages);

// Every degree that divides the GPUs, tensor parallelism inside a node, context parallelism down to 1,024 tokens a
// rank, up to 16 sequences per micro-batch, what the framework can shard. Errors: a restriction that is no degree, or
// that leaves nothing (a number of GPUs that no listed degree divides).
[[nodiscard]] Result<LayoutSpace> layout_space(const Transformer& model, const Device& device,
                                               const SpaceOf& of, const LayoutRestrictions& restrictions);

}  // namespace stepcast
