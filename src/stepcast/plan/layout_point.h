// One layout of a search, in few bytes; the Layout it stands for, and the settings that say it.
//
//   STEPCAST_ASSIGN(const LayoutPrototypes prototypes, LayoutPrototypes::of(job, space));
//   const Layout layout = prototypes.layout(point);
//   flags_of(prototypes.settings(point))            // resolve() makes the same layout of them
//
// A search asks for hundreds of thousands of layouts. What a framework does by habit is asked of resolve() once for
// every combination of element type, sharding, recomputation and sequence parallelism; degrees, batch and stages are
// put into what came of it.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/describe/job.h"
#include "stepcast/workload/layout.h"
#include "stepcast/workload/transformer.h"

namespace stepcast {

// How data-parallel ranks share weights, gradients and states.
struct DataSharding {
  Sharding kind = Sharding::none;
  // Hybrid sharding: the ranks of so many nodes hold one copy together; 0: all do.
  std::int32_t nodes = 0;
  friend auto operator<=>(const DataSharding&, const DataSharding&) = default;
};
// "none", "zero1", "zero2", "zero3", "hybrid:4".
[[nodiscard]] std::string to_string(const DataSharding& sharding);
[[nodiscard]] Result<DataSharding> parse_data_sharding(const std::string& word);
// Says it in the settings of a job.
void set_sharding(Sharding kind, JobSettings& settings);

struct LayoutPoint {
  std::int32_t tensor = 1, pipeline = 1, context = 1, data = 1, expert = 1;
  std::int32_t expert_tensor = 0;  // 0: as tensor
  std::int32_t micro_batch = 1;    // sequences
  std::int32_t virtual_stages = 1;
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  DataSharding sharding;
  Recompute recompute = Recompute::none;
  bool sequence_parallel = false;
  DType dtype = DType::bf16;
  friend auto operator<=>(const LayoutPoint&, const LayoutPoint&) = default;
};

// "tp8 pp16x3 cp2 dp4 mbs2 zero1 full fp8 sp": what differs from 1, none and off, and the micro-batch.
[[nodiscard]] std::string to_string(const LayoutPoint& point);
// What is changed from one to the other: "pipeline 8 -> 16, recomputation none -> full"; data-parallel ranks follow
// and are not named.
[[nodiscard]] std::string difference(const LayoutPoint& from, const LayoutPoint& to);
// How many of the things that difference() names.
[[nodiscard]] int n_changes(const LayoutPoint& from, const LayoutPoint& to);

class LayoutPrototypes {
 public:
  // `job` as it was asked for, without degrees; for every type, sharding, recomputation and use of sequence
  // parallelism in the lists. `gpus_per_node` says what hybrid sharding calls a node. Errors: those of resolve().
  struct Lists {
    std::vector<DType> dtypes;
    std::vector<DataSharding> shardings;
    std::vector<Recompute> recomputations;
    std::vector<bool> sequence_parallel;
  };
  [[nodiscard]] static Result<LayoutPrototypes> of(const Job& job, const Lists& lists,
                                                   std::int64_t gpus_per_node);

  [[nodiscard]] const Transformer& model() const { return model_; }
  [[nodiscard]] const TrainingRoutine& routine() const { return routine_; }
  // What resolve() filled in.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }
  [[nodiscard]] std::int64_t global_batch() const {
    return prototypes_.front().layout.batch.global_batch_sequences;
  }
  [[nodiscard]] std::int64_t seq_len() const { return prototypes_.front().layout.batch.seq_len_tokens; }
  [[nodiscard]] const Software& software() const { return prototypes_.front().layout.software; }
  [[nodiscard]] Framework framework() const { return software().framework; }

  // Not checked. A combination that was not in the lists is taken from the first that differs least.
  [[nodiscard]] Layout layout(const LayoutPoint& point) const;
  // The same into a layout that has its memory already.
  void layout(const LayoutPoint& point, Layout& into) const;
  // What has to be said in addition to the job.
  [[nodiscard]] JobSettings settings(const LayoutPoint& point) const;
  // Ranks that hold one copy of sharded weights together; 0: all. -1: hybrid sharding has nothing to split.
  [[nodiscard]] std::int64_t shard_group(const LayoutPoint& point) const;

 private:
  struct Prototype {
    DType dtype;
    DataSharding sharding;
    Recompute recompute;
    bool sequence_parallel;
    Layout layout;
  };
  [[nodiscard]] const Prototype& like(const LayoutPoint& point) const;

  JobSettings said_;  // by the user
  std::vector<Prototype> prototypes_;
  Transformer model_;
  TrainingRoutine routine_;
  std::vector<std::string> notes_;
  std::int64_t gpus_per_node_ = 1;
};

}  // namespace stepcast
