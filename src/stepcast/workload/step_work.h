// The work of one training step on every GPU: operations and transfers, in order, with shapes.
//
//   STEPCAST_ASSIGN(const StepWork work, step_work(model, layout));
//   work.layer_kinds[0]->forward         norm, projections, attention, ... of one layer on one rank
//   work.chunks[0].runs                  the layers of a stage, as runs of equal layers
//
// The work has no times. predict/ prices the items, step_program.h builds a Program from them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <variant>
#include <vector>

#include "stepcast/base/quantity.h"
#include "stepcast/base/result.h"
#include "stepcast/operation/collective_kind.h"
#include "stepcast/operation/operation.h"
#include "stepcast/workload/layout.h"
#include "stepcast/workload/transformer.h"

namespace stepcast {

// The group of ranks of a transfer; workload/placement.h gives its position on nodes.
enum class GroupKind : std::uint8_t {
  tensor,
  context,
  expert,
  data,         // data- and context-parallel ranks, which have the same weights
  expert_data,  // ranks with the same experts
  pipeline,     // two neighbouring stages
  embedding,    // first and last stage, which share tied embeddings
  shard,        // hybrid sharding: ranks that together have one copy of the weights
  replicate,    // hybrid sharding: ranks with the same shard
};
inline constexpr int kGroupKindCount = 9;
// Also the label of the group in a Program.
[[nodiscard]] std::string_view to_string(GroupKind group);

// One collective of a rank. `message` is the size of nccl-tests: all_reduce = buffer of one rank; all_gather
// = result on every rank; reduce_scatter, all_to_all = input of every rank; send_receive = bytes sent by one
// rank.
struct Transfer {
  CollectiveOp op = CollectiveOp::all_reduce;
  GroupKind group = GroupKind::tensor;
  Bytes message;
  friend bool operator==(const Transfer&, const Transfer&) = default;
};

// Role of an item for code that treats it specially: the result or gradient that it computes. Code never
// depends on names, which are for reports.
enum class ItemRole : std::uint8_t {
  other,       // none of the following
  cast,        // of the operand of a narrow GEMM
  dequantise,  // of the frozen weight of the next GEMM
  qkv,
  attention,
  attention_output,
  ffn_up,
  ffn_down,
  expert_up,
  expert_down,
  expert_counts,  // tokens per expert, which the host may wait for
  training,       // only in training, not in generation: loss, balancing of experts, biases of single experts
};

// One operation or transfer of a list.
struct WorkItem {
  std::string_view name;  // static storage: "qkv", "attention", "ffn_up"
  std::variant<Operation, Transfer> what;
  std::int64_t count = 1;      // repetitions, back to back
  bool overlaps_next = false;  // a transfer that overlaps the next item
  // A transfer that overlaps all following work until an item waits for it.
  bool overlaps_remainder = false;
  bool joins = false;  // waits for the earlier transfers with overlaps_remainder, as does all following work
  bool weight_gradient = false;  // no other item of the backward pass depends on it
  bool captured = false;         // in a CUDA graph: launched together with the previous item
  bool host_waits = false;       // before launching this item, the host waits for all previous ones
  ItemRole role = ItemRole::other;
  double share = 1;  // share of the time of a transfer; the rest runs elsewhere or is another item
  [[nodiscard]] const Operation* operation() const { return std::get_if<Operation>(&what); }
  [[nodiscard]] const Transfer* transfer() const { return std::get_if<Transfer>(&what); }
  friend bool operator==(const WorkItem&, const WorkItem&) = default;
};
using WorkList = std::vector<WorkItem>;

// The work of one layer, the embedding or the head, on one rank for one micro-batch.
struct LayerWork {
  WorkList forward;
  WorkList backward;   // includes the second forward where the layer is recomputed
  WorkList held_back;  // weight gradients, under a schedule that runs them separately from the backward
  bool recomputed = false;
  // Parameters of this rank, before sharding over data-parallel ranks. A frozen weight in fewer bits counts
  // in proportion to its bytes, relative to a weight in the compute type.
  double dense_parameters = 0;
  double expert_parameters = 0;
  double dequantised_bytes = 0;  // of the largest frozen weight, during its GEMM
  // The trained part of these, with gradients and optimizer states. Smaller where the base is frozen.
  double trained_dense_parameters = 0, trained_expert_parameters = 0;
  friend bool operator==(const LayerWork&, const LayerWork&) = default;
};

// Consecutive layers of the model on one pipeline rank.
struct ChunkWork {
  // A number of equal consecutive layers.
  struct Run {
    std::uint32_t kind = 0;  // index into StepWork::layer_kinds
    std::uint32_t count = 0;
    friend bool operator==(const Run&, const Run&) = default;
  };
  std::vector<Run> runs;
  bool has_embedding = false, has_head = false;
  double dense_parameters = 0;  // on this rank: layers, embedding, head
  double expert_parameters = 0;
  double trained_dense_parameters = 0, trained_expert_parameters = 0;
  friend bool operator==(const ChunkWork&, const ChunkWork&) = default;
};

// The work of a step. Layer lists are shared with the LayerWorkCache that created them, and so between
// layouts.
struct StepWork {
  std::vector<std::shared_ptr<const LayerWork>> layer_kinds;
  std::shared_ptr<const LayerWork> embedding;
  std::shared_ptr<const LayerWork> head;  // final norm, logits, loss
  std::vector<ChunkWork> chunks;          // in the order of the model, each on stage_of_chunk()
  std::uint32_t stages = 1, virtual_stages = 1, micro_batches = 1;
  Bytes boundary;  // activations passed between two stages, per micro-batch and rank
  friend bool operator==(const StepWork&, const StepWork&) = default;
};

// Error: that of check(layout, model). For many layouts use the version with a cache below.
[[nodiscard]] Result<StepWork> step_work(const Transformer& model, const Layout& layout);

// Whether the last of several stages has a copy of the embedding, with gradients summed over both stages: for
// a tied output matrix, and for layers that predict further tokens.
[[nodiscard]] inline bool embeds_on_last_stage(const Transformer& model) {
  return model.tied_embeddings || model.n_multi_token_prediction_layers > 0;
}

// Bytes per parameter of the communication between data-parallel ranks.
struct GradientTraffic {
  double reduce_bytes_per_parameter = 4;  // gradients
  double gather_bytes_per_parameter = 2;  // weights
};
[[nodiscard]] GradientTraffic gradient_traffic(const Layout& layout);

// Shares the lists of layers between layouts that compute them identically.
//
//   LayerWorkCache cache;
//   STEPCAST_TRY(step_work(model, layout, cache, one));
//   layout.degrees.pipeline *= 2;                     // other stages of the same layers
//   STEPCAST_TRY(step_work(model, layout, cache, other));
//   one.layer_kinds[0] == other.layer_kinds[0]        // one list for both
//
// A search visits thousands of layouts that differ in stages, data-parallel ranks, schedule and sharding, but
// only some dozens of layers (LayerKey). Not thread-safe: use one cache per thread. The lists may be read by
// any thread and outlive the cache.

namespace detail {
class LayerLists;
struct KnownLayers;
}  // namespace detail

class LayerWorkCache {
 public:
  LayerWorkCache();
  LayerWorkCache(LayerWorkCache&&) noexcept;
  LayerWorkCache& operator=(LayerWorkCache&&) noexcept;
  ~LayerWorkCache();

  // Number of layers, embeddings and heads built so far.
  [[nodiscard]] std::size_t size() const;

 private:
  friend Status step_work(const Transformer& model, const Layout& layout, LayerWorkCache& cache,
                          StepWork& work);
  // The known layers of a key, with embedding and head.
  [[nodiscard]] detail::KnownLayers& of(const Transformer& model, const Layout& layout,
                                        const detail::LayerLists& lists);

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// step_work(model, layout) with lists from `cache`, which keeps new ones. `work` may be the work of another
// layout; its memory is reused.
[[nodiscard]] Status step_work(const Transformer& model, const Layout& layout, LayerWorkCache& cache,
                               StepWork& work);

}  // namespace stepcast
