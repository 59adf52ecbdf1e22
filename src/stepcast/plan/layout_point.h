// A compact representation of one layout in a search, with its full Layout and its settings.
//
//   STEPCAST_ASSIGN(const LayoutPrototypes prototypes, LayoutPrototypes::of(job, space));
//   const Layout layout = prototypes.layout(point);
//   flags_of(prototypes.settings(point))            // resolve() gives the same layout for them
//
// A search creates hundreds of thousands of layouts. The defaults of a framework are resolved only once per combination of
// element type, sharding, recomputation and sequence parallelism. Degrees, batch and stages are then set in a copy.
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

// Sharding of weights, gradients and optimizer states over data-parallel ranks.
// How data-parallel ranks share weights, gradients and states.
struct DataSharding {
  Sharding kind = Sharding::none;
  // Hybrid sharding: the ranks of this many nodes share one copy; 0: all ranks do.
  std::int32_t nodes = 0;
  friend auto operator<=>(const DataSharding&, const DataSharding&) = default;
};
// "none", "zero1", "zero2", "zero3", "hybrid:4"; the parser also accepts "fsdp", "hybrid" and "hsdp".
[[nodiscard]] std::string to_string(const DataSharding& sharding);
[[nodiscard]] Result<DataSharding> parse_data_sharding(const std::string& word);
// Stores the kind of sharding in the settings of a job.
void set_sharding(Sharding kind, JobSettings& settings);

// One choice for every dimension of the search.
struct LayoutPoint {
  std::int32_t tensor = 1, pipeline = 1, context = 1, data = 1, expert = 1;
  std::int32_t expert_tensor = 0;  // 0: equal to `tensor`
  std::int32_t micro_batch = 1;    // sequences
  std::int32_t virtual_stages = 1;
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  DataSharding sharding;
  Recompute recompute = Recompute::none;
  bool sequence_parallel = false;
  DType dtype = DType::bf16;
  friend auto operator<=>(const LayoutPoint&, const LayoutPoint&) = default;
};

// "tp8 pp16x3 cp2 dp4 mbs2 zero1 full fp8 sp": all values other than 1, none and off, plus data-parallel degree and
// micro-batch.
[[nodiscard]] std::string to_string(const LayoutPoint& point);
// The changes from one point to the other: "pipeline 8 -> 16, recomputation none -> full". The data-parallel degree follows
// from the others and is not listed.
[[nodiscard]] std::string difference(const LayoutPoint& from, const LayoutPoint& to);
// The number of changes that difference() lists.
[[nodiscard]] int n_changes(const LayoutPoint& from, const LayoutPoint& to);

// Resolved layouts for all combinations of types, sharding, recomputation and sequence parallelism, and the layouts and
// settings of points derived from them.
class LayoutPrototypes {
 public:
  // `job`: the requested job; its degrees are ignored. One prototype per combination of the lists. `gpus_per_node`: the node
  // size for hybrid sharding. Errors: those of resolve().
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
  // Notes of resolve() about defaults.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }
  [[nodiscard]] std::int64_t global_batch() const {
    return prototypes_.front().layout.batch.global_batch_sequences;
  }
  [[nodiscard]] std::int64_t seq_len() const { return prototypes_.front().layout.batch.seq_len_tokens; }
  [[nodiscard]] const Software& software() const { return prototypes_.front().layout.software; }
  [[nodiscard]] Framework framework() const { return software().framework; }

  // Does not check the layout. For a combination outside the lists, the most similar prototype is used.
  [[nodiscard]] Layout layout(const LayoutPoint& point) const;
  // The same, reusing the memory of `into`.
  void layout(const LayoutPoint& point, Layout& into) const;
  // The settings to add to the job to get this layout.
  [[nodiscard]] JobSettings settings(const LayoutPoint& point) const;
  // Ranks that share one copy of sharded weights; 0: all ranks. -1: hybrid sharding is impossible for this point.
  [[nodiscard]] std::int64_t shard_group(const LayoutPoint& point) const;

 private:
  struct Prototype {
    DType dtype;
    DataSharding sharding;
    Recompute recompute;
    bool sequence_parallel;
    Layout layout;
  };
  // The prototype most similar to the point.
  [[nodiscard]] const Prototype& like(const LayoutPoint& point) const;

  JobSettings said_;  // settings of the user without searched choices
  std::vector<Prototype> prototypes_;
  Transformer model_;
  TrainingRoutine routine_;
  std::vector<std::string> notes_;
  std::int64_t gpus_per_node_ = 1;
};

}  // namespace stepcast
